"""Chunks cut further, so that an encoder of few tokens reads every one to its end."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from chunkers.contexts import ELLIPSIS, PATH_TOKENS, shortened
from chunkers.outline import Node, is_heading_alone
from chunkers.splitting import Piece, split_text, trimmed
from chunkers.tokens import Tokenized, count_tokens
from chunkers.word_pieces import SPECIAL, count_word_pieces

_LEAST = 8
"""Tokens below which text is halved at a character: one character may take four, and a cut must lie between two."""


class Narrow:
    """Cuts one document's pieces until each, context included, has at most `most` tokens.

    Counted twice: in cl100k_base, as chunks are, and in WordPiece with what opens and closes a text, as the encoder
    reads. What is returned was counted so in the end, whatever the text. A piece that fits stays as it is; any other is
    cut at the sections inside it, theirs, and so on, then at breaks of the text, and neighbours are joined while they
    fit. So the boundaries before are among those after.
    """

    def __init__(self, text: str, tokens: Tokenized, root: Node, context: Callable[[Piece], str], most: int) -> None:
        """`context` says what a piece is read with."""
        self.text = text
        self.tokens = tokens
        self.root = root
        self.most = most
        self._context = context
        self._whole: dict[Piece, str] = {}

    def stretches(self, given: Iterable[tuple[Piece, str, int]]) -> Iterator[tuple[Piece, str, int]]:
        """Yield pieces in parts that fit, each with its context and the tokens of both; one that fits keeps its own."""
        for piece, context, _ in given:
            self._whole[piece] = context
            for part in self.cut(piece):
                read_with = self.context(part)
                yield part, read_with, count_tokens(read_with) + self.tokens.count(*part)

    def cut(self, piece: Piece) -> list[Piece]:
        """Return the piece in parts that fit, in text order; every character but white space is in one of them."""
        if self.room(piece) >= 1:
            return [piece]
        # Sections inside the piece come first, since their boundaries mean something.
        parts = list(self.parts(piece))
        if len(parts) == 1:
            return self.at_breaks(piece)
        return self.packed(part for outer in parts for part in self.cut(outer))

    def context(self, piece: Piece) -> str:
        """Return what the piece is read with; shortened if it would leave less than half of the limit to the text."""
        return readable(self._whole.get(piece) or self._context(piece), self.most // 2 - SPECIAL)

    def room(self, piece: Piece) -> float:
        """Return how many times over the piece's text fits beside its context: 1 or more if the whole is read."""
        context, used = self.context(piece), self.tokens.count(*piece)
        beside = (self.most - count_tokens(context)) / used
        if beside < 1:  # no need to count once more
            return beside
        left = self.most - SPECIAL - count_word_pieces(context)
        return min(beside, left / max(1, count_word_pieces(self.text[piece[0] : piece[1]])))

    def parts(self, piece: Piece) -> Iterable[Piece]:
        """Yield the piece at the sections of the innermost one that holds it, and the text between them."""
        node = self.root
        # Down to the innermost section that holds the whole piece.
        while len(touched := node.touched(piece)) == 1 and touched[0].holds(piece):
            node = touched[0]
        position, end = piece
        for child in touched:
            for gap in ((position, child.start), (max(position, child.start), min(child.end, end))):
                if found := trimmed(self.text, gap):
                    yield found
            position = min(child.end, end)
        if found := trimmed(self.text, (position, end)):
            yield found

    def packed(self, pieces: Iterable[Piece]) -> list[Piece]:
        """Neighbours joined, first come first served, while they fit; a heading goes with some of what follows it."""
        result: list[Piece] = []
        for piece in pieces:
            joined = (result[-1][0], piece[1]) if result else piece
            if self.room(joined) >= 1:
                result[-1:] = [joined]
            elif is_heading_alone(self.text, self.root, result[-1]):
                result[-1:] = self.at_breaks(joined)
            else:
                result.append(piece)
        return result

    def at_breaks(self, piece: Piece) -> list[Piece]:
        """Return the piece at breaks of the text, in parts as long as fit."""
        budget = self.most
        while budget > _LEAST:
            pieces = split_text(self.text, self.tokens, piece, budget)
            # A budget in one count is a guess in the other: it shrinks by how far the worst piece misses.
            least = min(map(self.room, pieces))
            if least >= 1:
                return pieces
            budget = max(_LEAST, min(budget - 1, int(budget * least)))
        # Nothing but a long run of characters is left, which has no break.
        middle = sum(piece) // 2
        halves = filter(None, (trimmed(self.text, (piece[0], middle)), trimmed(self.text, (middle, piece[1]))))
        return [part for half in halves for part in ([half] if self.room(half) >= 1 else self.at_breaks(half))]


@lru_cache(maxsize=4096)
def readable(context: str, most: int) -> str:
    """Return the context, or as much of its beginning as has at most so many WordPiece tokens."""
    n_tokens = PATH_TOKENS
    while count_word_pieces(context) > most:
        n_tokens //= 2
        context = shortened(context, n_tokens) if n_tokens else ELLIPSIS
    return context
