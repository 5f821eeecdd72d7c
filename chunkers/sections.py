"""One section a chunk under its heading path: the algorithm that structural chunkers share."""

from collections.abc import Iterator
from dataclasses import dataclass

from chunkers.cutter import Cutter
from chunkers.outline import Node
from chunkers.splitting import Piece
from runner.base.records import Chunk, Document

MERGED = 384
"""Most tokens of a chunk of small sections, context included."""


@dataclass(frozen=True, slots=True)
class SectionRules:
    """What differs from source to source.

    `containers` are the kinds that hold sections and `sections` those that are one; whatever has a part of either
    kind inside is a container too, and nothing is merged across a container's ends. A section whose text is below
    SHORT takes in the siblings after it while the chunk stays within MERGED; one above LARGEST is split.

    With `repeats` a heading that stands in a chunk's text is in its context too, and a heading that the text after it
    leaves no room for is a chunk by itself.
    """

    containers: frozenset[str]
    sections: frozenset[str]
    repeats: bool = True


def by_section(document: Document, rules: SectionRules, most: int = 0) -> list[Chunk]:
    """Return the document's sections as chunks of at most LARGEST tokens, without white space at their ends.

    With `most`, each is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    splitter = _Splitter(document, rules)
    # The source's own sections first, then headings that stand alone.
    stretches = map(splitter.stretch, splitter.container(splitter.root, None))
    return splitter.chunks(stretches if rules.repeats else splitter.with_headings(stretches), most)


class _Splitter(Cutter):
    """One document on its way into chunks by its sections."""

    def __init__(self, document: Document, rules: SectionRules) -> None:
        super().__init__(document, rules.containers, rules.sections)
        self.rules = rules
        self.containers = rules.containers

    def stands(self, node: Node, piece: Piece) -> bool:
        return not self.rules.repeats and super().stands(node, piece)

    def container(self, node: Node, carried: int | None) -> Iterator[Piece]:
        """Yield the chunks of a container in text order.

        `carried` is where the heading of an outer container starts that the first chunk takes in, None without one.
        """
        # Sections that stand side by side are merged together; a container or loose text ends the run.
        run: list[tuple[Node, int]] = []
        for part, start in self.openings(node, carried):
            if isinstance(part, Node) and not part.holds_sections:
                run.append((part, start))
                continue
            yield from self.siblings(run)
            run = []
            if not isinstance(part, Node):
                yield from self.cut(part)
            else:
                yield from self.container(part, start) if part.children else self.split(part, start)
        yield from self.siblings(run)

    def openings(self, node: Node, carried: int | None) -> Iterator[tuple[Node | Piece, int]]:
        """Yield a container's parts, each with the start of its first chunk.

        Short text before a section opens that section's chunk, and a container's short heading opens the first
        chunk inside it; such text is no part of its own.
        """
        parts = list(node.parts(self.text))
        for index, part in enumerate(parts):
            begin = part.start if isinstance(part, Node) else part[0]
            start = begin if carried is None else carried
            # What is carried belongs to the next part alone.
            carried = None
            if not isinstance(part, Node):
                following = parts[index + 1] if index + 1 < len(parts) else None
                is_heading = index == 0 and node is not self.root
                opens = isinstance(following, Node) and (is_heading or not following.holds_sections)
                if opens and self.is_small((start, part[1])):
                    carried = start
                    continue
                if start < begin:
                    yield (start, begin), start
            yield part, start

    def siblings(self, run: list[tuple[Node, int]]) -> Iterator[Piece]:
        """Yield neighbouring sections of one container, with the start of their chunks: merged, whole or split."""
        index = 0
        while index < len(run):
            node, start = run[index]
            end = node.end
            index += 1
            # A small section takes in those after it, first come first served.
            if self.is_small((start, end)):
                while index < len(run) and self.fits((start, run[index][0].end), MERGED):
                    end = run[index][0].end
                    index += 1
            if end == node.end:
                yield from self.split(node, start)
            else:
                yield start, end

    def split(self, node: Node, start: int) -> list[Piece]:
        """Return a section in pieces that fit: at its parts, theirs, and so on, then at breaks of the text."""
        if self.fits((start, node.end)):
            return [(start, node.end)]
        # What opens the section and stands before it is cut like text.
        pieces = self.cut((start, node.start)) if start < node.start else []
        for part in node.parts(self.text):
            pieces += self.split(part, part.start) if isinstance(part, Node) else self.cut(part)
        return self.packed(pieces)

    def packed(self, pieces: list[Piece]) -> list[Piece]:
        """Return neighbouring pieces of one section joined, first come first served, while they fit.

        Each join may change the context, so there is no budget of text alone as in `splitting.packed`.
        """
        result = pieces[:1]
        for piece in pieces[1:]:
            joined = result[-1][0], piece[1]
            if self.fits(joined):
                result[-1] = joined
            else:
                result.append(piece)
        return result
