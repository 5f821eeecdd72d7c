"""The measures of a run against judgments, query by query, in whole units of 1e-9."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Qrels, Run, Scores
from runner.eval_set.labels import scored
from runner.eval_set.shapes.labels import Label

MEASURES = ("ndcg@10", "recall@10", "mrr", "mrr@10", "recall@100", "judged@10")

COMPARED = MEASURES[:3]
"""Measures whose paired difference to the baseline is reported."""

DISCOUNTS = np.array([1 / math.log2(rank + 1) for rank in range(1, 11)])
"""What a grade counts at ranks 1 to 10 (Jarvelin & Kekalainen 2002, base 2, as trec_eval)."""

Numbers = NDArray[np.int64] | NDArray[np.float64]

_UNJUDGED = -(1 << 31)


def qrels(labels: Iterable[Label]) -> dict[str, dict[str, int]]:
    """Return the grades that scores count: of every pair the earliest first-round one.

    Batches may be graded by different people; a second reading of a pair, which comes later, changes no score.
    """
    grades: dict[str, dict[str, int]] = {}
    for (query_id, doc_id), label in scored(labels).items():
        grades.setdefault(query_id, {})[doc_id] = label.grade
    return grades


def score(run: Run, query_ids: Sequence[str], qrels: Qrels, relevant_grade: int) -> Scores:
    """Return every measure of MEASURES for every query, in the order given; KeyError if the run misses a query.

    nDCG has linear gain and its ideal over all judged documents. Relevant, for recall and reciprocal rank, is a
    grade of `relevant_grade` or more; recall is over all relevant documents judged, so that recall@10 cannot reach 1
    if there are more than ten. `mrr` looks at RUN_DEPTH documents. An unjudged document counts as not relevant.
    A query with no relevant document or with no hit scores 0 and stays; its judged@10 is the share of documents
    judged among the first ten there are, 1 if there are none, since nothing is missing.
    """
    grades, lengths = _grades(run, query_ids, qrels)
    places = np.arange(RUN_DEPTH)
    relevant = grades >= relevant_grade
    n_relevant = _column(len([g for g in qrels.get(q, {}).values() if g >= relevant_grade]) for q in query_ids)
    # Reciprocal rank of the first relevant document, 0 without one.
    first = np.where(relevant.any(axis=1), 1 / (1 + relevant.argmax(axis=1)), 0)
    ten = np.minimum(lengths, 10)
    judged = ((grades > _UNJUDGED) & (places < 10)).sum(axis=1)
    # An unjudged document, and one that published qrels grade below 0, gains nothing.
    gains = np.maximum(grades[:, : len(DISCOUNTS)], 0)
    values = {
        "ndcg@10": _ratio((gains * DISCOUNTS).sum(axis=1), ideal_gains(query_ids, qrels)),
        "recall@10": _ratio(relevant[:, :10].sum(axis=1), n_relevant),
        "mrr": first,
        "mrr@10": np.where(relevant[:, :10].any(axis=1), first, 0),
        "recall@100": _ratio(relevant[:, :100].sum(axis=1), n_relevant),
        "judged@10": np.where(ten > 0, _ratio(judged, ten), 1),
    }
    return Scores(run.cell, tuple(query_ids), {name: tuple(units(v).tolist()) for name, v in values.items()})


def ideal_gains(
    query_ids: Sequence[str], qrels: Qrels, by_rank: NDArray[np.float64] = DISCOUNTS
) -> NDArray[np.float64]:
    """Return the discounted gain (queries,) of the best ranking that the judgments allow; 0 if none is relevant."""
    none = [0] * len(by_rank)
    best = [sorted([*qrels.get(query_id, {}).values(), *none], reverse=True)[: len(none)] for query_id in query_ids]
    gains: NDArray[np.float64] = (np.reshape(best, (-1, len(none))) * by_rank).sum(axis=1)
    return gains


def single_gold(query_ids: Iterable[str], qrels: Qrels) -> dict[str, str]:
    """Return each query's highest-graded document, of equals the first by id, without queries of none above 0."""
    best = {}
    for query_id in query_ids:
        doc_id, grade = min(qrels.get(query_id, {}).items(), key=lambda pair: (-pair[1], pair[0]), default=("", 0))
        if grade > 0:
            best[query_id] = doc_id
    return best


def units(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return values in [0, 1] as whole units of 1e-9."""
    return np.rint(values * SCORE_UNIT).astype(np.int64)


def _grades(run: Run, query_ids: Sequence[str], qrels: Qrels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return grades down each ranking (queries, RUN_DEPTH), _UNJUDGED if there is none, and the rankings' lengths."""
    places: list[int] = []
    known: list[int] = []
    for row, query_id in enumerate(query_ids):
        ranks = run.ranks[query_id]
        # Few documents are judged, and looking them up touches none of the others.
        for doc_id, grade in qrels.get(query_id, {}).items():
            if (rank := ranks.get(doc_id, RUN_DEPTH)) < RUN_DEPTH:
                places.append(row * RUN_DEPTH + rank)
                known.append(grade)
    lengths = _column(min(len(run.ranks[query_id]), RUN_DEPTH) for query_id in query_ids)
    grades = np.full((len(query_ids), RUN_DEPTH), _UNJUDGED, np.int64)
    grades.ravel()[places] = known
    return grades, lengths


def _column(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64)


def _ratio(part: Numbers, whole: Numbers) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
