"""What is believed of a true gain: Bayes' rule by brute force, and the properties that no other cell has a part."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import greatest_gain
from runner.eval_set.catalog import PRIOR
from runner.eval_set.shapes.plan import Normal, Prior
from runner.score.expected_gain import expected_gain, updated
from tests.support.example_results import BETTER, PLAN
from tests.support.judge_cases import evening

means, scales = st.floats(-1, 1), st.floats(1e-3, 1)


@pytest.mark.parametrize(("mean", "sd", "measured", "error"), [(0.03, 0.02, 0.1, 0.05), (-0.2, 0.06, 0.0, 0.02)])
def test_the_closed_form_is_bayes_rule_summed_over_true_gains(mean, sd, measured, error):
    grid = np.linspace(-1, 1, 200_001)
    after = stats.norm.pdf(grid, mean, sd) * stats.norm.pdf(measured, grid, error)
    after /= after.sum()
    expected = after @ grid
    found = updated(Normal(mean=mean, sd=sd), measured, error)
    assert found == pytest.approx((expected, math.sqrt(after @ (grid - expected) ** 2)), abs=1e-9)


@given(means, scales, means, st.one_of(st.just(0.0), scales))
def test_an_expected_gain_lies_between_the_prior_and_what_was_measured(mean, sd, measured, error):
    gain, left = updated(Normal(mean=mean, sd=sd), measured, error)
    low, high = sorted((mean, measured))
    assert low - 1e-12 <= gain <= high + 1e-12
    # So none is above a positive measured gain unless the prior's mean is.
    assert gain <= max(measured, mean) + 1e-12
    assert left <= min(sd, error) + 1e-12


@given(st.integers(0, 10**6), st.integers(2, 60))
def test_a_cell_is_believed_by_its_own_mean_and_standard_error_whatever_the_order_of_queries(seed, n_queries):
    rng = np.random.default_rng(np.random.PCG64(seed))
    differences = np.rint(np.clip(rng.normal(0.03, 0.2, n_queries), -1, 1) * SCORE_UNIT).astype(np.int64)
    found = expected_gain(BETTER, differences, PLAN)
    values = differences / SCORE_UNIT
    before = PRIOR["structural cut"]
    mean, sd = updated(before, values.mean(), stats.sem(values))
    assert (found.mean, found.sd) == pytest.approx((mean, sd), abs=1e-12)
    assert expected_gain(BETTER, rng.permutation(differences), PLAN).mean == pytest.approx(found.mean, abs=1e-12)


def test_the_plan_says_what_is_believed_of_a_kind():
    own = Normal(mean=-0.1, sd=0.01)
    plan = PLAN.model_copy(update={"prior": Prior(kinds=PRIOR | {"structural cut": own})})
    differences = np.array([300, 200, 100, 400]) * 1_000_000
    mean, _ = updated(own, 0.25, stats.sem(differences / SCORE_UNIT))
    assert expected_gain(BETTER, differences, plan).mean == pytest.approx(mean)


@pytest.mark.parametrize("seed", range(5))
def test_no_cell_moves_what_is_expected_of_another(seed):
    whole = evening(seed, lift=0.5, n_queries=12, n_cells=5)
    baseline, *cells = whole.runs
    for cell in cells:
        alone = replace(whole, runs={name: whole.runs[name] for name in (baseline, cell)})
        assert alone.expected_gains == {cell: whole.expected_gains[cell]}
    backwards = replace(whole, runs=dict(reversed(whole.runs.items())))
    assert backwards.expected_gains == whole.expected_gains


def test_published_judgments_and_a_single_query_let_nothing_be_expected():
    whole = evening(1, n_queries=1, n_cells=3)
    assert whole.expected_gains == {}
    assert replace(evening(1, n_queries=12, n_cells=3), published=True).expected_gains == {}


def test_one_query_says_nothing_of_scatter():
    with pytest.raises(ValueError, match="2 are the least"):
        expected_gain(BETTER, np.array([30_000_000]), PLAN)


@pytest.mark.parametrize(
    ("gains", "choice"),
    [
        ({}, "baseline"),
        ({"a": 0.02}, "baseline"),
        ({"a": 0.02004}, "baseline"),
        ({"a": 0.0201}, "a"),
        ({"a": 0.03, "b": 0.04}, "b"),
        ({"b": 0.04, "a": 0.04}, "a"),
        ({"a": -0.3, "b": 0.1}, "b"),
    ],
)
def test_recommended_is_the_greatest_expected_gain_above_the_cost(gains, choice):
    plan = PLAN.model_copy(update={"baseline": "baseline", "switching_cost": 0.02})
    eligible = {cell: Normal(mean=gain, sd=0.03) for cell, gain in gains.items()}
    assert greatest_gain(eligible, eligible, plan) == choice
