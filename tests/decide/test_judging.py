"""The decision with another judge's grades, and what judges leave of a cell that its scores confirm."""

from dataclasses import replace

import numpy as np
import pytest

from runner.base.records import SCORE_UNIT
from runner.decide.judging import cell_under_judge, judge_blockers, judging, under_judge
from runner.decide.two_level import two_level
from runner.eval_set.shapes.judges import CellUnderJudge, JudgeNoise, NoisyCell
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import doubles
from tests.support.judge_cases import BASELINE, evening, favouring, labels_of, off_by_one, plan, read_twice
from tests.support.labels import label

CELL, OTHER = "cell-1 x whole_doc", "cell-2 x whole_doc"
ALPHA = 0.05


def rng_of(seed):
    return np.random.default_rng(np.random.PCG64(seed))


def pairs_of(comparison):
    return [(q, d) for q, row in comparison.qrels.items() for d in row]


def noise(low, high=0.2):
    row = NoisyCell(gain=0.1, interval=[low, high], queries_only=[0.05, 0.15], candidate=0.9)
    return JudgeNoise(judge="second", draws=2000, no_candidate=0.1, cells={CELL: row}, unknown="")


def other(*holding, cells=(CELL, OTHER)):
    return {cell: CellUnderJudge(gain=0.1, p_gain=0.01, holds=cell in holding) for cell in cells}


def test_a_cell_that_only_the_first_judge_sees_gain_is_not_confirmed_by_the_other():
    truth = evening(1, n_cells=4)
    comparison = replace(truth, qrels=favouring(truth.qrels, truth.runs[CELL]))
    assert cell_under_judge(comparison, CELL).holds
    read = doubles(labels_of(comparison.qrels, pairs_of(truth), people=truth.qrels))
    rows, recommended = under_judge(comparison, read)
    assert not rows[CELL].holds
    assert rows[CELL].gain == pytest.approx(truth.paired([CELL], "ndcg@10").mean() / SCORE_UNIT)
    assert rows[CELL].p_gain == truth.gain_tests[CELL].p
    assert recommended == BASELINE


def test_pairs_that_the_other_judge_did_not_read_keep_their_grade():
    truth = evening(2, n_cells=3)
    query_id, doc_id = pairs_of(truth)[0]
    read = {query_id: {doc_id: 3 - truth.qrels[query_id][doc_id]}}
    cells, _ = under_judge(truth, doubles(labels_of(truth.qrels, [(query_id, doc_id)], people=read)))
    regraded = replace(truth, qrels={q: row | read.get(q, {}) for q, row in truth.qrels.items()})
    assert [row.gain for row in cells.values()] == [
        regraded.paired([cell], "ndcg@10").sum() / (50 * SCORE_UNIT) for cell in truth.challengers
    ]


def test_a_better_cell_that_holds_is_recommended_under_every_judge():
    truth = evening(3, lift=1.0)
    rng = rng_of(1)
    comparison = replace(truth, qrels=off_by_one(truth.qrels, rng))
    read = read_twice(comparison.qrels, off_by_one(truth.qrels, rng), 0.3, rng)
    assert under_judge(comparison, read)[1] == CELL


def test_further_rounds_and_labels_of_the_scored_judge_are_no_other_judge():
    comparison = evening(4, n_cells=2)
    labels = labels_of(comparison.qrels, [])
    again = label(*pairs_of(comparison)[0], 0, "first", "model-a", round=2)
    assert judging(comparison, labels).seconds == judging(comparison, [*labels, again]).seconds == []


def test_the_judges_with_the_most_pairs_come_first_and_none_is_left_out():
    comparison = evening(4, n_cells=2, settings=plan(draws=1000))
    pairs, labels = pairs_of(comparison), labels_of(comparison.qrels, [])
    for number in range(4):
        labels += [label(q, d, comparison.qrels[q][d], f"judge {number}", "") for q, d in pairs[: 1 + number]]
    labels += [label(q, d, comparison.qrels[q][d], "also judge 3", "") for q, d in pairs[:4]]
    found = judging(comparison, labels).seconds
    assert [row.judge for row in found] == ["also judge 3", *(f"judge {number}" for number in range(3, -1, -1))]
    assert [row.pairs for row in found] == [4, 4, 3, 2, 1]
    assert all([*second.cells] == comparison.challengers for second in found)


