"""What a terminal can show: tables as wide as it is, and signs in plain letters where its encoding lacks them."""

import shutil
import sys
from collections.abc import Sequence

MARKS = {"pass": "✓", "fail": "✗", "insufficient": "?"}
"""The sign of a verdict."""

_PLAIN = str.maketrans(
    {"Δ": "d", "τ": "tau", "✓": "[ok]", "✗": "[x]", "−": "-", "≥": ">=", "≤": "<=", "→": "->", "±": "+-", "·": "-"}
)


def shown(text: str, encoding: str | None) -> str:
    """Return text as a stream of that encoding can take it: signs in plain letters, then escapes for the rest."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def terminal_width(otherwise: int) -> int:
    """Return the columns of the terminal, or of COLUMNS; `otherwise` where stdout is not a terminal and none is set."""
    return max(shutil.get_terminal_size((otherwise, 1)).columns, 40)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return head and rows in columns of at most `width`; the first has the names, which may break at their spaces.

    Where that is not enough a name stands on a line of its own, above its figures.
    """
    words = [word for row in (head, *rows) for word in row[0].split()]
    # Figures never break; names give way, down to their longest word.
    figures = [max(map(len, column)) + 2 for column in list(zip(head, *rows, strict=True))[1:]]
    if sum(figures) + max(map(len, words)) <= width:
        return _drawn(head, rows, width)
    below = _drawn(("", *head[1:]), [("", *row[1:]) for row in rows], sys.maxsize)
    return [line for row, values in zip((head, *rows), below, strict=True) for line in (row[0], values)]


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column, title in enumerate(head):
        grid.add_column(title, no_wrap=column > 0, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console = Console(width=width, markup=False, emoji=False, highlight=False, color_system=None)
    with console.capture() as drawn:
        console.print(grid)
    return [line.rstrip() for line in drawn.get().splitlines()]
