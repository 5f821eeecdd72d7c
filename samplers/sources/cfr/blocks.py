"""The blocks of one section or appendix of the Code of Federal Regulations, in file order.

The file's inline elements are text already (`inline.settle`); what italic runs say about a paragraph's level is
taken from it before (`marked_beginnings`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from samplers.formats.gpo.inline import line_of, n_visible, one_line
from samplers.formats.text_writer import INVISIBLE, on_one_line
from samplers.sources.cfr.designators import ITALIC, NO_LEAD, ROMAN, Lead, lead

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

_PARAGRAPHS = ("P", "PSPACE")
_ROWS = frozenset(("ROW", "TR", "tr"))
_NESTED = HEADINGS | GROUPS.keys() | DROPPED.keys() | _ROWS | {"P", "FP", "BOXHD", "THEAD", "TBODY", "thead", "tbody"}
"""Elements that begin a line of their own inside others."""

SMALLEST_HEADING = "hd6"
"""The kind of a paragraph of an appendix that is all italic: commentaries set "Paragraph 2(b)(1)" so."""

_ITALIC_FACE = "03"
_LEAD_CHILDREN = 8
"""Inline elements that are looked at for a paragraph's designators; six levels and a heading are seven."""

_MAY_LEAD = re.compile(r"\s*(?:$|\(|\d{1,4}\(|[0-9A-Za-z]{1,6}\.)")
_SET_AS_HEADING = re.compile(r"(?:\d{1,4}(?:\(\w{1,5}\))+ )?\x01[^\x01\x02]{1,200}\x02[.:]?")
_INVISIBLE = re.compile("[" + "".join(map(chr, INVISIBLE)) + "]")
_RANK = re.compile(r"[1-6]")
_NOTE_NUMBER = re.compile(r"(?:\d{1,4}|[a-z]|[*†‡§]{1,3})(?= )")
_string = etree.XPath("string()", smart_strings=False)


@dataclass(slots=True)
class Block:
    """A paragraph, heading, table or group of lines, NFC and without white space at its ends.

    `kind` is "" for text that is no section of its own, "paragraph" for what may begin with designators, "hd1" and so
    on for the headings of an appendix, else the kind of the section that holds this block alone.
    """

    kind: str
    text: str
    lead: Lead = NO_LEAD
    label: str = ""


def marked_beginnings(root: etree._Element) -> dict[etree._Element, str]:
    """The beginning of each paragraph that has an italic run there, on one line, with the run marked."""
    paragraphs = (paragraph for paragraph in root.iter(*_PARAGRAPHS) if len(paragraph))
    return {paragraph: marked for paragraph in paragraphs if (marked := _marked_beginning(paragraph))}


def _marked_beginning(paragraph: etree._Element) -> str:
    pieces = [paragraph.text or ""]
    if not _MAY_LEAD.match(pieces[0]):
        return ""
    for child in islice(paragraph, _LEAD_CHILDREN):
        tag = child.tag
        if tag == "I" or (tag == "E" and child.get("T") == _ITALIC_FACE):
            pieces += (ITALIC, _inside(child), ROMAN)
        elif tag in _NESTED:
            break
        elif isinstance(tag, str):
            pieces.append(_inside(child))
        pieces.append(child.tail or "")
    return visible(on_one_line("".join(pieces))) if ITALIC in pieces else ""


def _inside(element: etree._Element) -> str:
    """All text inside an element as the file has it."""
    return (str(_string(element)) if len(element) else element.text) or ""


def visible(line: str) -> str:
    """A line in NFC without what cannot be seen."""
    if line.isascii():
        return line
    if not line.isprintable() and _INVISIBLE.search(line):
        line = " ".join(line.translate(INVISIBLE).split())
    return unicodedata.normalize("NFC", line)


def label_of(element: etree._Element) -> str:
    """All text inside an element as a label."""
    return visible(line_of(element))


