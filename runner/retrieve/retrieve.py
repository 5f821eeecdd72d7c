"""Exact dense retrieval, re-ranking and fusion of ranks: no thread count, block size or row order changes a result.

float32 similarities only pick a shortlist (`shortlist`), by a margin over their worst error; every score that counts is
summed again in float64.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Chunk, ChunkHit, Hit, Ints, Run
from runner.embed.vectors import Matrix, gathered
from runner.retrieve.ranking import ChunkTable, Retrieval, quantised, read_down, retrieval
from runner.retrieve.shortlist import shortlists

RRF_K = 60
"""Cormack, Clarke & Buettcher 2009; not the k of a top-k list."""

EXACT_ROWS = 256  # as float64 these still fit a core's cache; larger blocks took up to 1.8 times as long


class DenseArm(NamedTuple):
    """What dense retrieval compares: one row of `query_vectors` per query with one of `chunk_vectors` per chunk.

    One `table` of the chunks serves every cell of a chunker.
    """

    query_ids: Sequence[str]
    query_vectors: Matrix
    chunks: Sequence[Chunk]
    chunk_vectors: Matrix
    table: ChunkTable

    @property
    def index_bytes(self) -> int:
        """Of the chunks' vectors as float32."""
        return 4 * math.prod(self.chunk_vectors.shape)


def dense_run(cell: str, arm: DenseArm) -> Retrieval:
    """Return the RUN_DEPTH documents nearest to each query by their best chunk (inner product), and reading lists.

    Equal to scoring every chunk in float64 and rounding to 1e-5; of equal chunks the first is the evidence. Raises
    ValueError for rows that do not fit or are not finite.
    """
    _check(arm)
    candidates = shortlists(arm.query_vectors, arm.table, arm.chunk_vectors)
    return exact_run(cell, arm, map(arm.table.rows_of, candidates), arm.index_bytes)


def rerank_run(cell: str, sparse: Run, arm: DenseArm) -> Retrieval:
    """Return the sparse run's documents (at most RUN_DEPTH) in the order of their best chunk's dense score."""
    _check(arm)
    found = {query_id: [hit.doc_id for hit in sparse.hits[query_id][:RUN_DEPTH]] for query_id in arm.query_ids}
    documents = (_numbers(arm.table, sparse.cell, query_id, doc_ids) for query_id, doc_ids in found.items())
    return exact_run(cell, arm, map(arm.table.rows_of, documents), arm.index_bytes)


def exact_run(cell: str, arm: DenseArm, candidates: Iterable[Ints], index_bytes: int) -> Retrieval:
    """Return the ranking of each query's candidate rows by their exact scores."""
    exact, asked = ExactScores(arm.chunk_vectors), zip(arm.query_ids, arm.query_vectors, candidates, strict=True)
    scored = ((query_id, rows, exact.of(query, rows)) for query_id, query, rows in asked)
    return retrieval(cell, arm.chunks, arm.table, scored, index_bytes)


def rrf_run(cell: str, sparse: Run, arm: DenseArm) -> Retrieval:
    """Return the two document rankings fused by reciprocal rank, each taken to RUN_DEPTH.

    Scores are whole steps of 1e-9 (see `fused_ids`). The evidence is the document's best dense chunk, even below
    RUN_DEPTH. The reading list has every document's best chunk in fused order, then the second best ones, and so on.
    """
    table, chunks, exact = arm.table, arm.chunks, ExactScores(arm.chunk_vectors)
    dense = dense_run(cell, arm).run
    hits: dict[str, tuple[Hit, ...]] = {}
    reading: dict[str, tuple[ChunkHit, ...]] = {}
    for query_id, query in zip(arm.query_ids, arm.query_vectors, strict=True):
        fused = fused_ids([[hit.doc_id for hit in run.hits[query_id][:RUN_DEPTH]] for run in (sparse, dense)])
        documents = _numbers(table, sparse.cell, query_id, [doc_id for doc_id, _ in fused])
        rows = in_rounds(query, table, exact, documents)
        hits[query_id] = tuple(
            Hit(doc_id, score / SCORE_UNIT, chunks[row].span)
            for (doc_id, score), row in zip(fused, rows[: len(fused)].tolist(), strict=True)
        )
        reading[query_id] = read_down(chunks, table, rows)
    return Retrieval(Run(cell, hits), reading, arm.index_bytes)


