"""Queries and grades drawn anew: what the second judge says counts, and what it did not say widens the intervals."""

from dataclasses import replace

import numpy as np
import pytest

from runner.base.records import SCORE_UNIT
from runner.decide import two_level as noise
from runner.decide.two_level import LEAST_READINGS, N_GRADES, N_PLACES, SHRINKAGE, two_level
from runner.eval_set.shapes.judges import JudgeNoise
from runner.judge.agreement.double_graded import Double
from runner.score.bootstrap import bootstrap_counts
from tests.support.judge_cases import BASELINE, comparison_of, evening, favouring, off_by_one, plan, read_twice

CELL = "cell-1 x whole_doc"


def rng_of(seed):
    return np.random.default_rng(np.random.PCG64(seed))


def width(interval):
    return interval[1] - interval[0]


def every_pair(first, second, judge="second"):
    return [
        Double(q, d, grade, second[q][d], "first", judge, "model-a", "model-b")
        for q, row in first.items()
        for d, grade in row.items()
    ]


def test_where_the_second_judge_read_every_pair_its_grades_are_the_ones_that_count():
    comparison = evening(4, n_cells=4)
    second = off_by_one(comparison.qrels, rng_of(1))
    under = replace(comparison, qrels=second)
    found = two_level(comparison, every_pair(comparison.qrels, second), draws=500, seed=3)
    whole = two_level(under, every_pair(second, second), draws=500, seed=3)
    assert found.cells.keys() == whole.cells.keys()
    for cell, row in found.cells.items():
        assert row.interval == pytest.approx(whole.cells[cell].queries_only, abs=2e-9)
        assert row.gain == pytest.approx(under.paired([cell], "ndcg@10").mean() / SCORE_UNIT, abs=0.01)


def test_both_measures_are_those_of_scoring_whatever_the_grades():
    comparison = evening(8, n_cells=3, n_queries=6)
    for relevant_grade in (1, 2, 3):
        under = replace(comparison, plan=plan(relevant_grade=relevant_grade))
        queries = noise.judged_queries(under, every_pair(under.qrels, under.qrels))
        beside = [noise.arms(under, cell, queries) for cell in under.challengers]
        once = np.eye(6, dtype=np.int64)  # as many draws as queries, each of one query
        totals = np.zeros((2, 2, 6), np.int64)
        for number, values in noise.drawn_differences(queries, beside, once, relevant_grade, rng_of(1)):
            totals[number] += values
        scored = [under.paired(under.challengers, measure) for measure in ("ndcg@10", "recall@10")]
        assert np.abs(totals - np.stack(scored, axis=1)).max() <= 1


def test_a_copy_of_a_query_has_grades_of_its_own():
    """Two copies of one query that shared their grades would scatter as much as one does."""
    comparison = evening(8, n_cells=2, n_queries=1)
    # Read without exception for the sake of the confusion, though its own grades are drawn.
    read = every_pair(comparison.qrels, off_by_one(comparison.qrels, rng_of(1), share=0.9))
    queries = noise.judged_queries(comparison, read)
    beside = [noise.arms(comparison, CELL, queries)]
    drawn = [
        [arm._replace(codes=4 * arm.places + queries[0].first) for arm in beside[0]],
    ]
    sums = []
    for copies in (1, 16):
        counts = np.full((1000, 1), copies)
        ((_, values),) = noise.drawn_differences(queries, drawn, counts, 2, rng_of(5))
        sums.append(values[0].std() / copies)
    assert sums[1] < 0.6 * sums[0]


def test_a_place_with_few_readings_is_drawn_towards_all_places():
    readings = np.zeros((N_PLACES, N_GRADES, N_GRADES, 1), np.int64)
    readings[1, 2, 0] = 6  # what the cell alone has the second judge finds worthless
    readings[0, 2, 2] = 93
    draws = 4000
    pseudo = rng_of(1).integers(noise._SCALE, size=(N_PLACES, N_GRADES, SHRINKAGE, 1, draws), dtype=np.uint16)
    levels = noise._levels(np.broadcast_to(readings, (*readings.shape[:3], draws)), pseudo)
    at_most_1 = levels[1].mean(axis=1) / noise._SCALE
    everywhere = (6 + 2 / 4) / (99 + 1)
    own, none = at_most_1[4 * 1 + 2], at_most_1[4 * 2 + 2]
    assert own == pytest.approx((6 + SHRINKAGE * everywhere) / (6 + SHRINKAGE), abs=0.01)
    assert none == pytest.approx(everywhere, abs=0.01)
    assert levels[1, 4 * 2 + 2].std() > 2 * levels[1, 4 * 1 + 2].std() > 0
    assert levels[:, 16:, 0].tolist() == [[65535, 0, 0, 0], [65535, 65535, 0, 0], [65535, 65535, 65535, 0]]


