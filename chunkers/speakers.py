"""One speaker's turn a chunk, or one exchange of short turns: hearings and the Congressional Record."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from chunkers.contexts import path_context
from chunkers.outline import Node, heading_path, outline
from chunkers.splitting import Piece, split_text
from chunkers.tokens import count_tokens, tokenize
from runner.base.records import Chunk, Document, Span

TURN = "turn"
"""The kind of the sections that hold what one speaker said."""

LARGEST_TURN = 2048
"""Most tokens of a turn in one chunk, context included."""

LARGEST = 512
"""Most tokens of a chunk outside turns, and of turns that are joined, context included."""

SHORT = 128
"""Tokens of text below which a turn may be joined to its neighbours, or a heading opens the turn that follows."""


def speaker_turn_v1(document: Document) -> list[Chunk]:
    """Each turn by itself, split above 2,048 tokens; text outside turns by its sections, split above 512."""
    speech = _Speech(document)
    return speech.chunks(speech.turn)


def speaker_exchange_v1(document: Document) -> list[Chunk]:
    """Neighbouring turns joined up to 512 tokens if one of the two that meet is short; the rest as in turns."""
    speech = _Speech(document)
    return speech.chunks(speech.exchanges)


class _Turn(NamedTuple):
    """What one speaker says, the headings that lead there, and the tokens before and through it."""

    piece: Piece
    speaker: str
    path: tuple[str, ...]
    before: int
    through: int


_Stretch = tuple[Piece, str, int]
"""A chunk to be: its span, its context and the tokens of both."""


class _Speech:
    """One document on its way into chunks."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        self.title = document.title
        self.tokens = tokenize(document.text)
        self.root = outline(document, frozenset(), frozenset((TURN,)))
        self.contexts: dict[tuple[str, ...], tuple[str, int]] = {}

    def chunks(self, said: Callable[[Sequence[_Turn]], Iterator[_Stretch]]) -> list[Chunk]:
        """The document in chunks; `said` cuts the turns that follow one another in one section."""
        found: list[Chunk] = []
        for run in self.runs(self.root, ()):
            for piece, context, n_tokens in said(run) if isinstance(run, list) else self.unspoken(run):
                found.append(Chunk(self.document.doc_id, len(found), Span(*piece), context, n_tokens))
        return found

    def runs(self, node: Node, path: tuple[str, ...]) -> Iterator[list[_Turn] | Node | Piece]:
        """The turns of a section that nothing parts, and what stands between them, in text order.

        Short text directly before a turn, in no section by itself, belongs to the turn. An outermost section is taken
        apart if it has parts.
        """
        said: list[tuple[int, Node]] = []
        heading: Piece | None = None
        for part in node.parts(self.text):
            if isinstance(part, Node) and part.kind == TURN:
                said.append((heading[0] if heading else part.start, part))
                heading = None
                continue
            yield from filter(None, (self.turns(said, path), heading))
            said, heading = [], None
            if not isinstance(part, Node) and self.tokens.count(*part) < SHORT:
                heading = part
            elif isinstance(part, Node) and (part.holds_sections or (part.children and node is self.root)):
                yield from self.runs(part, (*path, part.label))
            else:
                yield part
        yield from filter(None, (self.turns(said, path), heading))

    def turns(self, said: list[tuple[int, Node]], path: tuple[str, ...]) -> list[_Turn]:
        before = self.tokens.before(np.array([start for start, _ in said], dtype=np.int64)).tolist()
        through = self.tokens.through(np.array([node.end for _, node in said], dtype=np.int64)).tolist()
        return [
            _Turn((start, node.end), node.label, path, *counts)
            for (start, node), *counts in zip(said, before, through, strict=True)
        ]

    def turn(self, turns: Sequence[_Turn]) -> Iterator[_Stretch]:
        """Each turn by itself, a long one cut at its breaks."""
        for turn in turns:
            context, used = self.context((turn,))
            if used + turn.through - turn.before <= LARGEST_TURN:
                yield turn.piece, context, used + turn.through - turn.before
            else:
                for piece in split_text(self.text, self.tokens, turn.piece, LARGEST_TURN - used):
                    yield piece, context, used + self.tokens.count(*piece)

    def exchanges(self, turns: Sequence[_Turn]) -> Iterator[_Stretch]:
        """Turns joined first come first served; one that nothing joins as by itself."""
        group = [turns[0]]
        for turn in turns[1:]:
            may_join = any(one.through - one.before < SHORT for one in (group[-1], turn))
            if may_join and self.joined((*group, turn))[2] <= LARGEST:
                group.append(turn)
            else:
                yield from (self.joined(group),) if len(group) > 1 else self.turn(group)
                group = [turn]
        yield from (self.joined(group),) if len(group) > 1 else self.turn(group)

    def joined(self, group: Sequence[_Turn]) -> _Stretch:
        context, used = self.context(group)
        return (group[0].piece[0], group[-1].piece[1]), context, used + group[-1].through - group[0].before

    def context(self, group: Sequence[_Turn]) -> tuple[str, int]:
        """The title, the headings and the speakers in the order in which they first speak; and its tokens."""
        speakers = " – ".join(dict.fromkeys(turn.speaker for turn in group if turn.speaker.strip()))
        path = (*group[0].path, speakers)
        if path not in self.contexts:
            context = path_context(self.title, path)
            self.contexts[path] = context, count_tokens(context)
        return self.contexts[path]

    def unspoken(self, part: Node | Piece) -> Iterator[_Stretch]:
        """Text outside turns: a section whole, or its parts packed, or cut at breaks, with the path to each."""
        for piece in self.split(part) if isinstance(part, Node) else self.cut(part):
            context = heading_path(self.root, self.title, piece)
            yield piece, context, count_tokens(context) + self.tokens.count(*piece)

    def split(self, node: Node) -> list[Piece]:
        if self.fits((node.start, node.end)):
            return [(node.start, node.end)]
        packed: list[Piece] = []
        for part in node.parts(self.text):
            for piece in self.split(part) if isinstance(part, Node) else self.cut(part):
                if packed and self.fits((packed[-1][0], piece[1])):
                    packed[-1] = packed[-1][0], piece[1]
                else:
                    packed.append(piece)
        return packed

    def fits(self, piece: Piece) -> bool:
        return count_tokens(heading_path(self.root, self.title, piece)) + self.tokens.count(*piece) <= LARGEST

    def cut(self, piece: Piece) -> list[Piece]:
        budget = LARGEST - count_tokens(heading_path(self.root, self.title, piece))
        return split_text(self.text, self.tokens, piece, budget)
