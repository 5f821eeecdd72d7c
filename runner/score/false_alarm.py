"""How often the literal rule would flag some cell though none differs from the baseline."""

from bisect import bisect_left

import numpy as np

from runner.base.figures import round4
from runner.base.records import SCORE_UNIT, Ints
from runner.score.flips import Weights, counted, exact_columns, flip_blocks


def false_alarm(
    gains: Ints,
    recall_changes: Ints,
    *,
    min_gain: float,
    max_recall_loss: float,
    draws: int,
    seed: int,
    weights: Weights = None,
) -> float:
    """Return how often criterion 5 would flag some cell if all equalled the baseline and queries scattered as they did.

    `gains` and `recall_changes` are differences to the baseline (cells, queries) in units of 1e-9. Each row is moved to
    a mean of 0 (to a whole unit); a draw flips the signs of the same queries in all rows of both. A cell is flagged in
    a draw in which it gains at least `min_gain` and loses at most `max_recall_loss` recall, both compared at the four
    places that a page shows. 0 for no cells; ValueError for no query or no draw.

    >>> level = np.full((2, 25), 100_000_000)
    >>> false_alarm(level, level, min_gain=0.02, max_recall_loss=0.02, draws=100, seed=1)
    0.0
    """
    n_cells, n_queries = gains.shape
    if draws < 1 or n_queries == 0 or recall_changes.shape != gains.shape:
        raise ValueError(f"{draws} draws over gains {gains.shape} and recall changes {recall_changes.shape}")
    # Every cell is made to equal the baseline, and one flip turns both of its differences.
    rows, own = np.vstack([gains, recall_changes]), counted(weights, n_queries)
    size = int(own.sum())
    centred = exact_columns((rows - np.rint((rows @ own)[:, None] / size).astype(np.int64)) * own)
    least_gain, least_recall = _least_total(min_gain, size), _least_total(-max_recall_loss, size)
    # Sums are compared, which are whole, in place of means.
    some = 0
    for flips in flip_blocks(n_queries, draws, seed):
        totals = (1 - 2 * flips) @ centred
        alarms = (totals[:, :n_cells] >= least_gain) & (totals[:, n_cells:] >= least_recall)
        some += int(alarms.any(axis=1).sum())
    return some / draws


def _least_total(threshold: float, size: int) -> int:
    """Return the least sum of values of this weight, in whole units, whose mean reaches `threshold` at four places."""
    most = size * SCORE_UNIT
    # Means ascend with totals, so that the first to reach the threshold is found by halving.
    totals = range(-most, most + 1)
    return bisect_left(totals, threshold, key=lambda total: round4(total / most)) - most
