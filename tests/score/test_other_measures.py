from dataclasses import replace

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Bpref, nDCG

from runner.base.records import SCORE_UNIT
from runner.score.other_measures import sensitivity, sensitivity_scores
from tests.support.example_results import BASELINE, SPARSE
from tests.support.pool_cases import comparison, random_case

HALF_UNIT = 0.5 / SCORE_UNIT + 1e-12
P = 0.8


def scores_of(rankings, qrels, relevant_grade=2, **more):
    whole = comparison({BASELINE: rankings}, qrels, relevant_grade=relevant_grade, **more)
    return sensitivity_scores(whole, whole.runs[BASELINE])


def decreasing(rankings):
    """Scores that trec_eval cannot reorder: whole numbers made from our ranks."""
    return {q: {d: float(1000 - i) for i, d in enumerate(docs)} for q, docs in rankings.items()}


def one(rankings, qrels, **more):
    """The values of a single query, in [0, 1]."""
    found = scores_of({"q": rankings}, {"q": qrels}, **more)
    return {name: int(values[0]) / SCORE_UNIT for name, values in found._asdict().items()}


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_bpref_equals_trec_eval_query_by_query(seed, relevant_grade):
    rankings, qrels = random_case(seed)
    qrels = {q: {d: g - (d > "d50") for d, g in grades.items()} for q, grades in qrels.items()}  # below 0 is unjudged
    found = scores_of(rankings[BASELINE], qrels, relevant_grade)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"bpref"}, relevance_level=relevant_grade)
    reference = evaluator.evaluate(decreasing(rankings[BASELINE]))
    for query_id, value in zip(rankings[BASELINE], found.bpref.tolist(), strict=True):
        expected = reference.get(query_id, {}).get("bpref", 0.0)
        assert value / SCORE_UNIT == pytest.approx(expected, abs=HALF_UNIT), query_id


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_condensed_ndcg_and_bpref_equal_ir_measures(seed, relevant_grade):
    rankings, qrels = random_case(seed)
    found = scores_of(rankings[BASELINE], qrels, relevant_grade)
    measures = {"condensed": nDCG(judged_only=True) @ 10, "bpref": Bpref(rel=relevant_grade)}
    reference = {
        (str(metric.measure), metric.query_id): metric.value
        for metric in ir_measures.iter_calc(list(measures.values()), qrels, decreasing(rankings[BASELINE]))
    }
    for name, measure in measures.items():
        for query_id, value in zip(rankings[BASELINE], getattr(found, name).tolist(), strict=True):
            expected = reference.get((str(measure), query_id), 0.0)
            assert value / SCORE_UNIT == pytest.approx(expected, abs=HALF_UNIT), (name, query_id)


@given(st.integers(0, 2**32))
def test_where_the_first_ten_are_judged_the_condensed_list_scores_the_same(seed):
    rankings, qrels = random_case(seed, judged_share=1.0)
    first_ten = {
        q: {d: g for d, g in grades.items() if d in rankings[BASELINE][q][:10] or d > "d30"}
        for q, grades in qrels.items()
    }
    whole = comparison(rankings, first_ten)
    without_qrels = [q for q in rankings[BASELINE] if q not in qrels]
    values = dict(zip(whole.query_ids, whole.scores[BASELINE].values["judged@10"], strict=True))
    assert all(values[q] == SCORE_UNIT for q in values if q not in without_qrels)
    found = sensitivity_scores(whole, whole.runs[BASELINE])
    assert found.condensed.tolist() == list(whole.scores[BASELINE].values["ndcg@10"])


@given(st.integers(0, 2**32))
def test_rank_biased_precision_and_its_residual_are_the_two_fillings_of_the_holes(seed):
    rankings, qrels = random_case(seed)
    whole = comparison(rankings, qrels)
    run = whole.runs[BASELINE]
    perfect = {q: {d: qrels.get(q, {}).get(d, 3) for d in docs} for q, docs in rankings[BASELINE].items()}
    worthless = {q: {d: qrels.get(q, {}).get(d, 0) for d in docs} for q, docs in rankings[BASELINE].items()}
    found = sensitivity_scores(whole, run)
    low, high = (sensitivity_scores(replace(whole, qrels=filled), run) for filled in (worthless, perfect))
    assert low.rbp.tolist() == found.rbp.tolist()
    assert np.abs(high.rbp - found.rbp - found.residual).max() <= 1
    assert not low.residual.any()
    assert not high.residual.any()


def test_rank_biased_precision_by_hand():
    found = one(["a", "x", "b", "c"], {"a": 3, "b": 1, "c": 0})
    assert found["rbp"] == pytest.approx((1 - P) * (1 + P**2 / 3), abs=HALF_UNIT)
    assert found["residual"] == pytest.approx((1 - P) * P, abs=HALF_UNIT)


def test_bpref_by_hand():
    # Two relevant; above b stands one of the two judged not relevant, and above the missing c nothing counts.
    assert one(["a", "x", "n", "b"], {"a": 3, "b": 2, "n": 1, "m": 0})["bpref"] == pytest.approx((1 + 0.5) / 2)
    assert one(["n", "m", "a"], {"a": 3, "n": 0, "m": 0})["bpref"] == 0
    assert one(["x", "a"], {"a": 3})["bpref"] == 1


def test_a_query_without_a_hit_or_without_a_relevant_document_scores_nothing_and_hides_nothing():
    assert set(one([], {"a": 3}).values()) == {0.0}
    found = one(["x", "a"], {"a": 1})
    assert found["bpref"] == 0
    assert found["residual"] == pytest.approx(1 - P, abs=HALF_UNIT)


def test_the_gain_of_published_grades_is_by_their_own_highest():
    assert one(["a"], {"a": 1}, published=True, relevant_grade=1)["rbp"] == pytest.approx(1 - P, abs=HALF_UNIT)
    found = one(["a"], {"a": -1, "b": 2}, published=True, relevant_grade=1)
    assert (found["rbp"], found["residual"]) == (0, 0)


def test_means_are_over_all_queries_and_the_baseline_differs_from_itself_by_nothing():
    rankings = {BASELINE: {"p": ["a"], "q": ["x", "a"]}, SPARSE: {"p": ["a"], "q": ["a"]}}
    found = sensitivity(comparison(rankings, {"p": {"a": 3}, "q": {"a": 3}}))
    assert found[BASELINE].condensed.mean == found[SPARSE].condensed.mean == 1
    assert found[BASELINE].rbp.mean == pytest.approx((1 - P) * (1 + P) / 2)
    assert found[SPARSE].rbp.difference == pytest.approx((1 - P) * (1 - P) / 2)
    assert found[BASELINE].residual == pytest.approx((1 - P) / 2)
    assert {found[BASELINE].rbp.difference, found[SPARSE].condensed.difference, found[SPARSE].residual} == {0}
