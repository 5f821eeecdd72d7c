"""How far a mean could have come out otherwise: percentile bootstrap over queries, for all cells at once."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Interval, Ints, Scores
from runner.score.flips import Weights, counted, exact_columns

RESAMPLES = 10_000
LEVEL = 0.95

_COUNTS_AT_ONCE = 1 << 16
_COUNTS_KEPT = 1 << 20


def score_matrix(scores: Sequence[Scores], measure: str) -> Ints:
    """Return one measure of all cells, (cells, queries) in units of 1e-9; ValueError if their queries differ."""
    if len({cell.query_ids for cell in scores}) > 1:
        raise ValueError(f"cells scored over different queries: {', '.join(cell.cell for cell in scores)}")
    return np.array([cell.values[measure] for cell in scores], np.int64)


def mean_intervals(
    values: Ints,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    weights: Weights = None,
) -> tuple[Interval, ...]:
    """Return the percentile-bootstrap interval of each row's mean, in [-1, 1]; queries are drawn alike for all rows.

    Of a draw with `weights` (queries,) the mean is by the weights that were drawn.

    `values` are (rows, queries) in units of 1e-9. The ends are order statistics without interpolation, the same
    number from either end: of 10,000 sorted means, the 251st and the 9,750th at level 0.95. Efron & Tibshirani 1993,
    chapter 13; too narrow for small samples with many ties (90-93 % at a nominal 95 % with 25 queries), so it is for
    showing and not for deciding.
    """
    # So many means lie outside at either end; the tiny addend keeps 249.999... from losing one.
    outside = int(resamples * (1 - level) / 2 + 1e-9)
    own = counted(weights, values.shape[1])
    *totals, drawn = resampled_totals(np.vstack([values * own, own]), seed=seed, resamples=resamples)
    means = np.array(totals).reshape(len(totals), resamples) / (drawn * SCORE_UNIT)
    ends = np.partition(means, (outside, resamples - 1 - outside), axis=1)[:, [outside, resamples - 1 - outside]]
    return tuple(Interval(low, high) for low, high in ends.tolist())


def resampled_totals(values: Ints, *, seed: int, resamples: int) -> Ints:
    """Return sums of each row over `resamples` draws of the queries with replacement, (rows, resamples).

    Exact: counts and values are whole numbers, and every partial sum stays below 2 ** 53, where float64 holds them
    all; so the matrix product gives the same bits whatever its order. ValueError if that bound does not hold.
    """
    n_queries = values.shape[1]
    if n_queries == 0:
        raise ValueError("0 queries cannot be resampled")
    columns = exact_columns(values)
    draw = _kept_counts if n_queries * resamples <= _COUNTS_KEPT else bootstrap_counts
    totals = [counts @ columns for counts in draw(n_queries, resamples, seed)]
    return np.concatenate(totals).T.astype(np.int64)


def bootstrap_counts(n_queries: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of rows (draws, n_queries): how often each draw of n_queries takes each query, `resamples` in all.

    A block holds at most _COUNTS_AT_ONCE counts, half a megabyte, which stays in the processor's cache.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    rows = max(1, _COUNTS_AT_ONCE // n_queries)
    for start in range(0, resamples, rows):
        draws = min(rows, resamples - start)
        drawn = generator.integers(n_queries, size=(draws, n_queries), dtype=np.int32)
        # Every draw counts in a range of its own, so that one count over all of them will do.
        drawn += (np.arange(draws, dtype=np.int32) * n_queries)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=draws * n_queries)
        yield counts.reshape(draws, n_queries).astype(np.float64)


@lru_cache(maxsize=1)
def _kept_counts(n_queries: int, resamples: int, seed: int) -> list[NDArray[np.float64]]:
    """Return the same, kept: every measure of a version is drawn alike."""
    return list(bootstrap_counts(n_queries, resamples, seed))
