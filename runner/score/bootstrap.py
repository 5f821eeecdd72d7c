"""How far a mean could have come out otherwise: percentile bootstrap over queries, for all cells at once.

Below that the functions for sequences of floats, under the names, arguments and defaults of falsify-eval 0.2.0. Where
they answer otherwise, their docstrings say so.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Interval, Ints, Scores
from runner.score.flips import exact_columns

RESAMPLES = 10_000
LEVEL = 0.95

Floats = Sequence[float] | NDArray[np.float64]

_COUNTS_AT_ONCE = 1 << 16
_DRAWN_AT_ONCE = 1 << 17
_ROUNDING = 1e-12
"""Differences of floats are equal where they are within this share of the numbers they come from."""


def score_matrix(scores: Sequence[Scores], measure: str) -> Ints:
    """One measure of all cells, (cells, queries) in units of 1e-9; ValueError if cells differ in their queries."""
    if len({cell.query_ids for cell in scores}) > 1:
        raise ValueError(f"cells scored over different queries: {', '.join(cell.cell for cell in scores)}")
    return np.array([cell.values[measure] for cell in scores], np.int64)


def mean_intervals(
    values: Ints, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> tuple[Interval, ...]:
    """Percentile-bootstrap interval of each row's mean, in [-1, 1]; the queries are drawn alike for every row.

    `values` are (rows, queries) in units of 1e-9. The ends are order statistics without interpolation, the same
    number from either end: of 10,000 sorted means, the 251st and the 9,750th at level 0.95. Efron & Tibshirani 1993,
    chapter 13; too narrow for small samples with many ties (90-93 % at a nominal 95 % with 25 queries), so it is for
    showing and not for deciding.
    """
    n_queries = values.shape[1]
    outside = int(resamples * (1 - level) / 2 + 1e-9)
    totals = resampled_totals(values, seed=seed, resamples=resamples)
    ends = np.partition(totals, (outside, resamples - 1 - outside), axis=1)[:, [outside, resamples - 1 - outside]]
    return tuple(Interval(low, high) for low, high in (ends / (n_queries * SCORE_UNIT)).tolist())


def resampled_totals(values: Ints, *, seed: int, resamples: int) -> Ints:
    """Sums of each row over `resamples` draws of the queries with replacement, (rows, resamples).

    Exact: counts and values are whole numbers, and every partial sum stays below 2 ** 53, where float64 holds them
    all; so the matrix product gives the same bits whatever its order. ValueError if that bound does not hold.
    """
    n_queries = values.shape[1]
    if n_queries == 0:
        raise ValueError("0 queries cannot be resampled")
    columns = exact_columns(values)
    totals = [counts @ columns for counts in bootstrap_counts(n_queries, resamples, seed)]
    return np.concatenate(totals).T.astype(np.int64)


def bootstrap_counts(n_queries: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Blocks of rows (draws, n_queries): how often each draw of n_queries takes each query, `resamples` rows in all.

    A block holds at most _COUNTS_AT_ONCE counts, half a megabyte, which stays in the processor's cache.
    """
    generator = np.random.default_rng(np.random.PCG64(seed))
    rows = max(1, _COUNTS_AT_ONCE // n_queries)
    for start in range(0, resamples, rows):
        draws = min(rows, resamples - start)
        drawn = generator.integers(n_queries, size=(draws, n_queries), dtype=np.int32)
        drawn += (np.arange(draws, dtype=np.int32) * n_queries)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=draws * n_queries)
        yield counts.reshape(draws, n_queries).astype(np.float64)


def bootstrap_ci(
    x: Floats, *, n_resamples: int = RESAMPLES, alpha: float = 0.05, seed: int = 2026
) -> tuple[float, float, float, float]:
    """Mean of x, the ends of its percentile-bootstrap interval (interpolated), and the SD of the resampled means.

    The same draws as falsify-eval's. ValueError if x is empty (there: NaN) or not finite.

    >>> bootstrap_ci([0.5, 0.5, 0.5])
    (0.5, 0.5, 0.5, 0.0)
    """
    values = _vector("x", x)
    (means,) = _resampled_means([values], n_resamples, seed)
    low, high = _quantiles(means, alpha)
    return float(values.mean()), low, high, float(means.std())


def bootstrap_diff_ci(
    a: Floats, b: Floats, *, n_resamples: int = RESAMPLES, alpha: float = 0.05, seed: int = 2026
) -> tuple[float, float, float]:
    """Mean of a - b and the ends of its percentile-bootstrap interval, drawn pair by pair.

    The same draws as falsify-eval's. ValueError if a and b are empty, not finite or of different length.

    >>> bootstrap_diff_ci([0.75, 0.25], [0.5, 0.0])
    (0.25, 0.25, 0.25)
    """
    left, right = _pair(a, b)
    of_left, of_right = _resampled_means([left, right], n_resamples, seed)
    return float((left - right).mean()), *_quantiles(of_left - of_right, alpha)


def paired_permutation_p(
    a: Floats, b: Floats, *, n_resamples: int = RESAMPLES, seed: int = 2026
) -> tuple[float, float]:
    """Mean of a - b and the two-sided p of flipping the signs of its pairs.

    The same draws as falsify-eval's, but p is (1 + as extreme) / (1 + n_resamples), so never 0 (Phipson & Smyth
    2010), and what differs by no more than rounding counts as a tie. ValueError as for `bootstrap_diff_ci`, where
    falsify-eval repeats a single b for every a and calls an empty comparison significant (p 0).

    >>> paired_permutation_p([0.5, 0.75], [0.5, 0.75])
    (0.0, 1.0)
    """
    differences = np.subtract(*_pair(a, b))
    total = differences.sum()
    reached = abs(total) - _ROUNDING * np.abs(differences).sum()
    extreme = sum(
        int((np.abs(2 * (flips.astype(np.float64) @ differences) - total) >= reached).sum())
        for flips in _drawn(2, n_resamples, seed, columns=len(differences))
    )
    return float(differences.mean()), (1 + extreme) / (1 + n_resamples)


