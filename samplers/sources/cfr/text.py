"""One section or appendix of the Code of Federal Regulations as text, its paragraphs nested as their designators say.

The file's inline elements are text already (`inline.settle`); what italic runs say about a paragraph's level is
taken from it before (`marked_beginnings`). The title is the first line of the text; blank lines set the blocks of the
top level apart.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from lxml import etree

from runner.base.records import Section
from samplers.formats.gpo.inline import line_of, n_visible, one_line
from samplers.formats.headings import cut
from samplers.formats.levels import ITALIC, NO_LEAD, ROMAN, Lead, Place, lead, places
from samplers.formats.text_writer import Outline, on_one_line, seen

HEADINGS = frozenset(("HD", "HED", "HD1", "HD2", "HD3", "HD4"))
TITLES = frozenset(("SECTNO", "SUBJECT", "HEAD", "RESERVED"))
GROUPS: Mapping[str, str] = {
    **dict.fromkeys(("AUTH", "SECAUTH", "PARAUTH"), "authority"),
    "SOURCE": "source",
    "CITA": "citation",
    "FTNT": "footnote",
    **dict.fromkeys(("GPOTABLE", "TABLE", "DIV", "table", "div"), "table"),
    **{tag: tag.lower() for tag in ("EXTRACT", "EXAMPLE", "NOTE", "EDNOTE", "EFFDNOT", "APPRO", "CROSSREF")},
}
"""Elements that are sections of their own inside a document, with their kind."""

DROPPED: Mapping[str, str] = {
    "EAR": "running heads",
    "CONTENTS": "table of contents",
    **dict.fromkeys(("GPH", "GID", "MATH"), "images"),
}
"""Elements inside a document that are no text of it, with the reason they are counted under."""

LABEL_LENGTH = 200
"""Characters of a label; whole paragraphs are set as headings now and then."""

_PARAGRAPHS = ("P", "PSPACE")
_ROWS = frozenset(("ROW", "TR", "tr"))
_NESTED = HEADINGS | GROUPS.keys() | DROPPED.keys() | _ROWS | {"P", "FP", "BOXHD", "THEAD", "TBODY", "thead", "tbody"}
"""Elements that begin a line of their own inside others."""

_OF_THE_WHOLE = frozenset(("authority", "source", "citation", "note", "ednote", "effdnot", "appro", "crossref"))
"""Kinds that speak of the whole document, unless the paragraph around them goes on after them."""

_LEAD_CHILDREN = 8
"""Inline elements that are looked at for a paragraph's designators; six levels and a heading are seven."""

_MAY_LEAD = re.compile(r"\s*(?:$|\(|\d{1,4}\(|[0-9A-Za-z]{1,6}\.)")
_SET_AS_HEADING = re.compile(r"(?:\d{1,4}(?:\(\w{1,5}\))+ )?\x01[^\x01\x02]{1,200}\x02[.:]?")
"""A paragraph of an appendix that is all italic: commentaries set "Paragraph 2(b)(1)" so. Its kind is "hd6"."""

_RANK = re.compile(r"[1-6]")
_NOTE_NUMBER = re.compile(r"(?:\d{1,4}|[a-z]|[*†‡§]{1,3})(?= )")
_string = etree.XPath("string()", smart_strings=False)


class Block(NamedTuple):
    """A paragraph, heading, table or group of lines, NFC and without white space at its ends.

    `kind` is "" for text that is no section of its own, "paragraph" for what may begin with designators, "hd1" and so
    on for the headings of an appendix, else the kind of the section that holds this block alone.
    """

    kind: str
    text: str
    lead: Lead = NO_LEAD
    label: str = ""


def marked_beginnings(root: etree._Element) -> dict[etree._Element, str]:
    """Return the beginning of each paragraph that has an italic run there, on one line, with the run marked."""
    paragraphs = (paragraph for paragraph in root.iter(*_PARAGRAPHS) if len(paragraph))
    return {paragraph: marked for paragraph in paragraphs if (marked := _marked_beginning(paragraph))}


def _marked_beginning(paragraph: etree._Element) -> str:
    pieces = [paragraph.text or ""]
    if not _MAY_LEAD.match(pieces[0]):
        return ""
    for child in islice(paragraph, _LEAD_CHILDREN):
        tag = child.tag
        if tag == "I" or (tag == "E" and child.get("T") == "03"):
            pieces += (ITALIC, _inside(child), ROMAN)
        elif tag in _NESTED:
            break
        elif isinstance(tag, str):
            pieces.append(_inside(child))
        pieces.append(child.tail or "")
    return visible(on_one_line("".join(pieces))) if ITALIC in pieces else ""


