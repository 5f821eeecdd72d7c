import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.score.gain_test import phantom_t
from runner.score.power import critical_t, least_gain, needed_n, power

stats = pytest.importorskip("scipy.stats")


@given(st.integers(2, 60), st.floats(0.001, 0.3), st.integers(0, 99))
def test_the_test_with_its_phantom_is_students_t_held_to_a_higher_bar(n, alpha, seed):
    row = np.rint(np.random.default_rng(seed).normal(0.1, 0.2, n) * 1e9).astype(np.int64)
    t = math.sqrt(n) * row.mean() / row.std(ddof=1)
    assert (phantom_t(row) <= alpha) == (t >= critical_t(n, alpha))
    assert critical_t(n, alpha) > stats.t.isf(alpha, n - 1)


@pytest.mark.parametrize("n", [10, 25, 50, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.04, 0.01 / 8])
def test_power_is_the_noncentral_ts_within_a_point_and_a_half(n, alpha):
    for gain in np.linspace(0, 0.3, 16).tolist():
        exact = stats.nct.sf(critical_t(n, alpha), n - 1, math.sqrt(n) * gain / 0.2)
        assert power(n, gain, 0.2, alpha) == pytest.approx(exact, abs=0.015)


@given(st.integers(12, 2000), st.floats(0.01, 0.6), st.floats(0.001, 0.2), st.floats(0, 0.05), st.floats(0.55, 0.95))
def test_the_least_gain_is_the_one_that_has_the_power(n, sd, alpha, bar, promised):
    gain = least_gain(n, sd, alpha, bar=bar, power=promised)
    assert power(n, gain, sd, alpha, bar=bar) == pytest.approx(promised, abs=1e-9)
    assert gain > least_gain(2 * n, sd, alpha, bar=0.0, power=promised)


def test_a_gain_that_the_rule_asks_for_is_shown_in_half_of_evaluations_at_best():
    assert power(100_000, 0.02, 0.2, 0.05, bar=0.02) == pytest.approx(0.5)
    assert power(100_000, 0.0199, 0.2, 0.05, bar=0.02) < 0.5 < power(100_000, 0.0201, 0.2, 0.05, bar=0.02)


def test_a_handful_of_queries_and_no_scatter_are_what_they_are():
    for n in (0, 1, 2, 5):
        assert (critical_t(n, 0.05), power(n, 0.5, 0.1, 0.05), least_gain(n, 0.1, 0.05)) == (math.inf, 0.0, math.inf)
    assert [power(25, gain, 0.0, 0.05, bar=0.02) for gain in (0.0, 0.019, 0.02)] == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "given",
    [
        *({"gain": gain} for gain in (math.nan, math.inf, 0.0, 0.02)),
        *({"sd": sd} for sd in (math.nan, math.inf, 0.0)),
        *({"alpha": alpha} for alpha in (math.nan, 0, 1, 2)),
        *({"power": promised} for promised in (math.nan, 0, 1)),
    ],
)
def test_what_no_number_of_queries_shows_is_an_error(given):
    with pytest.raises(ValueError):
        needed_n(**{"gain": 0.1, "sd": 0.2, "alpha": 0.05, "bar": 0.02, **given})
