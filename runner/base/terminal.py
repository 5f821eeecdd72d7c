"""What a terminal can show: tables as wide as it is, and the symbols that its encoding has."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TextIO

GAP = "  "
_HELD = "\0"
"""A blank at which no line is broken."""

_NARROWEST, _WIDEST = 40, 200


def terminal_width() -> int | None:
    """Columns of the terminal, or of COLUMNS; None if stdout is no terminal and nothing is said."""
    if not os.environ.get("COLUMNS", "").isdecimal() and not sys.stdout.isatty():
        return None
    return min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Head and rows in columns of at most `width`; the first column is the name and gives way first.

    A name breaks behind its ` x `. Where that is not enough it stands on a line of its own, with the figures below it
    in their columns, and where these do not fit either, each with its head. None is as wide as it takes.
    """
    widths = [max(map(len, column)) for column in zip(*(row[1:] for row in (head, *rows)), strict=True)]
    names = [row[0] for row in (head, *rows)]
    left = (width or sys.maxsize) - sum(len(GAP) + each for each in widths)
    name_width = max(map(len, names))
    if name_width > left:
        name_width = max(len(part) for name in names for part in _parts(name))
    if name_width <= left:
        return [line for row in (head, *rows) for line in _beside(row, name_width, widths)]
    assert width is not None
    if len(GAP) + sum(widths) + len(GAP) * (len(widths) - 1) <= width:
        below = [GAP + _joined(row[1:], widths) for row in (head, *rows)]
        return [
            head[0],
            below[0],
            *(line for row, figures in zip(rows, below[1:], strict=True) for line in (row[0], figures)),
        ]
    return [line for row in rows for line in _spelled(head, row, width)]


def _parts(name: str) -> list[str]:
    first, x, second = name.partition(" x ")
    return [f"{first} x", f"{GAP}{second}"] if x else [name]


def _beside(row: Sequence[str], name_width: int, widths: Sequence[int]) -> list[str]:
    first, *others = [row[0]] if len(row[0]) <= name_width else _parts(row[0])
    return [f"{first.ljust(name_width)}{GAP}{_joined(row[1:], widths)}".rstrip(), *others]


def _joined(texts: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(text.ljust(room) for text, room in zip(texts, widths, strict=True)).rstrip()


def _spelled(head: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    said = "; ".join(
        f"{name} {text}".strip() for name, text in zip(head[1:], row[1:], strict=True) if text not in ("", "-")
    )
    whole = said if max(map(len, said.split("; "))) > width - len(GAP) else _HELD.join(said.split(" "))
    whole = whole.replace(f";{_HELD}", "; ")
    lines = textwrap.wrap(whole, width - len(GAP), break_long_words=False, break_on_hyphens=False)
    wrapped = [line.replace(_HELD, " ") for line in lines]
    return [*_name_lines(row[0], width), *(GAP + line for line in wrapped)]


def _name_lines(name: str, width: int) -> list[str]:
    return [name] if len(name) <= width else _parts(name)


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
    up="^",
    down="v",
)


def signs_for(stream: TextIO, *, ascii_only: bool = False) -> Signs:
    """The signs that `stream` can print (all, without an encoding); ASCII if a flag or ASCII_VARIABLE asks for it."""
    if ascii_only or os.environ.get(ASCII_VARIABLE):
        return ASCII
    signs = Signs()
    try:
        for field in fields(signs):
            getattr(signs, field.name).encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return signs
