"""Markdown for a repository browser: text that shows as it is, and tables."""

import html
import re
from collections.abc import Iterable, Sequence

from runner.base.given_files import printable

_MARKUP = re.compile(r"([\\`*_\[\]|~#])")
_BLOCK_START = re.compile(r"^(\d*)([-+.)])(?=\s|-*$)")


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line."""
    shown = html.escape(printable(" ".join(text.split()), longest=2000), quote=False)
    return _BLOCK_START.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", shown))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; every line of it ends."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
