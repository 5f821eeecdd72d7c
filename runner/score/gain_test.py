"""Whether a cell gains: each cell's own one-sided p, and the bar that weighted Holm gives it (docs/statistics.md)."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from runner.base.records import SCORE_UNIT, Ints
from runner.score.student import t_tail

FIRST_SHARE = 0.8
"""The part of alpha that the first challengers have; the other cells have the rest."""


class GainTest(NamedTuple):
    """A cell's own p of "it does not gain", and what it may be at most for the gain to be shown; at nine places."""

    p: float
    bar: float


def gain_tests(differences: Ints, first: int, alpha: float, weights: Sequence[float] | None = None) -> list[GainTest]:
    """Return the test of each row of (cells, queries) in units of 1e-9; the `first` rows go first."""
    p_values = [round(phantom_t(row, weights), 9) for row in differences.tolist()]
    return [GainTest(p, bar) for p, bar in zip(p_values, holm_bars(p_values, first, alpha), strict=True)]


def phantom_t(differences: Sequence[int], weights: Sequence[float] | None = None) -> float:
    """Return p of "it does not gain" by Student's t over the queries and a phantom; 1 if no query differs.

    The phantom loses the root mean square of the differences: it stands for a rare large loss that a sample misses.

    >>> round(phantom_t([300, 200, 100, 400, -100, 200, 300, 200]), 4)
    0.0293
    """
    weights = [1.0] * len(differences) if weights is None else weights
    n, pairs = effective_number(weights), list(zip(weights, map(int, differences), strict=True))
    total, squares = (math.fsum(weight * value**power for weight, value in pairs) for power in (1, 2))
    if not squares:
        return 1.0
    # The mean over the root mean square, the phantom among the values; p falls as it rises.
    s = (n * total / math.sqrt(squares * math.fsum(weights)) - 1) / (n + 1)
    return t_tail(s * math.sqrt(n / (1 - s * s)), n) if s > -1 else 1.0


def most_lost(losses: Sequence[int], alpha: float, weights: Sequence[float] | None = None) -> float:
    """Return the upper end of a one-sided interval of the mean loss at 1 - alpha, by the test of a gain turned round.

    It is the least loss that is refuted: at which the queries, and the phantom, lose less with a p of at most alpha.
    1 if none is. `losses` are in units of 1e-9.
    """
    units = range(min(losses), SCORE_UNIT)
    place = bisect_left(units, True, key=lambda most: phantom_t([most - loss for loss in losses], weights) <= alpha)
    return units[place] / SCORE_UNIT if place < len(units) else 1.0


def effective_number(weights: Sequence[float]) -> float:
    """Return how many queries of equal weight tell as much, if all scatter alike (Kish 1965)."""
    return math.fsum(weights) ** 2 / math.fsum(weight * weight for weight in weights)


def shares_of_alpha(cells: int, first: int) -> list[float]:
    """Return each cell's part: the `first` ones share FIRST_SHARE, the others the rest; one step alone has all."""
    others = cells - first
    share = FIRST_SHARE if first and others else float(first > 0)
    return [share / (first or 1)] * first + [(1 - share) / (others or 1)] * others


def holm_bars(p_values: Sequence[float], first: int, alpha: float) -> list[float]:
    """Return the bar of each p, at nine places, by Holm's procedure with weights (Holm 1979, section 4).

    >>> holm_bars([0.01, 0.03, 0.5], 1, 0.05)
    [0.04, 0.025, 0.025]
    """
    shares = shares_of_alpha(len(p_values), first)
    order = sorted(range(len(p_values)), key=lambda cell: p_values[cell] / shares[cell])
    bars, shown, left = [0.0] * len(p_values), 0, 1.0
    for place, cell in enumerate(order):
        # A cell that is shown leaves its share to the others; once one is not, none after it is.
        if shown == place:
            left = math.fsum(shares[other] for other in order[place:])
        bars[cell] = round(alpha * shares[cell] / left, 9)
        shown += shown == place and p_values[cell] <= bars[cell]
    return bars
