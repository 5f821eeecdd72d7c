"""Natural breaks of running text, for sources whose structure is weak."""

from dataclasses import replace

from chunkers.contexts import title_context
from chunkers.cutter import LARGEST, Cutter
from chunkers.splitting import Piece, split_text
from chunkers.tokens import count_tokens
from runner.base.records import Chunk, Document


class _Plain(Cutter):
    """A document whose sections do not count: the whole is one node, under its title."""

    def path_to(self, piece: Piece) -> str:
        return title_context(self.title)


def recursive_v1(document: Document, most: int = 0) -> list[Chunk]:
    """Paragraphs, lines, sentences or words packed to at most 512 tokens, title included; no overlap.

    With `most`, each is then cut further until an encoder of so many tokens reads all of it (see `Narrow`).
    """
    cutter = _Plain(replace(document, sections=()), frozenset(), frozenset())
    budget = LARGEST - count_tokens(title_context(document.title))
    pieces = split_text(document.text, cutter.tokens, (0, len(document.text)), budget)
    return cutter.chunks(map(cutter.stretch, pieces), most)
