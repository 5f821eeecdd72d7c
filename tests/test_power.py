import math

import pytest

from runner.power import minimum_detectable_effect, t_quantile


def test_quantiles_are_those_of_students_t():
    stats = pytest.importorskip("scipy.stats")
    for df in (5, 8, 12, 24, 29, 49, 99, 1000):
        for probability in (0.05, 0.2, 0.8, 0.9, 0.95, 0.975):
            assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=2e-3)


def test_quantiles_are_symmetric_and_shrink_towards_the_normal():
    assert t_quantile(0.025, 24) == pytest.approx(-t_quantile(0.975, 24))
    assert t_quantile(0.975, 10) > t_quantile(0.975, 100) > t_quantile(0.975, 10**9)
    assert t_quantile(0.975, 10**9) == pytest.approx(1.959964, abs=1e-6)


@pytest.mark.parametrize(("n_queries", "sd", "effect"), [(25, 0.15, "0.088"), (25, 0.10, "0.058"), (30, 0.15, "0.079")])
def test_the_smallest_effect_is_the_published_one(n_queries, sd, effect):
    assert f"{minimum_detectable_effect(n_queries, sd):.3f}" == effect


def test_the_default_is_a_standard_deviation_of_15_hundredths():
    assert minimum_detectable_effect(25) == minimum_detectable_effect(25, 0.15)


def test_the_effect_has_the_power_it_promises():
    """Against the noncentral t: power at the effect is 80 %, the approximation errs by less than a point."""
    stats = pytest.importorskip("scipy.stats")
    for n in (10, 25, 50):
        shift = minimum_detectable_effect(n, 0.15) / 0.15 * math.sqrt(n)
        assert stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift) == pytest.approx(0.8, abs=0.012)


def test_more_queries_show_less_and_two_show_nothing():
    effects = [minimum_detectable_effect(n) for n in range(3, 200)]
    assert effects == sorted(effects, reverse=True)
    assert all(minimum_detectable_effect(n) == math.inf for n in (0, 1, 2))
