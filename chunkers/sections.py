"""One section a chunk under its heading path: the algorithm that structural chunkers share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from chunkers.contexts import PATH_TOKENS
from chunkers.narrow import Narrow
from chunkers.outline import (
    Node,
    heading_path,
    is_heading_alone,
    is_in_text,
    may_open,
    outline,
    stands_nowhere,
)
from chunkers.splitting import Piece, opened, split_text
from chunkers.tokens import Tokenized, count_tokens, tokenize
from runner.base.records import Chunk, Document, Span


@dataclass(frozen=True, slots=True)
class SectionRules:
    """What differs from source to source. Sizes are tokens; all but `small` count the context.

    `containers` are the kinds that hold sections and `sections` those that are one; whatever has a part of either
    kind inside is a container too, and nothing is merged across a container's ends. A section whose text is below
    `small` takes in the siblings after it while the chunk stays within `merged`; one above `largest` is split.

    With `repeats` a heading that stands in a chunk's text is in its context too, and a heading that the text after it
    leaves no room for is a chunk by itself.
    """

    containers: frozenset[str]
    sections: frozenset[str]
    small: int = 128
    merged: int = 384
    largest: int = 512
    repeats: bool = True


def by_section(document: Document, rules: SectionRules, most: int = 0) -> list[Chunk]:
    """Return the document's sections as chunks of at most `rules.largest` tokens, without white space at their ends.

    With `most`, each is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    splitter = _Splitter(document, rules)
    # The source's own sections first, then headings that stand alone, then what an encoder cannot read.
    pieces: Iterable[Piece] = splitter.container(splitter.root, None)
    if not rules.repeats:
        pieces = splitter.with_headings(pieces)
    context = splitter.context
    if most:
        narrow = Narrow(document.text, splitter.tokens, splitter.root, splitter.context, most)
        pieces, context = chain.from_iterable(map(narrow.cut, pieces)), narrow.context
    return [
        Chunk(
            document.doc_id,
            index,
            Span(*piece),
            found := context(piece),
            count_tokens(found) + splitter.tokens.count(*piece),
        )
        for index, piece in enumerate(pieces)
    ]


class _Splitter:
    """One document on its way into chunks."""

    def __init__(self, document: Document, rules: SectionRules) -> None:
        self.text = document.text
        self.title = document.title
        self.rules = rules
        self.tokens: Tokenized = tokenize(document.text)
        self.root = outline(document, rules.containers, rules.sections)
        self._contexts: dict[Piece, str] = {}

    def context(self, piece: Piece) -> str:
        if piece not in self._contexts:  # sizes are asked for again and again while pieces are joined
            stands = stands_nowhere if self.rules.repeats else self.stands
            self._contexts[piece] = heading_path(self.root, self.title, piece, stands)
        return self._contexts[piece]

    def stands(self, node: Node, piece: Piece) -> bool:
        return is_in_text(self.text, node, piece)

    def size(self, piece: Piece) -> int:
        return count_tokens(self.context(piece)) + self.tokens.count(*piece)

    def fits(self, piece: Piece, limit: int) -> bool:
        """Return whether a chunk of the piece stays within the limit."""
        return self.tokens.count(*piece) <= limit and self.size(piece) <= limit

    def is_whole(self, piece: Piece) -> bool:
        return self.fits(piece, self.rules.largest)

    def is_small(self, piece: Piece) -> bool:
        return self.tokens.count(*piece) < self.rules.small

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
                while index < len(run) and self.fits((start, run[index][0].end), self.rules.merged):
                    end = run[index][0].end
                    index += 1
            if end == node.end:
                yield from self.split(node, start)
            else:
                yield start, end

    def split(self, node: Node, start: int) -> list[Piece]:
        """Return a section in pieces that fit: at its parts, theirs, and so on, then at breaks of the text."""
        if self.fits((start, node.end), self.rules.largest):
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
            if self.fits(joined, self.rules.largest):
                result[-1] = joined
            else:
                result.append(piece)
        return result

    def cut(self, piece: Piece) -> list[Piece]:
        """Text without sections inside in pieces that fit, all of which have one context or the first a shorter one."""
        context = count_tokens(self.context(piece))
        if not self.rules.repeats:
            context = max(context, count_tokens(heading_path(self.root, self.title, piece)))
        return split_text(self.text, self.tokens, piece, self.rules.largest - context)

    def with_headings(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the pieces, of which none is a heading alone if a piece follows that it may begin."""
        heading: Piece | None = None
        budget = self.rules.largest - PATH_TOKENS
        for piece in pieces:
            if heading and may_open(self.root, heading, piece, self.rules.containers):
                yield from opened(self.text, self.tokens, heading, piece, budget, self.is_whole)
                heading = None
                continue
            if heading:
                yield heading
            # A heading waits for the piece that it may begin.
            heading = piece if self.is_small(piece) and is_heading_alone(self.text, self.root, piece) else None
            if not heading:
                yield piece
        if heading:
            yield heading
