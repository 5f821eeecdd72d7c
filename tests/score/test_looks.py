"""Alpha over looks, conditional power and the betting process, against scipy, exact algebra and simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest

from runner.score.looks import BETS, FUTILE_GAIN, MOST_EVIDENCE, Look, alphas, chance_at_last, e_value

UNIT = 10**9


@pytest.mark.parametrize("looks", [[25, 50, 100], [25, 100], [30, 31, 32, 90], [25, 5000]])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.2])
def test_the_alpha_of_all_looks_is_spent_as_lan_and_demets_say(looks, alpha):
    norm = pytest.importorskip("scipy.stats").norm
    found = np.cumsum(alphas(looks, alpha))
    times = np.array(looks) / looks[-1]
    assert found == pytest.approx(2 * norm.sf(norm.isf(alpha / 2) / np.sqrt(times)), abs=2e-9)
    assert found[-1] == pytest.approx(alpha, abs=1e-12)
    assert all(part >= 0 for part in alphas(looks, alpha))


def test_an_adjusted_p_passes_alpha_exactly_if_p_passes_the_looks_own():
    for number, own in enumerate(alphas([25, 50, 100], 0.05), start=1):
        look = Look.of_plan([25, 50, 100], number, 0.05)
        assert [look.adjusted(p) <= 0.05 for p in (own * 0.999, own * 1.001)] == [True, False]
        assert (look.queries, look.is_last) == ([25, 50, 100][number - 1], number == 3)
    assert Look.of_plan([25, 5000], 1, 0.05).adjusted(1e-9) == 1  # a look too early to spend anything


def test_three_looks_at_a_mean_of_zero_find_a_gain_in_no_more_than_alpha_of_evenings():
    norm = pytest.importorskip("scipy.stats").norm
    steps = np.random.default_rng(np.random.PCG64(1)).standard_normal((40_000, 4)).cumsum(axis=1)
    p = norm.sf(steps[:, [0, 1, 3]] / np.sqrt([1, 2, 4]))
    found = (p <= alphas([25, 50, 100], 0.05)).any(axis=1).mean()
    assert 0.035 < found <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 40_000)


@pytest.mark.parametrize("gain", [-0.1, 0.0, 0.06])
def test_the_chance_at_the_last_look_is_what_simulation_finds(gain):
    norm = pytest.importorskip("scipy.stats").norm
    look, sd = Look.of_plan([25, 50, 100], 2, 0.05), 0.2
    rest = np.random.default_rng(np.random.PCG64(2)).normal(FUTILE_GAIN, sd, (40_000, 50)).sum(axis=1)
    means = (50 * gain + rest) / 100
    simulated = ((norm.sf((100 * means - sd) / (sd * math.sqrt(101))) <= look.alpha_of_last) & (means >= 0.02)).mean()
    assert chance_at_last(gain, sd, look, 0.02) == pytest.approx(simulated, abs=0.01)


def test_differences_without_scatter_reach_the_bar_or_do_not():
    look = Look.of_plan([25, 50, 100], 2, 0.05)
    assert chance_at_last(0.0, 0.0, look, 0.02) == 1
    assert chance_at_last(-0.02, 0.0, look, 0.02) == 0


def test_the_e_value_is_the_mixture_of_exact_products():
    for seed in range(5):
        rng = np.random.default_rng(np.random.PCG64(seed))
        values = rng.integers(-UNIT, UNIT + 1, 12).tolist()
        exact = Fraction(0)
        for bet in BETS:
            product = Fraction(1)
            for value in values:
                product *= 1 + Fraction(str(bet)) * Fraction(value, UNIT)
            exact += product / len(BETS)
        assert e_value(values) == pytest.approx(float(exact), rel=1e-12)
        assert e_value(values, 0.25) == pytest.approx(float(exact) / 4, rel=1e-12)
        assert e_value(rng.permutation(values).tolist()) == pytest.approx(float(exact), rel=1e-12)
    assert e_value([UNIT] * 2000) == MOST_EVIDENCE


def test_the_e_value_is_worth_one_at_most_on_average_if_nothing_is_gained():
    """Every sequence of six losses and gains that is fair query by query, enumerated."""
    for gain, loss, p_gain in ((UNIT, -UNIT, Fraction(1, 2)), (UNIT // 2, -UNIT // 4, Fraction(1, 3))):
        total = sum(
            float(p_gain ** bin(signs).count("1") * (1 - p_gain) ** (6 - bin(signs).count("1")))
            * e_value([gain if signs >> place & 1 else loss for place in range(6)])
            for signs in range(64)
        )
        assert total == pytest.approx(1, rel=1e-9)


def test_looking_after_every_query_exceeds_the_bar_in_no_more_than_alpha_of_evenings():
    rng = np.random.default_rng(np.random.PCG64(3))
    losses, gains = rng.random((3_000, 150)) < 0.8, rng.random((3_000, 150)) < 0.2
    differences = np.where(losses, -0.1, 0.0) + np.where(gains, 0.4, 0.0)  # mean 0, skewed
    wealth = np.mean([np.cumprod(1 + bet * differences, axis=1) for bet in BETS], axis=0)
    assert wealth[0, -1] == pytest.approx(e_value(np.rint(differences[0] * UNIT).astype(int).tolist()), rel=1e-9)
    assert (wealth >= 20).any(axis=1).mean() <= 0.05
