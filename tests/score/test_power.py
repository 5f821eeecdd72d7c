import math
import subprocess
import sys

import pytest

from runner.score.power import MOST_QUERIES, minimum_detectable_effect, queries_needed, t_quantile, t_tails


def test_quantiles_and_tails_are_those_of_students_t():
    special = pytest.importorskip("scipy.special")
    for df in (1, 2, 3, 4, 5, 8, 24, 49, 99, 1000, 4999):
        for probability in (0.01, 0.05, 0.2, 0.5, 0.55, 0.8, 0.95, 0.975, 0.9995):
            assert t_quantile(probability, df) == pytest.approx(special.stdtrit(df, probability), rel=1e-10, abs=1e-12)
        for t in (0, 0.1, 1, 2, 5, 30, math.inf):
            assert t_tails(t, df) == t_tails(-t, df) == pytest.approx(2 * special.stdtr(df, -t), abs=1e-13)


def test_quantiles_are_symmetric_and_shrink_towards_the_normal():
    assert t_quantile(0.025, 24) == pytest.approx(-t_quantile(0.975, 24))
    assert t_quantile(0.975, 10) > t_quantile(0.975, 100) > t_quantile(0.975, 10**5)
    assert t_quantile(0.975, 10**5) == pytest.approx(1.959964, abs=3e-5)


@pytest.mark.parametrize(("n_queries", "sd", "effect"), [(25, 0.15, "0.088"), (25, 0.10, "0.058"), (30, 0.15, "0.079")])
def test_the_smallest_effect_is_the_published_one(n_queries, sd, effect):
    assert f"{minimum_detectable_effect(n_queries, sd):.3f}" == effect


def test_the_default_is_a_standard_deviation_of_15_hundredths():
    assert minimum_detectable_effect(25) == minimum_detectable_effect(25, 0.15)


@pytest.mark.parametrize(("n", "alpha"), [(10, 0.05), (25, 0.05), (25, 0.01), (50, 0.05), (50, 0.01)])
def test_the_effect_has_the_power_it_promises(n, alpha):
    """Against the noncentral t: power at the effect is what was asked for, to less than a point and a half."""
    stats = pytest.importorskip("scipy.stats")
    for promised in (0.8, 0.9):
        shift = minimum_detectable_effect(n, 0.15, alpha, power=promised) / 0.15 * math.sqrt(n)
        assert stats.nct.sf(stats.t.ppf(1 - alpha / 2, n - 1), n - 1, shift) == pytest.approx(promised, abs=0.015)


def test_more_queries_show_less_and_two_show_nothing():
    effects = [minimum_detectable_effect(n) for n in range(3, 200)]
    assert effects == sorted(effects, reverse=True)
    assert all(minimum_detectable_effect(n) == math.inf for n in (0, 1, 2))


@pytest.mark.parametrize(
    ("gain", "sd"), [(0.02, 0.1), (0.02, 0.15), (0.05, 0.2), (0.088, 0.15), (0.3, 0.1), (0.9, 0.1)]
)
def test_the_queries_needed_are_the_fewest_that_show_the_gain(gain, sd):
    for alpha, promised in ((0.05, 0.8), (0.01, 0.9), (0.05, 0.3)):
        n = queries_needed(gain, sd, alpha=alpha, power=promised)
        assert minimum_detectable_effect(n, sd, alpha, power=promised) <= gain
        assert n == 3 or minimum_detectable_effect(n - 1, sd, alpha, power=promised) > gain


def test_no_number_is_named_that_nobody_could_judge():
    assert queries_needed(0, 0.15, alpha=0.05) is None
    assert queries_needed(0.0001, 0.15, alpha=0.05) is None
    assert queries_needed(0.0043, 0.15, alpha=0.05) < MOST_QUERIES
    assert queries_needed(0.02, 0, alpha=0.05) == 3


@pytest.mark.parametrize(("gain", "sd"), [(-0.01, 0.15), (0.02, -0.1)])
def test_a_gain_or_scatter_below_0_is_refused(gain, sd):
    with pytest.raises(ValueError, match="must not be negative"):
        queries_needed(gain, sd, alpha=0.05)


def test_a_dry_run_gets_its_effect_without_scipy_or_numpy():
    code = (
        "import sys; from runner.score.power import minimum_detectable_effect as effect; effect(25); "
        "print({'numpy', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