def test_a_judge_who_favours_a_cell_is_seen_through():
    truth = evening(11, n_cells=3)
    target = truth.challengers[0]
    first = favouring(truth.qrels, truth.runs[target])
    comparison = replace(truth, qrels=first)
    plain, honest = (c.paired([target], "ndcg@10").mean() / SCORE_UNIT for c in (comparison, truth))
    found = two_level(comparison, read_twice(first, truth.qrels, 0.3, rng_of(1)), draws=500, seed=1)
    row = found.cells[target]
    assert plain - honest > 0.1
    assert abs(row.gain - honest) < 0.05
    assert row.interval[0] < honest < row.interval[1]
    assert row.queries_only[0] > honest
    exact = two_level(truth, read_twice(truth.qrels, truth.qrels, 0.3, rng_of(1)), draws=500, seed=1)
    assert abs(row.candidate - exact.cells[target].candidate) < 0.2


def test_errors_that_fall_on_all_cells_alike_leave_the_better_cell_the_better_one():
    truth = evening(11, lift=0.5)
    rng = rng_of(2)
    first, second = off_by_one(truth.qrels, rng), off_by_one(truth.qrels, rng)
    comparison = replace(truth, qrels=first)
    found = two_level(comparison, read_twice(first, second, 0.3, rng), draws=500, seed=1)
    assert candidates(found)[CELL] > 0.95
    assert found.no_candidate <= 1 - candidates(found)[CELL]
    assert found.cells[CELL].interval[0] > 0


def test_fewer_second_readings_make_wider_intervals_than_more():
    truth = evening(6, n_cells=4)
    rng = rng_of(3)
    first, second = off_by_one(truth.qrels, rng), off_by_one(truth.qrels, rng)
    comparison = replace(truth, qrels=first)
    widths = []
    for share in (0.04, 0.2, 1.0):
        found = two_level(comparison, read_twice(first, second, share, rng_of(4)), draws=500, seed=1)
        widths.append(np.mean([width(row.interval) / width(row.queries_only) for row in found.cells.values()]))
    assert widths[0] > widths[1] > widths[2]
    assert widths[1] > 1.1


def test_queries_alone_are_resampled_as_the_bootstrap_resamples_them():
    comparison = evening(9, n_cells=3)
    doubles = every_pair(comparison.qrels, comparison.qrels)
    found = two_level(comparison, doubles, draws=4000, seed=1)
    counts = np.concatenate(list(bootstrap_counts(50, 4000, seed=7)))
    for cell, row in found.cells.items():
        means = counts @ comparison.paired([cell], "ndcg@10")[0] / (50 * SCORE_UNIT)
        assert row.queries_only == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.006)


def test_the_share_of_draws_in_which_a_cell_is_a_candidate_is_counted():
    docs = [f"d{i}" for i in range(20)]
    names = [f"q{i}" for i in range(10)]
    qrels = {q: {d: 3 if i < 10 else 0 for i, d in enumerate(docs)} for q in names}

    def ranking(n_good):
        return dict.fromkeys(names, docs[:n_good] + docs[10 : 20 - n_good])

    rankings = {
        BASELINE: ranking(5),
        "b x whole_doc": ranking(9),
        "a x whole_doc": ranking(8),
        "c x whole_doc": ranking(3),
    }
    comparison = comparison_of(rankings, qrels)
    found = two_level(comparison, every_pair(qrels, qrels), draws=50, seed=1)
    assert candidates(found) == {"a x whole_doc": 1.0, "b x whole_doc": 1.0, "c x whole_doc": 0.0}
    assert found.no_candidate == 0.0
    worse = comparison_of({name: rankings[name] for name in (BASELINE, "c x whole_doc")}, qrels)
    found = two_level(worse, every_pair(qrels, qrels), draws=50, seed=1)
    assert (candidates(found), found.no_candidate) == ({"c x whole_doc": 0.0}, 1.0)


