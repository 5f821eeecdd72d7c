"""The form that all commands' flags share, and an answer on any stdout: a console of few symbols, a full disk, a pipe
whose reader left.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from runner.base.canonical import JSON, rounded
from runner.base.errors import BackendError
from runner.tools.symbols import ASCII, Signs, signs_for


def command_parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a subcommand, of the driver for "": no flag can be abbreviated, texts keep their line breaks."""
    return argparse.ArgumentParser(
        prog=f"per-source-eval.py {command}".rstrip(),
        description=description,
        epilog=epilog,
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


def version_parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a command over versions."""
    parser = command_parser(command, description, epilog)
    parser.add_argument("--source", required=True, metavar="NAME", help="bills, us_code, demo, ...")
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/, v2/; default eval-sets/SOURCE")
    return parser


def add_output_flags(parser: argparse.ArgumentParser, what: str) -> None:
    """--json, which prints `what`, and --ascii."""
    parser.add_argument("--json", action="store_true", help=what)
    parser.add_argument("--ascii", action="store_true", help="plain signs, nothing but ASCII")


def answer(text: str, *, ascii_only: bool = False) -> None:
    """Print text, with escapes for what the console cannot show; BackendError unless it is written or nobody reads."""
    encoding = "ascii" if ascii_only else sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered would fail once more when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise BackendError(f"The answer cannot be written ({error.strerror}). Free the disk and repeat.") from error


def answer_json(value: JSON) -> None:
    """Print a value as JSON in ASCII: sorted keys, floats at 9 places."""
    answer(json.dumps(rounded(value), sort_keys=True, indent=1))


def show(lines: Iterable[str], signs: Signs) -> None:
    """Print lines; where the signs are plain, so is the rest: what is not ASCII becomes an escape."""
    answer("\n".join(lines), ascii_only=signs == ASCII)


def tell(options: argparse.Namespace, data: JSON, lines: Callable[[Signs], Iterable[str]]) -> None:
    """Print `data` if --json was given, else the lines, in the symbols that the console can show."""
    if options.json:
        answer_json(data)
    else:
        signs = signs_for(sys.stdout, ascii_only=options.ascii)
        show(lines(signs), signs)
