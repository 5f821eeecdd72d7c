"""Documents that could be in the exact top RUN_DEPTH, given float32 rounding error, in one pass over the vectors.

The last bits of a float32 product depend on the BLAS and on the product's shape, and decide nothing: a document is
dropped only if RUN_DEPTH others are ahead by more than both products can be wrong.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Ints
from runner.embed.vectors import Matrix, blocks
from runner.retrieve.ranking import SCORE_STEPS, ChunkTable

BLOCK_BYTES = 1 << 20
"""Rows that are read at once: a core reads, measures and multiplies them without leaving its caches."""

PRODUCT_SIZE = 1 << 18
"""Multiplications up to which OpenBLAS neither starts its threads nor waits for those of another product."""

QUERIES_TOGETHER = 32

PAIRS_AT_ONCE = 1 << 25
"""Documents times queries per pass over the vectors: so many pairs are held, 1.3 GB, if all documents tie."""


def shortlists(queries: Matrix, table: ChunkTable, chunk_vectors: Matrix) -> list[Ints]:
    """Return per query the documents, ascending, whose exact score in steps of 1e-5 can reach the RUN_DEPTH-th best.

    Every core takes an equal part of the rows; a ValueError if a value is not finite.
    """
    turn = max(1, PAIRS_AT_ONCE // max(1, len(table.doc_ids)))
    candidates: list[Ints] = []
    # As many queries a pass as keep the pairs within memory.
    for start in range(0, len(queries), turn):
        scan = partial(_scanned, queries[start : start + turn], table, chunk_vectors)
        with ThreadPoolExecutor() as pool:
            parts = list(pool.map(scan, _parts(len(chunk_vectors), _block_rows(chunk_vectors))))
        for contenders, *others in zip(*parts, strict=True):
            candidates += contenders.joined(others)
    return candidates


def float32_errors(queries: Matrix, largest_norm: float) -> NDArray[np.float64]:
    """Return the most by which float32 inner products, summed in any order, miss the exact ones (Higham 2002, 3.1)."""
    unit = queries.shape[1] * 2.0**-24
    norms: NDArray[np.float64] = np.linalg.norm(queries.astype(np.float64), axis=1)
    errors: NDArray[np.float64] = unit / (1 - unit) * norms * largest_norm * 1.001
    return errors


class _Contenders:
    """The documents that can be among the best of a few queries, of the rows offered so far.

    A pair of query and document is one number, query * n_documents + document. `_nth` is each query's RUN_DEPTH-th
    largest float32 score of a document so far, and `_floors` what a row must reach to matter: the RUN_DEPTH-th exact
    score is at least `_nth` less one error; a document must come within two steps of it (rounding halves to even
    joins scores less than two steps apart) and may itself be one error short. Both errors are for the longest row
    offered so far, so that a longer one lowers the floors before it is compared with them.
    """

    def __init__(self, queries: Matrix, n_documents: int, block_rows: int) -> None:
        self._queries, self._n_documents = queries, n_documents
        self._columns = np.ascontiguousarray(queries.T)
        self._together = max(1, PRODUCT_SIZE // max(1, queries.size))
        self._scores = np.empty((block_rows, len(queries)), np.float32)
        self._floors = np.empty_like(self._scores)  # one row would do, but comparing like with like is 3 times as fast
        self._nth = np.full(len(queries), -np.inf)
        self._kept = [(np.empty(0, np.int64), np.empty(0, np.float32))]
        self._n_kept, self._room = 0, 0
        self._largest_norm = 0.0
        self._set_floors()

    def offer(self, block: Matrix, documents: Ints, largest_norm: float) -> None:
        """Take up what matters of a block of rows, given each row's document and the largest norm of a row."""
        if largest_norm > self._largest_norm:
            self._largest_norm = 1.01 * largest_norm  # or unit rows would raise it time and again in their last bits
            self._set_floors()
        scores = self._products(block)
        places = np.flatnonzero(scores >= self._floors[: len(block)])
        # What reaches its query's floor is kept, as one number a pair.
        rows, queries = np.divmod(places, scores.shape[1])
        self._kept.append((queries * self._n_documents + documents[rows], scores.ravel()[places]))
        self._n_kept += len(places)
        if self._n_kept > self._room:
            self._settle()

    def joined(self, others: Sequence["_Contenders"]) -> list[Ints]:
        """Return each query's documents, other parts of the rows included."""
        for other in others:
            self._kept += other._kept
            self._largest_norm = max(self._largest_norm, other._largest_norm)
        pairs, bounds = self._settle()
        numbers = pairs % max(1, self._n_documents)
        return [numbers[start:stop] for start, stop in pairwise(bounds)]

    def _products(self, block: Matrix) -> Matrix:
        """Return float32 scores (rows, queries), valid until the next block's, as a stack of small products."""
        scores, size = self._scores[: len(block)], self._together
        whole = len(block) - len(block) % size
        stacks = [matrix[:whole].reshape(-1, size, matrix.shape[1]) for matrix in (block, scores)]
        np.matmul(stacks[0], self._columns, out=stacks[1])
        np.matmul(block[whole:], self._columns, out=scores[whole:])
        return scores

    def _settle(self) -> tuple[Ints, list[int]]:
        """Raise the floors by what was kept and drop what is below; the pairs left, and where each query's begin."""
        pairs, scores = _largest(*(np.concatenate(columns) for columns in zip(*self._kept, strict=True)))
        starts = np.arange(len(self._nth) + 1) * self._n_documents
        bounds = np.searchsorted(pairs, starts).tolist()
        # A query's floor rises once it has RUN_DEPTH documents.
        for query, (start, stop) in enumerate(pairwise(bounds)):
            if stop - start >= RUN_DEPTH:
                self._nth[query] = np.partition(scores[start:stop], -RUN_DEPTH)[-RUN_DEPTH]
        floors = self._set_floors()
        above = scores >= floors[pairs // max(1, self._n_documents)]
        pairs, scores = pairs[above], scores[above]
        self._kept, self._n_kept = [(pairs, scores)], len(pairs)
        # Settling costs a sort: not again before twice as much is kept.
        self._room = 2 * len(pairs) + 4 * RUN_DEPTH * len(self._nth)
        return pairs, np.searchsorted(pairs, starts).tolist()

    def _set_floors(self) -> Matrix:
        lowest = self._nth - 2 * float32_errors(self._queries, self._largest_norm) - 2 / SCORE_STEPS
        # Rounding to float32 must not raise a floor.
        floors = np.nextafter(lowest.astype(np.float32), np.float32(-np.inf))
        self._floors[:] = floors
        return floors


def _scanned(queries: Matrix, table: ChunkTable, chunk_vectors: Matrix, part: range) -> list[_Contenders]:
    """Return what one part of the rows leaves, per QUERIES_TOGETHER queries."""
    n_rows, n_documents = _block_rows(chunk_vectors), len(table.doc_ids)
    by_turn = [
        _Contenders(queries[start : start + QUERIES_TOGETHER], n_documents, n_rows)
        for start in range(0, len(queries), QUERIES_TOGETHER)
    ]
    for start, block in blocks(chunk_vectors, n_rows, part):
        squared = float(np.vecdot(block, block).max())
        if not math.isfinite(squared):
            raise ValueError(f"chunk vectors {start} to {start + len(block)} hold a value that is not finite")
        for contenders in by_turn:
            # The longest row of the block widens the margin before its scores are looked at.
            contenders.offer(block, table.documents[start : start + len(block)], math.sqrt(squared))
    return by_turn


def _largest(pairs: Ints, scores: Matrix) -> tuple[Ints, Matrix]:
    """Return the distinct pairs, ascending, each with its largest score."""
    order = np.argsort(pairs)
    pairs, scores = pairs[order], scores[order]
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    return pairs[firsts], np.maximum.reduceat(scores, firsts) if len(firsts) else scores


def _block_rows(chunk_vectors: Matrix) -> int:
    return max(1, BLOCK_BYTES // max(1, 4 * int(chunk_vectors.shape[1])))


def _parts(n_rows: int, block_rows: int) -> list[range]:
    """Return a range of rows per core, whole blocks but for the last; one empty range without rows."""
    n_blocks = -(-n_rows // block_rows)
    size = max(1, -(-n_blocks // cores())) * block_rows
    return [range(start, min(start + size, n_rows)) for start in range(0, max(1, n_rows), size)]


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
