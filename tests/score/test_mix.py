"""Topics in two wordings, weighed by a mix: every weighted figure held to a reference of its own."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.decide.turning import turnings
from runner.eval_set.asked import asked
from runner.eval_set.mix import mix_problems, natural, weigh
from runner.eval_set.shapes.queries import QueryRow
from runner.gate.gate import Gate
from runner.score.bootstrap import bootstrap_counts, mean_intervals
from runner.score.comparison import Comparison, mean
from runner.score.expected_gain import expected_gain
from runner.score.false_alarm import false_alarm
from runner.score.gain_test import effective_number, gain_tests
from runner.score.recall_bound import recall_bounds
from runner.score.score import score
from runner.score.sign_flip import left_out, paired_tests
from runner.score.tipping_point import tipping_point
from tests.support.example_results import BASELINE, PLAN
from tests.support.graded_sets import run_of

UNIT = 10**9
OTHER = "bm25 x whole_doc"
ROW = st.lists(st.tuples(st.integers(-UNIT, UNIT), st.integers(1, 1000)), min_size=2, max_size=9)


def topic(number, kind="topic", *, two=True):
    worded = {"plain": f"plain {number}", "paraphrased": f"other {number}"} if two else {"text": f"text {number}"}
    return QueryRow(id=f"q{number:02d}", kind=kind, origin="person", **worded)


QUERIES = [*(topic(number) for number in range(6)), *(topic(number, "citation", two=False) for number in range(6, 10))]
MIX = {"plain": 0.5, "paraphrased": 0.3, "citation": 0.2}


def compared(queries=QUERIES, *, empty=(), seed=1, **settings):
    """A comparison of two made cells over the queries; those at the places `empty` have no relevant document."""
    rng = np.random.default_rng(np.random.PCG64(seed))
    docs = [f"d{number:02d}" for number in range(30)]
    grades = {
        query.id: dict(zip(docs, rng.integers(2 if at in empty else 4, size=30).tolist(), strict=True))
        for at, query in enumerate(queries)
    }
    ids = [one.id for one in asked(queries)]
    lists = {cell: {each: rng.permutation(docs)[:12].tolist() for each in ids} for cell in (BASELINE, OTHER)}
    runs = {cell: run_of(found, cell) for cell, found in lists.items()}
    plan = PLAN.model_copy(update={"relevant_grade": 2, **settings})
    return Comparison(plan, queries, runs, grades, {}, frozenset(runs), dict.fromkeys(docs, 100))


@pytest.mark.parametrize(
    ("mix", "named"),
    [
        (MIX, []),
        (MIX | {"plain": 0.4}, ["sum to 0.9"]),
        (MIX | {"quote": 0.0}, ["'quote' has the share 0", "'quote'"]),
        (MIX | {"plain": -0.5, "paraphrased": 1.3}, ["'plain' has the share -0.5"]),
        (MIX | {"plain": math.nan}, ["sum to nan"]),
        ({"plain": 0.8, "citation": 0.2}, ["'paraphrased'", "q00"]),
        ({"plain": 0.5, "paraphrased": 0.5}, ["q06", "'citation'"]),
        ({"citation": 1.0}, ["q00"]),
        ({"plain": 0.4, "paraphrased": 0.3, "citation": 0.2, "quote": 0.1}, ["no query is of the class 'quote'"]),
        ({"topic": 0.5, "citation": 0.5}, ["no query is of the class 'topic'", "q00"]),
    ],
    ids=range(10),
)
def test_a_mix_that_is_none_of_the_queries_is_refused_with_the_class_or_the_query(mix, named):
    problems = mix_problems(mix, QUERIES)
    assert bool(problems) == bool(named)
    assert all(any(name in problem for problem in problems) for name in named)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 99))
def test_weights_keep_the_shares_of_their_classes(n_two, n_one, percent):
    queries = [topic(at) for at in range(n_two)]
    queries += [topic(at, "quote", two=False) for at in range(n_two, n_two + n_one)]
    assert set(weigh(queries, natural(queries)).topics) == {1}
    if not n_one:
        return
    mix = {"plain": Fraction(percent, 400), "paraphrased": Fraction(3 * percent, 400)}
    topics, wordings = weigh(queries, mix | {"quote": Fraction(100 - percent, 100)})
    assert sum(topics[n_two:]) / sum(topics) == pytest.approx(1 - percent / 100, abs=0.01)
    assert wordings["paraphrased"] == 3 * wordings["plain"]
    assert all(isinstance(weight, int) and weight > 0 for weight in topics)


def test_a_topic_scores_the_weighted_mean_of_its_wordings_and_a_mean_that_of_topics():
    comparison = compared(mix=MIX)
    grades = {one.id: comparison.qrels[one.topic] for one in asked(QUERIES)}
    alone = score(comparison.runs[OTHER], [*grades], grades, 2).values["ndcg@10"]
    values = dict(zip(grades, alone, strict=True))
    share = {query.id: Fraction(8, 10) / 6 if query.text is None else Fraction(2, 10) / 4 for query in QUERIES}
    of_topics = [
        Fraction(5 * values[f"{query.id}.plain"] + 3 * values[f"{query.id}.paraphrased"], 8)
        if query.text is None
        else Fraction(values[query.id])
        for query in QUERIES
    ]
    expected = [math.floor(value + Fraction(1, 2)) for value in of_topics]
    found = comparison.means[OTHER]["ndcg@10"]
    # .6 of the wordings is 600 thousandths of the greater one, and a citation's weight 375 of a topic's.
    assert found.per_query == expected
    whole = sum(share[query.id] * value for query, value in zip(QUERIES, expected, strict=True)) / UNIT
    assert found.mean == pytest.approx(float(whole), abs=1e-9)
    assert comparison.effective == pytest.approx(1 / (6 * (0.8 / 6) ** 2 + 4 * (0.2 / 4) ** 2))
    assert found.low <= found.mean <= found.high


def test_a_mix_of_the_natural_shares_is_no_mix_and_the_order_of_queries_is_nothing():
    plain = compared()
    same = compared(mix={"plain": 0.3, "paraphrased": 0.3, "citation": 0.4})
    assert set(plain.weights) == {1}
    for name in ("means", "differences", "tests", "recall_bounds", "expected_gains"):
        assert getattr(plain, name) == getattr(same, name)
    assert plain.false_alarm() == same.false_alarm()
    gates = [Gate.over(each).judge(each.runs[OTHER], dict.fromkeys(each.document_lengths, 1)) for each in (plain, same)]
    assert gates[0] == gates[1]
    mixed = compared(mix=MIX)
    turned = replace(mixed, queries=QUERIES[::-1])
    for cell in (BASELINE, OTHER):
        assert turned.means[cell]["ndcg@10"].mean == mixed.means[cell]["ndcg@10"].mean
    assert turned.gain_tests == mixed.gain_tests
    assert turned.recall_bounds == mixed.recall_bounds


@given(ROW)
def test_equal_weights_are_no_weights(row):
    values, same = np.array([[value for value, _ in row]]), [7] * len(row)
    drawn = {"draws": 200, "seed": 3}
    assert mean_intervals(values, seed=1, resamples=200) == mean_intervals(values, seed=1, resamples=200, weights=same)
    assert false_alarm(values, values, min_gain=0.02, max_recall_loss=0.02, **drawn) == false_alarm(
        values, values, min_gain=0.02, max_recall_loss=0.02, weights=same, **drawn
    )
    assert recall_bounds(values, alpha=0.05) == recall_bounds(values, alpha=0.05, weights=same)
    assert left_out(values[0].tolist()) == left_out(values[0].tolist(), same)
    tests = [paired_tests(values, alpha=0.05, weights=each, **drawn)[0].model_dump() for each in (None, same)]
    for name, figure in tests[0].items():
        assert tests[1][name] == (figure if figure is None else pytest.approx(figure, abs=1e-12))
    one, other = (expected_gain(OTHER, values[0], PLAN, each) for each in (None, same))
    assert (one.mean, one.sd) == pytest.approx((other.mean, other.sd))
    assert gain_tests(values, 0, 0.05)[0].p == pytest.approx(gain_tests(values, 0, 0.05, same)[0].p, abs=2e-9)


@given(ROW)
def test_the_weighted_test_and_its_interval_are_those_of_every_flip(row):
    values, weights = np.array([value for value, _ in row]), np.array([weight for _, weight in row])
    [test] = paired_tests(values[None], draws=1000, alpha=0.3, seed=1, weights=weights.tolist())
    signs = np.array([*product((1, -1), repeat=len(row))])
    total = abs(int(values @ weights))
    assert test.p == (np.abs(signs @ (values * weights)) >= total).mean()
    # A shift that the test does not reject lies in the interval, and the next one does not.
    inside = [test.interval[0] + share * (test.interval[1] - test.interval[0]) for share in (0.01, 0.5, 0.99)]
    for shift in inside if test.interval != [-1.0, 1.0] else ():
        moved = (values / UNIT - shift) * weights
        p = (np.abs(signs @ moved) >= abs(moved.sum()) * (1 - 1e-9)).mean()
        assert p > 0.3
    average = (values @ weights) / weights.sum()
    n = effective_number(weights.tolist())
    spread = math.sqrt(((values - average) ** 2 @ weights) / weights.sum() / max(n - 1, 1e-9) * n) / UNIT
    assert test.sd == pytest.approx(spread, rel=1e-6, abs=1e-9)


def test_the_weighted_bootstrap_is_that_of_draws_taken_one_by_one():
    rng = np.random.default_rng(np.random.PCG64(5))
    values, weights = rng.integers(-UNIT, UNIT, size=(1, 12)), rng.integers(1, 9, size=12)
    counts = np.concatenate(list(bootstrap_counts(12, 400, 5))).astype(int)
    means = sorted((counts @ (values[0] * weights)) / (counts @ weights) / UNIT)
    [interval] = mean_intervals(values, seed=5, resamples=400, weights=weights.tolist())
    assert (interval.low, interval.high) == pytest.approx((means[10], means[389]), abs=1e-12)
    without = [mean(np.delete(values[0], at), np.delete(weights, at).tolist()) for at in range(12)]
    spread, moves = left_out(values[0].tolist(), weights.tolist())
    assert (spread.low, spread.high) == pytest.approx((min(without), max(without)), abs=1e-12)
    whole = mean(values[0], weights.tolist())
    assert abs(without[moves] - whole) == pytest.approx(max(abs(each - whole) for each in without), abs=1e-12)


@pytest.mark.parametrize("weights", [[1] * 30 + [5] * 10, [1] * 40, [1000, *[20] * 39]], ids=str)
def test_the_weighted_recall_bound_errs_as_rarely_as_it_says(weights):
    """Two classes of other means, so that no query's own mean is the weighted one."""
    rng, missed, runs = np.random.default_rng(np.random.PCG64(9)), 0, 300
    chance = np.array([0.02] * 30 + [0.5] * 10)
    true = -float(chance @ np.array(weights)) / sum(weights)
    lost = -(rng.random((runs, 40)) < chance).astype(np.int64) * UNIT
    for bound in recall_bounds(lost, alpha=0.1, weights=weights):
        missed += bound[0] > true
    assert missed / runs <= 0.1


