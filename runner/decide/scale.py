"""nDCG@10 expected among ten times the documents, beside what a back-test says of the method; nothing is decided by it.

Distractors are documents without gain for a query. Those added are taken to be like those present: each stands above
a given relevant document with a probability p of that document's own. Over the relevant documents of a cell probit(p)
is taken as logistic, with a centre and a scale fitted to how many distractors stand above each. Were scores of
distractors normal, -probit(p) would be the document's distance from their mean in standard deviations (Green & Swets
1966); the logistic has the longer tails that documents found at once and documents never found ask for.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Ints, Qrels, Run
from runner.eval_set.shapes.pool import TenTimes
from runner.score.comparison import Comparison
from runner.score.score import DISCOUNTS, ideal_gains

TIMES = 10
SUBSAMPLES = 10
LEAST_DOCUMENTS = 200
"""Below this a tenth is under 20 documents, too few to stand for a collection: no back-test, so no extrapolation."""

Floats = NDArray[np.float64]
_DEPTH = len(DISCOUNTS)
_NODES = np.linspace(-8.0, 4.0, 241)
"""Values of probit(p) that integrals over the law are sums over."""

_USUAL = np.array([-3.0, math.log(0.5)])
_SPREAD = np.array([3.0, 1.0])
"""Centre and logarithm of the scale that are usual, with SDs: they stand in for data where there is little."""

_LEAST = 1e-15


class Lists(NamedTuple):
    """A run: documents' numbers (queries, RUN_DEPTH), 0 past the end; `gains` by the query's ideal, 0 for distractors.

    `missing` (queries,) counts relevant documents that the list does not hold.
    """

    documents: Ints
    gains: Floats
    missing: Ints


class _Found(NamedTuple):
    """Every relevant document that a run lists: its gain by the ideal, distractors and relevant documents above it.

    `below` is one number for every relevant document not listed: at least so many distractors stand above it.
    """

    gains: Floats
    above: Ints
    before: Ints
    below: Ints


def scale_of(comparison: Comparison) -> dict[str, TenTimes]:
    """By cell; empty if there are fewer than LEAST_DOCUMENTS documents."""
    n_documents = len(comparison.document_lengths)
    if n_documents < LEAST_DOCUMENTS:
        return {}
    query_ids, numbers = comparison.query_ids, defaultdict[str, int](count(1).__next__)
    generator = np.random.default_rng(np.random.PCG64(comparison.plan.bootstrap.seed))
    lists = {cell: lists_of(run, query_ids, comparison.qrels, numbers) for cell, run in comparison.runs.items()}
    size = max(n_documents, len(numbers))
    draws = [generator.choice(size, size // TIMES, replace=False) + 1 for _ in range(SUBSAMPLES)]
    samples = [np.isin(np.arange(size + 1), drawn) for drawn in draws]
    return {cell: _ten_times(found, samples, len(query_ids)) for cell, found in lists.items()}


def lists_of(run: Run, query_ids: Sequence[str], qrels: Qrels, numbers: defaultdict[str, int]) -> Lists:
    """The run's lists; `numbers` numbers documents from 1 and grows; KeyError if the run misses a query."""
    documents = np.zeros((len(query_ids), RUN_DEPTH), np.int64)
    gains, missing = np.zeros(documents.shape), np.zeros(len(query_ids), np.int64)
    for row, (query_id, ideal) in enumerate(zip(query_ids, ideal_gains(query_ids, qrels).tolist(), strict=True)):
        relevant = {doc_id: grade for doc_id, grade in qrels.get(query_id, {}).items() if grade > 0}
        names = [hit.doc_id for hit in run.hits[query_id][:RUN_DEPTH]]
        documents[row, : len(names)] = [numbers[name] for name in names]
        gains[row, : len(names)] = [relevant[name] / ideal if name in relevant else 0.0 for name in names]
        missing[row] = len(relevant.keys() - set(names))
    return Lists(documents, gains, missing)


