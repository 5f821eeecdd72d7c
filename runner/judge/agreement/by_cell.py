"""Whether the first judge, held against the second, favours what one cell finds.

What decides between a cell and the baseline are the pairs that one of the two has in its first ten and the other has
not. If both judges see a pair's relevance and err on their own, first less second grade does not depend on which of
the two found it. But it does depend on the relevance: a judge cannot grade below 0 or above 3, and one that is harsh
is not harsh with what is worthless anyway. Cells differ in what they find, so pairs must be compared with pairs alike.
Alike in what? Not in the first grade, which holds the bias that is looked for. Not in the second: where it errs
downwards the pair is better than it says, and in a better cell more often so (regression to the mean). Equal errors
cancel in the sum of the two grades (Oldham 1962; Bland & Altman 1995), so pairs are compared within bands of the sum,
and readings are exchanged within them: Cochran, Mantel & Haenszel's test of means, by permutation. Bands hold two sums
(1-2, 3-4), since a bias of one grade moves a pair to the next sum; but pairs that both judges put at an end of the
scale, where they cannot differ, are compared with none that they could. Not all is mended: where one judge errs much
more than the other, a cell that finds better documents can look favoured. Error rates and power: docs/statistics.md.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints, Run
from runner.eval_set.shapes.judges import CellFavour
from runner.judge.agreement.double_graded import Double
from runner.judge.agreement.kappa import Floats
from runner.retrieve.pool import pooled

DRAWS = 10_000
FIRST = 10
"""Hits of a run that count: those that nDCG@10 sees."""

GREATEST = 3
"""Grade, and so difference of two grades."""

_BAND_OF_SUM = np.array([0, 1, 1, 2, 2, 3, 4])
_AT_ONCE = 1 << 18
_VALUE_BITS = np.uint64(7)
_TIE = 1e-9
"""Statistics this near to each other are a tie, which counts against significance."""

Marks = NDArray[np.bool_]


class _Band(NamedTuple):
    """Pairs of like relevance: their differences (pairs,), and the weights (cells, weighted) of the first of them.

    The others weigh nothing for any cell. A cell's weighted sum is its contrast, times the pairs on either side.
    """

    values: Ints
    weights: Floats


class _Test(NamedTuple):
    """By cell, each (cells,): mean and SD of the weighted sum over exchanges, then statistics in units of that SD.

    `observed` is the one found, `greatest` and `least` are those that exchanges can reach; 0 if the SD is.
    """

    centre: Floats
    unit: Floats
    observed: Floats
    greatest: Floats
    least: Floats


def favours(
    doubles: Sequence[Double], runs: Mapping[str, Run], baseline: str, *, alpha: float, seed: int, draws: int = DRAWS
) -> dict[str, CellFavour]:
    """Return one row per cell beside the baseline, in the order of `runs`; `doubles` are one second judge's.

    A draw exchanges the readings of all pairs for every cell at once; p is (1 + draws whose most extreme cell is as
    extreme) / (1 + draws), at `alpha` for each of the two sides. It takes pairs drawn by nothing but their first grade
    and whether one list alone has them, whichever it is. A p is None if no exchange of these readings would make it
    `alpha` or less.
    """
    cells = [cell for cell in runs if cell != baseline]
    marks = {cell: in_first(doubles, runs[cell]) for cell in (baseline, *cells)}
    shape = len(cells), len(doubles)
    # What one of the two alone has in its first ten decides between them.
    own = np.array([marks[cell] & ~marks[baseline] for cell in cells], np.bool_).reshape(shape)
    other = np.array([marks[baseline] & ~marks[cell] for cell in cells], np.bool_).reshape(shape)
    values = np.array([double.first - double.second for double in doubles], np.int64)
    bands = _bands(doubles, values, own, other)
    test = _observed(bands, len(cells))
    extremes = _extremes(bands, test, draws, seed)
    return {
        cell: _favour(
            values[own[row]], values[other[row]], [float(column[row]) for column in test[1:]], extremes, alpha
        )
        for row, cell in enumerate(cells)
    }


def in_first(doubles: Sequence[Double], run: Run) -> Marks:
    """Return which of the pairs (pairs,) are among the run's first ten in some wording."""
    first = pooled([run], FIRST)
    return np.array([(double.query_id, double.doc_id) in first for double in doubles], np.bool_)


def _favour(
    own: Ints, other: Ints, figures: Sequence[float], extremes: tuple[Floats, Floats], alpha: float
) -> CellFavour:
    """Return the row of a cell, from its own pairs' differences, the baseline's own, and its `figures` of a _Test."""
    unit, observed, greatest, least = figures
    largest, smallest = extremes[0], -extremes[1][::-1]
    each = len(own) * len(other)
    # Whether any exchange at all could have been significant.
    can_cell = unit > 0 and _p(largest, greatest) <= alpha
    can_baseline = unit > 0 and _p(smallest, -least) <= alpha
    return CellFavour(
        n_cell=len(own),
        n_baseline=len(other),
        contrast=observed * unit / each if unit else None,
        beyond_chance=_critical(largest, alpha) * unit / each if can_cell else None,
        p_for_cell=_p(largest, observed) if can_cell else None,
        p_for_baseline=_p(smallest, -observed) if can_baseline else None,
    )


