"""Each cell's difference by people's grades, the scored judge's filling in where people did not read.

Prediction-powered inference (Angelopoulos et al. 2023), with power tuning (PPI++: Angelopoulos, Duchi & Zrnic 2023).
What is estimated: the mean over queries of the cell's discounted gain less the baseline's, by the grades that people
would have given to all documents of both first tens, over the ideal gain by the scored judge's grades. With people's
own ideal that would be the difference in nDCG@10. A mean of people's ideals takes every pair read; with the ideal
fixed the difference is a sum over pairs, each with a weight that is known: its discounts in the two rankings over the
ideal. Only pairs whose weight is not 0 count.

It takes people's pairs to be a sample of those, drawn without regard to how the judge erred. `labels double` draws
them so; pairs that a person picked to look at need not be.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.decide.judge_noise.two_level import percentiles
from runner.eval_set.batches import Pair
from runner.eval_set.shapes.judges import PoweredCell, PoweredResult
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.plan import Bootstrap
from runner.judge.agreement.double_graded import Double, doubles
from runner.score.bootstrap import bootstrap_counts
from runner.score.comparison import Comparison
from runner.score.flips import exact_columns
from runner.score.score import DISCOUNTS, ideal_gains

LEAST_READ = 100
"""Pairs that people must have graded, over all documents judged."""

LEAST_QUERIES = 10
"""Queries that must have a pair that people read and that counts in the cell's difference."""

_FLAT = 1e-6
"""A variance of parts below this is none: the sums are rounded to 1e-9."""

Floats = NDArray[np.float64]


class Sums(NamedTuple):
    """Sums over pairs (...,), or over those read: of the judge's parts f, of people's parts y, of their products.

    A part is a pair's weight times its grade.
    """

    pairs: Floats
    read: Floats
    f: Floats
    f_squared: Floats
    f_read: Floats
    y_read: Floats
    f_y_read: Floats


def powered(comparison: Comparison, labels: Iterable[Label]) -> PoweredResult:
    """Every challenger's difference with the plan's bootstrap over queries; nothing if people read too few pairs.

    People are judges without a model; if several graded a pair the first by name counts. Only pairs whose scored
    grade is a model's are compared.
    """
    people = people_grades(labels)
    grades = {pair: double.second for pair, double in people.items()}
    bootstrap, unknown = comparison.plan.bootstrap, ""
    if len(people) < LEAST_READ:
        unknown = f"people graded {len(people)} of the pairs that a model judged; it takes {LEAST_READ}"
    return PoweredResult(
        people=sorted({double.second_judge for double in people.values()}),
        read=len(people),
        resamples=0 if unknown else bootstrap.resamples,
        confidence=bootstrap.confidence,
        cells=[] if unknown else [_powered_cell(comparison, cell, grades) for cell in sorted(comparison.challengers)],
        unknown=unknown,
    )


def people_grades(labels: Iterable[Label]) -> dict[Pair, Double]:
    """A person's first reading of every pair whose scored grade is a model's; of several people the first by name."""
    found: dict[Pair, Double] = {}
    for double in doubles(labels):
        if double.first_model and not double.second_model:
            found.setdefault((double.query_id, double.doc_id), double)
    return found


def power_tuned(sums: Sums) -> tuple[Floats, Floats]:
    """The mean part of a pair and lambda, from sums over the pairs: (...,) each.

    lambda (mean of unread f) + mean of read (y - lambda f), where lambda = cov(y, f) / ((1 + n / N) var(f)), at least
    0 and at most 1, of n pairs read and N unread: the same as ppi-python's. Where all were read it is their mean.
    """
    n, unread = np.maximum(sums.read, 1), sums.pairs - sums.read
    mean_f, mean_y = sums.f_read / n, sums.y_read / n
    covariance = sums.f_y_read / n - mean_f * mean_y
    variance = (sums.f_squared - sums.f * sums.f / sums.pairs) / np.maximum(sums.pairs - 1, 1)
    varies = variance > _FLAT
    tuned = covariance * unread / np.where(varies, sums.pairs * variance, 1)
    weight = np.where(varies, np.clip(tuned, 0, 1), 0)
    mean_unread = (sums.f - sums.f_read) / np.maximum(unread, 1)
    return weight * mean_unread + mean_y - weight * mean_f, weight


