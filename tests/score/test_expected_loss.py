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
from runner.score.expected_loss import (
    ERRORS_ALIKE,
    GAINS_ALIKE,
    HARDLY,
    Beliefs,
    Gain,
    Mixture,
    beliefs,
    expected_loss,
    expected_losses,
)
from tests.support.example_results import PLAN as EXAMPLE

PRIOR, COST, BAR = Prior(mean=-0.03, sd=0.05), 0.02, 0.02
PLAN = EXAMPLE.model_copy(update={"prior": PRIOR, "switching_cost": COST})

GRID = np.linspace(-0.7, 0.8, 401)
POINTS = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)


def rng_of(seed):
    return np.random.default_rng(np.random.PCG64(seed))


def drawn(seed, n_cells, n_queries=25, gains=0.05):
    """Differences (cells, queries) in units of 1e-9, of cells that share their baseline."""
    rng = rng_of(seed)
    values = 0.2 * rng.normal(size=(n_cells, n_queries)) + 0.15 * rng.normal(size=n_queries)
    return np.rint(np.clip(values + gains * rng.normal(size=(n_cells, 1)), -1, 1) * SCORE_UNIT).astype(np.int64)


def density_of_two(own):
    """The density of two true gains on GRID: a mixture of two normal densities of gains that are alike."""
    shared = GAINS_ALIKE * own[0, 1] / math.sqrt(own[0, 0] * own[1, 1])
    wide, before = PRIOR.sd / math.sqrt(HARDLY / 9 + 1 - HARDLY), np.zeros((len(GRID), len(GRID)))
    for tau, chance in ((wide / 3, HARDLY), (wide, 1 - HARDLY)):
        alike = tau**2 * np.array([[1, shared], [shared, 1]])
        before += chance * stats.multivariate_normal.pdf(POINTS, [PRIOR.mean] * 2, alike)
    return before


@pytest.mark.parametrize("n_queries", [2, 50])
def test_the_closed_form_is_bayes_rule_summed_over_true_gains(n_queries):
    """Two cells, by brute force: true gains on a grid, the density of what was measured at each."""
    differences = drawn(n_queries, 2, n_queries)
    values = differences / SCORE_UNIT
    measured, own = values.mean(axis=1), np.cov(values) / n_queries
    before = density_of_two(own)
    errors = own * np.array([[1, ERRORS_ALIKE], [ERRORS_ALIKE, 1]])
    after = before * stats.multivariate_normal.pdf(measured - POINTS, cov=errors + 1e-15 * np.eye(2))
    after /= after.sum()
    believed = beliefs(differences, PRIOR)
    for place, (gain, loss) in enumerate(zip(believed.gains, expected_losses(believed, PLAN), strict=True)):
        weights = after.sum(axis=1 - place)
        mean = weights @ GRID
        assert (gain.gain.mean, loss.gain) == pytest.approx((mean, mean), abs=3e-4)
        assert gain.gain.sd == pytest.approx(math.sqrt(weights @ (GRID - mean) ** 2), abs=4e-4)
        assert loss.keeping == pytest.approx(weights @ np.maximum(0, GRID - COST), abs=3e-4)
        assert loss.switching == pytest.approx(weights @ np.maximum(0, COST - GRID), abs=3e-4)
        assert loss.p_above_0 == pytest.approx(weights[GRID > 0].sum() + weights[GRID == 0].sum() / 2, abs=0.02)
    worth = (after * np.maximum(0, POINTS.max(axis=2))).sum()
    assert believed.best([0, 1]) == pytest.approx(worth, abs=5e-4)
    assert believed.best([1]) == pytest.approx(believed.gains[1].excess(0.0), abs=2e-4)


def test_two_cells_that_err_alike_are_believed_to_gain_alike():
    rng = rng_of(2)
    first = 0.2 * rng.normal(size=50)
    values = np.array([first + 0.12, first + 0.02 * rng.normal(size=50) + 0.04])
    rows = np.rint((values - first.mean()) * SCORE_UNIT).astype(np.int64)
    alone = [beliefs(row[None], PRIOR).gains[0].gain.mean for row in rows]
    together = [one.gain.mean for one in beliefs(rows, PRIOR).gains]
    assert together[0] - together[1] < 0.9 * (alone[0] - alone[1])


