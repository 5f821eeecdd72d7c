"""One document on its way into chunks: what a stretch of it is read with, whether that fits, and where it is cut."""

from collections.abc import Iterable, Iterator

from chunkers.contexts import PATH_TOKENS
from chunkers.narrow import Narrow
from chunkers.outline import Node, heading_path, is_heading_alone, is_in_text, may_open, outline
from chunkers.splitting import Piece, split_text
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span

LARGEST = 512
"""Most tokens of a chunk, context included, but for a turn by itself."""

SHORT = 128
"""Tokens of text below which a stretch is small: it may be joined to its neighbours, or be the heading of the next."""

Stretch = tuple[Piece, str, int]
"""A chunk to be: its span, its context and the tokens of both."""


class Cutter:
    """A document with its outline; kinds in `containers` hold sections, those in `sections` are some."""

    containers: frozenset[str] | None = None
    """The kinds that a heading must not leave behind to begin the piece after it; None for every kind."""

    def __init__(self, document: Document, containers: frozenset[str], sections: frozenset[str]) -> None:
        self.document = document
        self.text = document.text
        self.title = document.title
        self.tokens = tokenize(document.text)
        self.root = outline(document, containers, sections)
        self._paths: dict[Piece, str] = {}

    def stands(self, node: Node, piece: Piece) -> bool:
        """Return whether a heading stands in a piece's text, so that its context can do without."""
        return is_in_text(self.text, node, piece)

    def path_to(self, piece: Piece) -> str:
        """Return the title and the headings that lead to a piece."""
        if piece not in self._paths:  # sizes are asked for again and again while pieces are joined
            self._paths[piece] = heading_path(self.root, self.title, piece, self.stands)
        return self._paths[piece]

    def stretch(self, piece: Piece) -> Stretch:
        """Return a piece with the path to it."""
        path = self.path_to(piece)
        return piece, path, count_tokens(path) + self.tokens.count(*piece)

    def fits(self, piece: Piece, limit: int = LARGEST) -> bool:
        """Return whether a chunk of the piece stays within the limit."""
        return self.tokens.count(*piece) <= limit and self.stretch(piece)[2] <= limit

    def is_small(self, piece: Piece) -> bool:
        """Return whether a piece has few tokens."""
        return self.tokens.count(*piece) < SHORT

    def is_heading(self, piece: Piece) -> bool:
        """Return whether a piece would be a chunk of headings alone."""
        return self.is_small(piece) and is_heading_alone(self.text, self.root, piece)

    def cut(self, piece: Piece) -> list[Piece]:
        """Text without sections inside in pieces that fit, all of which have one context or the first a shorter one."""
        paths = self.path_to(piece), heading_path(self.root, self.title, piece)
        return split_text(self.text, self.tokens, piece, LARGEST - max(map(count_tokens, paths)))

    def opened(self, heading: Piece, piece: Piece) -> list[Piece]:
        """Return a piece that begins with the heading before it, cut in two or more if both together do not fit."""
        whole = heading[0], piece[1]
        if self.fits(whole):
            return [whole]
        # The heading takes part of the first piece's budget; its last token may be cut by the piece's beginning.
        budget = LARGEST - PATH_TOKENS - 1
        first, *rest = split_text(self.text, self.tokens, piece, budget - self.tokens.count(*heading))
        if not self.fits((heading[0], first[1])):  # long white space between the two takes tokens too
            before = self.tokens.count(heading[0], first[0])
            first, *rest = split_text(self.text, self.tokens, piece, budget - before)
        # What is left over may fit in one piece, since only the first had to make room.
        if rest and self.fits((rest[0][0], piece[1])):
            rest = [(rest[0][0], piece[1])]
        return [(heading[0], first[1]), *rest]

    def with_headings(self, stretches: Iterable[Stretch]) -> Iterator[Stretch]:
        """Yield the stretches, of which none is a heading alone if one follows that it may begin."""
        heading: Stretch | None = None
        for stretch in stretches:
            if heading and stretch[2] <= LARGEST and may_open(self.root, heading[0], stretch[0], self.containers):
                yield from map(self.stretch, self.opened(heading[0], stretch[0]))
                heading = None
                continue
            if heading:
                yield heading
            # A heading waits for the stretch that it may begin.
            heading = stretch if self.is_heading(stretch[0]) else None
            if not heading:
                yield stretch
        if heading:
            yield heading

    def chunks(self, stretches: Iterable[Stretch], most: int) -> list[Chunk]:
        """Return the stretches as chunks; with `most`, each cut until an encoder of so many tokens reads all of it."""
        if most:
            stretches = Narrow(self.text, self.tokens, self.root, self.path_to, most).stretches(stretches)
        return [
            Chunk(self.document.doc_id, index, Span(*piece), context, n_tokens)
            for index, (piece, context, n_tokens) in enumerate(stretches)
        ]