def _inside(element: etree._Element) -> str:
    """Return all text inside an element as the file has it."""
    return (str(_string(element)) if len(element) else element.text) or ""


def visible(line: str) -> str:
    """Return a line in NFC without what cannot be seen."""
    return unicodedata.normalize("NFC", " ".join(seen(line).split()))


def label_of(element: etree._Element) -> str:
    """Return all text inside an element as a label."""
    return visible(line_of(element))


class BlockReader:
    """Reads the units of one file; `left_out` counts by reason what they hold that is no text."""

    def __init__(self, beginnings: Mapping[etree._Element, str]) -> None:
        self.left_out: Counter[str] = Counter()
        self._beginnings = beginnings

    def read(self, unit: etree._Element) -> tuple[str, list[Block]]:
        """Return the line that names a unit, of its number and subject or else its first heading, and its blocks."""
        lines = [line for line in map(self._line, unit.iterchildren(*TITLES)) if line]
        has_title = bool(lines)
        if not has_title:
            lines = [line for child in islice(unit.iterchildren(*HEADINGS), 1) if (line := self._line(child))]
        # Headings inside are sections in appendices alone; elsewhere they are text.
        is_appendix = unit.tag in ("APPENDIX", "DIV9")
        blocks = self._plain(unit.text)
        for child in unit:
            if child.tag in HEADINGS and not has_title:
                has_title = True
            elif child.tag not in TITLES:
                blocks += self._block(child, is_appendix)
            blocks += self._plain(child.tail)
        return (" ".join(lines), blocks) if lines or not blocks else (blocks[0].text, blocks[1:])

    def _clean(self, raw: str | None) -> str:
        """Return a string of the file on one line, NFC, without what cannot be seen."""
        line = one_line(raw)
        self.left_out["soft hyphens and zero-width characters"] += len(line) - len(seen(line))
        return visible(line)

    def _line(self, element: etree._Element) -> str:
        return self._clean(_inside(element))

    def _plain(self, raw: str | None) -> list[Block]:
        return [Block("", text)] if (text := self._clean(raw)) else []

    def _block(self, element: etree._Element, is_appendix: bool) -> list[Block]:
        tag = str(element.tag)
        if tag in _PARAGRAPHS:
            return self._paragraph(element, is_appendix)
        if kind := GROUPS.get(tag):
            lines = self._lines(element)
            return [Block(kind, "\n".join(lines), label=_label(element, kind, lines[0]))] if lines else []
        if tag in HEADINGS and is_appendix:
            rank, line = _RANK.search(element.get("SOURCE") or tag), self._line(element)
            return [Block(f"hd{rank[0] if rank else 1}", line)] if line else []
        return [Block("", line) for line in self._lines_of(element)]

    def _paragraph(self, element: etree._Element, is_appendix: bool) -> list[Block]:
        """Return a paragraph; footnotes inside come after it, tables and the like divide it."""
        marked = self._beginnings.get(element)
        blocks: list[Block] = []
        notes: list[Block] = []
        pieces = [element.text or ""]
        for child in element:
            if child.tag not in _NESTED:
                pieces.append(_inside(child))
            elif child.tag == "FTNT":
                notes += self._block(child, is_appendix)
            else:
                blocks += self._led("".join(pieces), marked, is_appendix)
                blocks += self._block(child, is_appendix)
                pieces, marked = [], None
            pieces.append(child.tail or "")
        return [*blocks, *self._led("".join(pieces), marked, is_appendix), *notes]

    def _led(self, raw: str, marked: str | None, full_stops: bool) -> list[Block]:
        """Return text that may begin with designators, or that is set as a heading."""
        text = self._clean(raw)
        if text and full_stops and marked and _SET_AS_HEADING.fullmatch(marked):
            return [Block("hd6", text)]
        return [Block("paragraph", text, lead(marked or text, full_stops))] if text else []

    def _lines(self, element: etree._Element) -> list[str]:
        """Return the lines inside an element; a heading with a colon ("Source:") shares the line of what it heads."""
        lines = [self._clean(element.text)]
        opening = ""
        for child in element:
            inside = self._lines_of(child)
            if child.tag == "HED" or child.get("SOURCE") == "HED":
                opening, inside = " ".join(inside), []
            elif opening and inside:
                opening, inside = "", [f"{opening} {inside[0]}", *inside[1:]]
            lines += [*inside, self._clean(child.tail)]
        return [line for line in (*lines, opening) if line]

    def _lines_of(self, element: etree._Element) -> list[str]:
        if reason := DROPPED.get(str(element.tag)):
            self.left_out[reason] += n_visible(element)
            return []
        if element.tag in _ROWS:
            return self._row(element)
        if element.tag == "BOXHD":
            ranks = sorted({head.get("H", "1") for head in element})
            return [row for rank in ranks for row in self._row(head for head in element if head.get("H", "1") == rank)]
        if any(child.tag in _NESTED for child in element):
            return self._lines(element)
        return [line] if (line := self._line(element)) else []

    def _row(self, cells: Iterable[etree._Element]) -> list[str]:
        """Return one line with a tab between cells, or none if all are empty."""
        row = "\t".join(map(self._line, cells)).strip()
        return [row] if row else []


