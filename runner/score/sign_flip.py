"""Whether cells differ from the baseline: paired sign-flip randomisation over queries, for all cells at once.

If a cell equals the baseline, either of the two could have had either score of a query, so every sign of every
difference was as likely as its opposite (Fisher 1935; Smucker, Allan & Carterette 2007). A draw flips the signs of a
set of queries, the same ones in all rows. Test and interval rest on one fact (Hartigan 1969, typical values): seen
from a shift d, a draw is at least as extreme as what was observed exactly when d lies between the mean over the
queries flipped and the mean over the others, ends included. So the interval that inverts the test ends at order
statistics of those subset means, and both come from the same numbers.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Literal, NamedTuple

import numpy as np

from runner.base.records import SCORE_UNIT, Interval, Ints
from runner.eval_set.shapes.paired import PairedTest
from runner.score.flips import Floats, Weights, counted, exact_p, flipped
from runner.score.gain_test import effective_number

Side = Literal["above", "below", "not told apart"]
"""Where a cell stands to another, once every cell compared was allowed for."""

EXACT_UP_TO = 20
"""Differences other than 0 whose flips are all counted, whatever the number of draws."""

_TIE = 1e-12
"""Statistics of two rows that differ by no more than this share are a tie, which counts against significance."""


def paired_tests(
    differences: Ints, *, draws: int, alpha: float, seed: int, weights: Weights = None
) -> list[PairedTest]:
    """Return the two-sided test of each row of `differences` (rows, queries), in units of 1e-9; intervals at 1 - alpha.

    With `weights` means are weighted ones, subset means among them; all else holds as it stands.

    All flips are counted if there are no more than `draws` (up to 17 queries for 100,000). Otherwise p is
    (1 + draws as extreme) / (1 + draws) (Phipson & Smyth 2010). In a row with at most EXACT_UP_TO differences other
    than 0, p alone is exact all the same, and `p_adjusted` is raised to it where the draws put it lower.

    `p_adjusted` is single-step max-T over the studentised means (Westfall & Young 1993): how often the most extreme
    row of a draw is at least as extreme as this row is. It keeps the family-wise error, whichever rows truly equal
    the baseline, where their differences are symmetric about 0. The simultaneous interval shifts its own row and leaves
    the others' draws where they are: exact where all rows equal the baseline, close elsewhere.

    `interval` excludes 0 exactly where p, and `simultaneous` where p_adjusted, is at most alpha, both from the draws;
    an exact p so near to alpha that draws cannot tell may lie on the other side. If no p can be as small as alpha
    (5 queries at 0.05), intervals are [-1, 1].

    ValueError for no query, no draw, an alpha outside (0, 0.5), or values too large to add exactly.

    >>> gains = np.array([[300, 200, 100, 400, -100, 200, 300, 200]]) * 1_000_000
    >>> test = paired_tests(gains, draws=1000, alpha=0.05, seed=1)[0]
    >>> test.p, test.interval[1]
    (0.0234375, 0.3)
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie in (0, 0.5), not {alpha}")
    sums, sizes, complete = flipped(differences, draws=draws, seed=seed, weights=weights)
    own = counted(weights, differences.shape[1]).tolist()
    rows = [_Row(values, own, of_draws) for values, of_draws in zip(differences.tolist(), sums, strict=True)]
    # The greatest |t| of every draw, and the greatest of the other rows where a row has it itself.
    largest, second = np.zeros(len(sizes)), np.zeros(len(sizes))
    for row in rows:
        statistics = row.statistics()
        second = np.maximum(second, np.minimum(largest, statistics))
        largest = np.maximum(largest, statistics)
    return [
        row.tested(
            sizes,
            others=np.where(row.statistics() >= largest, second, largest),
            alpha=alpha,
            exact=complete or sum(map(bool, row.values)) <= EXACT_UP_TO,
        )
        for row in rows
    ]


def left_out(differences: Sequence[int], weights: Weights = None) -> tuple[Interval, int]:
    """Return the least and the greatest mean that leaving one query out gives, and the place that moves it most.

    Of places that move it alike the first; [-1, 1] for a single query.
    """
    n, own = len(differences), counted(weights, len(differences)).tolist()
    size, total = sum(own), sum(map(mul, own, differences))
    pairs = list(zip(own, differences, strict=True))
    means = [(total - weight * value) / ((size - weight) * SCORE_UNIT) for weight, value in pairs] if n > 1 else []
    # How far each mean lies from that of all, as a fraction of whole numbers.
    moves = [Fraction(abs(weight * (size * value - total)), size - weight or 1) for weight, value in pairs]
    return Interval(min(means, default=-1.0), max(means, default=1.0)), moves.index(max(moves))


