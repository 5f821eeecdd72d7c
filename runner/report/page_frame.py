"""The frame of every page: one policy that permits its own style and script, and texts that do nothing."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import TypeVar, cast

from jinja2 import Environment
from markupsafe import Markup
from pydantic import BaseModel

from runner.base.canonical import JSON
from runner.report.templates import TEMPLATES, environment

Given = TypeVar("Given")

LONGEST_TEXT = 2_000
"""Characters shown of any one text; the page says how many there were."""

# Control characters, invisible and direction-changing format characters and tag characters: a name that holds them
# could reorder or hide what stands beside it.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)


def rendered(
    template: str,
    *,
    styles: tuple[str, ...] = (),
    scripts: tuple[str, ...] = (),
    asked: Mapping[str, object] | None = None,
    **values: object,
) -> bytes:
    """Return a page as UTF-8: the template of that name with `values`, and `style` and `script` for its head.

    `style` is `_style.css.j2` with `styles` after it, `script` are `scripts`, the only ones that the policy permits;
    both come with their digests. `asked` are functions of the page's own that its macros and parts ask as well.
    """
    style = "".join(_text_of(name) for name in ("_style.css.j2", *styles))
    script = "".join(map(_text_of, scripts))
    head = {name: as_is(text) for name, text in (("style", style), ("script", script))}
    digests = {"style_sha256": _digest(style), "script_sha256": _digest(script)}
    page = _environment().get_template(template, globals=dict(asked or {}))
    return (page.render(**head, **digests, **values) + "\n").encode()


def _text_of(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def as_is(text: str) -> Markup:
    """Return a text that is not escaped: our own style or script, or what the caller has escaped already."""
    return Markup(text)  # noqa: S704  # files of this repository, or escaped by the caller


@cache
def _environment() -> Environment:
    made = environment(autoescape=True)
    made.filters["labelled"] = labelled
    return made


_ROW = re.compile(r"<tr\b.*?(?=<tr\b|</tbody>|</tfoot>|</table>|\Z)", re.DOTALL)
_CELL = re.compile(r"<(t[dh])\b([^>]*)>")
_TAG = re.compile(r"<[^>]+>")
_SPAN = re.compile(r'(col|row)span="?(\d+)')


def labelled(table: str) -> Markup:
    """Return the table whose data cells carry their column's name, for screens so narrow that a row becomes a card.

    Names are those of the last row of the head; a cell that is several columns wide carries none.
    """
    head, closing, body = str(table).partition("</thead>")  # text of ours is not escaped by what it is added to
    rows = _ROW.findall(head)
    headings = (_TAG.sub("", text) for text in re.split(r"<th\b[^>]*>", rows[-1])[1:])
    names = [" ".join(text.replace("&nbsp;", " ").split()) for text in headings]
    taken = 0  # rows that a cell of the first column reaches down to

    def row(found: re.Match[str]) -> str:
        nonlocal taken
        # Beside a cell that reaches down, a row begins in the second column.
        column = int(taken > 0)
        taken = max(0, taken - 1)

        def cell(match: re.Match[str]) -> str:
            nonlocal column, taken
            spans = {way: int(count) for way, count in _SPAN.findall(match[2])}
            wide, name = spans.get("col", 1), names[column] if column < len(names) else ""
            taken = max(taken, spans.get("row", 1) - 1)
            column += wide
            shown = match[1] == "td" and wide == 1 and name
            return f'<{match[1]}{match[2]} data-label="{name}">' if shown else match[0]

        return _CELL.sub(cell, found[0])

    start = "" if "<tbody" in body else "\n<tbody>"  # which a table of one body leaves out
    return as_is(head + closing + start + _ROW.sub(row, body))


_FIGURES = frozenset((int, float, bool, type(None)))


def inert(value: Given) -> Given:
    """Return the same value with every text in it, keys included, cut and its unseen characters spelled out.

    Models, tuples, lists and mappings are gone through; the fields of a model are not validated again.
    """
    return cast(Given, _inert(value))


def _inert(value: JSON) -> JSON:
    if isinstance(value, str):
        # Nearly all texts of a page, so they leave first.
        if len(value) <= LONGEST_TEXT and value.isprintable():
            return value
        shown = value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value):,} characters in all)"
        return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", shown)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _inert(item) for name, item in value if type(item) not in _FIGURES})
    if isinstance(value, dict):
        return {_inert(key): _inert(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _FIGURES else _inert(item) for item in value]
    if isinstance(value, tuple):
        items = map(_inert, value)
        return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
    return value
