import pytest

from runner.judge.agreement.double_graded import doubles, drifts, sign_flip_p
from tests.support.labels import label


def test_another_judges_grade_stands_beside_the_scored_one():
    rows = [
        label("q1", "d1", 2, judge="a", model="m-1", batch="batch-0001"),
        label("q1", "d2", 0, judge="b", batch="batch-0001"),
        label("q1", "d1", 1, judge="b", batch="double-0001"),
        label("q1", "d1", 3, judge="c", model="m-3", batch="double-0002"),
        label("q1", "d2", 3, judge="a", model="m-1", batch="double-0002"),
    ]
    found = doubles(rows)
    assert [(d.doc_id, d.first, d.second, d.first_judge, d.second_judge) for d in found] == [
        ("d1", 2, 1, "a", "b"),
        ("d1", 2, 3, "a", "c"),
        ("d2", 0, 3, "b", "a"),
    ]
    assert [(d.first_model, d.second_model) for d in found] == [("m-1", ""), ("m-1", "m-3"), ("", "m-1")]
    assert drifts(rows, seed=1) == {}


def test_a_repeat_is_the_same_judges_and_no_second_reading():
    rows = [
        label("q1", "d1", 2, judge="a", batch="batch-0001"),
        label("q1", "d1", 1, judge="b", batch="double-0001"),
        label("q1", "d1", 3, judge="a", round=2, batch="batch-0004"),
        label("q1", "d1", 0, judge="b", round=2, batch="double-0002"),
    ]
    assert [(judge, drift.repeats, drift.shift) for judge, drift in drifts(rows, seed=1).items()] == [
        ("a", 1, 1),
        ("b", 1, -1),
    ]
    assert len(doubles(rows)) == 1


def test_what_a_judge_is_given_once_more_of_anothers_pairs_is_its_first_reading_of_them():
    rows = [
        label("q1", "d1", 2, judge="a", batch="batch-0001"),
        label("q1", "d1", 0, judge="b", round=3, batch="batch-0005"),
        label("q1", "d1", 1, judge="b", round=2, batch="batch-0004"),
        label("q1", "d2", 1, judge="b", round=2, batch="batch-0004"),
    ]
    assert [(d.doc_id, d.first, d.second, d.second_judge) for d in doubles(rows)] == [("d1", 2, 1, "b")]
    assert [(judge, drift.repeats, drift.shift) for judge, drift in drifts(rows, seed=1).items()] == [("b", 1, -1)]


def test_a_pair_graded_once_is_neither():
    assert doubles([label()]) == ()
    assert drifts([label()], seed=1) == {}


def read_again(*grades, judge="a"):
    """Labels of one judge who reads pairs, given by query, first and second grade, twice."""
    return [
        label(f"q{query}", f"d{place}", grade, judge=judge, round=round_)
        for place, (query, *both) in enumerate(grades)
        for round_, grade in enumerate(both, start=1)
    ]


def test_a_judge_that_repeats_itself_shows_no_drift():
    found = drifts(read_again(*((query, query % 4, query % 4) for query in range(12))), seed=1)["a"]
    assert (found.same, found.shift, found.p_shift) == (12, 0, 1)


def test_a_judge_that_grows_harsh_is_found_by_the_sign_of_its_shifts():
    found = drifts(read_again(*((query, 2, 1 if query < 8 else 2) for query in range(10))), seed=1)["a"]
    assert (found.shift, found.same) == (-0.8, 2)
    assert found.p_shift == 2 / 2**8


def test_the_repeats_of_a_query_are_one_observation_and_every_judge_has_its_own_entry():
    rows = [*read_again(*[(1, 2, 1)] * 9, judge="b"), *read_again((1, 0, 1))]
    found = drifts(rows, seed=1)
    assert [(judge, entry.repeats, entry.queries, entry.p_shift) for judge, entry in found.items()] == [
        ("a", 1, 1, 1),
        ("b", 9, 1, 1),
    ]


def test_many_queries_are_tested_by_draws_and_few_exactly():
    # Two-sided binomial: 16 or more, or 9 or fewer, of 25.
    assert sign_flip_p([1] * 16 + [-1] * 9, 7) == pytest.approx(0.2295, abs=0.02)
    assert sign_flip_p([1, 1, 1, -1, 0], 7) == 10 / 16
