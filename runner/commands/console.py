"""A verb's parser, from its row of the table; and an answer on any stdout: a console of few symbols, a full disk, a
pipe whose reader left.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from runner.base.errors import BackendError
from runner.base.places import DRIVER
from runner.base.terminal import shown
from runner.commands.verbs import EXIT_CODES, VERBS, near

if TYPE_CHECKING:
    from runner.base.canonical import JSON


class Parser(argparse.ArgumentParser):
    """A verb's parser: no flag can be abbreviated, texts keep their line breaks, misspelt flags get the nearest.

    SOURCE may also be written as --source NAME, as the command line without a verb has it.
    """

    def parse_args(self, args: Sequence[str]) -> argparse.Namespace:  # type: ignore[override]
        """Return the options; flags may stand between positional arguments."""
        if any(action.dest == "source" and not action.option_strings for action in self._actions):
            args = source_first(args)
        return self.parse_intermixed_args(args)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one message, which names what a misspelt flag may have meant."""
        if message.startswith("unrecognized arguments: "):
            word = message.split()[2].partition("=")[0]
            # The prefix is argparse's own wording; a flag alone can be misspelt, not a path.
            message += near(word, [*self._option_string_actions]) if word.startswith("-") else "."
        self.exit(2, f"{self.prog}: error: {message}\nIts flags, with an example: {self.prog} --help\n")


def source_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the value of --source before all others."""
    sources, others, rest = [], [], iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name != "--source":
            others.append(argument)
        elif value := value if equals else next(rest, ""):
            sources.append(value)
    return [*sources, *others]


def parser_of(name: str) -> Parser:
    """Return the parser of a verb, with exit codes and its example at the end of the help."""
    verb = VERBS[name]
    codes = "" if "exit codes:" in verb.ending else f"\nexit codes: {EXIT_CODES}"
    parser = Parser(
        prog=f"{DRIVER} {name}",
        description=_unindented(verb.description or f"{verb.does[0].upper()}{verb.does[1:]}."),
        epilog=f"{_unindented(verb.ending)}{codes}\nexample: {DRIVER} {verb.example}".lstrip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    into: argparse._ActionsContainer = parser
    either: argparse._MutuallyExclusiveGroup | None = None
    for line in filter(None, map(str.strip, verb.arguments.splitlines())):
        form, _, said = line.partition("   ")
        if form.endswith(":"):  # a heading, of the arguments below it
            into = parser.add_argument_group(form.removesuffix(":"))
        elif form.startswith("| "):
            either = either or parser.add_mutually_exclusive_group(required=True)
            _add(either, form.removeprefix("| "), said.strip())
        else:
            _add(into, form, said.strip())
    return parser


def _add(into: "argparse._ActionsContainer", form: str, said: str) -> None:
    """Add an argument as written: `--json`, `--size N=30`, `-o --output FILE!`, `[SOURCE]`, `FILE...`, `a|b`.

    In brackets it may be missing, `...` is one or more, `!` is required, `=` is a default, and `|` are choices. The
    name of the value says its type.
    """
    words = form.split()
    flags, value = ([*words], "") if words[-1].startswith("-") else (words[:-1], words[-1])
    if not value:
        # `try` is a word of Python, which no attribute can be named by.
        into.add_argument(*flags, action="store_true", help=said, dest="trial" if form == "--try" else None)
        return
    # The signs around the value's name first, then its default and choices.
    may_miss, many, must = value.startswith("["), value.rstrip("]").endswith("..."), value.endswith("!")
    value = value.strip("[]!").removesuffix("...")
    name, has_default, default = (value, "", "") if many else value.partition("=")
    # `a|b` is a list of choices, and anything else a name, which says the type.
    choices = name.split("|") if "|" in name else None
    kind = _TYPES.get(name, str)
    settings: dict[str, Any] = {"type": kind, "help": said, "choices": choices}
    settings |= {} if choices else {"metavar": name}
    if not flags:  # a positional argument
        nargs = {(True, True): "*", (False, True): "+", (True, False): "?", (False, False): None}[may_miss, many]
        word = "action" if choices else name.lower() + ("s" if many else "")
        into.add_argument(word, nargs=nargs, default="" if nargs == "?" else None, **settings)
        return
    if may_miss and choices:  # the flag alone means the first of them
        settings |= {"nargs": "?", "const": choices[0]}
    if many:
        settings |= {"action": "append", "default": [], "help": f"{said} (repeatable)"}
    if has_default:
        settings["default"] = kind(default)
    into.add_argument(*flags, required=must, **settings)


def _whole_number(text: str) -> int:
    if not (text.isdecimal() and text.isascii()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _dollars(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars") from error


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date (YYYY-MM-DD)") from error


def _place(text: str) -> Path:
    if not text:  # which would be the folder that one stands in
        raise argparse.ArgumentTypeError("a path is expected, and it is empty")
    return Path(text)


_TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("PATH", "FILE", "FOLDER", "RUN", "GOLDEN"), _place),
    "N": _whole_number,
    "X": float,
    "USD": _dollars,
    "DATE": _day,
}
"""The type of an argument by the name of its value; of any other name it is text."""


def _unindented(text: str) -> str:
    return "\n".join(map(str.strip, text.splitlines()))


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


def open_page(page: Path) -> None:
    """Print the address of a page, and open it in a browser if a person reads the answer."""
    import webbrowser

    answer(page.resolve().as_uri())
    if sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())


def answer_json(value: "JSON") -> None:
    """Print a value as JSON in ASCII: sorted keys, floats at 9 places."""
    from runner.base.canonical import rounded

    answer(json.dumps(rounded(value), sort_keys=True, indent=1))


def tell(options: argparse.Namespace, data: "JSON", lines: Callable[[], Iterable[str]]) -> None:
    """Print `data` if --json was given, else the lines."""
    if options.json:
        answer_json(data)
    else:
        answer("\n".join(lines()))
