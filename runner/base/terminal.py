"""What a terminal can show: tables as wide as it is, and the symbols that its encoding has."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TextIO

GAP = "  "
_NARROWEST, _WIDEST = 40, 200


def terminal_width() -> int | None:
    """Columns of the terminal, or of COLUMNS; None if stdout is no terminal and nothing is said."""
    if not os.environ.get("COLUMNS", "").isdecimal() and not sys.stdout.isatty():
        return None
    return min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return head and rows in columns of at most `width`, as wide as it takes if it is None; the first is the name.

    A name breaks behind its ` x `. Where that is not enough it stands on a line of its own, above its figures.
    """
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = sys.maxsize if width is None else width - sum(len(GAP) + each for each in widths[1:])
    if widths[0] > left:
        widths[0] = max(len(part) for row in lines for part in _parts(row[0]))
    if widths[0] <= left:
        return [line for row in lines for line in _beside(row, widths)]
    return [line for row in lines for line in (row[0], *_beside(("", *row[1:]), [0, *widths[1:]]))]


def _parts(name: str) -> list[str]:
    first, x, second = name.partition(" x ")
    return [f"{first} x", f"{GAP}{second}"] if x else [name]


def _beside(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    name, *others = [row[0]] if len(row[0]) <= widths[0] else _parts(row[0])
    return [GAP.join(text.ljust(room) for text, room in zip((name, *row[1:]), widths, strict=True)).rstrip(), *others]


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

    def of(self, verdict: str) -> str:
        """The sign of a verdict; what is neither "pass" nor "fail" is unsure."""
        return {"pass": self.ok, "fail": self.no}.get(verdict, self.unsure)

    def signed(self, value: float, places: int) -> str:
        """A number rounded to `places`, with a sign even if it is not negative."""
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
)


def signs_for(stream: TextIO) -> Signs:
    """Return the signs that `stream` can print: all without an encoding, plain ones where it lacks one."""
    signs = Signs()
    try:
        for field in fields(signs):
            getattr(signs, field.name).encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return signs
