from runner.judge.agreement.double_graded import doubles, repeats
from tests.eval_set.test_version import label


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
    assert repeats(rows) == ()


def test_a_repeat_is_the_same_judges_and_no_second_reading():
    rows = [
        label("q1", "d1", 2, judge="a", batch="batch-0001"),
        label("q1", "d1", 1, judge="b", batch="double-0001"),
        label("q1", "d1", 3, judge="a", round=2, batch="batch-0004"),
        label("q1", "d1", 0, judge="b", round=2, batch="double-0002"),
    ]
    assert [(r.judge, r.first, r.again) for r in repeats(rows)] == [("a", 2, 3), ("b", 1, 0)]
    assert len(doubles(rows)) == 1


def test_what_a_judge_is_given_once_more_of_anothers_pairs_is_its_first_reading_of_them():
    rows = [
        label("q1", "d1", 2, judge="a", batch="batch-0001"),
        label("q1", "d1", 0, judge="b", round=3, batch="batch-0005"),
        label("q1", "d1", 1, judge="b", round=2, batch="batch-0004"),
        label("q1", "d2", 1, judge="b", round=2, batch="batch-0004"),
    ]
    assert [(d.doc_id, d.first, d.second, d.second_judge) for d in doubles(rows)] == [("d1", 2, 1, "b")]
    assert [(r.judge, r.first, r.again) for r in repeats(rows)] == [("b", 1, 0)]


def test_a_pair_graded_once_is_neither():
    assert doubles([label()]) == ()
    assert repeats([label()]) == ()
