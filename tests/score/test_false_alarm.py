import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import meets_criterion_5
from runner.eval_set.shapes.plan import Rule
from runner.score.false_alarm import _least_total, false_alarm
from runner.score.flips import flip_blocks

RULE = Rule(min_gain=0.02, max_recall_loss=0.02)


def deltas(n_rows, n_queries, seed):
    """Differences with standard deviation .15 and correlation .5, as cells that share a baseline have."""
    rng = np.random.default_rng(seed)
    own, baseline = rng.normal(size=(n_rows, n_queries)), rng.normal(size=n_queries)
    values = 0.15 * (own - baseline) / np.sqrt(2)
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def alarm(gains, recalls, *, rule=RULE, draws=2000, seed=1):
    return false_alarm(
        gains, recalls, min_gain=rule.min_gain, max_recall_loss=rule.max_recall_loss, draws=draws, seed=seed
    )


@given(st.integers(0, 100), st.sampled_from([0.0, 0.02, 0.0333, 0.05]), st.sampled_from([0.0, 0.02, 0.1]))
def test_an_alarm_is_a_draw_in_which_some_cell_meets_criterion_5(seed, min_gain, max_recall_loss):
    rule = Rule(min_gain=min_gain, max_recall_loss=max_recall_loss)
    steps = np.random.default_rng(seed).integers(-3, 4, size=(2, 3, 8)) * (SCORE_UNIT // 50)
    gains, recalls = steps - steps.sum(axis=2, keepdims=True) // 8  # already centred: all sums are multiples of 8
    gains[:, 0] -= gains.sum(axis=1)
    recalls[:, 0] -= recalls.sum(axis=1)
    signs = 1 - 2 * np.concatenate(list(flip_blocks(8, 40, seed=seed))).astype(int)
    found = np.array(
        [
            [
                meets_criterion_5(int(row @ flip) / (8 * SCORE_UNIT), int(change @ flip) / (8 * SCORE_UNIT), rule)
                for row, change in zip(gains, recalls, strict=True)
            ]
            for flip in signs
        ]
    )
    assert alarm(gains, recalls, rule=rule, draws=40, seed=seed) == found.any(axis=1).mean()


def test_what_the_cells_truly_gain_does_not_count():
    gains, recalls = deltas(9, 25, seed=3), deltas(9, 25, seed=4)
    centred = gains - np.rint(gains.mean(axis=1, keepdims=True)).astype(int)
    assert alarm(gains, recalls) == alarm(centred, recalls) == alarm(gains + SCORE_UNIT // 5, recalls - SCORE_UNIT // 9)


def test_the_rule_without_its_guard_flags_equal_cells_as_often_as_is_known():
    """Nine equal cells, 25 queries, SD .15, recall left out: 68 % of runs, by an independent simulation."""
    found = [alarm(deltas(9, 25, seed=seed), np.zeros((9, 25), np.int64), draws=500) for seed in range(60)]
    assert np.mean(found) == pytest.approx(0.68, abs=0.04)


def test_more_cells_and_more_scatter_raise_it_and_more_queries_lower_it():
    gains, still = deltas(9, 25, seed=5), np.zeros((9, 25), np.int64)
    assert alarm(gains[:2], still[:2]) < alarm(gains, still)
    assert alarm(gains // 3, still) < alarm(gains, still)
    assert alarm(np.tile(gains, 8), np.tile(still, 8)) < alarm(gains, still)
    assert alarm(gains, deltas(9, 25, seed=6)) < alarm(gains, still)


def test_nothing_raises_an_alarm_where_nothing_scatters():
    level = np.full((3, 25), SCORE_UNIT // 10)
    assert alarm(level, level) == 0
    assert alarm(level, level, rule=Rule(min_gain=0, max_recall_loss=0)) == 1
    assert alarm(level[:0], level[:0]) == 0
    assert alarm(level[:, :1], level[:, :1]) == 0


def test_thresholds_compare_four_places():
    for units, reached in ((-6 * 10**4, False), (-4 * 10**4, True)):
        total = 25 * (SCORE_UNIT // 50 + units)
        assert (total >= _least_total(0.02, 25)) is reached


def test_alarms_of_nothing_are_refused():
    still = np.zeros((2, 25), np.int64)
    for gains, recalls, draws in ((still, still, 0), (still[:, :0], still[:, :0], 10), (still, still[:1], 10)):
        with pytest.raises(ValueError, match="draws over gains"):
            alarm(gains, recalls, draws=draws)
