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

PRIOR, COST, BAR = Prior(mean=-0.045, sd=0.055), 0.02, 0.02


PLAN = EXAMPLE.model_copy(update={"prior": PRIOR, "switching_cost": COST})


def rng_of(seed):
    return np.random.default_rng(np.random.PCG64(seed))


def drawn(seed, n_cells, n_queries=25, shared=1.0):
    """Differences (cells, queries) whose errors the baseline's luck makes alike, in units of 1e-9."""
    rng = rng_of(seed)
    own, together = rng.normal(0, 0.2, (n_cells, n_queries)), rng.normal(0, 0.2, n_queries)
    means = rng.normal(0, 0.05, (n_cells, 1))
    return np.rint(np.clip(own + shared * together + means, -1, 1) * SCORE_UNIT).astype(np.int64)


def covariance_of(differences):
    """Of the mean differences: their variances, and the one correlation that stands for all."""
    found = np.cov(differences / SCORE_UNIT) / differences.shape[1]
    errors = np.sqrt(np.diag(found))
    correlations = found / np.outer(errors, errors)
    shared = correlations[~np.eye(len(found), dtype=bool)].mean()
    return np.where(np.eye(len(found), dtype=bool), found, shared * np.outer(errors, errors))


@pytest.mark.parametrize("shared", [0.0, 1.0, 3.0])
def test_the_closed_form_is_bayes_rule_summed_over_a_grid_of_true_gains(shared):
    differences = drawn(1, 2, shared=shared)
    y, errors = (differences / SCORE_UNIT).mean(axis=1), covariance_of(differences)
    axis = np.linspace(-0.5, 0.5, 1001)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    prior = stats.norm(PRIOR.mean, PRIOR.sd).pdf
    weights = prior(first) * prior(second)
    weights *= stats.multivariate_normal(y, errors).pdf(np.dstack([first, second]))
    weights /= weights.sum()
    losses = expected_losses(differences, PLAN)
    for gain, gains, loss in zip(posterior(differences, PRIOR), (first, second), losses, strict=True):
        mean = (weights * gains).sum()
        assert gain.mean == pytest.approx(mean, abs=1e-6)
        assert gain.sd == pytest.approx(math.sqrt((weights * (gains - mean) ** 2).sum()), abs=1e-6)
        assert loss.keeping == pytest.approx((weights * np.maximum(0, gains - COST)).sum(), abs=1e-5)
        assert loss.switching == pytest.approx((weights * np.maximum(0, COST - gains)).sum(), abs=1e-5)
        assert loss.p_above_0 == pytest.approx(weights[gains > 0].sum(), abs=0.01)


@pytest.mark.parametrize("n_cells", [1, 3, 9])
def test_it_is_conditioning_a_joint_gaussian(n_cells):
    differences = drawn(n_cells, max(n_cells, 2))[:n_cells]
    y = (differences / SCORE_UNIT).mean(axis=1)
    errors = covariance_of(differences) if n_cells > 1 else np.array([[(differences / SCORE_UNIT).var(ddof=1) / 25]])
    prior = PRIOR.sd**2 * np.eye(n_cells)
    kept = prior @ np.linalg.inv(prior + errors)
    found = posterior(differences, PRIOR)
    assert [gain.mean for gain in found] == pytest.approx(PRIOR.mean + kept @ (y - PRIOR.mean), abs=1e-12)
    assert [gain.sd**2 for gain in found] == pytest.approx(np.diag(prior - kept @ prior), abs=1e-12)


@pytest.mark.parametrize("gain", [Gain(0.03, 0.04), Gain(-0.05, 0.02), Gain(0.02, 0.001)])
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


def test_rows_without_scatter_and_rows_that_are_alike_have_a_posterior():
    level = np.full((3, 25), 30_000_000)
    assert [gain.mean for gain in posterior(level, PRIOR)] == pytest.approx([0.03] * 3)
    alike = np.repeat(drawn(1, 1), 3, axis=0)
    first, *others = posterior(alike, PRIOR)
    assert all(gain == pytest.approx(first) for gain in others)
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
