"""Ten times the documents: the law is calibrated, its back-test is a plain one, and without one nothing is said."""

from collections import defaultdict
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Hit, Run, Span
from runner.decide.scale import LEAST_DOCUMENTS, SUBSAMPLES, TIMES, _binomials, _found, expected, lists_of, scale_of
from runner.score.score import DISCOUNTS, score

SPAN = Span(0, 1)
LISTED = 20


def run(cell, ranked):
    return Run(cell, {q: tuple(Hit(name, 1.0, SPAN) for name in names[:RUN_DEPTH]) for q, names in ranked.items()})


def scale(runs, qrels, n_documents):
    plan = SimpleNamespace(bootstrap=SimpleNamespace(seed=3))
    lengths = dict.fromkeys(range(n_documents), 1)
    return scale_of(SimpleNamespace(runs=runs, query_ids=list(qrels), qrels=qrels, document_lengths=lengths, plan=plan))


def found(one, qrels, kept=lambda name: True):
    numbers = defaultdict(count(1).__next__)
    lists = lists_of(one, list(qrels), qrels, numbers)
    return _found(lists, np.array([False, *map(kept, numbers)]))


def drawn_run(generator, *, centre, width, n_queries=300, n_documents=5000, law=stats.logistic):
    """A run whose one relevant document a query has the number above that a known law gives; with the law's draws."""
    qrels = {f"q{i}": {f"r{i}": 1} for i in range(n_queries)}
    p = stats.norm.cdf(law.rvs(centre, width, n_queries, random_state=generator))
    above = generator.binomial(n_documents - 1, p)
    fillers = [f"d{i}" for i in range(LISTED)]
    ranked = {q: [*fillers[:k], f"r{q[1:]}", *fillers[k:]][:LISTED] for q, k in zip(qrels, above, strict=True)}
    return run("a", ranked), qrels, p, above


def truth(p, above, n_documents):
    """The mean expected discount once the other distractors are there, from each document's true probability."""
    i = np.arange(10)
    fresh = stats.binom.pmf(i, (TIMES - 1) * (n_documents - 1), p[:, None])
    worth = np.append(DISCOUNTS, 0.0)[np.minimum(above[:, None] + i, 10)]
    return float((fresh * worth).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("law", "centre", "width", "mean", "spread"),
    [
        (stats.logistic, -3.6, 0.55, 0.015, 0.03),
        (stats.logistic, -3.0, 0.75, 0.015, 0.03),
        (stats.norm, -3.6, 0.6, 0.04, 0.05),
        (stats.cauchy, -3.6, 0.6, 0.04, 0.05),
    ],
)
def test_a_known_law_is_predicted(law, centre, width, mean, spread):
    errors = []
    for seed in range(5):
        one, qrels, p, above = drawn_run(np.random.default_rng(seed), centre=centre, width=width, law=law)
        errors.append(expected(found(one, qrels), 4999) / len(qrels) - truth(p, above, 5000))
    assert abs(np.mean(errors)) < mean
    assert np.sqrt(np.mean(np.square(errors))) < spread


def test_binomials_are_those_of_scipy():
    p = stats.norm.cdf(np.linspace(-8.0, 4.0, 241))
    for n in (10, 5000, 500_000):
        assert _binomials(n) == pytest.approx(stats.binom.pmf(np.arange(10), n, p[:, None]), rel=1e-6, abs=1e-12)


def test_distractors_are_counted_as_in_a_list_cut_by_hand():
    order = ["x1", "r1", "x2", "x3", "r2", "x4", "x5", "r3"]
    qrels = {"q": {"r1": 3, "r2": 1, "r3": 2, "r4": 1, "x2": 0}}
    kept = found(run("a", {"q": order}), qrels, lambda name: name in {"x1", "x3", "x5"})
    assert (kept.above.tolist(), kept.before.tolist(), kept.below.tolist()) == ([1, 2, 3], [0, 1, 2], [3])
    now = score(run("a", {"q": [name for name in order if name not in ("x2", "x4")]}), ["q"], qrels, 1)
    gained = float((kept.gains * DISCOUNTS[kept.above + kept.before]).sum())
    assert gained == pytest.approx(now.values["ndcg@10"][0] / SCORE_UNIT, abs=1e-9)


def test_a_row_has_the_expected_figure_and_the_errors_of_tenths():
    one, qrels, p, above = drawn_run(np.random.default_rng(1), centre=-3.5, width=0.5, n_queries=80)
    row = scale({"a": one}, qrels, 5000)["a"]
    assert row == scale({"a": one}, qrels, 5000)["a"]
    assert row.ndcg == pytest.approx(truth(p, above, 5000), abs=0.08)
    assert abs(row.bias) <= row.error < 0.15
    # By hand: the same draws of documents, numbered as they first come in the lists.
    names = list(dict.fromkeys(hit.doc_id for q in qrels for hit in one.hits[q]))
    generator = np.random.default_rng(np.random.PCG64(3))
    now = sum(score(one, list(qrels), qrels, 1).values["ndcg@10"]) / SCORE_UNIT
    errors = []
    for _ in range(SUBSAMPLES):
        chosen = set(generator.choice(5000, 500, replace=False).tolist())
        kept = {name for number, name in enumerate(names) if number in chosen}
        errors.append((expected(found(one, qrels, kept.__contains__), 499) - now) / len(qrels))
    assert row.bias == pytest.approx(np.mean(errors), abs=1e-6)
    assert row.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), abs=1e-6)


def test_without_a_back_test_there_is_no_extrapolation():
    one, qrels, _, _ = drawn_run(np.random.default_rng(1), centre=-3.5, width=0.5, n_queries=5)
    assert scale({"a": one}, qrels, LEAST_DOCUMENTS - 1) == {}
    assert len(scale({"a": one, "b": one}, qrels, LEAST_DOCUMENTS)) == 2
