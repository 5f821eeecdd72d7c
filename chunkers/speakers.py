"""One speaker's turn a chunk: hearings and the Congressional Record."""

from collections.abc import Iterator
from typing import NamedTuple

from chunkers.contexts import PATH_TOKENS, path_context
from chunkers.cutter import LARGEST, SHORT, Cutter, Stretch
from chunkers.outline import Node
from chunkers.splitting import Piece, split_text
from chunkers.tokens import count_tokens
from runner.base.records import Chunk, Document

TURN = "turn"
"""The kind of the sections that hold what one speaker said."""

LARGEST_TURN = 2048
"""Most tokens of a turn in one chunk, context included."""

SPOKEN_UNDER = "heading"
"""The kind of the sections in a turn that are what was said under a heading; all others were printed or read."""

_SPEAKERS = frozenset((TURN, "inserted statement", "answer"))
"""The kinds whose label says who speaks, and is no heading."""


def speaker_turn(document: Document, most: int = 0) -> list[Chunk]:
    """Return each turn by itself, split above 2,048 tokens; text outside turns by its sections, split above 512.

    Of a turn that is split, what was inserted above 512 tokens is cut by its sections as text outside turns is.
    With `most`, each chunk is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    speech = _Speech(document)
    return speech.chunks(speech.with_headings(speech.stretches()), most)


class _Turn(NamedTuple):
    """What one speaker says, with a heading before it, and the sections that lead there."""

    piece: Piece
    node: Node
    path: tuple[Node, ...]


class _Speech(Cutter):
    """One document on its way into chunks by its turns."""

    def __init__(self, document: Document) -> None:
        super().__init__(document, frozenset(), frozenset((TURN,)))

    def stretches(self) -> Iterator[Stretch]:
        """Yield the document in stretches: turns whole or in parts, text outside turns by its sections or at breaks."""
        for part in self.parts(self.root, ()):
            if isinstance(part, _Turn):
                yield from self.turn(part)
            else:
                yield from map(self.stretch, self.split(part) if isinstance(part, Node) else self.cut(part))

    def parts(self, node: Node, path: tuple[Node, ...]) -> Iterator[_Turn | Node | Piece]:
        """Yield the turns of a section and what stands between them, in text order.

        Short text directly before a turn, in no section by itself, belongs to the turn. An outermost section is taken
        apart if it has parts.
        """
        heading: Piece | None = None
        for part in node.parts(self.text):
            # A turn takes in the heading that stands directly before it.
            if isinstance(part, Node) and part.kind == TURN:
                yield _Turn((heading[0] if heading else part.start, part.end), part, path)
                heading = None
                continue
            if heading:
                yield heading
            heading = None
            # Short text may be the heading of the turn that follows.
            if not isinstance(part, Node) and self.tokens.count(*part) < SHORT:
                heading = part
            elif isinstance(part, Node) and (part.holds_sections or (part.children and node is self.root)):
                yield from self.parts(part, (*path, part))
            else:
                yield part
        if heading:
            yield heading

    def turn(self, turn: _Turn) -> Iterator[Stretch]:
        """Yield a turn under the headings and the name of its speaker; a long one cut at its parts and breaks."""
        headings = (node.label for node in turn.path if not self.stands(node, turn.piece))
        context = path_context(self.title, (*headings, turn.node.label))
        n_tokens = count_tokens(context) + self.tokens.count(*turn.piece)
        if n_tokens <= LARGEST_TURN:
            yield turn.piece, context, n_tokens
        else:
            yield from map(self.stretch, self.long_turn(turn))

    def long_turn(self, turn: _Turn) -> Iterator[Piece]:
        """Yield the pieces of a turn: insertions by their sections, and what was said before, between and after."""
        # What is said goes on until something long was inserted.
        said = turn.piece[0], turn.node.start
        for part in turn.node.parts(self.text):
            start, end = (part.start, part.end) if isinstance(part, Node) else part
            if not isinstance(part, Node) or part.kind == SPOKEN_UNDER or self.tokens.count(start, end) <= LARGEST:
                said = said[0], end
                continue
            yield from self.spoken(said)
            yield from self.split(part)
            said = end, end
        yield from self.spoken(said)

    def spoken(self, said: Piece) -> list[Piece]:
        """Return what was said at a stretch, cut at its breaks; a heading over it joins it if there is room."""
        pieces = split_text(self.text, self.tokens, said, LARGEST_TURN - PATH_TOKENS)
        if len(pieces) > 1 and self.is_heading(pieces[0]):
            joined = pieces[0][0], pieces[1][1]
            pieces[:2] = [joined] if self.stretch(joined)[2] <= LARGEST_TURN else pieces[:2]
        return pieces

    def split(self, node: Node) -> list[Piece]:
        if self.fits((node.start, node.end)):
            return [(node.start, node.end)]
        packed: list[Piece] = []
        for part in node.parts(self.text):
            for piece in self.split(part) if isinstance(part, Node) else self.cut(part):
                if packed and self.fits((packed[-1][0], piece[1])):
                    packed[-1] = packed[-1][0], piece[1]
                # A heading is not left behind as a chunk of its own.
                elif packed and self.is_heading(packed[-1]):
                    packed[-1:] = self.opened(packed[-1], piece)
                else:
                    packed.append(piece)
        return packed

    def stands(self, node: Node, piece: Piece) -> bool:
        """Return whether a heading stands in a piece's text, so that its context can do without; no speaker does."""
        return node.kind not in _SPEAKERS and super().stands(node, piece)
