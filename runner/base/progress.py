"""What a person sees while a command runs: on stderr, so that stdout stays the answer.

A console that is closed or full loses what is said and changes nothing else.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from runner.base.given_files import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 60
"""Where there is no terminal, an embedding says how far it is this often, and when it is done."""


class Progress(NamedTuple):
    """How far an embedding is; tokens are those that the encoder reads, so without what it truncates.

    Of other work, such as judging, both are its own units.
    """

    texts: int
    all_texts: int
    tokens: int
    all_tokens: int


Report = Callable[[Progress], None]
"""Called when it is known what earlier attempts left, and after every batch."""

Dollars = Callable[[], float | None]
"""What an encoder cost so far, None if nothing is metered."""


def say(text: str) -> None:
    """A line of progress, or an error's message; what a terminal would obey is spelled out."""
    _write("".join(f"{printable(line, len(line))}\n" for line in text.split("\n")))


@contextlib.contextmanager
def bars(unit: str = "tokens") -> Iterator[Callable[[str, Dollars], Report]]:
    """Makes a bar for a label: one of several that a terminal redraws, lines elsewhere.

    NO_COLOR asks for lines on a terminal too. Safe from many threads. The pace is told in `unit` a second.
    """
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        yield lambda label, dollars: _lines(label, dollars, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Display

    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), TextColumn("{task.fields[said]}")
    with Display(*columns, console=Console(stderr=True), refresh_per_second=4) as display:
        yield lambda label, dollars: _bar(display, label, dollars, unit)


def _bar(display: "Display", label: str, dollars: Dollars, unit: str) -> Report:
    pace = _Pace(unit)
    tasks: list[TaskID] = []

    def report(at: Progress) -> None:
        pace.note(at)
        if not tasks:  # what lies in the store already never reports, and needs no bar
            tasks.append(display.add_task(printable(label, len(label)), total=None, said=""))
        display.update(tasks[0], total=max(at.all_tokens, 1), completed=at.tokens, said=pace.said(at, dollars()))

    return report


def _lines(label: str, dollars: Dollars, unit: str) -> Report:
    pace = _Pace(unit)

    def report(at: Progress) -> None:
        pace.note(at)
        if at.texts == at.all_texts or pace.is_due():
            say(f"{label} {pace.said(at, dollars())}")

    return report


def duration(seconds: float) -> str:
    """About how long, in the unit that a person would use."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 5400:
        minutes = round(seconds / 60)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / 3600:.1f} hours"


class _Pace:
    """How fast one embedding goes, counted from its first report, which says what earlier attempts left."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.started = self.last_line = time.monotonic()
        self.tokens_before: int | None = None

    def note(self, at: Progress) -> None:
        """Begin to count with the first report."""
        if self.tokens_before is None:
            self.started, self.tokens_before = time.monotonic(), at.tokens

    def is_due(self) -> bool:
        """Whether it is time for another line."""
        due = time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES
        if due:
            self.last_line = time.monotonic()
        return due

    def said(self, at: Progress, dollars: float | None) -> str:
        """Texts, tokens per second, dollars, time left."""
        seconds = time.monotonic() - self.started
        rate = (at.tokens - (self.tokens_before or 0)) / seconds if seconds > 0 else 0.0
        parts = [f"{at.texts}/{at.all_texts}"]
        if rate > 0:
            parts.append(f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}/s")
        if dollars is not None:
            parts.append(f"${dollars:.2f}")
        if rate > 0 and at.tokens < at.all_tokens:
            minutes, rest = divmod(round((at.all_tokens - at.tokens) / rate), 60)
            parts.append(f"{minutes}:{rest:02d} left")
        return ", ".join(parts)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # What is still buffered would fail once more when Python exits, with an exit code of its own.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
