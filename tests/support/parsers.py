"""The parser of every verb, for tests that hold documents and helps to the flags."""

from collections.abc import Iterator
from typing import NoReturn
from unittest import mock

from runner.commands.console import Parser
from runner.commands.verbs import VERBS, Verb, command_of


class _Captured(Exception):
    """A verb's parser, in place of its run."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser


def parser_of(name: str) -> Parser:
    """Return the parser of a verb; nothing of the verb is run."""

    def capture(parser: Parser, _: object) -> NoReturn:
        raise _Captured(parser)

    with mock.patch.object(Parser, "parse_args", capture):
        try:
            command_of(name)([])
        except _Captured as captured:
            return captured.parser
    raise AssertionError(f"{name} has no parser")


def runnable() -> Iterator[tuple[str, Verb]]:
    """Every verb, or action of a verb, that has a function."""
    return ((name, verb) for name, verb in VERBS.items() if verb.function)