def fused_ids(rankings: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
    """Return the first RUN_DEPTH documents by summed 1 / (RRF_K + rank) with their sums in whole steps of 1e-9.

    Of equal sums the greater id comes first, as `rank` has it. Exact sums are rounded half up; none merge: with two
    rankings denominators are at most (60 + 100) ** 2, so two different sums lie at least 1.5e-9 apart.
    """
    sums: dict[str, Fraction] = {}
    for ranking in rankings:
        for place, doc_id in enumerate(ranking, start=1):
            sums[doc_id] = sums.get(doc_id, Fraction(0)) + Fraction(1, RRF_K + place)
    steps = {doc_id: math.floor(total * SCORE_UNIT + Fraction(1, 2)) for doc_id, total in sums.items()}
    return sorted(steps.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:RUN_DEPTH]


class ExactScores:
    """Inner products of queries with rows of `chunk_vectors`, in whole steps of 1e-5.

    float32 products are exact in float64, and each row is summed alone: its score depends only on row and query. All
    queries share two buffers, since filling fresh pages takes five times as long as the sums.
    """

    def __init__(self, chunk_vectors: Matrix) -> None:
        shape = min(EXACT_ROWS, len(chunk_vectors)), chunk_vectors.shape[1]
        self._vectors = chunk_vectors
        self._gathered, self._products = np.empty(shape, chunk_vectors.dtype), np.empty(shape)

    def of(self, query: Matrix, rows: Ints) -> Ints:
        """Return the scores of one query (dim,) with the named rows."""
        scores = np.empty(len(rows))
        exact_query = query.astype(np.float64)
        for start in range(0, len(rows), EXACT_ROWS):
            part = rows[start : start + EXACT_ROWS]
            vectors, products = self._gathered[: len(part)], self._products[: len(part)]
            # Row by row in float64: neither BLAS nor the block's size has a part in the last bit.
            np.multiply(gathered(self._vectors, part, vectors), exact_query, out=products)
            products.sum(axis=1, out=scores[start : start + EXACT_ROWS])
        return quantised(scores)


def _check(arm: DenseArm) -> None:
    query_ids, query_vectors, chunks, chunk_vectors, _ = arm
    if query_vectors.shape != (len(query_ids), chunk_vectors.shape[1]) or len(chunk_vectors) != len(chunks):
        raise ValueError(
            f"{len(query_ids)} queries with vectors {query_vectors.shape} do not fit "
            f"{len(chunks)} chunks with vectors {chunk_vectors.shape}"
        )
    if not np.isfinite(query_vectors).all():
        raise ValueError("query vectors hold a value that is not finite")


def _numbers(table: ChunkTable, cell: str, query_id: str, doc_ids: Sequence[str]) -> Ints:
    """Return the documents' numbers in the table; ValueError for one that has no chunk in it."""
    try:
        return np.array([table.numbers[doc_id] for doc_id in doc_ids], np.int64)
    except KeyError as error:
        raise ValueError(f"{cell}: query {query_id} retrieves {error}, which has no chunk in this cell") from error


def in_rounds(query: Matrix, table: ChunkTable, exact: ExactScores, documents: Ints) -> Ints:
    """Return the documents' rows: the best chunk of each in the order given, then the second best, and so on."""
    rows = table.rows_of(documents)
    places = np.repeat(np.arange(len(documents)), table.starts[documents + 1] - table.starts[documents])
    scores = exact.of(query, rows)
    order = np.lexsort((table.indices[rows], -scores, places))
    # The place of each row within its document is its round.
    firsts = np.searchsorted(places, places[order])  # places ascend, and so does places[order]
    return rows[order][np.lexsort((places[order], np.arange(len(rows)) - firsts))]
