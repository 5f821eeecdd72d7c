"""Coefficients of agreement between two readings of the same pairs, with intervals over queries.

If every pair agreed, or none did, a bootstrap shows no doubt; a one-sided bound over pairs stands in for it.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from runner.base.figures import whole_percent
from runner.base.records import Ints
from runner.eval_set.shapes.judges import Coefficients, Estimate
from runner.score.bootstrap import bootstrap_counts


def unseen(pairs: int, confidence: float) -> float:
    """Upper bound on a share of which none was seen in so many independent pairs: Clopper & Pearson, one-sided.

    >>> round(unseen(60, 0.95), 4)
    0.0487
    """
    all_seen: float = (1 - confidence) ** (1 / pairs)
    return 1 - all_seen


def left_open(same: int, pairs: int, confidence: float) -> str:
    """The bound on what was never seen, if all or none of the pairs were graded alike; else "", and for no pairs.

    >>> left_open(60, 60, 0.95)
    'none of 60 pairs was graded otherwise: up to 5 % of pairs may be (95 %)'
    """
    if not pairs or 0 < same < pairs:
        return ""
    counted = f"{pairs:,} pair{'' if pairs == 1 else 's'}"
    possible = f"up to {whole_percent(unseen(pairs, confidence))} of pairs may be ({100 * confidence:g} %)"
    return f"none of {counted} was graded {'otherwise' if same else 'alike'}: {possible}"


RESAMPLES = 2_000
GRADES = 4

Floats = NDArray[np.float64]
_POINT = 1e-12
"""An interval narrower than this is a point: no draw differs from another."""

Table = Ints | Floats
"""Confusion counts (..., k, k), whole numbers: rows are the first reading's categories, columns the second's."""


def confusion(grades: Iterable[tuple[int, int]]) -> Ints:
    """Counts (4, 4) of pairs of grades, the first reading down, the second across."""
    table = np.zeros((GRADES, GRADES), np.int64)
    for first, second in grades:
        table[first, second] += 1
    return table


def kappa(table: Table, power: int) -> Floats:
    """Weighted kappa (...), a disagreement of i and j weighing |i - j| ** power: 0 is Cohen's, 1 linear, 2 quadratic.

    NaN if chance alone would agree wholly: no pair, or both readings in one and the same category. Cohen 1960,
    1968. All sums are whole numbers, so the same counts give the same bits everywhere.

    >>> float(kappa(np.array([[118, 5], [2, 0]]), 0).round(4))
    -0.0234
    """
    places = np.arange(table.shape[-1])
    apart = np.abs(places[:, None] - places)
    weights = (apart > 0).astype(np.int64) if power == 0 else apart**power
    expected = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    return 1 - _ratio(_total(table) * _total(table * weights), _total(expected * weights))


def ac1(table: Table) -> Floats:
    """Gwet's AC1 (...) over all categories of the table, used or not; NaN for no pair. Gwet 2008.

    >>> float(ac1(np.array([[118, 5], [2, 0]])).round(4))
    0.9408
    """
    n, others = _total(table), table.shape[-1] - 1
    used = table.sum(axis=-1) + table.sum(axis=-2)
    by_chance = (used * (2 * n[..., None] - used)).sum(axis=-1)
    return _ratio(4 * n * others * _agreed(table) - by_chance, 4 * n * n * others - by_chance)


def pabak(table: Table) -> Floats:
    """Kappa as if all categories were equally frequent (...): for two, 2 x agreement - 1. Byrt, Bishop & Carlin 1993.

    >>> float(pabak(np.array([[118, 5], [2, 0]])))
    0.888
    """
    n, k = _total(table), table.shape[-1]
    return _ratio(k * _agreed(table) - n, (k - 1) * n)


def agreement_share(table: Table) -> Floats:
    """The share of pairs (...) in the same category both times; NaN for no pair."""
    return _ratio(_agreed(table), _total(table))


def mean_difference(table: Table) -> Floats:
    """The mean (...) of the first reading less the second, in grades; NaN for no pair."""
    places = np.arange(table.shape[-1])
    return _ratio(_total(table * (places[:, None] - places)), _total(table))


def binary(table: Table, relevant_grade: int) -> Table:
    """The table (..., 2, 2) of "below `relevant_grade`" and "at least that"."""
    cuts = [0, relevant_grade]
    halves: Table = np.add.reduceat(np.add.reduceat(table, cuts, axis=-1), cuts, axis=-2)
    return halves


def coefficients(
    by_query: Mapping[str, Ints], relevant_grade: int, *, seed: int, confidence: float, resamples: int = RESAMPLES
) -> Coefficients:
    """Every coefficient of the tables' sum, with its percentile-bootstrap interval over queries.

    The pairs of a query are drawn together. There is no interval for fewer than two queries, for a coefficient that
    more than 1 - `confidence` of the draws leave undefined, and for one that is the same in all of them. A share of
    pairs graded alike that is 0 or 1 has the bound of `unseen` instead.
    """
    tables = np.array(list(by_query.values()), np.int64).reshape(-1, GRADES, GRADES)
    drawn = _resampled(tables, resamples, seed) if len(tables) > 1 else np.zeros((0, GRADES, GRADES))

    def estimate(figure: Callable[[Table], Floats]) -> Estimate:
        value = float(figure(tables.sum(axis=0)))
        if np.isnan(value):
            return Estimate(value=None, low=None, high=None)
        low, high = _ends(figure(drawn), confidence)
        return Estimate(value=value, low=low, high=high)

    def share(figure: Callable[[Table], Floats]) -> Estimate:
        found = estimate(figure)
        bound = unseen(int(tables.sum()), confidence) if found.value in (0, 1) else 0.0
        if found.value == 1:
            return Estimate(value=1.0, low=1 - bound, high=1.0)
        return Estimate(value=0.0, low=0.0, high=bound) if found.value == 0 else found

    return Coefficients(
        linear=estimate(lambda table: kappa(table, 1)),
        quadratic=estimate(lambda table: kappa(table, 2)),
        kappa=estimate(lambda table: kappa(table, 0)),
        kappa_binary=estimate(lambda table: kappa(binary(table, relevant_grade), 0)),
        pabak=estimate(lambda table: pabak(binary(table, relevant_grade))),
        ac1=estimate(ac1),
        ac1_binary=estimate(lambda table: ac1(binary(table, relevant_grade))),
        exact=share(agreement_share),
        binary=share(lambda table: agreement_share(binary(table, relevant_grade))),
        difference=estimate(mean_difference),
    )


def _resampled(tables: Ints, resamples: int, seed: int) -> Floats:
    """Sums of the tables (queries, 4, 4) over draws of the queries (resamples, 4, 4), whole numbers."""
    flat = tables.reshape(len(tables), -1).astype(np.float64)
    sums = [counts @ flat for counts in bootstrap_counts(len(tables), resamples, seed)]
    return np.concatenate(sums).reshape(-1, GRADES, GRADES)


def _ends(draws: Floats, confidence: float) -> tuple[float | None, float | None]:
    """The order statistics that leave the same number of draws out at either end; None where they are a point."""
    defined = np.sort(draws[~np.isnan(draws)])
    if not len(defined) or len(defined) < confidence * len(draws):
        return None, None
    outside = int(len(defined) * (1 - confidence) / 2 + 1e-9)
    low, high = float(defined[outside]), float(defined[len(defined) - 1 - outside])
    return (None, None) if high - low < _POINT else (low, high)


def _total(table: Table) -> Floats:
    total: Floats = table.sum(axis=(-2, -1))
    return total


def _agreed(table: Table) -> Floats:
    agreed: Floats = np.trace(table, axis1=-2, axis2=-1)
    return agreed


def _ratio(part: Table, whole: Table) -> Floats:
    """Part by whole, NaN if the whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
