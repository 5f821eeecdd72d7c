"""Whether a cell gains: the one-sided test of the upward claim, in the order that the plan registers.

Sign flips are exact where differences are symmetric about 0. If a cell gains a little on most queries, loses much on
few and is equal on the whole, a sample that misses some of the losses looks better and steadier than it is. So what
is compared is not Student's t but Hall's, which takes its own skewness out to the first order (Hall 1992), and with
SKEWNESS times the skewness that the sample shows. A flip turns the skewness too, so nothing is lost where there is
none. And one more query is counted than was asked, a loss as great as the root mean square of all differences.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.score.flips import Floats, flipped

FIRST_SHARE = 0.8
"""The part of alpha that the first challengers have; the other cells have the rest."""

SKEWNESS = 3
"""How often a sample's skewness is counted: one that misses the tail understates it."""

_TIE = 1e-9
"""Statistics that differ by no more than this, or by this share of them, are a tie, which counts as an exceedance."""


class GainTest(NamedTuple):
    """P of "it does not gain", over all rows in their order, and inside the row's own step."""

    p: float
    p_step: float


def gain_tests(differences: Ints, first: int, *, draws: int, seed: int) -> list[GainTest]:
    """Return adjusted p of "it does not gain" of each row (rows, queries), in units of 1e-9, of which `first` go first.

    Two steps, the first challengers and the other cells, each by step-down max-T over one-sided statistics (Romano &
    Wolf 2005), which keeps the error of its step whichever rows truly gain nothing. The first have FIRST_SHARE of
    alpha and the others the rest; a step whose rows are all shown to gain leaves its share to the other one (weighted
    Holm over the two). So the chance that any row whose p is at most alpha gains nothing is at most alpha. With no
    row in one of the steps, the other has all of alpha.

    Beside it p in the row's own step, as if there were no other.

    Every draw is taken together with its negation; all flips are counted if there are no more than `draws` pairs.
    ValueError for no query, no draw, values too large to add exactly, or a `first` that is not 0 to the number of rows.

    >>> gains = np.array([[300, 200, 100, 400, -100, 200, 300, 200]]) * 1_000_000
    >>> gain_tests(gains, 0, draws=1000, seed=1)
    [GainTest(p=0.083984375, p_step=0.083984375)]
    """
    if not 0 <= first <= len(differences):
        raise ValueError(f"{first} of {len(differences)} rows cannot be the first")
    statistics = _statistics(differences, draws, seed)
    one, other = _step_down(statistics[:first]), _step_down(statistics[first:])
    if not one or not other:
        return [GainTest(p, p) for p in one + other]
    adjusted = [
        *_with_share(one, FIRST_SHARE, _passed_on(other, 1 - FIRST_SHARE)),
        *_with_share(other, 1 - FIRST_SHARE, _passed_on(one, FIRST_SHARE)),
    ]
    return list(map(GainTest, adjusted, one + other))


def _passed_on(step: Sequence[float], share: float) -> float:
    """Return the least alpha at which all rows of a step are shown to gain at its share."""
    return max(step) / share


def _with_share(step: Sequence[float], share: float, whole_from: float) -> list[float]:
    """Return p of rows that have a share of alpha, and all of it from an alpha of `whole_from`."""
    return [min(1.0, p / share, max(p, whole_from)) for p in step]


def _step_down(statistics: Floats) -> list[float]:
    """Return the step-down max-T p of each row of (rows, draws and the observed one last)."""
    # From the least row up, so that each is held to the greatest of those that are no more extreme than itself.
    order = np.argsort(-statistics[:, -1], kind="stable")
    greatest, least = np.full((2, statistics.shape[1]), [[-np.inf], [np.inf]])
    p_values = [0.0] * len(order)
    for row in order[::-1]:
        greatest, least = np.maximum(greatest, statistics[row]), np.minimum(least, statistics[row])
        t = statistics[row, -1]
        bar = t - _TIE * (1 + abs(t)) if math.isfinite(t) else t
        # Every draw counts together with its negation, whose statistic is the least one with the other sign.
        extreme = int((greatest >= bar).sum()) + int((-least >= bar).sum())
        p_values[row] = extreme / (2 * statistics.shape[1])
    # A row is shown only if all those before it are.
    for row, p in zip(order, accumulate((p_values[row] for row in order), max), strict=True):
        p_values[row] = p
    return p_values


def _statistics(differences: Ints, draws: int, seed: int) -> Floats:
    """Return Hall's t of each row and one more loss under every draw, and as observed in the last column."""
    differences = np.hstack([differences, -_root_mean_squares(differences)])
    largest = np.abs(differences).max(axis=1, keepdims=True, initial=1)
    # Shares of the largest, so that their cubes can be summed as whole numbers.
    shares = differences / largest
    cubes = np.rint(shares * shares * shares * SCORE_UNIT).astype(np.int64)  # whole, so that any order adds up alike
    sums = flipped(np.vstack([differences, cubes]), draws=draws, seed=seed).sums
    statistics = np.empty((len(differences), sums.shape[1] + 1))
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
        statistics[row] = _halls_t(totals, squares, cubed, len(values))
    return statistics


def _root_mean_squares(differences: Ints) -> Ints:
    """Return each row's root mean square, (rows, 1): whole, and the same however signs are flipped."""
    n_queries = differences.shape[1]
    if not n_queries:
        raise ValueError("0 queries: there must be one at least")
    roots = [[math.isqrt(sum(value * value for value in row) // n_queries)] for row in differences.tolist()]
    return np.array(roots, np.int64).reshape(-1, 1)


def _halls_t(totals: Floats, squares: float, cubes: Floats, n: int) -> Floats:
    """Return Hall's t over sqrt(n) from the sums of n values, of their squares and of their cubes.

    With u the mean in standard deviations (ddof 0) and g SKEWNESS times the skewness:
    u + g u^2 / 3 + g^2 u^3 / 27 + g / (6 n), which rises with u. Infinite where all values are equal and not 0, 0
    where they are 0.
    """
    if not squares:
        return np.zeros_like(totals)
    # In units of the root mean square, which flips leave as it is.
    mean = totals / math.sqrt(n * squares)
    variance = 1 - mean * mean
    scatters: NDArray[np.bool_] = variance > _TIE
    deviation = np.sqrt(np.where(scatters, variance, 1.0))
    u = mean / deviation
    # The third central moment out of the raw ones.
    third = cubes * math.sqrt(n) / (squares * math.sqrt(squares)) - 3 * mean + 2 * mean * mean * mean
    g = SKEWNESS * third / (deviation * deviation * deviation)
    return np.where(scatters, u + g * u * u / 3 + g * g * u * u * u / 27 + g / (6 * n), np.copysign(np.inf, mean))
