"""How many tokens a matrix of cells has to embed: from the chunks that are stored, else from characters."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chunkers.registry import limit_of
from runner.base.records import BM25Cell, parse_cell
from runner.eval_set.catalog import ENCODERS
from runner.eval_set.version import NOISE_FLOOR_CELL

CHARACTERS_PER_TOKEN = 4
STRUCTURE_SHARE = 1.1
"""Tokens of a structural chunker's chunks over those of the text: context comes before every chunk.

Counted over nine sources (up to 25 documents each, cl100k_base), chunkers needed 0.75 to 1.32 times what is said here.
"""


class TokenCount(NamedTuple):
    """Tokens that an encoder has to read, and where the figure is from."""

    tokens: int
    source: str


@dataclass(frozen=True)
class Corpus:
    """What is known of the texts of a version: characters of each document, of all queries, chunks counted already."""

    document_chars: Sequence[int]
    query_chars: int
    stored: Callable[[str, int], int | None]
    """Tokens of a chunker's stored chunks, each cut at a limit (0 for none); None where it has none."""


def planned_tokens(
    cells: Sequence[str], baseline: str, corpus: Corpus, current: Collection[str]
) -> dict[str, TokenCount]:
    """What every encoder of the cells has to read, from stored counts or characters; not what `current` cells have.

    Cells of one encoder and chunker share their vectors. The baseline is embedded once more, in other batches, unless
    it is "" or NOISE_FLOOR_CELL is current. From characters, whole documents alone are cut at the encoder's limit.
    """
    parsed = {cell: parsed for cell in cells if not isinstance(parsed := parse_cell(cell), BM25Cell)}
    done = {(parsed[cell].encoder, parsed[cell].chunker) for cell in current if cell in parsed}
    wanted = {(cell.encoder, cell.chunker): 1 for cell in parsed.values() if (cell.encoder, cell.chunker) not in done}
    if baseline in parsed and NOISE_FLOOR_CELL not in current:
        pair = parsed[baseline].encoder, parsed[baseline].chunker
        wanted[pair] = wanted.get(pair, 0) + 1
    planned: dict[str, TokenCount] = {}
    for encoder in sorted({encoder for encoder, _ in wanted}):
        parts = [(_tokens(encoder, chunker, corpus), n) for (who, chunker), n in wanted.items() if who == encoder]
        queries = corpus.query_chars // CHARACTERS_PER_TOKEN * max(n for _, n in parts)
        sources = {part.source for part, _ in parts}
        source = sources.pop() if len(sources) == 1 else "chunks in part, characters"
        planned[encoder] = TokenCount(queries + sum(part.tokens * n for part, n in parts), source)
    return planned


def _tokens(encoder: str, chunker: str, corpus: Corpus) -> TokenCount:
    """Tokens of one chunker's chunks, counted or from characters."""
    most = ENCODERS[encoder].max_tokens
    if (stored := corpus.stored(chunker, most)) is not None:
        return TokenCount(stored, "counted chunks")
    limit = most if not limit_of(chunker) else 0
    tokens = sum(min(chars / CHARACTERS_PER_TOKEN, limit or chars) for chars in corpus.document_chars)
    return TokenCount(round(tokens * _overlap(chunker)), "from characters")


def _overlap(chunker: str) -> float:
    """How often a chunker's chunks hold a token of the text, on the average."""
    if match := re.match(r"fixed_token_(\d+)_(\d+)", chunker):
        return int(match[1]) / (int(match[1]) - int(match[2]))
    return STRUCTURE_SHARE if limit_of(chunker) else 1.0
