import pytest

from runner.judge.agreement.double_graded import Repeat, drifts, sign_flip_p


def again(query, first, grade, judge="a"):
    return Repeat(f"q{query}", f"d{query}", judge, first, grade)


def test_a_judge_that_repeats_itself_shows_no_drift():
    (found,) = drifts([again(query, query % 4, query % 4) for query in range(12)], seed=1)
    assert (found.same, found.shift, found.p_shift) == (12, 0, 1)


def test_a_judge_that_grows_harsh_is_found_by_the_sign_of_its_shifts():
    (found,) = drifts([again(query, 2, 1 if query < 8 else 2) for query in range(10)], seed=1)
    assert (found.shift, found.same) == (-0.8, 2)
    assert found.p_shift == 2 / 2**8


def test_the_repeats_of_a_query_are_one_observation():
    (found,) = drifts([again(1, 2, 1) for _ in range(9)], seed=1)
    assert (found.repeats, found.queries, found.p_shift) == (9, 1, 1)


def test_every_judge_has_its_own_entry_by_name():
    found = drifts([again(1, 2, 2, judge="b"), again(1, 0, 1, judge="a"), again(2, 3, 3, judge="b")], seed=1)
    assert [(entry.judge, entry.repeats) for entry in found] == [("a", 1), ("b", 2)]
    assert drifts([], seed=1) == []


def test_many_queries_are_tested_by_draws_and_few_exactly():
    values = [1] * 16 + [-1] * 9
    drawn = sign_flip_p(values, 7)
    # Two-sided binomial: 16 or more, or 9 or fewer, of 25.
    assert drawn == pytest.approx(0.2295, abs=0.02)
    assert sign_flip_p([1, 1, 1, -1, 0], 7) == 10 / 16
