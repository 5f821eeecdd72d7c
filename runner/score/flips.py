"""Sign flips drawn and summed exactly, and a sign-flip test that skewed differences do not mislead.

Flips are exact if differences are symmetric about 0. If a cell gains a little on most queries, loses much on few
and is equal on the whole, a sample that misses some of the losses looks better and steadier than it is: of nine such
cells, one may have a max-T p of .05 in a fifth of all runs of 25 queries (docs/statistics.md).
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints

Floats = NDArray[np.float64]

_WHOLE = 1 << 53
_FLIPS_AT_ONCE = 1 << 16


class Flipped(NamedTuple):
    """What draws of flips make of rows of values.

    `sums` (rows, draws) are each row's over the queries flipped, whole numbers; `sizes` (draws,) says how many queries
    those are. `complete` means that every way to flip is there once: a set of queries and its complement are one way,
    and flipping none is left out.
    """

    sums: Floats
    sizes: Floats
    complete: bool


def flipped(values: Ints, *, draws: int, seed: int) -> Flipped:
    """The sums of each row of `values` (rows, queries) over `draws` draws, or over all ways to flip if those are fewer.

    Every draw flips the same queries in all rows. ValueError for no query, no draw, or values too large to add exactly.
    """
    n_queries = values.shape[1]
    if draws < 1 or n_queries == 0:
        raise ValueError(f"{draws} draws over {n_queries} queries: there must be one of either at least")
    counted = np.hstack([exact_columns(values), np.ones((n_queries, 1))])
    complete = 2 ** (n_queries - 1) - 1 <= draws
    blocks = _every_way(n_queries) if complete else flip_blocks(n_queries, draws, seed)
    sums = np.concatenate([np.empty((0, counted.shape[1])), *(block @ counted for block in blocks)]).T
    return Flipped(sums[:-1], sums[-1], complete)


def flip_blocks(n_queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """Blocks of rows (draws, n_queries) of 0 and 1, equally likely, `draws` rows in all; 1 flips a query's sign.

    A block holds at most _FLIPS_AT_ONCE flips, half a megabyte, which stays in the processor's cache.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    rows, words = max(1, _FLIPS_AT_ONCE // n_queries), -(-n_queries // 64)
    for start in range(0, draws, rows):
        drawn = generator.integers(2**64, size=(min(rows, draws - start), words), dtype=np.uint64)
        octets = drawn.astype("<u8").view(np.uint8)
        yield np.unpackbits(octets, axis=1, count=n_queries, bitorder="little").astype(np.float64)


def exact_columns(values: Ints) -> Floats:
    """The rows as columns of floats that add up exactly in any order; ValueError if a sum could pass 2 ** 53."""
    greatest = int(np.abs(values).max(initial=0))
    if values.shape[1] * greatest >= _WHOLE:
        raise ValueError(f"{values.shape[1]} queries with values up to {greatest} cannot be added exactly")
    return np.ascontiguousarray(values.T, np.float64)


def exact_p(values: Sequence[int]) -> float:
    """Share of all sign flips whose total is at least as far from 0 as the values' own, which is one of them.

    Memory and time go with 2 ** (values other than 0). A flip and its negation are equally far, so one of the two is
    counted.
    """
    others = [value for value in values if value]
    totals = np.array([others.pop() if others else 0], np.int64)
    for value in others:
        totals = np.concatenate([totals + value, totals - value])
    return float((np.abs(totals) >= abs(sum(values))).mean())


def _every_way(n_queries: int) -> Iterator[Floats]:
    """Every set of queries without the last one, but the empty set, in blocks as of `flip_blocks`."""
    rows, ways = max(1, _FLIPS_AT_ONCE // n_queries), 2 ** (n_queries - 1)
    for start in range(1, ways, rows):
        numbers = np.arange(start, min(start + rows, ways))
        yield (numbers[:, None] >> np.arange(n_queries) & 1).astype(np.float64)


_TIE = 1e-9
"""Statistics that differ by no more than this, or by this share of them, are a tie, which counts as an exceedance."""


def skew_adjusted_p(differences: Ints, *, draws: int, seed: int) -> list[float]:
    """Max-T p of each row (rows, queries) by Hall's t, two-sided and over all rows, from the flips that seed gives.

    A draw flips the skewness too. So where differences are symmetric the test is as exact as any sign-flip test, and
    where they are not, the statistic's own skewness is removed to the first order (Hall 1992). All flips are counted
    if there are no more than `draws`, otherwise p is (1 + draws as extreme) / (1 + draws). ValueError for no query,
    no draw, or values too large to add exactly.
    """
    largest = np.abs(differences).max(axis=1, keepdims=True, initial=1)
    shares = differences / largest
    cubes = np.rint(shares * shares * shares * SCORE_UNIT).astype(np.int64)  # whole, so that any order adds up alike
    sums = flipped(np.vstack([differences, cubes]), draws=draws, seed=seed).sums
    greatest, observed = np.zeros(sums.shape[1]), []
    for row, values in enumerate(differences.tolist()):
        scale = int(largest[row, 0])
        squares = sum(value * value for value in values) / scale**2
        totals, cubed = (
            (total - 2 * np.append(part, 0)) / unit  # the last one flips nothing
            for total, part, unit in (
                (sum(values), sums[row], scale),
                (int(cubes[row].sum()), sums[len(differences) + row], SCORE_UNIT),
            )
        )
        statistics = _halls_t(totals, squares, cubed, len(values))
        greatest = np.maximum(greatest, statistics[:-1])
        observed.append(float(statistics[-1]))
    return [(1 + int((greatest >= t * (1 - _TIE) - _TIE).sum())) / (1 + len(greatest)) for t in observed]


def _halls_t(totals: Floats, squares: float, cubes: Floats, n: int) -> Floats:
    """|t| over sqrt(n) from the sums of n values, of their squares and of their cubes.

    With u the mean in standard deviations (ddof 0) and g the skewness: u + g u^2 / 3 + g^2 u^3 / 27 + g / (6 n), which
    rises with u. Infinite where all values are equal and not 0, 0 where they are 0.
    """
    if not squares:
        return np.zeros_like(totals)
    mean = totals / math.sqrt(n * squares)
    variance = 1 - mean * mean
    scatters: NDArray[np.bool_] = variance > _TIE
    deviation = np.sqrt(np.where(scatters, variance, 1.0))
    u = mean / deviation
    third = cubes * math.sqrt(n) / (squares * math.sqrt(squares)) - 3 * mean + 2 * mean * mean * mean
    g = third / (deviation * deviation * deviation)
    return np.where(scatters, np.abs(u + g * u * u / 3 + g * g * u * u * u / 27 + g / (6 * n)), np.inf)
