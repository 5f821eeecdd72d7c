"""From scored chunks to final rankings: ties, documents by their best chunk, and what a reader meets first."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.base.records import READ_TOKENS, RUN_DEPTH, ArmLists, Arms, Chunk, ChunkHit, Hit, Ints, Reading, Run

SCORE_STEPS = 100_000
"""Scores are held as integers of 1e-5, so that equal means equal on every machine."""

Entry = TypeVar("Entry", Hit, ChunkHit, Arms)


class Retrieval(NamedTuple):
    """A retriever's result: ranked documents, the ranked chunks below them, and the index's size.

    `index_bytes` are 4 per vector coordinate (less where it is stored as less) and 8 per posting of BM25. `bounds` are
    BM25's: the most that any text could score, by query. `arms` are a sum's.
    """

    run: Run
    reading: Reading
    index_bytes: int
    bounds: Mapping[str, float] = MappingProxyType({})
    arms: ArmLists | None = None


@dataclass(frozen=True)
class ChunkTable:
    """The chunks of a cell as columns, one row per chunk in the given order.

    `doc_ids` ascend, and a document's number is its place there; `documents` holds each row's number. `order` lists the
    rows by document, then chunk index; `starts` (n_documents + 1) is where each document begins in it.
    """

    doc_ids: Sequence[str]
    documents: Ints
    indices: Ints
    n_tokens: Ints
    order: Ints
    starts: Ints

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Every document's number."""
        return {doc_id: number for number, doc_id in enumerate(self.doc_ids)}

    def rows_of(self, documents: Ints) -> Ints:
        """Return all rows of the documents numbered, document by document, each in chunk order."""
        firsts = self.starts[documents]
        lengths = self.starts[documents + 1] - firsts
        before = np.cumsum(lengths) - lengths
        rows: Ints = self.order[np.arange(lengths.sum()) + np.repeat(firsts - before, lengths)]
        return rows


def chunk_table(chunks: Sequence[Chunk]) -> ChunkTable:
    """Return the columns of a list of chunks, whatever its order."""
    doc_ids = sorted({chunk.doc_id for chunk in chunks})
    numbers = {doc_id: number for number, doc_id in enumerate(doc_ids)}
    documents = np.fromiter((numbers[chunk.doc_id] for chunk in chunks), np.int64, len(chunks))
    indices = _column(chunks, "index")
    return ChunkTable(
        doc_ids,
        documents,
        indices,
        _column(chunks, "n_tokens"),
        np.lexsort((indices, documents)),
        np.concatenate([[0], np.cumsum(np.bincount(documents, minlength=len(doc_ids)))]),
    )


def _column(chunks: Sequence[Chunk], name: str) -> Ints:
    return np.fromiter(map(attrgetter(name), chunks), np.int64, len(chunks))


def quantised(scores: NDArray[np.float64]) -> Ints:
    """Return scores in whole steps of 1e-5, halves to even."""
    return np.rint(scores * SCORE_STEPS).astype(np.int64)


def rank(scores: Ints, documents: Ints, indices: Ints) -> NDArray[np.intp]:
    """Return positions from best to worst: by score, then doc_id descending (trec_eval's order), then chunk index.

    The one owner of ties; `documents` are a ChunkTable's numbers.
    """
    return np.lexsort((indices, -documents, -scores))


def without_own(lists: Mapping[str, Sequence[Entry]], own: Collection[str]) -> dict[str, tuple[Entry, ...]]:
    """Return the lists, of the queries in `own` without the document that has the query's id."""
    return {
        query_id: tuple(hit for hit in hits if hit.doc_id != query_id or query_id not in own)
        for query_id, hits in lists.items()
    }


def ties(hits: Sequence[Hit]) -> int:
    """Count hits among the first RUN_DEPTH that share their score, as a 32-bit float, with a neighbour."""
    scores = np.array([hit.score for hit in hits[:RUN_DEPTH]], np.float32)
    is_next_equal = scores[1:] == scores[:-1]
    # Each equal pair marks both of its hits.
    return int(np.count_nonzero(np.append(is_next_equal, False) | np.append(False, is_next_equal)))


def leading(scores: NDArray[np.generic], depth: int) -> NDArray[np.intp]:
    """Return ascending positions of the `depth` largest scores and of everything that ties with the last of them."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth])


def retrieval(
    cell: str,
    chunks: Sequence[Chunk],
    table: ChunkTable,
    scored: Iterable[tuple[str, Ints, Ints]],
    index_bytes: int,
) -> Retrieval:
    """Return final rankings from (query_id, rows, scores), with scores as integers of 1e-5; documents by MaxP.

    A query's rows must hold every chunk of each document that can be among its best RUN_DEPTH. The evidence is the
    document's best chunk. The reading list has the ranked documents' chunks by score.
    """
    hits: dict[str, tuple[Hit, ...]] = {}
    reading: dict[str, tuple[ChunkHit, ...]] = {}
    for query_id, rows, scores in scored:
        order = rank(scores, table.documents[rows], table.indices[rows])
        rows, scores = rows[order], scores[order]
        # The first row of a document in rank order is its best chunk (MaxP).
        _, firsts, numbers = np.unique(table.documents[rows], return_index=True, return_inverse=True)
        best = np.sort(firsts)[:RUN_DEPTH]
        evidence = zip(map(chunks.__getitem__, rows[best].tolist()), (scores[best] / SCORE_STEPS).tolist(), strict=True)
        # Every row of a ranked document: its first one stands no deeper than the last document's.
        read = rows[firsts[numbers] <= best.max(initial=-1)]
        hits[query_id] = tuple([Hit(chunk.doc_id, score, chunk.span) for chunk, score in evidence])
        reading[query_id] = read_down(chunks, table, read)
    return Retrieval(Run(cell, hits), reading, index_bytes)


def read_down(chunks: Sequence[Chunk], table: ChunkTable, rows: Ints) -> tuple[ChunkHit, ...]:
    """Return the first rows, up to the one that brings their tokens to READ_TOKENS; all of them if none does."""
    # The row that reaches the budget is read to its end.
    depth = int(np.searchsorted(np.cumsum(table.n_tokens[rows]), READ_TOKENS)) + 1
    read = map(chunks.__getitem__, rows[:depth].tolist())
    return tuple([ChunkHit(chunk.doc_id, chunk.span, chunk.n_tokens) for chunk in read])
