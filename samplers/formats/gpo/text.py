"""Blocks of GPO's SGML-like XML (Federal Register, CFR, eCFR) written through a TextWriter.

A reader parses a file, calls `inline.settle`, makes a `GpoText`, adds its own elements to `handlers`, calls
`inside` on the body and takes the result from `finish`. An element without a handler is a line, or a row of blocks
if it has no words of its own; inside a paragraph it runs on.

- P, FP: a line. STARS: the line "* * * * *" that print has there, counted as supplied.
- HD: flat siblings, not containers. Each opens a part that lasts to the next HD of its SOURCE or of a larger one
  inside the same parent; `kind` is the SOURCE in lower case (hd1, hd2, hd3, ...; hed is the largest), `label` the
  heading. The first HD of an element that a reader opened itself is that element's own (`lead`).
- GPOTABLE: a part `table`, labelled with its title; a line for the title, one for each rank of column heads, one a
  row, cells separated by a tab; an empty cell leaves no trace.
- FTNT: moved to the end of the text under the same heading, a line each with the number first: parts `footnote`
  without a label.
- NOTE, AUTH, SOURCE and the like: the heading runs into the first paragraph ("Authority: 12 U.S.C. 1").
- Left out and counted: GPH, MATH, GID (images), CONTENTS (table of contents), EAR (running heads).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lxml import etree

from runner.base.records import Section
from samplers.formats.gpo.inline import line_of, n_visible, text_of
from samplers.formats.headings import shortened
from samplers.formats.text_writer import Part, TextWriter

Handler = Callable[[etree._Element, int], None]
"""Writes an element that stands inside a part of the given level, 0 outside of all parts."""

LABEL_LENGTH = 200
"""Characters of a label; GPO sets whole paragraphs as headings now and then."""

_STARS = "* * * * *"


@dataclass(slots=True)
class _Scope:
    """The inside of one element: the level of the part around it and the headings that are open, with their rank."""

    outer: int
    headings: list[tuple[int, Part]] = field(default_factory=list)

    @property
    def level(self) -> int:
        return self.headings[-1][1].level if self.headings else self.outer


class GpoText:
    """The text of one document on its way: `writer` holds it, `left_out` counts what is none of it by reason."""

    def __init__(self) -> None:
        self.writer = TextWriter()
        self.left_out: Counter[str] = Counter()
        self.handlers: dict[str, Handler] = {
            **dict.fromkeys(("P", "FP"), self.line),
            **dict.fromkeys(("NOTE", "AUTH", "SOURCE", "CROSSREF", "EDNOTE", "EFFDNOT"), self.run_in),
            **dict.fromkeys(("GPH", "MATH", "GID"), self.leave_out("images")),
            "HD": self.heading,
            "STARS": self._stars,
            "GPOTABLE": self._table,
            "FTNT": lambda element, _: self._footnotes.append(element),
            "CONTENTS": self.leave_out("table of contents"),
            "EAR": self.leave_out("running heads"),
        }
        self._scope = _Scope(0)
        self._footnotes: list[etree._Element] = []

    def inside(self, element: etree._Element, level: int, lead: str = "") -> None:
        """Write the blocks of an element; headings among them end with it.

        `lead` is what stands after a first HD that is the element's own: a line break, or a space where it runs into
        the paragraph after it. Without one a first HD is like any other.
        """
        # Headings are flat siblings: those open in this element end with it.
        around, self._scope = self._scope, _Scope(level)
        if (text := element.text) and not text.isspace():
            self._loose(text)
        blocks: Iterable[etree._Element] = element
        if lead and (heading := lead_of(element)) is not None:
            blocks = self._write_lead(heading, lead)
        for child in blocks:
            self.block(child)
            if (tail := child.tail) and not tail.isspace():
                self._loose(tail)
        self.close_headings()
        self._scope = around

    def block(self, element: etree._Element) -> None:
        """Write one block where the text stands now."""
        handler = self.handlers.get(element.tag)
        if handler:
            handler(element, self._scope.level)
        elif len(element) and not text_of(element.text).strip():
            self.inside(element, self._scope.level)
        else:
            self.line(element, self._scope.level)

    def line(self, element: etree._Element, level: int) -> None:
        """Write an element as a line; blocks inside have lines of their own."""
        self.writer.separate("\n")
        self.words(element, level)
        self.writer.separate("\n")

    def run_in(self, element: etree._Element, level: int) -> None:
        """Write an element's blocks; its heading runs into the first paragraph."""
        self.writer.separate("\n")
        self.inside(element, level, lead=" ")
        self.writer.separate("\n")

    def leave_out(self, reason: str) -> Handler:
        """Return a handler that counts an element's characters under a reason."""

        def handler(element: etree._Element, _: int) -> None:
            self.left_out[reason] += n_visible(element)

        return handler

    @contextmanager
    def part(self, kind: str, level: int, label: str = "", separator: str = "\n\n") -> Iterator[None]:
        """Make whatever is written inside one part, with its footnotes at its end and a separator around it."""
        self.writer.separate(separator)
        part = self.writer.open(kind, level)
        part.heading = shortened(label, LABEL_LENGTH)
        around, self._scope = self._scope, _Scope(level)
        # Footnotes inside wait for the end of this part, not of the one around it.
        waiting, self._footnotes = self._footnotes, []
        yield
        self.close_headings()
        self._write_footnotes(level)
        self._scope, self._footnotes = around, waiting
        self.writer.close(part)
        self.writer.separate(separator)

    def open_heading(self, kind: str, rank: int, label: str) -> int:
        """Begin a part that lasts to the next one of its rank or a smaller rank in the same element; its level."""
        # Footnotes stand at the end of the text under the heading before.
        self.close_headings(rank)
        self._write_footnotes(self._scope.level)
        self.writer.separate("\n\n")
        part = self.writer.open(kind, self._scope.level + 1)
        part.heading = shortened(label, LABEL_LENGTH)
        self._scope.headings.append((rank, part))
        return part.level

    def heading(self, element: etree._Element, _: int) -> None:
        """Open the part of an HD by its SOURCE."""
        kind = (element.get("SOURCE") or "HD1").lower()
        level = self.open_heading(kind, rank_of(kind), line_of(element))
        self.line(element, level)

    def close_headings(self, rank: int = 0) -> int:
        """End the open headings of this rank and of smaller parts, in the same element; the level that is left."""
        headings = self._scope.headings
        while headings and headings[-1][0] >= rank:
            self._write_footnotes(headings[-1][1].level)
            self.writer.close(headings.pop()[1])
            self.writer.separate("\n\n")
        return self._scope.level

    @property
    def outermost_rank(self) -> int:
        """Rank of the outermost open heading in the element being written; 0 if none is open."""
        return self._scope.headings[0][0] if self._scope.headings else 0

    def open_label(self, rank: int) -> str:
        """Return the label of the open heading of that rank in the element being written; "" for none."""
        return next((part.heading for open_rank, part in self._scope.headings if open_rank == rank), "")

    def row(self, cells: Iterable[etree._Element], level: int) -> None:
        """Write one line of a table."""
        self.writer.separate("\n")
        for cell in cells:
            self.writer.separate("\t")
            self.words(cell, level)
            self._loose(cell.tail)
        self.writer.separate("\n")

    def finish(self) -> tuple[str, tuple[Section, ...]]:
        """Return the text in NFC and its sections; what typesetting had put between letters is in `left_out` then."""
        self._write_footnotes(0)
        if self.writer.n_invisible:
            self.left_out["soft hyphens and zero-width characters"] = self.writer.n_invisible
        return self.writer.finish()

    def words(self, element: etree._Element, level: int) -> None:
        """Write an element's text and what stands in it."""
        if text := element.text:
            self.writer.write(text_of(text))
        for child in element:
            if handler := self.handlers.get(child.tag):
                handler(child, level)
            else:
                self.writer.separate(" ")
                self.words(child, level)
                self.writer.separate(" ")
            if tail := child.tail:
                self.writer.write(text_of(tail))

    def _loose(self, raw: str | None) -> None:
        """Write text that stands between blocks."""
        if text := text_of(raw).strip():
            self.writer.separate("\n")
            self.writer.write(text)
            self.writer.separate("\n")

    def _write_lead(self, heading: etree._Element, lead: str) -> list[etree._Element]:
        """Write an element's own heading, and its first paragraph where that runs in; the blocks that are left."""
        self.line(heading, self._scope.level)
        blocks = list(heading.itersiblings())
        loose = text_of(heading.tail).strip()
        # A run-in heading shares the line of the words after it, stray text or the first paragraph.
        if lead == " " and (loose or (blocks and blocks[0].tag in ("P", "FP"))):
            first = loose or text_of(blocks[0].text).lstrip()
            self.writer.glue()
            self.writer.separate("" if first.startswith((":", ".", ",", "—")) else " ")
        if loose:
            self.writer.write(loose)
            self.writer.separate("\n")
        elif lead == " " and blocks and blocks[0].tag in ("P", "FP"):
            self.words(blocks[0], self._scope.level)
            self.writer.separate("\n")
            self._loose(blocks.pop(0).tail)
        return blocks

    def _stars(self, element: etree._Element, level: int) -> None:
        self.line(element, level)
        self.writer.write(_STARS)
        self.writer.supplied += _STARS.count("*")
        self.writer.separate("\n")

    def _table(self, element: etree._Element, level: int) -> None:
        title = next((line_of(child) for child in element if child.tag == "TTITLE"), "")
        with self.part("table", level + 1, title):
            # Words that a damaged table has between its rows are lines of it.
            self._loose(element.text)
            for child in element:
                if child.tag == "BOXHD":
                    self._heads(child, level)
                elif child.tag == "ROW":
                    self._loose(child.text)
                    self.row(child, level)
                else:
                    self.line(child, level)
                self._loose(child.tail)

    def _heads(self, element: etree._Element, level: int) -> None:
        """Write the column heads, one line a rank; a head over several columns stands once."""
        self._loose(element.text)
        ranks: dict[str, list[etree._Element]] = {}
        for head in element:
            ranks.setdefault(head.get("H", "1"), []).append(head)
        for _, heads in sorted(ranks.items()):
            self.row(heads, level)

    def _write_footnotes(self, level: int) -> None:
        """Write the footnotes that wait, in a part of that level."""
        while self._footnotes:
            waiting, self._footnotes = self._footnotes, []
            # A footnote may hold another one, which then waits in turn.
            for element in waiting:
                self.writer.separate("\n")
                part = self.writer.open("footnote", level + 1)
                self.inside(element, level + 1)
                self.writer.close(part)
                self.writer.separate("\n")


def lead_of(element: etree._Element) -> etree._Element | None:
    """Return the heading of an element itself: an HD that is its first child."""
    first = next(iter(element), None)
    return first if first is not None and first.tag == "HD" else None


def rank_of(kind: str) -> int:
    """Return the rank of a heading's kind, smaller for larger ones: 10 for hed, 11 for hd1, 12 for hd2."""
    return 10 + int(kind[2:]) if re.fullmatch(r"hd[1-9]", kind) else 10
