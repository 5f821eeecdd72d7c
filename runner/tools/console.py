"""What all commands share: the form of their flags, and an answer on stdout, whatever that is.

It may be a console of few signs, a file on a full disk, a pipe whose reader left.
"""

import argparse
import json
import os
import sys
from pathlib import Path

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

    A BackendError where the answer cannot be written.
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