def _label(element: etree._Element, kind: str, first_line: str) -> str:
    """Return the heading of a note or table, the number of a footnote, or "" if there is none."""
    if kind == "footnote":
        number = _NOTE_NUMBER.match(first_line)
        return f"Footnote {number[0]}" if number else "Footnote"
    # Tables are named by their caption, notes by their heading.
    names = ("TTITLE", "CAPTION", "caption") if kind == "table" else ("HED", "HD")
    return next((label_of(child) for child in element if child.tag in names), "").rstrip(" .:")


def body(kind: str, label: str, title: str, blocks: Sequence[Block]) -> tuple[str, tuple[Section, ...]]:
    """Return a document's text and sections, of which the first is the whole document."""
    outline = Outline()
    outline.begin(kind, _WHOLE, cut(label, LABEL_LENGTH), outline.write(title))
    start = 0
    # The designators between two headings are one sequence.
    for index, block in enumerate(blocks):
        if block.kind.startswith("hd"):
            _write_run(outline, blocks[start:index])
            outline.close(rank := int(block.kind[2:]))
            outline.begin(block.kind, rank, cut(block.text, LABEL_LENGTH), outline.write(block.text))
            start = index + 1
    _write_run(outline, blocks[start:])
    sections = outline.sections()
    return outline.text, sections


_WHOLE, _INNER = -1, 100
"""Ranks of the document and, below the headings, of what stands inside no paragraph; each level adds one."""


def _write_run(outline: Outline, blocks: Sequence[Block]) -> None:
    """Write blocks each inside as many levels as their designators say."""
    texts = [block.text if block.kind in ("", "paragraph") else "" for block in blocks]
    stands = places([block.lead for block in blocks], texts)
    # A note on the whole stands no deeper than the paragraph that follows it.
    following = 0
    depths = []
    for block, place in zip(reversed(blocks), reversed(stands), strict=True):
        following = place.inside if place.levels else following
        depths.append(min(place.inside, following) if block.kind in _OF_THE_WHOLE else place.inside)
    for block, place, inside in zip(blocks, stands, reversed(depths), strict=True):
        outline.close(rank := _INNER + inside)
        start = outline.write(block.text, "\n" if inside else "\n\n")
        if place.levels:
            _begin_paragraphs(outline, block, place, start)
        elif block.kind not in ("", "paragraph"):
            outline.begin(block.kind, rank, cut(block.label, LABEL_LENGTH), start)
            outline.close(rank)


def _begin_paragraphs(outline: Outline, block: Block, place: Place, start: int) -> None:
    """Begin a section at a term and at each designator; those after the first begin inside the line."""
    designators, headings, term = block.lead
    ranks, position = [_INNER + level - 1 for level in place.levels], len(term)
    if term:
        outline.begin("paragraph", ranks.pop(0), _named(term), start)
    for rank, designator, heading in zip(ranks, designators, headings, strict=False):
        mark = designator.label.partition("–")[0]
        at = block.text.find(mark, position)
        if at >= 0:
            label = f"{designator.label} {_named(heading)}" if heading else designator.label
            outline.begin("paragraph", rank, cut(label.strip(), LABEL_LENGTH), start + at)
            position = at + len(mark) + len(heading)


def _named(words: str) -> str:
    return words.rstrip(" .,:;—–-")