def _p(ascending: Floats, value: float) -> float:
    """Return (1 + draws at least as great) / (1 + draws)."""
    below = int(np.searchsorted(ascending, value - _TIE, side="left"))
    return (1 + len(ascending) - below) / (1 + len(ascending))


def _critical(ascending: Floats, alpha: float) -> float:
    """Return the draw that a statistic must exceed for its p to be `alpha` or less."""
    allowed = int(alpha * (1 + len(ascending)) + _TIE) - 1
    return float(ascending[-1 - allowed])


def _bands(doubles: Sequence[Double], values: Ints, own: Marks, other: Marks) -> list[_Band]:
    """Return the bands that hold more than one difference: no exchange changes the others."""
    # Weights make the sum a difference of two means, times both numbers of pairs: all whole numbers.
    weights = own * other.sum(axis=1, keepdims=True) - other * own.sum(axis=1, keepdims=True).astype(np.float64)
    numbers = np.array([_BAND_OF_SUM[double.first + double.second] for double in doubles], np.int64)
    inside = [numbers == number for number in sorted(set(numbers.tolist()))]
    counted = weights.any(axis=0)
    return [
        _Band(np.concatenate([values[rows & counted], values[rows & ~counted]]), weights[:, rows & counted])
        for rows in inside
        if np.ptp(values[rows])
    ]


def _observed(bands: Sequence[_Band], n_cells: int) -> _Test:
    """Return how every cell's weighted sum of differences stands to what exchanges within bands make of it."""
    variance, centre, observed, greatest, least = np.zeros((5, n_cells))
    for values, weights in bands:
        size, total, squares = len(values), int(values.sum()), int((values**2).sum())
        weight = weights.sum(axis=1)
        # The mean and variance of a weighted sum under random exchange, in closed form.
        observed += weights @ values[: weights.shape[1]]
        centre += weight * total / size
        spread = (size * squares - total**2) / (size * (size - 1))
        variance += spread * (size * (weights**2).sum(axis=1) - weight**2) / size
        # The greatest sum pairs large weights with large values, the least one with small ones.
        ascending = np.sort(values)
        padded = np.sort(np.pad(weights, ((0, 0), (0, size - weights.shape[1]))), axis=1)
        greatest += (padded * ascending).sum(axis=1)
        least += (padded * ascending[::-1]).sum(axis=1)
    unit = np.sqrt(variance)
    return _Test(centre, unit, *(_in_units(total - centre, unit) for total in (observed, greatest, least)))


def _extremes(bands: Sequence[_Band], test: _Test, draws: int, seed: int) -> tuple[Floats, Floats]:
    """Return the greatest and the least statistic over the cells of every draw, (draws,) each, ascending."""
    tested = test.unit > 0
    if not tested.any():
        return np.zeros(draws), np.zeros(draws)
    # The most extreme cell of each draw: max-T over the cells.
    weights = np.hstack([band.weights[tested] for band in bands]).T
    generator = np.random.default_rng(np.random.PCG64(seed))
    largest, smallest = [], []
    rows = max(1, _AT_ONCE // max(len(band.values) for band in bands))
    for start in range(0, draws, rows):
        exchanged = [_exchanged(band, min(rows, draws - start), generator) for band in bands]
        statistics = (np.hstack(exchanged) @ weights - test.centre[tested]) / test.unit[tested]
        largest.append(statistics.max(axis=1))
        smallest.append(statistics.min(axis=1))
    return np.sort(np.concatenate(largest)), np.sort(np.concatenate(smallest))


def _exchanged(band: _Band, draws: int, generator: np.random.Generator) -> Floats:
    """Return what the weighted pairs get when the values are put in a random order, once a draw (draws, weighted).

    The values are the last bits of random numbers that are sorted: faster than Generator.permuted, and two of the
    numbers tie once in 2 ** 61.
    """
    keys = generator.integers(2**64, size=(draws, len(band.values)), dtype=np.uint64)
    keys = (keys & ~_VALUE_BITS) | (band.values + GREATEST).astype(np.uint64)
    keys.sort(axis=1)
    return (keys[:, : band.weights.shape[1]] & _VALUE_BITS).astype(np.float64) - GREATEST


def _in_units(values: Floats, unit: Floats) -> Floats:
    return np.divide(values, unit, out=np.zeros(len(unit)), where=unit > 0)