class _Row(NamedTuple):
    """One row of differences in whole units, and their weighted sums over the queries that each draw flips."""

    values: list[int]
    weights: list[int]
    sums: Floats

    @property
    def size(self) -> int:
        """What all queries weigh."""
        return sum(self.weights)

    @property
    def total(self) -> int:
        return sum(map(mul, self.weights, self.values))

    @property
    def squares(self) -> int:
        return sum(weight * value * value for weight, value in zip(self.weights, self.values, strict=True))

    @property
    def mean(self) -> float:
        return self.total / self.size

    @property
    def n(self) -> float:
        """The effective number of queries."""
        return effective_number(self.weights)

    @property
    def standard_error(self) -> float:
        # The variance times the size squared: whole, and 0 exactly where all values are equal.
        spread = self.size * self.squares - self.total**2
        return math.sqrt(spread / (self.n - 1 or 1)) / self.size

    def statistics(self) -> Floats:
        """Return |t| of every draw, raised by _TIE.

        Flips leave the sum of squares as it is, so t is a function of the total alone; infinite if a draw gives all
        values one sign and they are equally large.
        """
        if not self.squares:
            return np.zeros(len(self.sums))
        share = np.minimum(1.0, (self.total - 2 * self.sums) ** 2 / float(self.size * self.squares) * (1 + _TIE))
        with np.errstate(divide="ignore"):
            absolute_t: Floats = np.sqrt((self.n - 1) * share / (1 - share))
        return absolute_t

    def reach(self, statistics: Floats) -> Floats:
        """Return how far from the mean a shift may lie for its |t| to be at most these."""
        reach = np.full_like(statistics, np.inf)
        np.multiply(statistics, self.standard_error, out=reach, where=np.isfinite(statistics))
        return reach

    def typical_values(self, sizes: Floats) -> tuple[Floats, Floats]:
        """Return the lower and the higher of each draw's two subset means; infinite if one of the subsets is empty."""
        size, some = self.size, (sizes > 0) & (sizes < self.size)
        ends = np.full((2, len(sizes)), [[-np.inf], [np.inf]])
        means = self.sums[some] / sizes[some], (self.total - self.sums[some]) / (size - sizes[some])
        ends[:, some] = np.minimum(*means), np.maximum(*means)
        return ends[0], ends[1]

    def tested(self, sizes: Floats, *, others: Floats, alpha: float, exact: bool) -> PairedTest:
        """Return the row's test; `others` is the greatest |t| of the other rows in every draw."""
        # Test and interval of this row alone, then those that hold while the others flip along.
        low, high = self.typical_values(sizes)
        reach = self.reach(others)
        p, interval = _inverted(low, high, alpha)
        p_of_all, simultaneous = _inverted(
            np.minimum(low, self.mean - reach), np.maximum(high, self.mean + reach), alpha
        )
        p = exact_p([*map(mul, self.weights, self.values)]) if exact else p
        return PairedTest(
            p=p,
            p_adjusted=max(p, p_of_all),
            interval=interval,
            simultaneous=simultaneous,
            sd=self.standard_error * math.sqrt(self.n) / SCORE_UNIT,
        )


def _inverted(low: Floats, high: Floats, alpha: float) -> tuple[float, list[float]]:
    """Return p of "no shift" and the interval of all shifts that its test does not reject, in scores.

    A draw counts at the shifts from `low` to `high` each; what was observed counts at every shift.
    """
    draws = len(low)
    p = (1 + int(((low <= 0) & (high >= 0)).sum())) / (1 + draws)
    # The fewest draws that must count at a shift for its p to pass alpha: it is the how-manieth end that bounds.
    order = bisect_right(range(draws + 1), alpha, key=lambda count: (1 + count) / (1 + draws))
    if order == 0:
        return p, [-1.0, 1.0]
    least = float(np.partition(low, order - 1)[order - 1]) / SCORE_UNIT
    most = float(np.partition(high, draws - order)[draws - order]) / SCORE_UNIT
    return p, [max(-1.0, least), min(1.0, most)]
