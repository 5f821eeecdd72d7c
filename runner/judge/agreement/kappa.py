"""How far two readings of the same pairs agree, with intervals over queries.

Weighted kappa takes from agreement what the two margins give by chance; it falls where nearly all pairs have one grade.
Gwet's AC2 takes what a guess between the grades would give, and stays. Both are carried by the many pairs of grade 0;
the share of those that either reader calls relevant, and both do, is not. A kappa of these pairs alone means nothing:
picking them by both readings leaves out what both call worthless. If all of them are alike, or none is, a bootstrap
shows no doubt; a one-sided bound over pairs stands in for it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints
from runner.eval_set.shapes.judges import Estimate
from runner.score.bootstrap import bootstrap_counts


def unseen(pairs: int, confidence: float) -> float:
    """Return upper bound on a share of which none was seen in so many independent pairs: Clopper & Pearson, one-sided.

    >>> round(unseen(60, 0.95), 4)
    0.0487
    """
    all_seen: float = (1 - confidence) ** (1 / pairs)
    return 1 - all_seen


RESAMPLES = 2_000
GRADES = 4

Floats = NDArray[np.float64]
_POINT = 1e-12
"""An interval narrower than this is a point: no draw differs from another."""

Table: TypeAlias = "Ints | Floats"
"""Confusion counts (..., k, k), whole numbers: rows are the first reading's categories, columns the second's."""


def confusion(grades: Iterable[tuple[int, int]]) -> Ints:
    """Return counts (4, 4) of pairs of grades, the first reading down, the second across."""
    table = np.zeros((GRADES, GRADES), np.int64)
    for first, second in grades:
        table[first, second] += 1
    return table


def kappa(table: Table) -> Floats:
    """Return quadratically weighted kappa (...); NaN if chance alone would agree wholly: no pair, or one category.

    Cohen 1968. All sums are whole numbers, so the same counts give the same bits everywhere.

    >>> float(kappa(np.array([[118, 5], [2, 0]])).round(4))
    -0.0234
    """
    places = np.arange(table.shape[-1])
    # What chance alone would give: the product of the two margins.
    weights = (places[:, None] - places) ** 2
    expected = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    return 1 - _ratio(_total(table) * _total(table * weights), _total(expected * weights))


def ac2(table: Table) -> Floats:
    """Return Gwet's AC2 (...) with quadratic weights; NaN for no pair.

    Gwet 2014, Handbook of Inter-Rater Reliability, chapter 4, with the weights of `kappa`. On a table that kappa makes
    nothing of:

    >>> float(ac2(np.array([[118, 5], [2, 0]])).round(4))
    0.9408
    """
    size = table.shape[-1]
    places = np.arange(size)
    weights = 1 - ((places[:, None] - places) / (size - 1)) ** 2
    n_pairs = _total(table)
    observed = _ratio(_total(table * weights), n_pairs)
    # A category's share is the mean of the two margins; a guess hits as far as the shares are spread.
    margins = table.sum(axis=-1) + table.sum(axis=-2)
    shares = _ratio(margins, np.broadcast_to(2 * np.asarray(n_pairs)[..., None], margins.shape))
    by_guess = weights.sum() / (size * (size - 1)) * (shares * (1 - shares)).sum(axis=-1)
    agreed: Floats = (observed - by_guess) / (1 - by_guess)
    return agreed


def halves(table: Table, relevant_grade: int) -> Table:
    """Return the table (..., 2, 2) of "below `relevant_grade`" and "at least that"."""
    cuts = [0, relevant_grade]
    halves: Table = np.add.reduceat(np.add.reduceat(table, cuts, axis=-1), cuts, axis=-2)
    return halves


def alike(table: Table, relevant_grade: int) -> Floats:
    """Return the share (...) of the pairs that either reading calls relevant that both do; NaN for no such pair."""
    parts = halves(table, relevant_grade)
    both = parts[..., 1, 1]
    return _ratio(both, _total(parts) - parts[..., 0, 0])


def estimates(
    by_query: Mapping[str, Ints], relevant_grade: int, *, seed: int, confidence: float, resamples: int = RESAMPLES
) -> tuple[Estimate, Estimate, Estimate]:
    """Return `alike`, kappa and AC2 of the tables' sum, with percentile-bootstrap intervals over queries.

    The pairs of a query are drawn together. There is no interval for fewer than two queries, for a figure that more
    than 1 - `confidence` of the draws leave undefined, and for one that is the same in all of them. A share of 0 or 1
    has the bound of `unseen` instead.
    """
    tables = np.array(list(by_query.values()), np.int64).reshape(-1, GRADES, GRADES)
    drawn = _resampled(tables, resamples, seed) if len(tables) > 1 else np.zeros((0, GRADES, GRADES))
    whole = tables.sum(axis=0)

    def estimate(figure: Callable[[Table], Floats]) -> Estimate:
        value = float(figure(whole))
        if np.isnan(value):
            return Estimate(value=None, low=None, high=None)
        low, high = _ends(figure(drawn), confidence)
        return Estimate(value=value, low=low, high=high)

    share = estimate(lambda table: alike(table, relevant_grade))
    # No draw of queries differs from another, yet something may be left unseen.
    if share.value in (0, 1):
        parts = halves(whole, relevant_grade)
        bound = unseen(int(parts.sum() - parts[0, 0]), confidence)
        low, high = (1 - bound, 1.0) if share.value else (0.0, bound)
        share = Estimate(value=share.value, low=low, high=high)
    return share, estimate(kappa), estimate(ac2)


def _resampled(tables: Ints, resamples: int, seed: int) -> Floats:
    """Return sums of the tables (queries, 4, 4) over draws of the queries (resamples, 4, 4), whole numbers."""
    flat = tables.reshape(len(tables), -1).astype(np.float64)
    sums = [counts @ flat for counts in bootstrap_counts(len(tables), resamples, seed)]
    return np.concatenate(sums).reshape(-1, GRADES, GRADES)


def _ends(draws: Floats, confidence: float) -> tuple[float | None, float | None]:
    """Return the order statistics that leave as many draws out at either end; None where they are a point."""
    defined = np.sort(draws[~np.isnan(draws)])
    if not len(defined) or len(defined) < confidence * len(draws):
        return None, None
    # The same number left out at both ends; 1e-9 against a product just below a whole number.
    outside = int(len(defined) * (1 - confidence) / 2 + 1e-9)
    low, high = float(defined[outside]), float(defined[len(defined) - 1 - outside])
    return (None, None) if high - low < _POINT else (low, high)


def _total(table: Table) -> Floats:
    total: Floats = table.sum(axis=(-2, -1))
    return total


def _ratio(part: Table, whole: Table) -> Floats:
    """Return part by whole, NaN if the whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) != 0)