def _ten_times(lists: Lists, samples: Sequence[NDArray[np.bool_]], n_queries: int) -> TenTimes:
    size, relevant = len(samples[0]) - 1, (lists.gains > 0).sum() + lists.missing.sum()
    # One number of distractors for all queries: they differ by their few relevant documents.
    distractors = max(size - round(float(relevant) / n_queries), TIMES * _DEPTH)
    now = _found(lists, np.ones(size + 1, np.bool_))
    observed = float((now.gains * _discount(now.above + now.before)).sum())
    tenths = [expected(_found(lists, kept), distractors // TIMES) - observed for kept in samples]
    errors = np.array(tenths) / n_queries
    return TenTimes(
        ndcg=expected(now, distractors) / n_queries,
        bias=float(errors.mean()),
        error=float(np.sqrt((errors**2).mean())),
    )


def _found(lists: Lists, kept: NDArray[np.bool_]) -> _Found:
    """What the lists say if of the distractors those of `kept` (by number) alone are left."""
    relevant = lists.gains > 0
    distractors = (lists.documents > 0) & ~relevant & kept[lists.documents]
    above = np.cumsum(distractors, axis=1, dtype=np.int64)
    before = np.cumsum(relevant, axis=1, dtype=np.int64)[relevant] - 1
    return _Found(lists.gains[relevant], above[relevant], before, np.repeat(above[:, -1], lists.missing))


def expected(found: _Found, distractors: int) -> float:
    """The sum over queries of nDCG@10 expected with TIMES the distractors; those of now stay where they are.

    A document that is not listed adds nothing, as it adds nothing now.
    """
    pmf, fresh = _binomials(distractors), _binomials((TIMES - 1) * distractors)
    given = _fitted(found, pmf) * pmf.T
    more = (given / given.sum(axis=1, keepdims=True)) @ fresh
    high = found.above + found.before < _DEPTH
    above, before = found.above[high], found.before[high]
    places = (above + before)[:, None] + np.arange(_DEPTH)
    return float((found.gains[high] * (more[above] * _discount(places)).sum(axis=1)).sum())


def _fitted(found: _Found, pmf: Floats) -> Floats:
    """Weights of the nodes under the law of the greatest penalised likelihood, on a grid that closes in."""
    tails = np.maximum(1 - np.cumsum(np.pad(pmf, ((0, 0), (1, 0))), axis=1), 0)
    listed = np.bincount(np.minimum(found.above, _DEPTH), minlength=_DEPTH + 1)
    below = np.bincount(np.minimum(found.below, _DEPTH), minlength=_DEPTH + 1)
    tables, times = np.hstack([pmf, tails]), np.concatenate([listed[:-1], below])
    times[-1] += listed[-1]
    best, half = _USUAL, np.array([5.0, 3.0])
    side = np.linspace(-1.0, 1.0, 9)
    around = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    for _ in range(9):
        points = best + half * around
        likelihoods = np.log(np.maximum(_weights(points) @ tables, _LEAST)) @ times
        best = points[np.argmax(likelihoods - (((points - _USUAL) / _SPREAD) ** 2).sum(axis=1) / 2)]
        half = half * 3 / 8
    return _weights(best[None, :])


def _weights(points: Floats) -> Floats:
    """(points, nodes) under the logistic law of each point: its centre, and the logarithm of its scale."""
    away = np.abs(_NODES - points[:, :1]) / np.exp(points[:, 1:])
    weights = np.exp(-away) / (1 + np.exp(-away)) ** 2
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


@cache
def _binomials(n: int) -> Floats:
    """P(i of n distractors stand above | node), (nodes, i) for i below _DEPTH; n is at least that."""
    i = np.arange(_DEPTH)
    ways = np.cumsum(np.log(np.concatenate([[1.0], (n - i[:-1]) / i[1:]])))
    above, below = (np.array([math.erfc(sign * z / math.sqrt(2)) / 2 for z in _NODES]) for sign in (-1, 1))
    found: Floats = np.exp(ways + i * np.log(above)[:, None] + (n - i) * np.log(below)[:, None])
    return found


def _discount(places: Ints) -> Floats:
    found: Floats = np.append(DISCOUNTS, 0.0)[np.minimum(places, _DEPTH)]
    return found
