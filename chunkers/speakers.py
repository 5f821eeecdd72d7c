"""One speaker's turn a chunk, or one exchange of short turns: hearings and the Congressional Record."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

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


def speaker_turn(document: Document, most: int = 0) -> list[Chunk]:
    """Return each turn by itself, split above 2,048 tokens; text outside turns by its sections, split above 512.

    Of a turn that is split, what was inserted above 512 tokens is cut by its sections as text outside turns is.
    With `most`, each chunk is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    speech = _Speech(document)
    return speech.chunks(speech.stretches(speech.turn), most)


def speaker_exchange(document: Document, most: int = 0) -> list[Chunk]:
    """Return neighbouring turns joined up to 512 tokens if one of the two that meet is short; the rest as in turns."""
    speech = _Speech(document)
    return speech.chunks(speech.stretches(speech.exchanges), most)


_SPEAKERS = frozenset((TURN, "inserted statement", "answer"))
"""The kinds whose label says who speaks, and is no heading."""


class _Turn(NamedTuple):
    """What one speaker says, with a heading before it, the sections that lead there, and the tokens around it."""

    piece: Piece
    node: Node
    path: tuple[Node, ...]
    before: int
    through: int


class _Speech(Cutter):
    """One document on its way into chunks by its turns."""

    def __init__(self, document: Document) -> None:
        super().__init__(document, frozenset(), frozenset((TURN,)))
        self.contexts: dict[tuple[str, ...], tuple[str, int]] = {}

    def stretches(self, said: Callable[[Sequence[_Turn]], Iterator[Stretch]]) -> Iterator[Stretch]:
        """Yield the document in stretches; `said` cuts the turns that follow one another in one section."""
        # Turns that follow one another are cut together; everything else by its sections.
        runs = self.runs(self.root, ())
        return self.with_headings(
            chain.from_iterable(said(run) if isinstance(run, list) else self.unspoken(run) for run in runs)
        )

    def runs(self, node: Node, path: tuple[Node, ...]) -> Iterator[list[_Turn] | Node | Piece]:
        """Yield the turns of a section that nothing parts, and what stands between them, in text order.

        Short text directly before a turn, in no section by itself, belongs to the turn. An outermost section is taken
        apart if it has parts.
        """
        said: list[tuple[int, Node]] = []
        heading: Piece | None = None
        for part in node.parts(self.text):
            # A turn takes in the heading that stands directly before it.
            if isinstance(part, Node) and part.kind == TURN:
                said.append((heading[0] if heading else part.start, part))
                heading = None
                continue
            yield from filter(None, (self.turns(said, path), heading))
            said, heading = [], None
            # Short text may be the heading of the turn that follows.
            if not isinstance(part, Node) and self.tokens.count(*part) < SHORT:
                heading = part
            elif isinstance(part, Node) and (part.holds_sections or (part.children and node is self.root)):
                yield from self.runs(part, (*path, part))
            else:
                yield part
        yield from filter(None, (self.turns(said, path), heading))

    def turns(self, said: list[tuple[int, Node]], path: tuple[Node, ...]) -> list[_Turn]:
        before = self.tokens.before(np.array([start for start, _ in said], dtype=np.int64)).tolist()
        through = self.tokens.through(np.array([node.end for _, node in said], dtype=np.int64)).tolist()
        return [
            _Turn((start, node.end), node, path, *counts)
            for (start, node), *counts in zip(said, before, through, strict=True)
        ]

    def turn(self, turns: Sequence[_Turn]) -> Iterator[Stretch]:
        """Yield each turn by itself, a long one cut at its parts and breaks."""
        for turn in turns:
            context, used = self.context((turn,))
            if used + turn.through - turn.before <= LARGEST_TURN:
                yield turn.piece, context, used + turn.through - turn.before
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

    def exchanges(self, turns: Sequence[_Turn]) -> Iterator[Stretch]:
        """Turns joined first come first served; one that nothing joins as by itself."""
        group = [turns[0]]
        for turn in turns[1:]:
            # Two long turns are never joined: each is a statement of its own.
            may_join = any(one.through - one.before < SHORT for one in (group[-1], turn))
            if may_join and self.joined((*group, turn))[2] <= LARGEST:
                group.append(turn)
            else:
                yield from (self.joined(group),) if len(group) > 1 else self.turn(group)
                group = [turn]
        yield from (self.joined(group),) if len(group) > 1 else self.turn(group)

    def joined(self, group: Sequence[_Turn]) -> Stretch:
        context, used = self.context(group)
        return (group[0].piece[0], group[-1].piece[1]), context, used + group[-1].through - group[0].before

    def context(self, group: Sequence[_Turn]) -> tuple[str, int]:
        """Return the title, the headings and the speakers in the order in which they first speak; and its tokens."""
        speakers = " – ".join(dict.fromkeys(turn.node.label for turn in group if turn.node.label.strip()))
        piece = group[0].piece[0], group[-1].piece[1]
        path = (*(node.label for node in group[0].path if not self.stands(node, piece)), speakers)
        if path not in self.contexts:
            context = path_context(self.title, path)
            self.contexts[path] = context, count_tokens(context)
        return self.contexts[path]

    def unspoken(self, part: Node | Piece) -> Iterator[Stretch]:
        """Text outside turns: a section whole, or its parts packed, or cut at breaks, with the path to each."""
        return map(self.stretch, self.split(part) if isinstance(part, Node) else self.cut(part))

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
