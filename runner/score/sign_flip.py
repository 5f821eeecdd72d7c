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
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from runner.base.records import SCORE_UNIT, Interval, Ints
from runner.score.flips import Floats, exact_p, flipped

Side = Literal["above", "below", "not told apart"]
"""Where a cell stands to another, once every cell compared was allowed for."""

EXACT_UP_TO = 20
"""Differences other than 0 whose flips are all counted, whatever the number of draws."""

_TIE = 1e-12
"""Statistics of two rows that differ by no more than this share are a tie, which counts against significance."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """One row of differences against "no difference", two-sided; means and intervals lie in [-1, 1].

    `sd` is per query (ddof 1), 0 if the row does not scatter. `p_adjusted` (max-T) is over all rows.
    `interval` is for this row alone, `simultaneous` for all rows at once. `left_out` is the least and the greatest mean
    that leaving one query out gives ([-1, 1] for a single query), `influential` the column whose absence moves the mean
    most, of equal ones the first.
    """

    mean: float
    sd: float
    p: float
    exact: bool
    p_adjusted: float
    interval: Interval
    simultaneous: Interval
    left_out: Interval
    influential: int


def paired_tests(differences: Ints, *, draws: int, alpha: float, seed: int) -> tuple[PairedTest, ...]:
    """The test of each row of `differences` (rows, queries), in units of 1e-9; intervals at 1 - alpha.

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
    >>> test.mean, test.p, test.exact
    (0.2, 0.0234375, True)
    """
    rows, sizes, complete = _rows(differences, draws, alpha, seed)
    largest, second = np.zeros(len(sizes)), np.zeros(len(sizes))
    for row in rows:
        statistics = row.statistics()
        second = np.maximum(second, np.minimum(largest, statistics))
        largest = np.maximum(largest, statistics)
    alone, together = [], []
    for row in rows:
        low, high = row.typical_values(sizes)
        reach = row.reach(np.where(row.statistics() >= largest, second, largest))
        alone.append(_inverted(low, high, alpha))
        together.append(_inverted(np.minimum(low, row.mean - reach), np.maximum(high, row.mean + reach), alpha))
    exact = [complete or sum(map(bool, row.values)) <= EXACT_UP_TO for row in rows]
    p = [exact_p(row.values) if known else test.p for row, known, test in zip(rows, exact, alone, strict=True)]
    return tuple(map(_paired_test, rows, alone, together, exact, p))


class _Row(NamedTuple):
    """One row of differences in whole units, and their sums over the queries that each draw flips."""

    values: list[int]
    total: int
    squares: int
    sums: Floats

    @property
    def mean(self) -> float:
        return self.total / len(self.values)

    @property
    def spread(self) -> int:
        """The variance times n (n - 1): whole, and 0 exactly where all values are equal."""
        return len(self.values) * self.squares - self.total**2

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.spread / max(1, len(self.values) - 1)) / len(self.values)

    def statistics(self) -> Floats:
        """|t| of every draw, raised by _TIE.

        Flips leave the sum of squares as it is, so t is a function of the total alone; infinite if a draw gives all
        values one sign and they are equally large.
        """
        if not self.squares:
            return np.zeros(len(self.sums))
        n = len(self.values)
        share = np.minimum(1.0, (self.total - 2 * self.sums) ** 2 / float(n * self.squares) * (1 + _TIE))
        with np.errstate(divide="ignore"):
            found: Floats = np.sqrt((n - 1) * share / (1 - share))
        return found

    def reach(self, statistics: Floats) -> Floats:
        """How far from the mean a shift may lie for its |t| to be at most these."""
        found = np.full_like(statistics, np.inf)
        np.multiply(statistics, self.standard_error, out=found, where=np.isfinite(statistics))
        return found

    def typical_values(self, sizes: Floats) -> tuple[Floats, Floats]:
        """The lower and the higher of each draw's two subset means; infinite if one of the subsets is empty."""
        n, some = len(self.values), (sizes > 0) & (sizes < len(self.values))
        ends = np.full((2, len(sizes)), [[-np.inf], [np.inf]])
        means = self.sums[some] / sizes[some], (self.total - self.sums[some]) / (n - sizes[some])
        ends[:, some] = np.minimum(*means), np.maximum(*means)
        return ends[0], ends[1]


class _Inverted(NamedTuple):
    """A test of "no shift", and all shifts that it does not reject, in scores."""

    p: float
    interval: Interval


def _rows(differences: Ints, draws: int, alpha: float, seed: int) -> tuple[list[_Row], Floats, bool]:
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie in (0, 0.5), not {alpha}")
    drawn = flipped(differences, draws=draws, seed=seed)
    lists = differences.tolist()
    rows = [_Row(v, sum(v), sum(x * x for x in v), sums) for v, sums in zip(lists, drawn.sums, strict=True)]
    return rows, drawn.sizes, drawn.complete


def _inverted(low: Floats, high: Floats, alpha: float) -> _Inverted:
    """The test whose draws count at the shifts from `low` to `high` each; what was observed counts at every shift."""
    draws = len(low)
    extreme = int(((low <= 0) & (high >= 0)).sum())
    # The fewest draws that must count at a shift for its p to pass alpha: it is the how-manieth end that bounds.
    order = bisect_right(range(draws + 1), alpha, key=lambda count: (1 + count) / (1 + draws))
    if order == 0:
        return _Inverted((1 + extreme) / (1 + draws), Interval(-1.0, 1.0))
    least = float(np.partition(low, order - 1)[order - 1]) / SCORE_UNIT
    most = float(np.partition(high, draws - order)[draws - order]) / SCORE_UNIT
    return _Inverted((1 + extreme) / (1 + draws), Interval(max(-1.0, least), min(1.0, most)))


def _paired_test(row: _Row, alone: _Inverted, together: _Inverted, exact: bool, p: float) -> PairedTest:
    n = len(row.values)
    moves = [abs(n * value - row.total) for value in row.values]
    without = [(row.total - value) / ((n - 1) * SCORE_UNIT) for value in row.values] if n > 1 else [-1.0, 1.0]
    return PairedTest(
        mean=row.mean / SCORE_UNIT,
        sd=row.standard_error * math.sqrt(n) / SCORE_UNIT,
        p=p,
        exact=exact,
        p_adjusted=max(p, together.p),
        interval=alone.interval,
        simultaneous=together.interval,
        left_out=Interval(min(without), max(without)),
        influential=moves.index(max(moves)),
    )
