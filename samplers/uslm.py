"""One walk over bill DTD, USLM 1.0 and USLM 2.x, by local name: text, sections, facts.

What becomes text: the official title, then the body in document order. Number, heading and first text of a level
share a line, joined by spaces; headings of sections and of larger levels end theirs; every further block is a line;
a blank line stands around sections and larger levels. Cells of a table row are separated by a tab.

What does not, counted by reason in `Walk.dropped`: metadata and form (both become `Walk.facts`), the enacting formula,
tables of contents, struck text (`changed="deleted"` and the like; what is inserted stays, so a reported bill reads as
reported), marginal and foot notes, page marks, attestation and running marks, soft hyphens and zero-width characters.

Quoted blocks, the text that a bill puts into another law, are text of the section around them: no sections are
recorded inside. The inside of the notes of the U.S. Code is treated alike.

Dashes and quotation marks stay as the author wrote them ("78dd–1" and "78dd-1" differ here; making them match is a
matter of retrieval). The bill DTD leaves some marks to its stylesheet, so they are supplied here: “ ” and ‘ ’ around
`quote` and `quoted-block`, and the full stop between a run-in heading and its text.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lxml import etree

from runner.errors import DocumentError
from runner.records import Section, Span
from samplers.safe_xml import MAX_DEPTH, entity_text, local_name, parse, plain_text
from samplers.text_writer import Part, TextWriter
from samplers.uslm_facts import facts
from samplers.uslm_labels import label
from samplers.uslm_names import (
    BLOCKS,
    BREAKS,
    CELLS,
    FORMS,
    HEADINGS,
    NOTES,
    NUMBERS,
    OFFICIAL_TITLES,
    QUOTED,
    RANKS,
    SECTION_RANK,
    drop_reason,
    kind_of,
)

_MARKS = (("“", "”"), ("‘", "’"))
_CLOSING = (".", ",", ";", ":", ")", "”", "’")


@dataclass(frozen=True)
class Walk:
    """What a file holds: text in NFC, its sections, its facts and an account of what was left out.

    `facts` is described at `uslm_facts.facts`. `dropped` counts characters that are not white space by reason;
    `supplied` those of the text that stand in no file. Where the text was NFC already:
    characters of the file = dropped + characters of the text - supplied.
    """

    text: str
    sections: tuple[Section, ...]
    facts: Mapping[str, tuple[str, ...]]
    dropped: Mapping[str, int]
    supplied: int


def walk(data: bytes, name: str, roots: frozenset[str]) -> Walk:
    """The text, sections and facts of a file whose root element is one of `roots`; DocumentError otherwise.

    Sections are in text order and nested or disjoint; a part that holds no text is not recorded.
    """
    root = parse(data, name)
    if local_name(root) not in roots:
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    walker = _Walker(name)
    walker.children(root, _Place())
    if walker.writer.length <= walker.title_length:
        raise DocumentError(name, "no text in the body")
    text, parts = walker.writer.finish()
    sections = tuple(
        Section(Span(p.start, p.end), p.level, p.kind, label(p.kind, p.num, p.heading, text[p.start : p.end]))
        for p in parts
    )
    dropped = walker.dropped
    dropped["soft hyphens and zero-width characters"] = walker.writer.n_invisible
    return Walk(text, sections, facts(root), {k: n for k, n in dropped.items() if n}, walker.writer.supplied)


class _Place(NamedTuple):
    """Where the walk stands: depth in the file, the level around it, inside what."""

    depth: int = 0
    level: int = 0
    kind: str = ""
    part: Part | None = None
    is_quoted: bool = False
    in_row: bool = False
    n_quotes: int = 0


class _Headings:
    """Appropriations headings that are still open: siblings in the file, levels for the reader.

    A heading ends before the next one of its rank or a larger one, before a larger level (a title), and, if it is
    an account (it has text of its own), before a section. A parenthesis such as "(including transfer of funds)"
    belongs to the heading before it.
    """

    def __init__(self, writer: TextWriter) -> None:
        self._writer = writer
        self._open: list[tuple[Part, bool]] = []

    @property
    def level(self) -> int:
        return self._open[-1][0].level if self._open else 0

    def close_before(self, kind: str, is_parenthesis: bool) -> None:
        while self._open and self._ends(*self._open[-1], kind, is_parenthesis):
            self._writer.close(self._open.pop()[0])

    def push(self, part: Part, has_text: bool) -> None:
        self._open.append((part, has_text))

    def close_all(self) -> None:
        while self._open:
            self._writer.close(self._open.pop()[0])

    @staticmethod
    def _ends(part: Part, has_text: bool, kind: str, is_parenthesis: bool) -> bool:
        rank = RANKS.get(kind)
        if rank is None or rank > SECTION_RANK:
            return False
        if kind == part.kind:
            return has_text or not is_parenthesis
        return has_text if rank == SECTION_RANK else rank < RANKS[part.kind]


class _Walker:
    def __init__(self, name: str) -> None:
        self.name = name
        self.writer = TextWriter()
        self.dropped: Counter[str] = Counter()
        self.title_length = 0
        """Length of the text that official titles make up; they alone are not a document."""
        self._lead_end = -1
        """Length of the text when a number or heading had been written; a block that begins there runs in."""

    def children(self, element: etree._Element, place: _Place) -> None:
        """Write an element's text and children."""
        if place.depth > MAX_DEPTH:
            raise DocumentError(self.name, f"nested more than {MAX_DEPTH} elements deep")
        self.writer.write(element.text or "")
        headings = _Headings(self.writer)
        for child in element:
            kind = kind_of(child)
            is_heading = kind.startswith("appropriations-") and kind in RANKS
            headings.close_before(kind, is_heading and plain_text(child).startswith("("))
            inner = place._replace(depth=place.depth + 1, level=max(place.level, headings.level))
            if not isinstance(child.tag, str):
                self.writer.write(entity_text(child, self.name))
            elif reason := drop_reason(child, kind):
                self._drop(child, reason, inner)
            elif is_heading and not place.is_quoted:
                headings.push(*self._appropriations(child, kind, inner))
            else:
                self._element(child, kind, inner)
            tail = child.tail or ""
            if kind in QUOTED and tail.lstrip().startswith(_CLOSING):
                self.writer.glue()
                tail = tail.lstrip()
            self.writer.write(tail)
        headings.close_all()

    def _element(self, element: etree._Element, kind: str, place: _Place) -> None:
        if kind in RANKS:
            self._level(element, kind, place)
        elif kind in NUMBERS or kind in HEADINGS:
            self._lead(element, kind, place)
        elif kind in QUOTED:
            self._quoted(element, kind, place)
        elif kind == "quote":
            self.writer.open_quote(_MARKS[place.n_quotes % 2][0])
            self.children(element, place._replace(n_quotes=place.n_quotes + 1))
            self.writer.close_quote(_MARKS[place.n_quotes % 2][1])
        elif kind == "after-quoted-block" or element.get("role") == "after-quoted-block":
            self._after_quoted(element, kind, place)
        elif kind in CELLS:
            self.writer.separate("\t")
            self.children(element, place._replace(in_row=True))
            self.writer.separate("\t")
        elif kind in BLOCKS:
            self._block(element, kind, place)
        else:
            self.writer.separate(" " if kind in BREAKS else "")
            self.children(element, place)

    def _level(self, element: etree._Element, kind: str, place: _Place) -> None:
        separator = "\n\n" if RANKS[kind] <= SECTION_RANK and not place.is_quoted else "\n"
        self.writer.separate(separator)
        level = max(RANKS[kind], place.level + 1)
        part = None if place.is_quoted else self.writer.open(kind, level)
        is_quoted = place.is_quoted or kind in NOTES
        self.children(element, place._replace(level=level, kind=kind, part=part, is_quoted=is_quoted))
        if part:
            self.writer.close(part)
        self.writer.separate(separator)

    def _appropriations(self, element: etree._Element, kind: str, place: _Place) -> tuple[Part, bool]:
        """The part, still open, and whether it has text besides its heading."""
        self.writer.separate("\n\n")
        part = self.writer.open(kind, max(RANKS[kind], place.level + 1))
        self.children(element, place._replace(level=part.level, kind=kind, part=part))
        self.writer.separate("\n\n")
        return part, self.writer.length > self._lead_end

    def _lead(self, element: etree._Element, kind: str, place: _Place) -> None:
        """Write a level's number or heading and note it for the label."""
        self.writer.separate(" ")
        begin = self.writer.n_pieces
        self.children(element, place)
        written = self.writer.since(begin)
        if place.part and kind in NUMBERS and not place.part.num and not place.part.heading:
            place.part.num = written
        elif place.part and kind in HEADINGS:
            place.part.heading = f"{place.part.heading} {written}".strip()
        if kind in HEADINGS and RANKS.get(place.kind, SECTION_RANK) <= SECTION_RANK:
            self.writer.separate("\n")
        elif kind in HEADINGS:
            self.writer.stop()
        self.writer.separate(" ")
        self._lead_end = self.writer.length

    def _quoted(self, element: etree._Element, kind: str, place: _Place) -> None:
        if element.get("display-inline") == "yes-display-inline":
            self.writer.glue()
            self.writer.separate(" ")
            self._lead_end = self.writer.length
        else:
            self.writer.separate("\n")
        inner = place._replace(is_quoted=True, part=None, n_quotes=place.n_quotes + 1)
        if kind == "quotedContent":  # USLM writes its own marks
            self.children(element, inner)
        else:
            self.writer.open_quote(_MARKS[place.n_quotes % 2][0])
            self.children(element, inner)
            if not any(local_name(child) == "after-quoted-block" for child in element):
                self.writer.close_quote(_MARKS[place.n_quotes % 2][1])
        self.writer.separate("\n")

    def _after_quoted(self, element: etree._Element, kind: str, place: _Place) -> None:
        """Write what follows a quoted block ("." or "; and") without a gap."""
        self.writer.glue()
        if kind == "after-quoted-block":
            self.writer.close_quote(_MARKS[(place.n_quotes - 1) % 2][1])
        self.children(element, place)
        self.writer.separate("\n")

    def _block(self, element: etree._Element, kind: str, place: _Place) -> None:
        runs_in = place.in_row or self.writer.length == self._lead_end
        self.writer.separate(" " if runs_in else "\n")
        before = self.writer.length
        self.children(element, place)
        if kind in OFFICIAL_TITLES:
            self.title_length += self.writer.length - before
        self.writer.separate(" " if place.in_row else "\n")

    def _drop(self, element: etree._Element, reason: str, place: _Place) -> None:
        """Count an element's characters under a reason; an official title inside a form is text all the same."""
        self.dropped[reason] += _n_visible(element)
        if local_name(element) not in FORMS:
            return
        for title in element.iter():
            is_inner = any(local_name(ancestor) in OFFICIAL_TITLES for ancestor in title.iterancestors())
            if local_name(title) in OFFICIAL_TITLES and not is_inner:
                self.dropped[reason] -= _n_visible(title)
                self._block(title, local_name(title), place)


def _n_visible(element: etree._Element) -> int:
    return len(plain_text(element).replace(" ", ""))
