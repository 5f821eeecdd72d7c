"""What all commands share: the form of their flags, and an answer on stdout, whatever that is.

It may be a console of few signs, a file on a full disk, a pipe whose reader left.

The signs that consoles are shown, and what stands for them where a console cannot print them.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TextIO

from runner.base.canonical import JSON, rounded
from runner.base.errors import BackendError


def command_parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a subcommand, of the driver for "": no flag can be abbreviated, texts keep their line breaks."""
    return argparse.ArgumentParser(
        prog=f"per-source-eval.py {command}".rstrip(),
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def version_parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a command over versions."""
    parser = command_parser(command, description, epilog)
    parser.add_argument("--source", required=True, metavar="NAME", help="bills, us_code, demo, ...")
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/, v2/; default eval-sets/SOURCE")
    return parser


def answer(text: str, *, ascii_only: bool = False) -> None:
    """Print text, what the console cannot show as escapes; a reader that has gone away is none of our business.

    A BackendError if the answer cannot be written.
    """
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


ASCII_VARIABLE = "PER_SOURCE_EVAL_ASCII"
"""Set to anything but the empty string, it asks for plain signs everywhere."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Typographic signs by their meaning; the defaults need an encoding that has them."""

    delta: str = "Δ"
    tau: str = "τ"
    ok: str = "✓"
    no: str = "✗"
    unsure: str = "?"
    minus: str = "−"
    at_least: str = "≥"
    at_most: str = "≤"
    arrow: str = "→"
    up: str = "↑"
    down: str = "↓"

    def of(self, verdict: str) -> str:
        """The sign of a verdict; what is neither "pass" nor "fail" is unsure."""
        return {"pass": self.ok, "fail": self.no}.get(verdict, self.unsure)

    def signed(self, value: float, places: int) -> str:
        """A number rounded to `places`, with a sign also where it is not negative."""
        return f"{round(value, places) + 0.0:+.{places}f}".replace("-", self.minus)  # + 0.0 turns -0.0 into 0.0


ASCII = Signs(
    delta="d",
    tau="tau",
    ok="[ok]",
    no="[x]",
    unsure="[?]",
    minus="-",
    at_least=">=",
    at_most="<=",
    arrow="->",
    up="^",
    down="v",
)


def signs_for(stream: TextIO, *, ascii_only: bool = False) -> Signs:
    """The signs that `stream` can print.

    Plain ones if they are asked for, by `ascii_only` or by the environment variable PER_SOURCE_EVAL_ASCII, and
    where the stream's encoding lacks one of the signs. A stream without an encoding (io.StringIO) takes them all.
    """
    if ascii_only or os.environ.get(ASCII_VARIABLE):
        return ASCII
    signs = Signs()
    try:
        for field in fields(signs):
            getattr(signs, field.name).encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return signs


def show(lines: Iterable[str], signs: Signs) -> None:
    """Print lines; where the signs are plain, so is the rest: what is not ASCII becomes an escape."""
    answer("\n".join(lines), ascii_only=signs == ASCII)
