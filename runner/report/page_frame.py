"""What every page is put into: the templates' environment, and one policy that permits its own style and script."""

import base64
import hashlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, TypeVar, cast

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from pydantic import BaseModel

from runner.base.canonical import JSON, sha256
from runner.base.figures import (
    dollars,
    figure,
    fitting,
    fitting_signed,
    p_beside_alpha,
    p_text,
    percent,
    places,
    said,
    signed,
    whole_percent,
)
from runner.base.places import OWN_FILES

Given = TypeVar("Given")

TEMPLATES = OWN_FILES / "templates"

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
    filters: tuple[Callable[..., object], ...] = (),
    **values: object,
) -> bytes:
    """A page as UTF-8: the template of that name with `values`, and with what its head needs.

    `filters` are the page's own, beside those of figures. `head` is the policy, the viewport, the style of
    `_style.css.j2` with `styles` after it, and `scripts` as one script, the only one that the policy permits.
    """
    templates = _environment(*filters)
    style = "".join(_text_of(name) for name in ("_style.css.j2", *styles))
    script = "".join(map(_text_of, scripts))
    head = templates.get_template("_head.html.j2").render(
        style=as_is(style), style_sha256=_digest(style), script=as_is(script), script_sha256=_digest(script)
    )
    return (templates.get_template(template).render(head=as_is(head), **values) + "\n").encode()


def _text_of(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def as_is(text: str) -> Markup:
    """A text that is not escaped: our own style or script, or what the caller has escaped already."""
    return Markup(text)  # noqa: S704  # files of this repository, or escaped by the caller


OPTIONS: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
"""How templates are compiled, beside that they escape."""


class _Compiled(FileSystemBytecodeCache):
    """Templates as compiled, where Python keeps the byte code of modules that lie beside them, and by its rules.

    What else they were compiled with, jinja's version and its options, is in the names of the files.
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        made_with = sha256(f"{version('jinja2')} {options}")[:8]
        folder = Path(cache_from_source(str(TEMPLATES / "page.py"))).parent
        super().__init__(str(folder), f"{made_with}-%s.cache")

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except Exception:  # noqa: BLE001  # of a damaged file pickle raises what it likes
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)


@cache
def _environment(*filters: Callable[..., object]) -> Environment:
    """The templates of every page, with the filters that they share and further ones."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, bytecode_cache=_Compiled(OPTIONS), **OPTIONS
    )
    of_figures = (
        places,
        signed,
        fitting,
        fitting_signed,
        percent,
        dollars,
        figure,
        whole_percent,
        p_beside_alpha,
        said,
        labelled,
    )
    made.filters |= {each.__name__: each for each in (*of_figures, *filters)} | {"p_value": p_text}
    return made


_ROW = re.compile(r"<tr\b.*?(?=<tr\b|</tbody>|</tfoot>|</table>|\Z)", re.DOTALL)
_CELL = re.compile(r"<(t[dh])\b([^>]*)>")
_TAG = re.compile(r"<[^>]+>")
_SPAN = re.compile(r'(col|row)span="?(\d+)')


def labelled(table: str) -> Markup:
    """The table whose data cells carry their column's name, for screens so narrow that a row becomes a card.

    Names are those of the last row of the head; a cell that is several columns wide carries none.
    """
    head, closing, body = str(table).partition("</thead>")  # text of ours is not escaped by what it is added to
    rows = _ROW.findall(head)
    if not rows:
        return as_is(table)
    texts = (_TAG.sub("", text) for text in re.split(r"<th\b[^>]*>", rows[-1])[1:])
    names = [" ".join(text.replace("&nbsp;", " ").split()) for text in texts]
    taken = 0  # rows that a cell of the first column reaches down to

    def row(found: re.Match[str]) -> str:
        nonlocal taken
        place = int(taken > 0)
        taken = max(0, taken - 1)

        def cell(match: re.Match[str]) -> str:
            nonlocal place, taken
            spans = {way: int(count) for way, count in _SPAN.findall(match[2])}
            wide, name = spans.get("col", 1), names[place] if place < len(names) else ""
            taken = max(taken, spans.get("row", 1) - 1)
            place += wide
            shown = match[1] == "td" and wide == 1 and name
            return f'<{match[1]}{match[2]} data-label="{name}">' if shown else match[0]

        return _CELL.sub(cell, found[0])

    return as_is(head + closing + _ROW.sub(row, body))


_FIGURES = frozenset((int, float, bool, type(None)))


def inert(value: Given) -> Given:
    """The same value with every text in it, keys included, cut to LONGEST_TEXT and its unseen characters spelled out.

    Models, tuples, lists and mappings are gone through; the fields of a model are not validated again.
    """
    return cast(Given, _inert(value))


def _inert(value: JSON) -> JSON:
    if isinstance(value, str):
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
