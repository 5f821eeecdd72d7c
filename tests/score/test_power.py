import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.score.gain_test import gain_tests
from runner.score.power import least_gain, power, t_quantile, t_tails


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


@pytest.mark.parametrize("n", [10, 25, 50, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.04, 0.01 / 8])
def test_power_is_the_noncentral_ts_within_a_point_and_a_half(n, alpha):
    stats = pytest.importorskip("scipy.stats")
    """With one more query than was asked, which loses one standard deviation."""
    critical = stats.t.ppf(1 - alpha, n)
    for shift in (0.0, 0.5, 1, 2, 3, 4, 6):
        exact = stats.nct.sf(critical, n, shift) if shift else alpha
        gain = 0.2 * (1 + shift * math.sqrt(n + 1)) / n
        assert power(n, gain, 0.2, alpha) == pytest.approx(exact, abs=0.015)
        if shift > 1:
            promised = power(n, gain, 0.2, alpha)
            assert least_gain(n + 1, 0.2, alpha, power=promised, losses=0) * (n + 1) == pytest.approx(n * gain - 0.2)


def test_power_is_that_of_the_test_on_normal_differences():
    rng, n, gain = np.random.default_rng(2), 25, 0.1
    rows = np.rint(rng.normal(gain, 0.2, (1500, n)) * 1e9).astype(np.int64)
    found = np.mean([gain_tests(row[None], 0, draws=199, seed=1)[0].p <= 0.05 for row in rows])
    assert power(n, gain, 0.2, 0.05) == pytest.approx(found, abs=0.04)


@given(st.integers(3, 2000), st.floats(0.01, 0.6), st.floats(0.001, 0.2), st.floats(0, 0.05), st.floats(0.55, 0.95))
def test_the_least_gain_is_the_one_that_has_the_power(n, sd, alpha, bar, promised):
    gain = least_gain(n, sd, alpha, bar=bar, power=promised)
    assert power(n, gain, sd, alpha, bar=bar) == pytest.approx(promised, abs=1e-9)
    assert gain > least_gain(2 * n, sd, alpha, bar=0.0, power=promised)


def test_a_gain_that_the_rule_asks_for_is_shown_in_half_of_evaluations_at_best():
    assert power(100_000, 0.02, 0.2, 0.05, bar=0.02) == pytest.approx(0.5)
    assert power(100_000, 0.0199, 0.2, 0.05, bar=0.02) < 0.5 < power(100_000, 0.0201, 0.2, 0.05, bar=0.02)


def test_two_queries_and_no_scatter_are_what_they_are():
    assert (power(2, 0.5, 0.1, 0.05), least_gain(2, 0.1, 0.05)) == (0.0, math.inf)
    assert [power(25, gain, 0.0, 0.05, bar=0.02) for gain in (0.0, 0.019, 0.02)] == [0.0, 0.0, 1.0]


def test_a_dry_run_gets_its_effect_without_scipy_or_numpy():
    code = (
        "import sys; from runner.score.power import least_gain as effect; effect(25, 0.2, 0.05); "
        "print({'numpy', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
