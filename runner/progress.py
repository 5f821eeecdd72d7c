"""What a person sees while a command runs: on stderr, so that stdout stays the answer.

A console that is closed or full loses what is said and changes nothing else.
"""

import contextlib
import os
import sys

from runner.given_file import printable


def say(text: str) -> None:
    """A line of progress, or an error's message; what a terminal would obey is spelled out."""
    _write("".join(f"{printable(line, len(line))}\n" for line in text.split("\n")))


def bar(label: str, done: int, total: int) -> None:
    """A bar that redraws itself on a terminal, a line at the end elsewhere."""
    if sys.stderr.isatty():
        filled = 30 * done // max(total, 1)
        end = "\n" if done >= total else ""
        _write(f"\r{label} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}{end}")
    elif done >= total:
        say(f"{label} {done}/{total}")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # What is still buffered would fail once more when Python exits, with an exit code of its own.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