def test_a_topic_without_an_answer_leaves_every_mean_and_test_and_is_named():
    whole, left = compared(empty=(0, 7), mix=MIX), compared(empty=(0, 7), mix=MIX)
    assert whole.unanswered == ["q00", "q07"]
    assert [weight == 0 for weight in whole.weighing.topics] == [at in (0, 7) for at in range(10)]
    # What the two find and are graded below relevant changes nothing.
    for query_id in ("q00", "q07"):
        left.qrels[query_id].clear()
    for name in ("tests", "recall_bounds", "expected_gains", "differences", "losses"):
        assert getattr(whole, name) == getattr(left, name)
    assert whole.means[OTHER]["ndcg@10"].mean == left.means[OTHER]["ndcg@10"].mean
    assert len(whole.means[OTHER]["ndcg@10"].per_query) == 10
    assert replace(whole, published=True).unanswered == []
    none = compared(empty=range(10))
    assert (len(none.unanswered), len(none.weights)) == (10, 10)


def test_the_shares_that_turn_the_choice_are_those_at_which_a_plan_would_choose_otherwise():
    """A cell that gains in plain wordings and loses in the others, at every hundredth by a plan of that mix."""
    comparison = compared(mix=MIX)
    docs = sorted(comparison.document_lengths)
    best = {one.id: sorted(docs, key=lambda doc, one=one: -comparison.qrels[one.topic][doc]) for one in asked(QUERIES)}
    lists = {
        BASELINE: {one.id: best[one.id][:8] if one.wording == "plain" else best[one.id][1:9] for one in asked(QUERIES)},
        OTHER: {one.id: best[one.id][:9] if one.wording != "plain" else best[one.id][4:12] for one in asked(QUERIES)},
    }
    kinds = {kind: one.model_copy(update={"sd": 1.0}) for kind, one in PLAN.prior.kinds.items()}
    plan = comparison.plan.model_copy(update={"prior": PLAN.prior.model_copy(update={"kinds": kinds})})
    comparison = replace(comparison, runs={cell: run_of(found, cell) for cell, found in lists.items()}, plan=plan)

    def chosen(share):
        plain = {"plain": 0.8 * share, "paraphrased": 0.8 * (1 - share), "citation": 0.2}
        moved = replace(comparison, plan=comparison.plan.model_copy(update={"mix": plain}))
        gain, recall = (moved.mean(moved.paired([OTHER], name)[0]) for name in ("ndcg@10", "recall@10"))
        rule, expected = moved.plan.rule, moved.expected_gains[OTHER]
        meets = round(gain, 4) >= rule.min_gain and round(recall, 4) >= -rule.max_recall_loss
        return OTHER if meets and round(expected.mean, 4) > moved.plan.switching_cost else BASELINE

    class Row:
        cell, role, unjudged = OTHER, "preregistered", 0
        gate = type("Gate", (), {"verdict": "pass"})

    now = chosen(0.625)
    found = {turn.what: turn for turn in turnings(comparison, [Row], now)}
    below = next((x / 100 for x in range(62, -1, -1) if chosen(x / 100) != now), None)
    above = next((x / 100 for x in range(63, 101) if chosen(x / 100) != now), None)
    turn = found["plain wordings"]
    assert (turn.now, turn.below, turn.above) == (0.625, below, above)
    assert (below is None) != (above is None)
    assert found["citations"].now == pytest.approx(0.2)