def test_an_exploratory_cell_never_holds():
    truth = replace(evening(3, lift=1.0, n_cells=3), registered=frozenset({OTHER}))
    row = cell_under_judge(truth, CELL)
    assert (row.p_gain, row.holds) == (None, False)


def test_what_judges_leave_of_a_cell_is_said():
    assert judge_blockers(CELL, noise(0.01), {"second": other(CELL)}, {CELL: 0.2}, ALPHA) == []
    assert judge_blockers(CELL, None, {}, {}, ALPHA) == []
    assert judge_blockers(CELL, None, {"second": other(CELL), "ann": other()}, {CELL: None}, ALPHA) == [
        "is not confirmed with the grades of ann"
    ]
    assert judge_blockers(CELL, noise(-0.01), {"second": other()}, {CELL: 0.03}, ALPHA) == [
        "is not confirmed with the grades of second",
        "is favoured by its judge (adjusted p 0.0300)",
        "may owe its gain to the judge's errors (-0.0100 to +0.2000 with the grades of a second judge)",
    ]


def test_thresholds_of_judges_compare_the_four_places_that_are_shown():
    assert judge_blockers(CELL, None, {}, {CELL: 0.05004}, ALPHA) != []
    assert judge_blockers(CELL, None, {}, {CELL: 0.05006}, ALPHA) == []
    assert judge_blockers(CELL, noise(0.00004), {}, {}, ALPHA) != []
    assert judge_blockers(CELL, noise(0.00006), {}, {}, ALPHA) == []


def test_what_was_not_drawn_bars_no_cell():
    comparison = evening(1, n_cells=2)
    unknown = two_level(comparison, [], seed=1)
    assert unknown.unknown
    assert judge_blockers(CELL, unknown, {}, {}, ALPHA) == []


def confirmed(comparison):
    return [cell for cell in comparison.challengers if cell_under_judge(comparison, cell).holds]


def left(comparison, read, cells):
    """Those of the cells that all three safeguards leave confirmed."""
    drawn = two_level(comparison, read, draws=200, seed=1)
    others = {"second": under_judge(comparison, read)[0]}
    rows = favours(read, comparison.runs, BASELINE, alpha=ALPHA, seed=1, draws=399)
    favoured = {cell: row.p_for_cell for cell, row in rows.items()}
    return [cell for cell in cells if not judge_blockers(cell, drawn, others, favoured, ALPHA)]


def judged(seed, *, lift=0.0, favoured=None):
    """An evening graded by a judge who errs at random, and second readings of 30 %."""
    truth = evening(seed, lift=lift, n_cells=6, settings=plan(draws=399))
    rng = rng_of(seed + 10**6)
    first, second = off_by_one(truth.qrels, rng), off_by_one(truth.qrels, rng)
    if favoured:
        first = favouring(first, truth.runs[favoured])
    return replace(truth, qrels=first), read_twice(first, second, 0.3, rng)


def test_random_errors_of_both_judges_confirm_no_more_cells_than_chance_may():
    wrong = sum(bool(confirmed(judged(seed)[0])) for seed in range(60))
    assert wrong <= 60 * ALPHA


def test_random_errors_of_both_judges_leave_a_better_cell_confirmed():
    evenings = [judged(seed, lift=0.8) for seed in range(8)]
    before = [(comparison, doubles) for comparison, doubles in evenings if CELL in confirmed(comparison)]
    after = sum(CELL in left(comparison, doubles, [CELL]) for comparison, doubles in before)
    assert len(before) >= 7
    assert after >= 7


def test_a_planted_judge_who_favours_one_cell_confirms_it_and_the_second_readings_take_that_back():
    evenings = [judged(seed, favoured=CELL) for seed in range(8)]
    before = [(comparison, doubles) for comparison, doubles in evenings if CELL in confirmed(comparison)]
    after = sum(CELL in left(comparison, doubles, [CELL]) for comparison, doubles in before)
    assert len(before) >= 7
    assert after <= 1
