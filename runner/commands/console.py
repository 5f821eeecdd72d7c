"""The form that all commands' flags share, and an answer on any stdout: a console of few symbols, a full disk, a pipe
whose reader left.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from runner.base.canonical import JSON, rounded
from runner.base.checks import Check, Outcome, examine
from runner.base.errors import BackendError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.places import DRIVER
from runner.base.terminal import MARKS, shown
from runner.commands.verbs import EXIT_CODES, VERBS, near
from runner.eval_set.version import Version, existing_version, is_trial, newest_version


class Parser(argparse.ArgumentParser):
    """A verb's parser: no flag can be abbreviated, texts keep their line breaks, misspelt flags get the nearest.

    SOURCE may also be written as --source NAME, as the command line without a verb has it.
    """

    def parse_args(self, args: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """The options; flags may stand between positional arguments."""
        if any(action.dest == "source" and not action.option_strings for action in self._actions):
            args = source_first(args)
        return self.parse_intermixed_args(args)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one message, which names what a misspelt flag may have meant."""
        if message.startswith("unrecognized arguments: "):
            word = message.split()[2].partition("=")[0]
            message += near(word, [*self._option_string_actions]) if word.startswith("-") else "."
        self.exit(2, f"{self.prog}: error: {message}\nIts flags, with an example: {self.prog} --help\n")


def source_first(arguments: Sequence[str]) -> list[str]:
    """The arguments with the value of --source before all others."""
    found, kept, rest = [], [], iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name != "--source":
            kept.append(argument)
        elif value := value if equals else next(rest, ""):
            found.append(value)
    return [*found, *kept]


def command_parser(verb: str, description: str = "", epilog: str = "") -> Parser:
    """The parser of a verb, with exit codes and its example at the end of the help."""
    known = VERBS[verb]
    if "exit codes:" not in epilog:
        epilog = f"{epilog}\nexit codes: {EXIT_CODES}"
    return Parser(
        prog=f"{DRIVER} {verb}",
        description=description or f"{known.does[0].upper()}{known.does[1:]}.",
        epilog=f"{epilog}\nexample: {DRIVER} {known.example}".lstrip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def whole_number(what: str, least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """The type of a flag that takes a whole number within bounds; `what` says what it counts."""

    def parse(text: str) -> int:
        number = int(text) if text.isdecimal() and text.isascii() else -1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return number

    return parse


def version_parser(verb: str, description: str = "", epilog: str = "", *, optional: str = "") -> Parser:
    """The parser of a verb over a source's versions; `optional` says what it means to leave SOURCE out."""
    parser = command_parser(verb, description, epilog)
    names = "bills, us_code, demo, ...; or --source NAME"
    if optional:
        parser.add_argument("source", nargs="?", default="", metavar="SOURCE", help=f"{names}; {optional}")
    else:
        parser.add_argument("source", metavar="SOURCE", help=names)
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/, v2/; default eval-sets/SOURCE")
    return parser


def add_trial_flag(parser: Parser, help_text: str = "of the trial") -> None:
    """--try, which `version_of` reads."""
    parser.add_argument("--try", action="store_true", dest="trial", help=help_text)


def version_of(options: argparse.Namespace, *, begins: bool = False) -> Version:
    """The newest version by the flags of `version_parser`; its rehearsal with --rehearse, its trial with --try.

    An InputError if --eval-set-path names a folder without versions, unless the command `begins` one there.
    """
    found = newest_version if begins else existing_version
    folder = options.eval_set_path
    in_trial = folder is not None and is_trial(folder, options.source)
    if in_trial and getattr(options, "trial", False):
        raise InputError(f"{folder} is a trial already: leave --try out, or give the folder that it was begun from.")
    version = found(options.source, options.eval_set_path, rehearsal=in_trial or getattr(options, "rehearse", False))
    if not getattr(options, "trial", False):
        return version
    from runner.evening.exploration import trial_of

    return trial_of(version)


def add_output_flags(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --json, which prints `what`."""
    parser.add_argument("--json", action="store_true", help=what)


def answer(text: str) -> None:
    """Print text as the console can show it; BackendError unless it is written or nobody reads."""
    try:
        sys.stdout.write(shown(text, sys.stdout.encoding) + "\n")
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail once more when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise BackendError(f"The answer cannot be written ({error.strerror}). Free the disk and repeat.") from error


def answer_json(value: JSON) -> None:
    """Print a value as JSON in ASCII: sorted keys, floats at 9 places."""
    answer(json.dumps(rounded(value), sort_keys=True, indent=1))


def show_checks(checks: Iterable[Check], options: argparse.Namespace, *, quick: bool = False) -> list[Outcome]:
    """The outcome of each check, printed as soon as it is made unless --json was given, with what helps."""
    marks = {"ok": MARKS["pass"], "failed": MARKS["fail"], "skipped": "?"}
    outcomes = []
    for outcome in examine(checks, quick=quick):
        outcomes.append(outcome)
        if not options.json:
            first, *more = outcome.result.splitlines() or [""]
            answer(f"{marks[outcome.state]} {outcome.name}: {printable(first, LONGEST_LINE)}")
            for line in more:
                answer(f"    {printable(line, LONGEST_LINE)}")
            if outcome.state == "failed":
                answer(f"    next: {outcome.next_step}")
    return outcomes


def tell(options: argparse.Namespace, data: JSON, lines: Callable[[], Iterable[str]]) -> None:
    """Print `data` if --json was given, else the lines."""
    if options.json:
        answer_json(data)
    else:
        answer("\n".join(lines()))