def test_two_wordings_that_find_the_same_are_one_to_gate_tests_and_judges_errors():
    """What chance makes of topics is drawn by topic: twins would else look like twice as many."""
    alone = compared([topic(number, two=False) for number in range(12)])
    twins = [topic(number) for number in range(12)]
    runs = {
        cell: replace(run, hits={one.id: run.hits[one.topic] for one in asked(twins)})
        for cell, run in alone.runs.items()
    }
    both = replace(alone, queries=twins, runs=runs)
    for name in ("means", "tests", "recall_bounds", "expected_gains"):
        assert getattr(alone, name) == getattr(both, name)
    chunks = dict.fromkeys(alone.document_lengths, 1)
    gates = [(Gate.over(each), each.runs[OTHER]) for each in (alone, both)]
    one, two = (gate.judge(run, chunks) for gate, run in gates)
    assert one.real == pytest.approx(two.real)
    assert len({round(gate.blind(run), 9) for gate, run in gates}) == 1
    drawn_by_list = ("random retrieval", "shuffled top 10")
    ours, theirs = ([null for null in each.nulls if null.name not in drawn_by_list] for each in (one, two))
    assert ours == theirs
    points = [
        tipping_point(
            *(each.runs[cell] for cell in pair), [*each.asked_weights], each.qrels, 3, [*each.asked_weights.values()]
        )
        for each in (alone, both)
        for pair in ((OTHER, BASELINE), (BASELINE, OTHER))
    ]
    assert points[:2] == points[2:]
    assert any(points)