def cohens_d_paired(a: Floats, b: Floats) -> float:
    """Mean of a - b in its own standard deviations (ddof 1); 0 if a - b does not scatter, or is one pair.

    "Does not scatter" allows for rounding: falsify-eval's d of a constant shift of 0.1 is 2.5e15. ValueError as for
    `bootstrap_diff_ci`.

    >>> round(cohens_d_paired([0.5, 1.0], [0.25, 0.25]), 3)
    1.414
    """
    left, right = _pair(a, b)
    differences = left - right
    if np.ptp(differences) <= _ROUNDING * max(np.abs(left).max(), np.abs(right).max()):
        return 0.0
    return float(differences.mean() / differences.std(ddof=1))


def power_n_required(
    observed_diff: float,
    observed_sd: float,
    *,
    target_delta: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Queries that a two-sided test needs for a mean difference, by the normal approximation, not rounded.

    ((z_{1-alpha/2} + z_power) sd / delta)^2, where delta is `target_delta` or else `observed_diff`; infinite where
    delta or sd is 0. At the default alpha and power with falsify-eval's 1.96 and 0.84; elsewhere with exact
    quantiles, where it draws them at random and gives those of power below 0.5 the wrong sign.

    >>> round(power_n_required(0.05, 0.3))
    282
    """
    delta = observed_diff if target_delta is None else target_delta
    if not (0 < alpha < 1 and 0 < power < 1):
        raise ValueError(f"alpha {alpha} and power {power} must lie in (0, 1)")
    if not (math.isfinite(delta) and 0 <= observed_sd < math.inf):
        raise ValueError(f"delta {delta} and sd {observed_sd} must be finite, and sd not negative")
    if delta == 0 or observed_sd == 0:
        return math.inf
    z = 1.96 + 0.84
    if (alpha, power) != (0.05, 0.8):
        z = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    return float((max(z, 0) * observed_sd / abs(delta)) ** 2)


class Bonferroni(TypedDict):
    """Bonferroni's correction of m p-values, in the order given."""

    m: int
    alpha_per_test: float
    p_adjusted: list[float]
    reject: list[bool]
    family_alpha: float


def bonferroni(p_values: Floats, *, alpha: float = 0.05) -> Bonferroni:
    """Each p times their number, at most 1, and whether that is below alpha.

    ValueError for no p-values, one outside [0, 1], or an alpha outside (0, 1].

    >>> bonferroni([0.01, 0.04])["p_adjusted"]
    [0.02, 0.08]
    """
    p = _p_values(p_values)
    if not 0 < alpha <= 1:
        raise ValueError("alpha must lie in (0, 1]")
    adjusted = np.minimum(1.0, p * len(p)).tolist()
    return Bonferroni(
        m=len(p),
        alpha_per_test=alpha / len(p),
        p_adjusted=adjusted,
        reject=[value < alpha for value in adjusted],
        family_alpha=float(alpha),
    )


def holm(p_values: Floats) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given; never above Bonferroni's (Holm 1979).

    ValueError for no p-values or one outside [0, 1].

    >>> holm([0.04, 0.01])
    [0.04, 0.02]
    """
    p = _p_values(p_values)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return [float(value) for value in adjusted]


def _vector(name: str, values: Floats) -> NDArray[np.float64]:
    vector = np.asarray(values, np.float64)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(f"{name} must be a flat sequence of one number or more, not of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} holds a number that is not finite, at position {int(np.isfinite(vector).argmin())}")
    return vector


def _pair(a: Floats, b: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    left, right = _vector("a", a), _vector("b", b)
    if len(left) != len(right):
        raise ValueError(f"a and b are paired and must be equally long, not {len(left)} and {len(right)}")
    return left, right


def _p_values(p_values: Floats) -> NDArray[np.float64]:
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or p.size == 0:
        raise ValueError("p_values must be a non-empty 1-d sequence")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p_values must lie in [0, 1]")
    return p


def _drawn(below: int, n_resamples: int, seed: int, *, columns: int | None = None) -> Iterator[Ints]:
    """Blocks of rows of whole numbers below `below`, as many columns unless told, `n_resamples` rows in all."""
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be 1 or more, not {n_resamples}")
    columns = below if columns is None else columns
    generator = np.random.default_rng(np.random.PCG64(seed))
    rows = max(1, _DRAWN_AT_ONCE // columns)
    for start in range(0, n_resamples, rows):
        yield generator.integers(0, below, size=(min(rows, n_resamples - start), columns))


def _resampled_means(vectors: Sequence[NDArray[np.float64]], n_resamples: int, seed: int) -> NDArray[np.float64]:
    """The mean of each vector over the same draws with replacement (vectors, n_resamples).

    Two thirds of the time at 5,000 numbers is the drawing of falsify-eval's numbers, which no counting would save.
    """
    drawn = _drawn(len(vectors[0]), n_resamples, seed)
    means = [[vector.take(rows, mode="clip").mean(axis=1) for vector in vectors] for rows in drawn]
    return np.concatenate(means, axis=1)


def _quantiles(means: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie in (0, 1), not {alpha}")
    low, high = np.quantile(means, [alpha / 2, 1 - alpha / 2]).tolist()
    return low, high