@pytest.mark.parametrize("n_cells", [1, 9])
def test_the_worth_of_knowing_the_best_cell_is_that_of_draws(n_cells):
    believed, rng = beliefs(drawn(n_cells, n_cells), Prior(mean=0.02, sd=0.06)), rng_of(1)
    total = 0.0
    for weight, mean, spread in zip(believed.weights, believed.means, believed.covariances, strict=True):
        best = rng.multivariate_normal(mean, spread, 1_500).max(axis=1)
        total += weight * np.maximum(0, best).mean()
    assert believed.best(range(n_cells)) == pytest.approx(total, rel=0.03)
    assert believed.best([]) == 0


def test_cells_that_hardly_differ_shrink_to_each_other_and_one_of_many_more_than_one_alone():
    alike, apart = (beliefs(drawn(3, 8, 50, gains), PRIOR) for gains in (0.0, 0.15))
    spread = [np.ptp([one.gain.mean for one in each.gains]) for each in (alike, apart)]
    seen = [np.ptp(drawn(3, 8, 50, gains).mean(axis=1)) / SCORE_UNIT for gains in (0.0, 0.15)]
    assert spread[0] < 0.5 * seen[0]
    assert spread[1] > 0.6 * seen[1]
    rows = drawn(3, 8, 50, 0.0)
    best = rows[[rows.mean(axis=1).argmax()]]
    assert max(one.gain.mean for one in alike.gains) < beliefs(best, PRIOR).gains[0].gain.mean


@pytest.mark.parametrize("gain", [Gain(0.03, 0.04), Gain(-0.05, 0.02), Gain(0.021, 0.001)])
def test_chances_and_regrets_are_those_of_draws_and_of_the_integral(gain):
    draws = rng_of(1).normal(gain.mean, gain.sd, 400_000)
    assert gain.above(BAR) == pytest.approx((draws > BAR).mean(), abs=4e-3)
    assert gain.excess(COST) == pytest.approx(np.maximum(0, draws - COST).mean(), abs=4e-4)
    density = stats.norm(gain.mean, gain.sd).pdf
    top = max(gain.mean, COST) + 12 * gain.sd
    exact = integrate.quad(lambda g: (g - COST) * density(g), COST, top, epsabs=1e-12)[0]
    assert gain.excess(COST) == pytest.approx(exact, abs=1e-8)
    twice = Mixture([0.25, 0.75], [gain, gain])
    assert twice.gain == pytest.approx(gain)
    assert (twice.above(BAR), twice.excess(COST)) == pytest.approx((gain.above(BAR), gain.excess(COST)))


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(0, 0.1))
def test_the_regrets_differ_by_what_is_expected_less_the_cost(seed, n_cells, cost):
    believed = beliefs(drawn(seed, n_cells), PRIOR)
    losses = expected_losses(believed, PLAN.model_copy(update={"switching_cost": cost}))
    for loss in losses:
        assert loss.switching - loss.keeping == pytest.approx(cost - loss.gain, abs=1e-12)
        assert min(loss.switching, loss.keeping) >= 0
        assert loss.p_above_0 >= loss.p_above_bar
    # The greatest gain is summed over points that take it to about 1 %.
    assert believed.best(range(n_cells)) >= 0.99 * max(0.0, *(loss.gain for loss in losses)) - 1e-4


def test_the_order_of_cells_changes_nothing_and_a_cell_twice_is_believed_twice():
    rows = drawn(5, 4)
    gains, back = (beliefs(each, PRIOR).gains for each in (rows, rows[::-1]))
    assert [one.gain.mean for one in back[::-1]] == pytest.approx([one.gain.mean for one in gains])
    doubled = beliefs(np.vstack([rows, rows[:1]]), PRIOR).gains
    assert doubled[0].gain == pytest.approx(doubled[4].gain)


def test_a_row_without_scatter_is_believed_as_it_is_and_one_query_says_nothing():
    level = np.full((1, 25), 30_000_000)
    believed = beliefs(level, PRIOR)
    assert believed.gains[0].gain == pytest.approx(Gain(0.03, 0.0), abs=1e-6)
    assert believed.best([0]) == pytest.approx(0.03, abs=1e-6)
    with pytest.raises(ValueError, match="2 are the least"):
        beliefs(level[:, :1], PRIOR)


def test_beliefs_of_a_known_gaussian_are_it():
    one = Beliefs(np.ones(1), np.array([[0.03]]), np.array([[[0.0016]]]))
    assert one.gains[0].gain == pytest.approx(Gain(0.03, 0.04))


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
