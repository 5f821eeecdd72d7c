import numpy as np
import pytest

from runner.base.records import Run
from runner.decide.judging import agreement, by_one_model, judging, writers
from runner.eval_set.shapes.judges import Judging
from runner.eval_set.shapes.queries import QueryRow
from tests.support.example_results import BASELINE, BETTER, PLAN
from tests.support.judge_cases import evening, labels_of, off_by_one, plan
from tests.support.labels import label


def judged(share=0.3, *, again=True):
    """The labels of an invented pool, a share of them read by a second judge and some by the first one again."""
    case, rng = evening(4, n_cells=2), np.random.default_rng(4)
    runs = {name: Run(name, run.hits) for name, run in zip((BASELINE, BETTER), case.runs.values(), strict=True)}
    first, second, third = (off_by_one(case.qrels, rng) for _ in range(3))
    pairs = [(query_id, doc_id) for query_id, row in case.qrels.items() for doc_id in row]
    labels = [label(q, d, first[q][d], judge="one") for q, d in pairs]
    for number, (q, d) in enumerate(pairs):
        if rng.random() < share:
            labels.append(label(q, d, second[q][d], judge="two", model="model-2", batch="double-0001"))
        if again and number % 20 == 0:
            labels.append(label(q, d, third[q][d], judge="one", round=2, batch=f"batch-{number // 200:04d}"))
    return labels, runs, list(case.queries)


def test_everything_known_of_the_judges_is_joined_and_survives_a_round_trip():
    labels, runs, queries = judged()
    found = agreement(labels, runs, queries, PLAN)
    (second,) = found.seconds
    assert (second.judge, second.models, second.first_judges) == ("two", ["model-2"], ["one"])
    assert second.pairs == found.read_twice > second.same > 0
    grades = {(*row.pair, row.judge): row.grade for row in labels if row.round == 1}
    twice = [(grades[q, d, "one"], grade) for (q, d, judge), grade in grades.items() if judge == "two"]
    assert second.higher == sum(before < after for before, after in twice) > 0
    assert [*second.by_cell] == [BETTER]
    assert second.kappa.low < second.kappa.value < second.kappa.high
    assert {judge: drift.repeats for judge, drift in found.drift.items()} == {
        "one": sum(row.round == 2 for row in labels)
    }
    assert Judging.model_validate_json(found.model_dump_json()) == found
    assert found == agreement(labels, runs, queries, PLAN)


@pytest.mark.parametrize(
    ("first", "second", "share", "expected"),
    [
        ("claude-a", "claude-b", 1.0, (["claude"], ["claude"], True)),
        ("claude-a", "gpt-b", 1.0, (["claude"], ["gpt"], False)),
        ("claude-a", "", 0.1, (["claude"], ["people"], False)),
        ("claude-a", "gpt-b", 0.09, (["claude"], ["gpt"], True)),
        ("claude-a", "gpt-b", 0.0, (["claude"], [], True)),
        ("", "gpt-b", 0.0, (["people"], [], False)),
    ],
)
def test_grades_are_one_models_unless_a_person_or_another_family_read_a_tenth_of_the_relevant_ones(
    first, second, share, expected
):
    pairs = [("q1", f"d{number:03}", 2 if number < 100 else 0) for number in range(200)]
    rows = [label(*pair, "one", first) for pair in pairs]
    rows += [label(*pair, "two", second) for pair in [*pairs[: round(100 * share)], *(pairs[100:] if share else [])]]
    queries = [QueryRow(id="q1", text="w", kind="topic", origin=origin) for origin in ("claude-x", "traffic", "person")]
    found = agreement(rows, {}, queries, PLAN)
    assert (found.graded, found.read_again, by_one_model(rows, PLAN.relevant_grade)) == expected
    assert writers(queries) == ["claude", "people"]


def test_source_documents_read_again_for_their_grade_count_as_readings_and_not_in_agreement():
    queries = [QueryRow(id="q1", text="w", kind="topic", origin="person", source_document="d0")]
    rows = [label("q1", f"d{number}", grade, "one") for number, grade in enumerate((1, 2, 0, 3))]
    rows += [label("q1", f"d{number}", grade, "two") for number, grade in enumerate((3, 2, 2, 0))]
    (second,) = agreement(rows, {}, queries, PLAN).seconds
    assert (second.pairs, second.same, second.higher, second.copied) == (4, 1, 2, 4)
    assert (second.relevant, second.lost, second.others, second.gained) == (2, 1, 1, 1)
    assert second.alike.value == pytest.approx(1 / 3)


def test_only_the_queries_asked_for_count():
    labels, runs, queries = judged()
    some = agreement(labels, runs, queries[:5], PLAN)
    assert some.seconds[0].queries == 5
    assert some.read_twice < agreement(labels, runs, queries, PLAN).read_twice


def test_every_second_judge_has_its_own_entry():
    labels, runs, queries = judged()
    third = [label(row.query_id, row.doc_id, 0, judge="three") for row in labels if row.judge == "two"]
    found = agreement([*labels, *third], runs, queries, PLAN)
    assert [second.judge for second in found.seconds] == ["three", "two"]  # of equally many pairs by name
    assert found.read_twice == len(third)
    assert found.seconds[0].kappa.value == 0


def test_labels_of_one_judge_say_nothing_but_that():
    labels, runs, queries = judged(0, again=False)
    found = agreement(labels, runs, queries, PLAN)
    assert (found.seconds, found.drift, found.read_twice) == ([], {}, 0)
    assert agreement([], {}, [], PLAN).graded == []


def test_without_the_baselines_run_nothing_is_said_by_cell():
    labels, runs, queries = judged()
    (second,) = agreement(labels, {BETTER: runs[BETTER]}, queries, PLAN).seconds
    assert second.by_cell == {}


def shared():
    """An evening of 25 queries with second readings by two models, two people and the first judge again."""
    comparison = evening(5, n_cells=3, settings=plan(draws=199))
    generator = np.random.default_rng(8)
    pairs = [(query, doc) for query, grades in comparison.qrels.items() for doc in grades]
    first = labels_of(comparison.qrels, [])
    second = []
    for judge, model, share, round_ in (
        ("second", "m-2", 0.4, 1),
        ("third", "m-3", 0.2, 2),
        ("ann", "", 0.2, 1),
        ("bob", "", 0.2, 1),
        ("first", "model-a", 0.2, 2),
        ("first", "model-a", 0.1, 3),
    ):
        grades = off_by_one(comparison.qrels, generator)
        chosen = [pair for pair in pairs if generator.random() < share]
        second += [label(*pair, grades[pair[0]][pair[1]], judge, model, round=round_) for pair in chosen]
    return comparison, first, second, generator


def test_the_order_of_labels_changes_no_byte():
    comparison, first, second, generator = shared()
    expected = judging(comparison, [*first, *second])
    assert len(expected.seconds) == 4
    for rows in (first, second):
        mixed = [rows[place] for place in generator.permutation(len(rows))]
        given = [*mixed, *second] if rows is first else [*first, *mixed]
        assert judging(comparison, given).model_dump_json() == expected.model_dump_json()
