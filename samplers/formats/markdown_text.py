"""Markdown as web pages are saved in it: lines as blocks, and the words of a line without its marks.

Browser extensions write `_s__eabed_` for a word set in two italic runs, `shows****state` where a bold blank stood
between two words, and whole paragraphs on one line. CommonMark reads none of this as it was meant.
"""

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Literal, NamedTuple

Kind = Literal["heading", "rule", "item", "row", "paragraph", "continued", "boxed"]

_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|_{3,})")
_ITEM = re.compile(r"[-*+]\s+(?=\S)|(?=\(?\d{1,3}[.)]\s)")
_SEPARATOR_ROW = re.compile(r"\|\s*+:?+-++(?::?+\s*+(?:\|\s*+)?+:?+-++)*+:?+\s*+\|?+")

_INNER = r"\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+\)"
_BALANCED = rf"\([^()\s]*+(?:{_INNER}[^()\s]*+)*+(?:\s\"[^\"\n]*+\")?\)"
# Addresses that end in a stretch of the page's text ("#:~:text=…Section 7(j") have a parenthesis that never closes.
_TARGET = rf"(?:{_BALANCED}|\([^()\s]*+\([^()\s]*+\))"
_IMAGE = re.compile(rf"!\[[^\[\]]*+\]{_TARGET}")
_LINK = re.compile(rf"\[([^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+)\]{_TARGET}")
_NOTE = re.compile(r"\[[\d*†‡]{1,4}\]\([^()\s]*#_?(?:fn|ftn|ifn|footnote)[^()\s]*\)")
_OPEN, _SHUT = "\x02", "\x03"
_BEFORE_LINK = re.compile(rf"{_OPEN}(?<=[a-z].)(?=\w)")
_AFTER_LINK = re.compile(rf"{_SHUT}(?<=\S.)(?={_OPEN}?[\w(])(?!(?:[b-z]|es|ed|ing|ly)\b)")
_STARRED = re.compile(r"\*(?<![\w*]\*)(?=[^\W\d_])([^*\n]{1,300}+)(?<=\S)\*(?![\w*])")
_MARK = re.compile(r"\\[^A-Za-z0-9\s]|https?:/\S*[^\s_*]|www\.\S*[^\s_*]|\*\*[*_]*|\*(?=_)[*_]*|_[*_]*")
"""Each begins with a character of its own, which is searched for ten times as fast as what a group begins with."""
_OPENING = frozenset("([“‘$")


class Block(NamedTuple):
    """A line of the file as part of a block; `cells` are its texts without marks, one but for a row of a table.

    A "continued" line belongs to the line above, a "boxed" one to the frame of one column whose first row stands
    above. `level` is that of a heading. `first` if a blank line stands above, `alone` if one stands below too,
    `breaks` if the line above ended with the mark of a line break.
    """

    kind: Kind
    cells: tuple[str, ...] = ()
    level: int = 0
    first: bool = False
    alone: bool = False
    breaks: bool = False

    @property
    def text(self) -> str:
        """The cells as one text."""
        return self.cells[0] if len(self.cells) == 1 else " ".join(self.cells)


def blocks(lines: list[str]) -> Iterator[Block]:
    """Every line that is not blank, in order."""
    above: Block | None = None
    before = ""
    for line, after in pairwise(chain(lines, ("",))):
        body = line.strip()
        if body:
            first = above is None
            above = _block(body, above, (first, first and not after.strip(), before.endswith(("  ", "\\"))))
            yield above
        else:
            above = None
        before = line


def _block(body: str, above: Block | None, place: tuple[bool, bool, bool]) -> Block:
    """A line as a block; `place` says whether it is first, alone and after a break."""
    if body[0] == "#" and (found := _HEADING.fullmatch(body)):
        return Block("heading", (plain(found[2].rstrip("# ")),), len(found[1]), *place)
    is_rule = body[0] in "-*_" and _RULE.fullmatch(body.replace(" ", ""))
    if is_rule or (body[0] == "|" and _SEPARATOR_ROW.fullmatch(body)):
        return Block("rule", (), 0, *place)
    if body[0] == "|":
        cells = body.strip("|").split(" | " if " | " in body else "|")
        return Block("row", tuple(map(plain if _has_marks(body) else str.strip, cells)), 0, *place)
    if found := _ITEM.match(body):
        return Block("item", (plain(body[found.end() :]),), 0, *place)
    if above and (above.kind == "boxed" or (above.kind == "row" and len(above.cells) == 1)):
        return Block("boxed", (plain(body),), 0, *place)
    if above and above.kind in ("row", "item", "paragraph", "continued"):
        return Block("continued", (plain(body),), 0, *place)
    return Block("paragraph", (plain(body.lstrip("> ") if body[0] == ">" else body),), 0, *place)


def plain(text: str) -> str:
    """The words of a line: links as their text, without images, marks of footnotes, emphasis and escapes.

    A blank that a mark swallowed comes back: around a link that touches another word by more than an ending such as
    the s of a plural, where a pair of marks holds nothing, and where a capital follows a small letter.
    """
    if not _has_marks(text):
        return text.strip()
    if "](" in text:
        text = _IMAGE.sub("", text) if "![" in text else text
        text = _NOTE.sub("", text) if "#" in text else text
        text = _LINK.sub(f"{_OPEN}\\1{_SHUT}", text)
        text = _AFTER_LINK.sub(" ", _BEFORE_LINK.sub(" ", text)).replace(_OPEN, "").replace(_SHUT, "")
    if "*" in text or "_" in text or "\\" in text:
        text = _without_emphasis(_STARRED.sub(r"\1", text))
    return text.strip()


def _has_marks(text: str) -> bool:
    return "](" in text or "*" in text or "_" in text or "\\" in text


def _without_emphasis(text: str) -> str:
    """The text without runs of ** and _, which toggle bold and italics; addresses and escaped marks stay."""
    marks = list(_MARK.finditer(text))
    left = sum(mark[0].count("_") for mark in marks if mark[0][0] in "*_")
    inside = {"*": False, "_": False}
    pieces: list[str] = []
    position = 0
    for mark in marks:
        pieces.append(text[position : mark.start()])
        position = mark.end()
        run = mark[0]
        if run[0] not in inside:
            pieces.append(run.removeprefix("\\"))
            continue
        left -= run.count("_")
        around = text[mark.start() - 1 : mark.start()], text[position : position + 1]
        if run == "_" and not (inside["_"] or left) and around[0].isalnum() and around[1].isalnum():
            pieces.append("_")
            continue
        toggles = {"*": (run.count("*") + 1) // 2, "_": run.count("_")}
        is_empty_pair = any(toggles[sign] - inside[sign] >= 2 for sign in inside)
        pieces.append(_blank(is_empty_pair, *around))
        inside = {sign: inside[sign] ^ bool(toggles[sign] % 2) for sign in inside}
    return "".join((*pieces, text[position:]))


def _blank(is_empty_pair: bool, before: str, after: str) -> str:
    if not before or before.isspace() or before in _OPENING or not (after.isalnum() or after in _OPENING):
        return ""
    return " " if is_empty_pair or (before.islower() and after.isupper()) else ""