def _powered_cell(comparison: Comparison, cell: str, people: Mapping[Pair, int]) -> PoweredCell:
    by_query = parts(comparison, cell, people)
    whole, n_queries = Sums(*(by_query.sum(axis=0) / SCORE_UNIT)), len(by_query)
    found = PoweredCell(
        cell=cell,
        gain=None,
        interval=None,
        judge_alone=float(whole.f) / n_queries,
        people_alone=None,
        weight=None,
        pairs=int(whole.pairs),
        read=int(whole.read),
        unknown="",
    )
    with_one = int((by_query[:, 1] > 0).sum())
    if with_one < LEAST_QUERIES:
        said = f"{with_one} queries have a pair that counts here and that people graded; it takes {LEAST_QUERIES}"
        return found.model_copy(update={"unknown": said})
    gain, weight = _gain(whole, n_queries)
    drawn, alone = _resampled(by_query, comparison.plan.bootstrap), whole.pairs * whole.y_read / whole.read
    estimated = {
        "gain": float(gain),
        "interval": percentiles(drawn, comparison.plan.bootstrap.confidence),
        "people_alone": float(alone) / n_queries,
        "weight": float(weight),
    }
    return found.model_copy(update=estimated)


def _resampled(by_query: Ints, bootstrap: Bootstrap) -> Floats:
    """The estimate over every draw of queries, each with its pairs and with a lambda of its own."""
    columns, n_queries = exact_columns(by_query.T), len(by_query)
    blocks = bootstrap_counts(n_queries, bootstrap.resamples, bootstrap.seed)
    return np.concatenate([_gain(Sums(*(counts @ columns / SCORE_UNIT).T), n_queries)[0] for counts in blocks])


def _gain(sums: Sums, n_queries: int) -> tuple[Floats, Floats]:
    """The mean over queries of their summed parts, and lambda."""
    part, weight = power_tuned(sums)
    return sums.pairs * part / n_queries, weight


def parts(comparison: Comparison, cell: str, people: Mapping[Pair, int]) -> Ints:
    """The `Sums` of every query, (queries, 7) in units of 1e-9, so that any order adds them up alike."""
    ideals = ideal_gains(comparison.query_ids, comparison.qrels)
    found = np.zeros((len(ideals), len(Sums._fields)), np.int64)
    for row, (query_id, ideal) in enumerate(zip(comparison.query_ids, ideals.tolist(), strict=True)):
        grades, sums = comparison.qrels.get(query_id, {}), np.zeros(len(Sums._fields))
        for doc_id, weight in _weights(comparison, cell, query_id).items() if ideal else ():
            if doc_id not in grades:
                continue
            f, y = weight * grades[doc_id] / ideal, people.get((query_id, doc_id))
            sums[[0, 2, 3]] += 1, f, f * f
            if y is not None:
                y = weight * y / ideal
                sums[[1, 4, 5, 6]] += 1, f, y, f * y
        found[row] = np.rint(sums * SCORE_UNIT)
    return found


def _weights(comparison: Comparison, cell: str, query_id: str) -> dict[str, float]:
    """Every document's discount in the cell's ranking less that in the baseline's, where they differ."""
    found: dict[str, float] = {}
    for name, sign in ((cell, 1), (comparison.plan.baseline, -1)):
        for hit, discount in zip(comparison.runs[name].hits[query_id], DISCOUNTS.tolist(), strict=False):
            found[hit.doc_id] = found.get(hit.doc_id, 0.0) + sign * discount
    return {doc_id: weight for doc_id, weight in found.items() if weight}
