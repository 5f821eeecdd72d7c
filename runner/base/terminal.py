"""Tables as wide as the terminal they are printed on."""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

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
