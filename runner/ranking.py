"""From scored chunks to final rankings: ties, documents by their best chunk, and what a reader meets first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.records import Chunk, ChunkHit, Hit, Run

RUN_DEPTH = 100
"""Documents kept a query, after every chunk was considered."""

READ_TOKENS = 8192
"""A reading list ends with the chunk that brings its tokens to this many."""

SCORE_STEPS = 100_000
"""Scores are held as integers of 1e-5, so that equal means equal on every machine."""

Reading = Mapping[str, tuple[ChunkHit, ...]]
"""For every query, the chunks that a reader of the ranking meets, best first."""

Ints = NDArray[np.int64]


class Retrieval(NamedTuple):
    """What a retriever hands on: the ranked documents and the ranked chunks below them."""

    run: Run
    reading: Reading


@dataclass(frozen=True)
class ChunkTable:
    """The chunks of a cell as columns, one row a chunk in the given order.

    `numbers` counts the documents up from 0 in ascending order of doc_id; `documents` holds each row's number;
    `order` lists the rows by document, then chunk
    index, and `starts` (n_documents + 1) says where each document's rows begin in it.
    """

    numbers: dict[str, int]
    documents: Ints
    indices: Ints
    n_tokens: Ints
    order: Ints
    starts: Ints

    def rows_of(self, documents: Ints) -> Ints:
        """All rows of the documents numbered, document by document, each in chunk order."""
        parts = [self.order[self.starts[d] : self.starts[d + 1]] for d in documents]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


def chunk_table(chunks: Sequence[Chunk]) -> ChunkTable:
    """The columns of a list of chunks, whatever its order."""
    owners = [chunk.doc_id for chunk in chunks]
    numbers = {doc_id: i for i, doc_id in enumerate(sorted(dict.fromkeys(owners)))}  # mostly in order, so fast to sort
    documents = np.array([numbers[owner] for owner in owners], np.int64)
    indices = np.array([chunk.index for chunk in chunks], np.int64)
    order = np.lexsort((indices, documents))
    return ChunkTable(
        numbers,
        documents,
        indices,
        np.array([chunk.n_tokens for chunk in chunks], np.int64),
        order,
        np.searchsorted(documents[order], np.arange(len(numbers) + 1)),
    )


def quantised(scores: NDArray[np.float64]) -> Ints:
    """Scores in whole steps of 1e-5, halves to even."""
    return np.rint(scores * SCORE_STEPS).astype(np.int64)


def rank(scores: Ints, documents: Ints, indices: Ints) -> NDArray[np.intp]:
    """Positions from best to worst: score descending, doc_id descending (trec_eval's order), chunk index ascending.

    The one owner of ties. `documents` are a ChunkTable's numbers, which ascend with doc_id.
    """
    return np.lexsort((indices, -documents, -scores))


def leading(scores: NDArray[np.generic], depth: int) -> NDArray[np.intp]:
    """Ascending positions of the `depth` largest scores and of everything that ties with the last of them."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - depth)[len(scores) - depth])


def best_chunks(documents: Ints) -> NDArray[np.intp]:
    """Positions of each document's first row in a ranked list, in ranked order (MaxP)."""
    return np.sort(np.unique(documents, return_index=True)[1])


def retrieval(
    cell: str, chunks: Sequence[Chunk], table: ChunkTable, scored: Iterable[tuple[str, Ints, Ints]]
) -> Retrieval:
    """Final rankings by MaxP from (query_id, rows, scores), where scores are integers of 1e-5.

    The rows of a query must hold every chunk of each document that can be among its best RUN_DEPTH. The reading
    list runs over the chunks of the documents ranked, by chunk score.
    """
    hits: dict[str, tuple[Hit, ...]] = {}
    reading: dict[str, tuple[ChunkHit, ...]] = {}
    for query_id, rows, scores in scored:
        order = rank(scores, table.documents[rows], table.indices[rows])
        rows, scores = rows[order], scores[order]
        best = best_chunks(table.documents[rows])[:RUN_DEPTH]
        hits[query_id] = tuple(
            Hit(chunks[row].doc_id, score / SCORE_STEPS, chunks[row].span)
            for row, score in zip(rows[best].tolist(), scores[best].tolist(), strict=True)
        )
        kept = np.isin(table.documents[rows], table.documents[rows[best]])
        reading[query_id] = read_down(chunks, table, rows[kept])
    return Retrieval(Run(cell, hits), reading)


def read_down(chunks: Sequence[Chunk], table: ChunkTable, rows: Ints) -> tuple[ChunkHit, ...]:
    """The first rows, up to and with the one that brings their tokens to READ_TOKENS; all of them where none does."""
    depth = int(np.searchsorted(np.cumsum(table.n_tokens[rows]), READ_TOKENS)) + 1
    return tuple(ChunkHit(chunks[row].doc_id, chunks[row].span, chunks[row].n_tokens) for row in rows[:depth].tolist())
