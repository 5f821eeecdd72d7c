"""What looking at the best of many cells does to a figure: false alarms of the literal rule, and the winner's curse."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT, Ints
from runner.score.bootstrap import bootstrap_counts
from runner.score.flips import exact_columns, flip_blocks


class FalseAlarms(NamedTuple):
    """How often criterion 5 would flag a cell that equals the baseline: each cell by itself, and one or more of all."""

    each: tuple[float, ...]
    some: float


def false_alarms(
    gains: Ints, recall_changes: Ints, *, min_gain: float, max_recall_loss: float, draws: int, seed: int
) -> FalseAlarms:
    """How often criterion 5 would flag cells if every cell equalled the baseline and queries scattered as they did.

    `gains` and `recall_changes` are differences to the baseline (cells, queries) in units of 1e-9. Each row is moved to
    a mean of 0 (to a whole unit); a draw flips the signs of the same queries in all rows of both. A cell is flagged in
    a draw in which it gains at least `min_gain` and loses at most `max_recall_loss` recall, both compared at the four
    places that a page shows. 0 for no cells; ValueError for no query or no draw.

    >>> level = np.full((2, 25), 100_000_000)
    >>> false_alarms(level, level, min_gain=0.02, max_recall_loss=0.02, draws=100, seed=1)
    FalseAlarms(each=(0.0, 0.0), some=0.0)
    """
    n_cells, n_queries = gains.shape
    if draws < 1 or n_queries == 0 or recall_changes.shape != gains.shape:
        raise ValueError(f"{draws} draws over gains {gains.shape} and recall changes {recall_changes.shape}")
    rows = np.vstack([gains, recall_changes])
    centred = exact_columns(rows - np.rint(rows.mean(axis=1, keepdims=True)).astype(np.int64))
    least_gain, least_recall = _least_total(min_gain, n_queries), _least_total(-max_recall_loss, n_queries)
    each, some = np.zeros(n_cells, np.int64), 0
    for flips in flip_blocks(n_queries, draws, seed):
        totals = (1 - 2 * flips) @ centred
        alarms = (totals[:, :n_cells] >= least_gain) & (totals[:, n_cells:] >= least_recall)
        each += alarms.sum(axis=0)
        some += int(alarms.any(axis=1).sum())
    return FalseAlarms(tuple((each / draws).tolist()), some / draws)


class CorrectedGain(NamedTuple):
    """A gain, and the 95 % interval of it over resamples of the queries."""

    gain: float
    low: float
    high: float


def corrected_gain(differences: Ints, *, resamples: int, seed: int) -> CorrectedGain:
    """The gain to expect of the row with the greatest mean, without what being picked as the best adds to it.

    `differences` are (cells, queries) in units of 1e-9. Out-of-bag bootstrap (Efron & Tibshirani 1997): each resample
    of the queries picks its best row (the first of equal ones) and scores it by its mean over the queries that were
    not drawn; the mean of those, and their percentiles, which for a row alone are a third wider than its interval.
    Right where rows are equal; if one is a little better than the rest it errs downwards, since a resample holds 63 %
    of the queries and picks that row less often (docs/statistics.md).
    ValueError for no row, fewer than 2 queries, no resample, or values too large to add exactly.

    >>> corrected_gain(np.full((1, 25), 100_000_000), resamples=100, seed=1)
    CorrectedGain(gain=0.1, low=0.1, high=0.1)
    """
    n_cells, n_queries = differences.shape
    if n_cells == 0 or n_queries < 2 or resamples < 1:
        raise ValueError(f"{resamples} resamples of {n_cells} cells over {n_queries} queries pick no best cell")
    columns = exact_columns(differences)
    gains = []
    for counts in bootstrap_counts(n_queries, resamples, seed):
        best = (counts @ columns).argmax(axis=1)
        left_out = counts == 0
        totals = (left_out @ columns)[np.arange(len(best)), best]
        sizes = left_out.sum(axis=1)
        gains.append(totals[sizes > 0] / sizes[sizes > 0])
    scored = np.concatenate(gains)
    if not len(scored):
        raise ValueError(f"none of {resamples} resamples of {n_queries} queries leaves one out")
    low, high = np.quantile(scored, (0.025, 0.975), method="closest_observation").tolist()
    return CorrectedGain(float(scored.mean()) / SCORE_UNIT, low / SCORE_UNIT, high / SCORE_UNIT)


def _least_total(threshold: float, n_queries: int) -> int:
    """The least sum over the queries, in whole units, whose mean reaches `threshold` at four places."""
    most = n_queries * SCORE_UNIT
    totals = range(-most, most + 1)
    return bisect_left(totals, threshold, key=lambda total: round4(total / most)) - most
