"""What a person sees while a command runs: on stderr, so that stdout stays the answer.

A console that is closed or full loses what is said and changes nothing else.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from runner.base.given_files import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 60
"""Where there is no terminal, work says how far it is this often, and an embedding when it is done."""

SECONDS_OF_SILENCE = 2.0
"""On a terminal, work that nobody expects to take long says how far it is this often."""

Item = TypeVar("Item")


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
    """Print a line of progress, or an error's message; what a terminal would obey is spelled out."""
    try:
        sys.stderr.write("".join(f"{printable(line, len(line))}\n" for line in text.split("\n")))
        sys.stderr.flush()
    except OSError:
        # What is still buffered would fail once more when Python exits, with an exit code of its own.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextlib.contextmanager
def bars(unit: str = "tokens") -> Iterator[Callable[[str, Dollars], Report]]:
    """Make a bar for a label: one of several that a terminal redraws, lines elsewhere.

    NO_COLOR asks for lines on a terminal too. Safe from many threads. The pace is told in `unit` a second.
    """
    display = _display() if sys.stderr.isatty() and not os.environ.get("NO_COLOR") else None

    def bar(label: str, dollars: Dollars) -> Report:
        first: tuple[float, int] | None = None
        task: TaskID | None = None
        last = time.monotonic()

        def report(at: Progress) -> None:
            nonlocal first, task, last
            now = time.monotonic()
            first = first or (now, at.tokens)
            pace = _pace(at, at.tokens - first[1], now - first[0], dollars(), unit)
            if display is not None:
                if task is None:  # what lies in the store already never reports, and needs no bar
                    task = display.add_task(printable(label, len(label)), pace="")
                display.update(task, total=max(at.all_tokens, 1), completed=at.tokens, pace=pace)
            elif at.texts == at.all_texts or now - last >= SECONDS_BETWEEN_LINES:
                last = now
                say(f"{label} {pace}")

        return report

    with display or contextlib.nullcontext():
        yield bar


def watched(items: Iterable[Item], total: int, doing: str, unit: str) -> Iterator[Item]:
    """Give the items, and say now and then how many of all were given, at which pace, and the time left.

    It is said by a thread of its own, so that one item that takes long does not keep it silent.
    """
    n, started, ended = 0, time.monotonic(), threading.Event()
    seconds = SECONDS_OF_SILENCE if sys.stderr.isatty() else SECONDS_BETWEEN_LINES

    def tell() -> None:
        while not ended.wait(seconds):
            pace = _pace(Progress(n, total, n, total), n, time.monotonic() - started, None, unit)
            say(f"{doing} {pace}")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        for item in items:
            yield item
            n += 1
    finally:
        ended.set()
        teller.join()


def _display() -> "Display":
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Display

    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=30), TextColumn("{task.fields[pace]}")
    return Display(*columns, console=Console(stderr=True), refresh_per_second=4)


def _pace(at: Progress, tokens: int, seconds: float, spent: float | None, unit: str) -> str:
    """Return texts, tokens a second, dollars and time left; the pace leaves out what earlier attempts left."""
    rate = tokens / seconds if seconds > 0 else 0.0
    parts = [f"{at.texts}/{at.all_texts}"]
    if rate > 0:
        parts.append(f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s")
    if spent is not None:
        parts.append(f"${spent:.2f}")
    if rate > 0 and at.tokens < at.all_tokens:
        minutes, rest = divmod(round((at.all_tokens - at.tokens) / rate), 60)
        parts.append(f"{minutes}:{rest:02d} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return about how long, in the unit that a person would use."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 5400:
        minutes = round(seconds / 60)
        return f"about {minutes} minute{'s' if minutes > 1 else ''}"
    return f"about {seconds / 3600:.1f} hours"
