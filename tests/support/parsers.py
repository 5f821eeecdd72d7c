"""The parser of every verb, for tests that hold documents and helps to the flags."""

from collections.abc import Iterator

from runner.commands.console import parser_of
from runner.commands.verbs import VERBS, Verb

__all__ = ["parser_of", "runnable"]


def runnable() -> Iterator[tuple[str, Verb]]:
    """Every verb, or action of a verb, that has a function."""
    return ((name, verb) for name, verb in VERBS.items() if verb.function)
