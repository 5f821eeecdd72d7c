"""The sign-flip test with a statistic that skewed differences do not mislead.

Flips are exact where differences are symmetric about 0. Where a cell gains a little on most queries, loses much on few
and is equal on the whole, a sample that misses some of the losses looks better and steadier than it is: of nine such
cells, one may have a max-T p of .05 in a fifth of all runs of 25 queries (docs/statistics.md).
"""

import math

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT
from runner.retrieve.ranking import Ints
from runner.score.flips import Floats, flipped

_TIE = 1e-9
"""Statistics that differ by no more than this, or by this share of them, are a tie, which counts as an exceedance."""


def skew_adjusted_p(differences: Ints, *, draws: int, seed: int) -> list[float]:
    """Max-T p of each row (rows, queries) by Hall's t, two-sided and over all rows, from the flips that seed gives.

    A draw flips the skewness too. So where differences are symmetric the test is as exact as any sign-flip test, and
    where they are not, the statistic's own skewness is removed to the first order (Hall 1992). All flips are counted
    where there are no more than `draws`, otherwise p is (1 + draws as extreme) / (1 + draws). ValueError for no query,
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
