"""The text of a section or appendix of the Code of Federal Regulations, with its paragraphs as nested sections."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.base.records import Section, Span
from samplers.formats.headings import cut
from samplers.sources.cfr.blocks import Block
from samplers.sources.cfr.paragraphs import Item, Place, places

_INTRODUCES = (":", "—", "–", "-")
_GOES_ON = (";", ",", "; and", "; or", ", and", ", or")
_OF_THE_WHOLE = frozenset(("authority", "source", "citation", "note", "ednote", "effdnot", "appro", "crossref"))
"""Kinds that speak of the whole document, unless the paragraph around them goes on after them."""

LABEL_LENGTH = 200
"""Characters of a label; whole paragraphs are set as headings now and then."""


@dataclass(slots=True)
class _Open:
    """A section that is being written; `depth` is its paragraph level, 0 for headings and the document."""

    kind: str
    label: str
    start: int
    depth: int
    rank: int = 0
    end: int = 0
    level: int = 0


def body(kind: str, label: str, title: str, blocks: Sequence[Block]) -> tuple[str, tuple[Section, ...]]:
    """A document's text and sections, of which the first is the whole document.

    The title is the first line; blank lines set the blocks of the top levels apart.
    """
    writer = _Writer(kind, label, title)
    start = 0
    for index, block in enumerate(blocks):
        if block.kind.startswith("hd"):
            writer.run(blocks[start:index])
            writer.heading(block)
            start = index + 1
    writer.run(blocks[start:])
    return writer.finish()


class _Writer:
    def __init__(self, kind: str, label: str, title: str) -> None:
        self.pieces = [title]
        self.length = len(title)
        self.sections: list[_Open] = []
        self.open: list[_Open] = []
        self.begin(kind, label, 0, -1)

    def begin(self, kind: str, label: str, start: int, depth: int, rank: int = 0) -> None:
        if len(label) > LABEL_LENGTH:
            label = cut(label, LABEL_LENGTH)
        section = _Open(kind, label, start, depth, rank, 0, len(self.open) + 1)
        self.open.append(section)
        self.sections.append(section)

    def close(self, depth: int) -> None:
        """End the paragraphs of this depth and deeper."""
        while self.open[-1].depth >= depth:
            self.open.pop().end = self.length

    def write(self, text: str, separator: str) -> int:
        """Append a block and return where it starts."""
        self.pieces += (separator, text)
        start = self.length + len(separator)
        self.length = start + len(text)
        return start

    def heading(self, block: Block) -> None:
        """Begin a heading of an appendix, where paragraphs and headings of its rank or a smaller one end."""
        self.close(1)
        rank = int(block.kind[2:])
        while self.open[-1].rank >= rank:
            self.open.pop().end = self.length
        self.begin(block.kind, block.text, self.length + 2, 0, rank)
        self.write(block.text, "\n\n")

    def run(self, blocks: Sequence[Block]) -> None:
        """Write the blocks between two headings, whose designators are one sequence."""
        found = _places(blocks)
        following = 0
        inside = []
        for block, place in zip(reversed(blocks), reversed(found), strict=True):
            following = place.inside if place.levels else following
            inside.append(min(place.inside, following) if block.kind in _OF_THE_WHOLE else place.inside)
        for block, place, depth in zip(blocks, found, reversed(inside), strict=True):
            self.block(block, place, depth)

    def block(self, block: Block, place: Place, inside: int) -> None:
        """Write a block inside that many levels of paragraphs, and begin the sections that it begins."""
        self.close(inside + 1)
        start = self.write(block.text, "\n" if inside else "\n\n")
        if place.levels:
            self.paragraphs(block, place, start)
        elif block.kind not in ("", "paragraph"):
            self.begin(block.kind, block.label, start, inside + 1)
            self.close(inside + 1)

    def paragraphs(self, block: Block, place: Place, start: int) -> None:
        """Begin a section at a term and at each designator; those after the first begin inside the line."""
        lead, levels = block.lead, place.levels
        position = 0
        if lead.term:
            self.begin("paragraph", _label(lead.term), start, levels[0])
            position, levels = len(lead.term), levels[1:]
        for level, designator, heading in zip(levels, lead.designators, lead.headings, strict=False):
            mark = designator.label.partition("–")[0]
            at = block.text.find(mark, position)
            if at >= 0:
                label = f"{designator.label} {_label(heading)}".strip() if heading else designator.label
                self.begin("paragraph", label, start + at, level)
                position = at + len(mark) + len(heading)

    def finish(self) -> tuple[str, tuple[Section, ...]]:
        while self.open:
            self.open.pop().end = self.length
        sections = [Section(Span(s.start, s.end), s.level, s.kind, s.label) for s in self.sections]
        return "".join(self.pieces), tuple(sections)


def _label(words: str) -> str:
    return words.rstrip(" .,:;—–-")


def _places(blocks: Sequence[Block]) -> list[Place]:
    items: list[Item] = []
    for block in blocks:
        text, is_text = block.text, block.kind in ("", "paragraph")
        introduces = text.endswith(_INTRODUCES) if is_text else bool(items) and items[-1].introduces
        items.append(Item(block.lead, introduces, text.endswith(_GOES_ON), is_text))
    return places(items)
