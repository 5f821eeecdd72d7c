"""Sign flips, drawn and summed exactly."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints

Floats = NDArray[np.float64]

Weights = Sequence[int] | None
"""What each query counts, in whole numbers above 0; None if all count alike."""

_WHOLE = 1 << 53
_FLIPS_AT_ONCE = 1 << 16


class Flipped(NamedTuple):
    """What draws of flips make of rows of values.

    `sums` (rows, draws) are each row's over the queries flipped, whole numbers; `sizes` (draws,) is what those queries
    weigh. `complete` means that every way to flip is there once: a set of queries and its complement are one way, and
    flipping none is left out.
    """

    sums: Floats
    sizes: Floats
    complete: bool


def counted(weights: Weights, n_queries: int) -> Ints:
    """Return what each query counts, 1 if nothing is said."""
    return np.ones(n_queries, np.int64) if weights is None else np.array(weights, np.int64)


def flipped(values: Ints, *, draws: int, seed: int, weights: Weights = None) -> Flipped:
    """Return the sums of each row of `values` (rows, queries) over `draws` draws, or over all ways to flip if fewer.

    Each value counts by its query's weight. Every draw flips the same queries in all rows. ValueError for no query, no
    draw, or values too large to add exactly.
    """
    n_queries = values.shape[1]
    if draws < 1 or n_queries == 0:
        raise ValueError(f"{draws} draws over {n_queries} queries: there must be one of either at least")
    own = counted(weights, n_queries)
    columns = exact_columns(np.vstack([values * own, own]))
    complete = 2 ** (n_queries - 1) - 1 <= draws
    blocks = _every_way(n_queries) if complete else flip_blocks(n_queries, draws, seed)
    sums = np.concatenate([np.empty((0, columns.shape[1])), *(block @ columns for block in blocks)]).T
    return Flipped(sums[:-1], sums[-1], complete)


def flip_blocks(n_queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of rows (draws, n_queries) of 0 and 1, equally likely, `draws` rows in all; 1 flips a query's sign.

    A block holds at most _FLIPS_AT_ONCE flips, half a megabyte, which stays in the processor's cache.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    rows, words = max(1, _FLIPS_AT_ONCE // n_queries), -(-n_queries // 64)
    for start in range(0, draws, rows):
        drawn = generator.integers(2**64, size=(min(rows, draws - start), words), dtype=np.uint64)
        # In little-endian order, so that every machine reads the same flips from a word.
        octets = drawn.astype("<u8").view(np.uint8)
        yield np.unpackbits(octets, axis=1, count=n_queries, bitorder="little").astype(np.float64)


def exact_columns(values: Ints) -> Floats:
    """Return the rows as columns of floats that add up exactly in any order; ValueError if a sum could pass 2 ** 53."""
    greatest = int(np.abs(values).max(initial=0))
    if values.shape[1] * greatest >= _WHOLE:
        raise ValueError(f"{values.shape[1]} queries with values up to {greatest} cannot be added exactly")
    return np.ascontiguousarray(values.T, np.float64)


def exact_p(values: Sequence[int]) -> float:
    """Return share of all sign flips whose total is at least as far from 0 as the values' own, which is one of them.

    Memory and time go with 2 ** (values other than 0). A flip and its negation are equally far, so one of the two is
    counted.
    """
    others = [value for value in values if value]
    # The first value keeps its sign; every further one doubles the totals.
    totals = np.array([others.pop() if others else 0], np.int64)
    for value in others:
        totals = np.concatenate([totals + value, totals - value])
    return float((np.abs(totals) >= abs(sum(values))).mean())


def _every_way(n_queries: int) -> Iterator[Floats]:
    """Return every set of queries without the last one, but the empty set, in blocks as of `flip_blocks`."""
    rows, ways = max(1, _FLIPS_AT_ONCE // n_queries), 2 ** (n_queries - 1)
    for start in range(1, ways, rows):
        numbers = np.arange(start, min(start + rows, ways))
        # Bit by bit: whether a way flips the query.
        yield (numbers[:, None] >> np.arange(n_queries) & 1).astype(np.float64)