def test_no_cell_is_a_candidate_in_a_draw_that_gains_too_little_or_loses_too_much_recall():
    docs = [f"d{i}" for i in range(30)]
    grades = dict(zip(docs, [3] * 5 + [2] * 5 + [1] * 10 + [0] * 10, strict=True))
    names = [f"q{i}" for i in range(10)]
    rankings = {
        BASELINE: [*docs[:4], *docs[5:8], "d20", "d8", "d21"],
        "costly x whole_doc": [*docs[:7], *docs[10:13]],  # gains .06, and has seven good ones where there were eight
        "little x whole_doc": [*docs[:4], *docs[5:9], "d20", "d21"],  # gains .002
    }
    qrels = dict.fromkeys(names, grades)
    comparison = comparison_of({cell: dict.fromkeys(names, top) for cell, top in rankings.items()}, qrels)
    found = two_level(comparison, every_pair(qrels, qrels), draws=20, seed=1)
    assert (set(candidates(found).values()), found.no_candidate) == ({0.0}, 1.0)
    lenient = comparison.plan.rule.model_copy(update={"min_gain": 0.001, "max_recall_loss": 0.1})
    under = replace(comparison, plan=plan(rule=lenient))
    found = two_level(under, every_pair(qrels, qrels), draws=20, seed=1)
    assert (candidates(found)["costly x whole_doc"], found.no_candidate) == (1.0, 0.0)


def candidates(found):
    return {cell: row.candidate for cell, row in found.cells.items()}


def test_too_few_readings_and_a_lone_baseline_are_said_and_nothing_is_drawn():
    comparison = evening(1, n_cells=2)
    doubles = every_pair(comparison.qrels, comparison.qrels)
    less = two_level(comparison, doubles[: LEAST_READINGS - 1], seed=1)
    assert less.unknown == "29 second readings do not say how often a judge errs; it takes 30"
    assert (less.draws, less.cells, less.no_candidate) == (0, {}, None)
    assert two_level(comparison, doubles[:LEAST_READINGS], draws=50, seed=1).unknown == ""
    none = two_level(comparison, [], seed=1)
    assert (none.judge, none.unknown[:17]) == ("", "0 second readings")
    alone = comparison_of({BASELINE: {"q": ["d"]}}, {"q": {"d": 3}})
    assert two_level(alone, [], seed=1).unknown


def test_of_several_second_judges_the_one_who_read_most_is_the_reference():
    comparison = evening(1, n_cells=2)
    worthless = {q: dict.fromkeys(row, 0) for q, row in comparison.qrels.items()}
    many = every_pair(comparison.qrels, comparison.qrels, judge="many")
    few = every_pair(comparison.qrels, worthless, judge="few")[:100]
    found = two_level(comparison, few + many, draws=50, seed=1)
    assert found.judge == "many"
    equal = two_level(comparison, few + many[:100], draws=50, seed=1)
    assert equal.judge == "few"


def test_queries_without_hits_or_without_judgments_count_as_nothing():
    truth = evening(2, n_cells=3)
    run = truth.runs[CELL]
    runs = truth.runs | {CELL: replace(run, hits=run.hits | {"q000": ()})}
    qrels = {q: row for q, row in truth.qrels.items() if q != "q001"}
    comparison = replace(truth, runs=runs, qrels=qrels)
    found = two_level(comparison, every_pair(qrels, qrels), draws=200, seed=1)
    for row in found.cells.values():
        assert row.interval == pytest.approx(row.queries_only, abs=2e-9)


def test_results_depend_on_the_seed_and_on_nothing_else():
    comparison = evening(7, n_cells=3)
    doubles = read_twice(comparison.qrels, off_by_one(comparison.qrels, rng_of(1)), 0.2, rng_of(2))
    turned = replace(
        comparison,
        runs={cell: comparison.runs[cell] for cell in reversed(comparison.runs)},
        qrels={q: dict(reversed(row.items())) for q, row in comparison.qrels.items()},
    )
    first = two_level(comparison, doubles, draws=100, seed=1)
    assert first == two_level(turned, doubles[::-1], draws=100, seed=1)
    assert JudgeNoise.model_validate(first.model_dump()) == first
    assert first != two_level(comparison, doubles, draws=100, seed=2)
