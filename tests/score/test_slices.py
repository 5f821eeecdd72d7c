from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Query
from runner.score.slices import FEWEST, slices, thirds
from tests.support.example_results import BASELINE, SPARSE
from tests.support.pool_cases import comparison

NAMES = [f"q{i:02}" for i in range(12)]


def sliced(queries, *, lengths=None, answers=None):
    """Every query is answered by a document of its own; the baseline finds all of them, BM25 those of even queries."""
    answers = answers or {query.query_id: f"d-{query.query_id}" for query in queries}
    rankings = {
        BASELINE: {q: [d] for q, d in answers.items()},
        SPARSE: {q: [d] if int(q[1:]) % 2 == 0 else ["x"] for q, d in answers.items()},
    }
    qrels = {q: {d: 3} for q, d in answers.items()}
    lengths = lengths or dict.fromkeys(answers.values(), 100)
    return slices(comparison(rankings, qrels, queries=queries, lengths=lengths))


def queries(**columns):
    return [
        Query(
            name, name, columns.get("kind", "topic"), columns.get("origin", "hand"), stratum=columns.get("stratum", "")
        )
        for name in NAMES
    ]


def test_a_part_that_holds_every_query_is_no_slice():
    assert sliced(queries()) == []


def test_means_by_origin_are_those_of_its_queries():
    made = [Query(q, q, "topic", "hand" if int(q[1:]) < 3 else "generated") for q in NAMES]
    hand = next(one for one in sliced(made) if one.name == "hand")
    generated = next(one for one in sliced(made) if one.name == "generated")
    assert (hand.by, hand.queries, hand.few, generated.queries, generated.few) == ("origin", 3, True, 9, False)
    assert hand.cells[BASELINE].ndcg == hand.cells[BASELINE].recall == 1
    assert hand.cells[SPARSE].ndcg == pytest.approx(2 / 3)
    assert generated.cells[SPARSE].recall == pytest.approx(4 / 9)
    assert (hand.low, hand.high) == (None, None)


@pytest.mark.parametrize(("n", "few"), [(FEWEST - 1, True), (FEWEST, False)])
def test_fewer_than_five_queries_say_nothing(n, few):
    made = [Query(q, q, "quote" if i < n else "topic", "hand") for i, q in enumerate(NAMES)]
    assert {one.name: one.few for one in sliced(made)} == {"quote": few, "topic": False}


def test_strata_and_kinds_are_sliced_where_there_are_several():
    made = [Query(q, q, "topic", "hand", stratum="house" if i % 2 else "senate") for i, q in enumerate(NAMES)]
    assert [(one.by, one.name, one.cells[SPARSE].ndcg) for one in sliced(made)] == [
        ("stratum", "house", 0.0),
        ("stratum", "senate", 1.0),
    ]


def test_thirds_by_the_length_of_the_document_that_answers():
    lengths = {f"d-{q}": 100 * (i + 1) for i, q in enumerate(NAMES)}
    found = sliced(queries(), lengths=lengths)
    assert [(one.by, one.name, one.low, one.high, one.queries) for one in found] == [
        ("length", "short", 100, 400, 4),
        ("length", "medium", 500, 800, 4),
        ("length", "long", 900, 1200, 4),
    ]


def test_the_document_that_answers_is_the_best_graded_and_a_query_without_one_is_in_no_third():
    rankings = {BASELINE: {"q1": ["a"], "q2": ["b"], "q3": []}}
    qrels = {"q1": {"a": 1, "z": 3}, "q2": {"a": 2, "b": 2}, "q3": {"a": 0}}
    found = slices(comparison(rankings, qrels, lengths={"a": 10, "b": 20, "z": 90}))
    assert [(one.name, one.low, one.high, one.queries) for one in found] == [
        ("short", 10, 10, 1),
        ("medium", 90, 90, 1),
    ]
    assert found[0].cells[BASELINE].recall == 0.5  # q2: a and b are relevant, a is first by id, b is found


def test_a_document_below_the_relevant_grade_answers_no_query():
    rankings = {BASELINE: {"q1": ["a"], "q2": ["b"], "q3": ["c"]}}
    qrels = {"q1": {"a": 2}, "q2": {"b": 3}, "q3": {"c": 1}}
    lengths = {"a": 10, "b": 20, "c": 90}
    found = slices(comparison(rankings, qrels, lengths=lengths))
    assert [(one.name, one.low, one.queries) for one in found] == [("short", 10, 1), ("medium", 20, 1)]
    found = slices(comparison(rankings, qrels, lengths=lengths, relevant_grade=1))
    assert [one.low for one in found] == [10, 20, 90]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60))
def test_thirds_part_all_lengths_and_keep_equal_ones_together(lengths):
    found = thirds(lengths)
    bounds = list(found.values())
    assert all(low <= high for low, high in bounds)
    assert all(one[1] < other[0] for one, other in pairwise(bounds))
    assert all(sum(low <= length <= high for low, high in bounds) == 1 for length in lengths)
    if len(set(lengths)) == len(lengths) >= 3:
        sizes = [sum(low <= length <= high for length in lengths) for low, high in bounds]
        assert max(sizes) - min(sizes) <= 1
