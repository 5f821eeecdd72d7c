"""Posteriors of true gains, and what each choice is expected to lose."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import least_loss
from runner.eval_set.shapes.plan import Prior
from runner.score.expected_loss import Gain, expected_loss, expected_losses, posterior
from tests.support.example_results import PLAN as EXAMPLE

PRIOR, COST, BAR = Prior(mean=-0.03, sd=0.05), 0.02, 0.02
PLAN = EXAMPLE.model_copy(update={"prior": PRIOR, "switching_cost": COST})


def rng_of(seed):
    return np.random.default_rng(np.random.PCG64(seed))


def drawn(seed, n_cells, n_queries=25):
    """Differences (cells, queries) in units of 1e-9."""
    rng = rng_of(seed)
    values = rng.normal(0, 0.25, (n_cells, n_queries)) + rng.normal(0, 0.05, (n_cells, 1))
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


@pytest.mark.parametrize("n_queries", [2, 25, 100])
def test_the_closed_form_is_bayes_rule_summed_over_a_grid_of_true_gains(n_queries):
    differences = drawn(n_queries, 3, n_queries)
    values, grid = differences / SCORE_UNIT, np.linspace(-0.6, 0.6, 120_001)
    errors = values.std(axis=1, ddof=1) / math.sqrt(n_queries)
    found, losses = posterior(differences, PRIOR), expected_losses(differences, PLAN)
    for mean, error, gain, loss in zip(values.mean(axis=1), errors, found, losses, strict=True):
        weights = stats.norm.pdf(grid, PRIOR.mean, PRIOR.sd) * stats.norm.pdf(mean, grid, error)
        weights /= weights.sum()
        expected = weights @ grid
        assert (gain.mean, loss.gain) == pytest.approx((expected, expected), abs=1e-8)
        assert gain.sd == pytest.approx(math.sqrt(weights @ (grid - expected) ** 2), abs=1e-8)
        assert loss.keeping == pytest.approx(weights @ np.maximum(0, grid - COST), abs=1e-7)
        assert loss.switching == pytest.approx(weights @ np.maximum(0, COST - grid), abs=1e-7)
        assert loss.p_above_0 == pytest.approx(weights[grid > 0].sum(), abs=1e-3)
        assert loss.p_above_bar == pytest.approx(weights[grid > BAR].sum(), abs=1e-3)


@pytest.mark.parametrize("gain", [Gain(0.03, 0.04), Gain(-0.05, 0.02), Gain(0.021, 0.001)])
def test_chances_and_regrets_are_those_of_draws_and_of_the_integral(gain):
    draws = rng_of(1).normal(gain.mean, gain.sd, 400_000)
    assert gain.above(BAR) == pytest.approx((draws > BAR).mean(), abs=4e-3)
    assert gain.excess(COST) == pytest.approx(np.maximum(0, draws - COST).mean(), abs=4e-4)
    density = stats.norm(gain.mean, gain.sd).pdf
    top = max(gain.mean, COST) + 12 * gain.sd
    exact = integrate.quad(lambda g: (g - COST) * density(g), COST, top, epsabs=1e-12)[0]
    assert gain.excess(COST) == pytest.approx(exact, abs=1e-8)


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(0, 0.1))
def test_the_regrets_differ_by_what_is_expected_less_the_cost(seed, n_cells, cost):
    for loss in expected_losses(drawn(seed, n_cells), PLAN.model_copy(update={"switching_cost": cost})):
        assert loss.switching - loss.keeping == pytest.approx(cost - loss.gain, abs=1e-12)
        assert min(loss.switching, loss.keeping) >= 0
        assert loss.p_above_0 >= loss.p_above_bar


@given(st.integers(0, 10**6))
def test_what_is_believed_lies_between_the_prior_and_what_was_measured_and_is_surer_than_either(seed):
    differences = drawn(seed, 4)
    for row, gain in zip(differences / SCORE_UNIT, posterior(differences, PRIOR), strict=True):
        low, high = sorted((PRIOR.mean, row.mean()))
        assert low <= gain.mean <= high
        assert gain.sd < min(PRIOR.sd, row.std(ddof=1) / 5)


def test_a_row_without_scatter_is_believed_as_it_is_and_one_query_says_nothing():
    level = np.full((1, 25), 30_000_000)
    assert posterior(level, PRIOR) == [Gain(pytest.approx(0.03), 0.0)]
    loss = expected_losses(level, PLAN)[0]
    assert (loss.p_above_0, loss.p_above_bar) == (1, 1)
    assert (loss.keeping, loss.switching) == pytest.approx((0.01, 0))
    with pytest.raises(ValueError, match="2 are the least"):
        posterior(level[:, :1], PRIOR)


@pytest.mark.parametrize(
    ("gains", "choice"),
    [
        ({}, "baseline"),
        ({"a": 0.019}, "baseline"),
        ({"a": 0.02}, "baseline"),
        ({"a": 0.0202}, "a"),
        ({"a": 0.03, "b": 0.04}, "b"),
        ({"b": 0.04, "a": 0.04}, "a"),
        ({"a": -0.3, "b": 0.1}, "b"),
    ],
)
def test_the_least_loss_is_that_of_the_greatest_expected_gain_above_the_cost(gains, choice):
    assert (
        least_loss("baseline", {cell: expected_loss(Gain(gain, 0.03), PLAN) for cell, gain in gains.items()}) == choice
    )
