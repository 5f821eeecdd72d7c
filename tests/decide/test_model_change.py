"""A second model that graded what was added later: what its readings of the first one's pairs leave of a gain."""

from dataclasses import replace

import pytest

from runner.base.records import SCORE_UNIT
from runner.decide.judge_noise.model_change import change_blockers, change_sentence, model_change
from runner.decide.other_judges import blockers, judge_panel
from runner.eval_set.shapes.judges import ModelChange
from runner.eval_set.shapes.results import JudgePanel
from runner.judge.second_reading import REGRADED, scored_models, to_regrade
from tests.support.judge_cases import evening, label

CELL = "cell-1 x whole_doc"
OLD, NEW = "model-x", "model-y"


def stricter(grade):
    return max(0, grade - 1)


def as_graded(grade):
    return grade


def world(truth, then, *, n_read=REGRADED, coming=""):
    """The comparison and its labels: CELL's first tens by OLD as they are, all other pairs by NEW as `then` has them.

    NEW then read so many of those that it is to read.
    """
    old = {(q, hit.doc_id) for q, hits in truth.runs[CELL].hits.items() for hit in hits[:10]}
    qrels = {q: {d: g if (q, d) in old else then(g) for d, g in row.items()} for q, row in truth.qrels.items()}
    labels = [label(q, d, qrels[q][d], "one", OLD) for q, row in qrels.items() for d in row if (q, d) in old]
    labels += [label(q, d, qrels[q][d], "two", NEW) for q, row in qrels.items() for d in row if (q, d) not in old]
    due = to_regrade(labels)
    labels += [label(q, d, then(qrels[q][d]), "two", NEW, 2) for q, d in due.pairs[:n_read]]
    return replace(truth, qrels=qrels), labels


def test_a_gain_that_a_stricter_model_made_is_not_confirmed():
    truth = evening(1, n_cells=2, n_queries=50)
    comparison, labels = world(truth, stricter)
    found = model_change(comparison, labels)
    apparent = comparison.paired([CELL], "ndcg@10").mean() / SCORE_UNIT
    on_one_scale = {q: {d: stricter(g) for d, g in row.items()} for q, row in truth.qrels.items()}
    true = replace(truth, qrels=on_one_scale).paired([CELL], "ndcg@10").mean() / SCORE_UNIT
    (row,) = found.cells
    assert apparent > true + 0.05
    assert row.interval[0] <= true <= row.interval[1]
    assert row.could_fall
    assert change_blockers(CELL, found)
    assert found.shift.value < -0.3
    assert found.shift.high < 0
    assert sum(map(sum, found.confusion)) == found.read == found.wanted == REGRADED


def test_a_model_that_grades_alike_leaves_a_gain_as_it_is():
    comparison, labels = world(evening(3, lift=1.5, n_cells=2, n_queries=50), as_graded)
    found = model_change(comparison, labels)
    (row,) = found.cells
    assert not row.could_fall
    assert change_blockers(CELL, found) == []
    assert (found.shift.value, found.shift.low, found.shift.high) == (0, 0, 0)
    assert found.kappa.value == 1
    panel = judge_panel(comparison, labels)
    assert JudgePanel.model_validate(panel.model_dump()) == panel
    assert blockers(panel, labels, 0.05)(CELL) == []


@pytest.mark.parametrize("n_read", [0, REGRADED - 1])
def test_until_enough_is_read_again_nothing_is_confirmed(n_read):
    comparison, labels = world(evening(3, lift=1.5, n_cells=2), as_graded, n_read=n_read)
    found = model_change(comparison, labels)
    assert (found.read, found.cells) == (n_read, [])
    assert f"{n_read} of the {REGRADED} pairs" in found.unknown
    assert change_blockers(CELL, found)
    assert found.unknown in change_sentence(found)
    assert any(found.unknown in said for said in blockers(judge_panel(comparison, labels), labels, 0.05)(CELL))


def test_a_third_model_leaves_the_shift_unknown_and_is_asked_for_nothing():
    comparison, labels = world(evening(3, lift=1.5, n_cells=2), as_graded)
    last = labels.pop(next(i for i, row in enumerate(labels) if row.model == NEW))
    labels.append(last.model_copy(update={"judge": "three", "model": "model-z"}))
    assert to_regrade(labels) is None
    assert "more than two models" in model_change(comparison, labels).unknown


def test_one_model_under_two_names_and_people_beside_it_change_nothing():
    truth = evening(3, n_cells=2)
    pairs = [(q, d, g) for q, row in truth.qrels.items() for d, g in row.items()]
    models = (OLD, f"{OLD}-20260131", "")
    labels = [label(*pair, f"judge-{i % 3}", models[i % 3]) for i, pair in enumerate(pairs)]
    assert scored_models(labels) == [OLD]
    assert model_change(truth, labels) is None
    assert to_regrade(labels) is None
    assert "change" not in judge_panel(truth, labels).model_dump(), "files written before keep their bytes"


def test_what_is_read_again_is_spread_over_grades_and_queries_and_stays_as_it_is():
    _, labels = world(evening(3, n_cells=2, n_queries=50), as_graded, n_read=0)
    old = {(row.query_id, row.doc_id): row.grade for row in labels if row.model == OLD}
    due = to_regrade(labels)
    assert (due.first, due.then, len(due.pairs)) == (OLD, NEW, REGRADED)
    for grade in range(4):
        share = sum(value == grade for value in old.values()) / len(old)
        assert abs(sum(old[pair] == grade for pair in due.pairs) - REGRADED * share) <= 1
    assert len({query_id for query_id, _ in due.pairs}) > 40
    read = [label(*pair, 0, "two", NEW, 2) for pair in due.pairs[:40]]
    assert to_regrade([*labels, *read]).pairs == due.pairs[40:]
    assert to_regrade(labels[: len(old)]) is None, "nobody else grades"
    assert to_regrade(labels[: len(old)], coming=NEW).pairs == due.pairs


def test_of_few_pairs_all_are_read_again():
    labels = [label("q1", f"d{n}", n % 4, "one", OLD) for n in range(12)] + [label("q1", "d99", 1, "two", NEW)]
    assert len(to_regrade(labels).pairs) == 12
    read = [label("q1", f"d{n}", n % 4, "two", NEW, 2) for n in range(12)]
    assert to_regrade(labels + read) is None


def test_what_is_known_of_a_change_survives_a_round_trip():
    found = model_change(*world(evening(2, n_cells=2), stricter))
    assert ModelChange.model_validate_json(found.model_dump_json()) == found
    assert found.first_pairs + found.then_pairs == sum(map(len, evening(2, n_cells=2).qrels.values()))
