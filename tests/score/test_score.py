import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, Judged, R, nDCG

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Hit, Run, Span
from runner.score.score import MEASURES, qrels, score, single_gold
from tests.support.labels import label

HALF_UNIT = 0.5 / SCORE_UNIT + 1e-12


def run_of(rankings):
    return Run("cell", {q: tuple(Hit(d, 1.0, Span(0, 1)) for d in docs) for q, docs in rankings.items()})


def random_case(seed, n_queries=40):
    """Graded qrels and rankings with unjudged documents, empty rankings, queries without qrels or relevant ones."""
    rng = np.random.default_rng(seed)
    docs = [f"d{i:03}" for i in range(220)]
    rankings, graded = {}, {}
    for i in range(n_queries):
        query_id = f"q{i}"
        rankings[query_id] = rng.permutation(docs)[: rng.choice([0, 1, 5, 12, 60, RUN_DEPTH])].tolist()
        if i % 9:
            judged = rng.choice(docs, size=rng.integers(1, 150), replace=False).tolist()
            grades = rng.choice(4, size=len(judged), p=[0.7, 0.1, 0.1, 0.1]) * (i % 7 > 0)
            graded[query_id] = dict(zip(judged, grades.tolist(), strict=True))
    return rankings, graded


def decreasing(rankings):
    """Scores that trec_eval cannot reorder: whole numbers made from our ranks."""
    return {q: {d: float(1000 - i) for i, d in enumerate(docs)} for q, docs in rankings.items()}


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_every_measure_equals_ir_measures_query_by_query(seed, relevant_grade):
    rankings, graded = random_case(seed)
    found = score(run_of(rankings), list(rankings), graded, relevant_grade)
    measures = {
        "ndcg@10": nDCG @ 10,
        "recall@10": R(rel=relevant_grade) @ 10,
        "recall@100": R(rel=relevant_grade) @ 100,
        "mrr": RR(rel=relevant_grade),
        "mrr@10": RR(rel=relevant_grade) @ 10,
        "judged@10": Judged @ 10,
    }
    found_something = {q: docs for q, docs in rankings.items() if docs}  # Judged divides by a list's length
    reference = {
        (str(metric.measure), metric.query_id): metric.value
        for metric in ir_measures.iter_calc(list(measures.values()), graded, decreasing(found_something))
    }
    for name, measure in measures.items():
        for query_id, value in zip(found.query_ids, found.values[name], strict=True):
            if name == "judged@10" and (not rankings[query_id] or query_id not in graded):
                continue  # undefined there; ours is tested below
            expected = reference.get((str(measure), query_id), 0.0)
            assert value / SCORE_UNIT == pytest.approx(expected, abs=HALF_UNIT), (name, query_id)


def values(rankings, graded, relevant_grade=2):
    found = score(run_of(rankings), list(rankings), graded, relevant_grade)
    assert tuple(found.values) == MEASURES
    return {name: [value / SCORE_UNIT for value in column] for name, column in found.values.items()}


def test_a_query_without_a_relevant_document_or_a_hit_scores_zero_and_stays():
    found = values({"none": ["a"], "empty": [], "unknown": ["a"]}, {"none": {"a": 1}, "empty": {"a": 3}})
    assert found["recall@10"] == found["recall@100"] == found["mrr"] == found["mrr@10"] == [0, 0, 0]
    assert found["ndcg@10"] == [1, 0, 0]


def test_nothing_is_missing_from_an_empty_list_but_an_unjudged_query_is_unjudged():
    found = values(
        {"all": ["a", "b"], "half": ["a", "x"], "empty": [], "unknown": ["a"]},
        {
            "all": {"a": 0, "b": 3},
            "half": {"a": 0},
            "empty": {"a": 3},
        },
    )
    assert found["judged@10"] == [1, 0.5, 1, 0]


def test_a_run_that_misses_a_query_raises():
    with pytest.raises(KeyError):
        score(run_of({"q1": []}), ["q1", "q2"], {}, 2)


def test_no_queries_give_no_values():
    assert score(run_of({}), [], {}, 2).values["ndcg@10"] == ()


def test_qrels_count_the_earliest_first_round_grade_of_each_pair():
    labels = [
        label("q1", "a", 0, "claude", "", round=2),
        label("q1", "a", 3, "claude", ""),
        label("q1", "a", 1, "human", ""),
        label("q1", "b", 0, "human", ""),
        label("q2", "b", 2, "claude", ""),
    ]
    assert qrels(labels) == {"q1": {"a": 3, "b": 0}, "q2": {"b": 2}}
    assert qrels([]) == {}


def test_a_single_gold_is_the_highest_grade_of_equals_the_first_id_and_none_without_one():
    graded = {"q1": {"b": 2, "a": 2, "c": 1}, "q2": {"a": 1, "b": 3}, "q3": {"a": 0}}
    assert single_gold([*graded, "q4"], graded) == {"q1": "a", "q2": "b"}
