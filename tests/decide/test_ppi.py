"""Prediction-powered differences: people's grades where there are some, the judge's where there are none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT
from runner.decide.judge_noise.ppi import LEAST_READ, Sums, parts, people_grades, power_tuned, powered
from runner.eval_set.shapes.judges import PoweredResult
from runner.score.score import DISCOUNTS
from tests.support.judge_cases import BASELINE, comparison_of, evening, favouring, label, labels_of, off_by_one, plan


def sums_of(f, y):
    """Sums of parts; y is None where nobody read."""
    read = [(a, b) for a, b in zip(f, y, strict=True) if b is not None]
    return Sums(
        *(
            np.float64(value)
            for value in (
                len(f),
                len(read),
                sum(f),
                sum(a * a for a in f),
                sum(a for a, _ in read),
                sum(b for _, b in read),
                sum(a * b for a, b in read),
            )
        )
    )


def by_hand(f, y):
    """The estimator of PPI++ written down as its paper has it."""
    read = np.array([value is not None for value in y])
    f_read, f_unread, people = np.array(f)[read], np.array(f)[~read], np.array([v for v in y if v is not None])
    if not len(f_unread):
        return people.mean(), 0.0
    covariance = np.mean((people - people.mean()) * (f_read - f_read.mean()))
    variance = np.var(f, ddof=1)
    weight = 0.0 if variance == 0 else covariance / ((1 + len(people) / len(f_unread)) * variance)
    weight = min(1.0, max(0.0, weight))
    return weight * f_unread.mean() + np.mean(people - weight * f_read), weight


@given(st.lists(st.tuples(st.integers(-6, 6), st.none() | st.integers(-6, 6)), min_size=2, max_size=30))
def test_the_estimate_is_the_formula_written_down(pairs):
    f, y = [a / 4 for a, _ in pairs], [None if b is None else b / 4 for _, b in pairs]
    if all(value is None for value in y):
        return
    found = [float(value) for value in power_tuned(sums_of(f, y))]
    assert found == pytest.approx(by_hand(f, y), abs=1e-9)


def test_the_estimate_is_that_of_ppi_python():
    """Figures of ppi-python 0.2.3's ppi_mean_pointestimate, whose dependencies are too many for a test's sake."""
    rng = np.random.default_rng(np.random.PCG64(7))
    y = rng.normal(size=200)
    f = y + rng.normal(size=200)
    mean, weight = power_tuned(sums_of(f.tolist(), [*y[:40].tolist(), *[None] * 160]))
    assert float(mean) == pytest.approx(-0.205468930184, abs=1e-9)
    assert float(weight) == pytest.approx(0.365113016054, abs=1e-9)


def test_a_judge_who_errs_alike_everywhere_is_put_right_and_a_useless_one_is_left_out():
    rng = np.random.default_rng(1)
    people = rng.normal(size=400)
    one_off = (people + 1).tolist()
    some = [*people[:100].tolist(), *[None] * 300]
    mean, weight = power_tuned(sums_of(one_off, some))
    assert float(weight) == pytest.approx(0.75, abs=0.1)
    assert float(mean) == pytest.approx(people.mean(), abs=0.05)
    assert float(power_tuned(sums_of((-people).tolist(), some))[1]) == 0
    assert float(power_tuned(sums_of([2.0] * 400, some))[0]) == pytest.approx(people[:100].mean())


def test_the_judges_grades_count_in_full_at_most():
    f, y = [-1.0, 1.0, *[0.0] * 6], [-3.0, 3.0, *[None] * 6]
    assert float(power_tuned(sums_of(f, y))[1]) == 1
    assert [float(value) for value in power_tuned(sums_of(f, y))] == list(by_hand(f, y))


def test_the_judges_part_is_the_difference_in_ndcg():
    comparison = evening(3)
    people = {("q000", next(iter(comparison.qrels["q000"]))): 2}
    for cell in comparison.challengers:
        gain = comparison.paired([cell], "ndcg@10")[0]
        assert parts(comparison, cell, people)[:, 2] == pytest.approx(gain, abs=1)


def test_only_documents_that_stand_elsewhere_in_the_two_rankings_count():
    docs = [f"d{i}" for i in range(12)]
    other = [docs[0], docs[2], docs[1], *docs[3:9], docs[10], docs[9]]
    qrels = {"q": dict.fromkeys(docs[:11], 1) | {docs[2]: 3}}
    comparison = comparison_of({BASELINE: {"q": docs}, "b x whole_doc": {"q": other}}, qrels)
    found = parts(comparison, "b x whole_doc", {("q", "d0"): 3, ("q", "d2"): 2, ("q", "d10"): 0})[0] / SCORE_UNIT
    # d1 and d2 change places, d9 makes room for d10; d0 counts nothing, whoever read it.
    ideal = 2 * DISCOUNTS[0] + DISCOUNTS.sum()
    swap, last = (DISCOUNTS[1] - DISCOUNTS[2]) / ideal, DISCOUNTS[9] / ideal
    assert found[:2].tolist() == [4, 2]
    assert found[2:] == pytest.approx(
        [
            2 * swap,
            9 * swap**2 + swap**2 + 2 * last**2,
            3 * swap + last,
            2 * swap,
            6 * swap**2,
        ]
    )


def test_it_takes_a_hundred_pairs_of_people_where_a_model_judged():
    comparison = evening(1, n_cells=2)
    pairs = [(q, d) for q, row in comparison.qrels.items() for d in row]
    enough, less = labels_of(comparison.qrels, pairs[:LEAST_READ]), labels_of(comparison.qrels, pairs[: LEAST_READ - 1])
    assert powered(comparison, less).cells == []
    assert powered(comparison, less).unknown == "people graded 99 of the pairs that a model judged; it takes 100"
    found = powered(comparison, enough)
    assert (found.unknown, found.people, found.read) == ("", ["a person"], 100)
    assert powered(comparison, [row for row in enough if row.model]).read == 0


def test_people_who_read_first_or_again_are_no_check_on_a_model():
    def read(judge, model, grade=1, round_=1):
        return label("q", "d", grade, judge, model, round_)

    scored_by_person = [read("ann", ""), read("m", "m"), read("bob", "")]
    assert people_grades(scored_by_person) == {}
    scored_by_model = [read("m", "m"), read("n", "n"), read("ann", "", 0, 2), read("ann", "", 2), read("bob", "")]
    assert {pair: row.second for pair, row in people_grades(scored_by_model).items()} == {("q", "d"): 2}


def test_of_several_people_the_first_by_name_counts_however_their_lines_are_ordered():
    first, ann, bob = (
        label("q", "d", 1, "m", "m", 1),
        label("q", "d", 3, "ann", "", 2),
        label("q", "d", 0, "bob", "", 1),
    )
    for rows in ([first, ann, bob], [first, bob, ann]):
        assert people_grades(rows)["q", "d"].second == 3


def test_too_few_queries_with_a_pair_that_counts_are_said():
    comparison = evening(1, n_cells=2)
    pairs = [(q, d) for q, row in list(comparison.qrels.items())[:9] for d in row]
    (cell,) = powered(comparison, labels_of(comparison.qrels, pairs)).cells
    assert (cell.gain, cell.interval, cell.weight) == (None, None, None)
    assert cell.unknown == "9 queries have a pair that counts here and that people graded; it takes 10"
    assert cell.judge_alone == pytest.approx(comparison.paired([cell.cell], "ndcg@10").mean() / SCORE_UNIT, abs=1e-8)


def test_people_who_read_everything_and_agree_leave_the_difference_as_it_is():
    comparison = evening(5, n_cells=3)
    pairs = [(q, d) for q, row in comparison.qrels.items() for d in row]
    for row in powered(comparison, labels_of(comparison.qrels, pairs)).cells:
        assert row.read == row.pairs
        assert row.gain == pytest.approx(row.judge_alone, abs=1e-8)
        assert row.people_alone == pytest.approx(row.judge_alone, abs=1e-8)
        bootstrap = comparison.differences("ndcg@10")[list(comparison.runs).index(row.cell)]
        assert row.interval == pytest.approx([bootstrap.low, bootstrap.high], abs=1e-8)


def test_a_favoured_cell_loses_what_it_was_given_and_intervals_hold_the_truth():
    """A judge that raises one cell's documents: its own difference is off by .05, the powered one is not."""
    settings = plan(bootstrap=plan().bootstrap.model_copy(update={"resamples": 400}))
    alone, found, inside = [], [], 0
    for seed in range(60):
        truth = evening(seed, n_cells=2, settings=settings)
        rng = np.random.default_rng(np.random.PCG64(seed + 10**6))
        target = truth.challengers[0]
        judge = favouring(off_by_one(truth.qrels, rng), truth.runs[target])
        comparison = replace(truth, qrels=judge)
        pairs = [(q, d) for q, row in judge.items() for d in row]
        read = [pairs[i] for i in rng.choice(len(pairs), 200, replace=False)]
        (row,) = powered(comparison, labels_of(judge, read, people=truth.qrels)).cells
        aim = parts(comparison, target, {(q, d): truth.qrels[q][d] for q, d in pairs})[:, 5].mean() / SCORE_UNIT
        alone.append(row.judge_alone - aim)
        found.append(row.gain - aim)
        inside += row.interval[0] <= 0 <= row.interval[1]
    assert np.mean(alone) > 0.03
    assert abs(np.mean(found)) < 0.01
    assert inside >= 60 * 0.85


def test_results_are_the_same_every_time():
    comparison = evening(2, n_cells=3)
    pairs = [(q, d) for q, row in comparison.qrels.items() for d in row][::3]
    labels = labels_of(comparison.qrels, pairs, people=off_by_one(comparison.qrels, np.random.default_rng(1)))
    found = powered(comparison, labels)
    assert found == powered(comparison, labels) == PoweredResult.model_validate(found.model_dump())