class BlockReader:
    """Reads the units of one file; `left_out` counts by reason what they hold that is no text."""

    def __init__(self, beginnings: Mapping[etree._Element, str]) -> None:
        self.left_out: Counter[str] = Counter()
        self._beginnings = beginnings

    def read(self, unit: etree._Element) -> tuple[list[str], list[Block]]:
        """The lines that name a unit, its number and subject or else its first heading, and everything after them."""
        lines = [line for line in map(self.line, unit.iterchildren(*TITLES)) if line]
        has_title = bool(lines)
        if not has_title:
            lines = list(filter(None, [self.line(child) for child in unit.iterchildren(*HEADINGS)][:1]))
        return lines, self._blocks(unit, has_title)

    def _blocks(self, unit: etree._Element, has_title: bool) -> list[Block]:
        """Everything in a unit but its titles, in order; without one, its first heading is left out."""
        found: list[Block] = []
        is_appendix = unit.tag in ("APPENDIX", "DIV9")
        self._plain(unit.text, found)
        for child in unit:
            tag = child.tag
            if tag in _PARAGRAPHS:
                self._paragraph(child, is_appendix, found)
            elif tag in HEADINGS and not has_title:
                has_title = True
            elif tag not in TITLES:
                self._block(child, is_appendix, found)
            if (tail := child.tail) and not tail.isspace():
                self._plain(tail, found)
        return found

    def line(self, element: etree._Element) -> str:
        """All text inside an element on one line."""
        return self.clean(_inside(element))

    def clean(self, raw: str | None) -> str:
        """A string of the file on one line, NFC, without what cannot be seen."""
        line = one_line(raw)
        if line.isascii():
            return line
        if not line.isprintable() and (hidden := len(_INVISIBLE.findall(line))):
            self.left_out["soft hyphens and zero-width characters"] += hidden
        return visible(line)

    def _block(self, element: etree._Element, is_appendix: bool, found: list[Block]) -> None:
        tag = str(element.tag)
        if tag in _PARAGRAPHS:
            self._paragraph(element, is_appendix, found)
        elif kind := GROUPS.get(tag):
            if lines := self._lines(element):
                found.append(Block(kind, "\n".join(lines), label=_label(element, kind, lines[0])))
        elif tag in HEADINGS and is_appendix:
            rank = _RANK.search(element.get("SOURCE") or tag)
            if line := self.line(element):
                found.append(Block(f"hd{rank[0] if rank else 1}", line))
        else:
            found += [Block("", line) for line in self._lines_of(element)]

    def _paragraph(self, element: etree._Element, is_appendix: bool, found: list[Block]) -> None:
        """A paragraph; footnotes inside come after it, tables and the like divide it."""
        marked = self._beginnings.get(element)
        if not len(element):
            self._led(element.text, marked, is_appendix, found)
            return
        notes: list[Block] = []
        pieces = [element.text or ""]
        for child in element:
            if child.tag not in _NESTED:
                pieces.append(_inside(child))
            elif child.tag == "FTNT":
                self._block(child, is_appendix, notes)
            else:
                self._led("".join(pieces), marked, is_appendix, found)
                self._block(child, is_appendix, found)
                pieces, marked = [], None
            pieces.append(child.tail or "")
        self._led("".join(pieces), marked, is_appendix, found)
        found += notes

    def _led(self, raw: str | None, marked: str | None, full_stops: bool, found: list[Block]) -> None:
        """Text that may begin with designators, or that is set as a heading."""
        text = self.clean(raw)
        if text and full_stops and marked and _SET_AS_HEADING.fullmatch(marked):
            found.append(Block(SMALLEST_HEADING, text))
        elif text:
            found.append(Block("paragraph", text, lead(marked or text, full_stops)))

    def _plain(self, raw: str | None, found: list[Block]) -> None:
        if text := self.clean(raw):
            found.append(Block("", text))

    def _lines(self, element: etree._Element) -> list[str]:
        """The lines inside an element; a heading with a colon ("Source:") shares the line of what it heads."""
        lines = [line for line in [self.clean(element.text)] if line]
        opening = ""
        for child in element:
            inside = self._lines_of(child)
            if child.tag == "HED" or child.get("SOURCE") == "HED":
                opening, inside = " ".join(inside), []
            elif opening and inside:
                opening, inside = "", [f"{opening} {inside[0]}", *inside[1:]]
            lines += inside
            lines += [line for line in [self.clean(child.tail)] if line]
        return [*lines, opening] if opening else lines

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
        line = self.line(element)
        return [line] if line else []

    def _row(self, cells: Iterable[etree._Element]) -> list[str]:
        """One line with a tab between cells, or none if all are empty."""
        row = "\t".join(self.line(cell) for cell in cells).strip()
        return [row] if row else []


def _label(element: etree._Element, kind: str, first_line: str) -> str:
    """The heading of a note or table, the number of a footnote, or "" if there is none."""
    if kind == "footnote":
        number = _NOTE_NUMBER.match(first_line)
        return f"Footnote {number[0]}" if number else "Footnote"
    names = ("TTITLE", "CAPTION", "caption") if kind == "table" else ("HED", "HD")
    return next((label_of(child) for child in element if child.tag in names), "").rstrip(" .:")
