import subprocess
import sys

import pytest

from runner.score.student import t_quantile, t_tail

special = pytest.importorskip("scipy.special")

DEGREES = (1, 2, 3, 4, 5, 7.5, 10, 24, 25, 49.3, 59, 60, 61, 99, 100, 323, 1000, 5000)


@pytest.mark.parametrize("df", DEGREES)
def test_tails_are_those_of_scipy_to_twelve_digits_however_far_out(df):
    for t in (0.0, 0.001, 0.1, 0.5, 0.9, 1.0, 1.01, 1.5, 2, 3, 5, 8, 12, 30, 100, 1e3, 1e5):
        tail = special.betainc(df / 2, 0.5, df / (df + t * t)) / 2 if t > 1 else special.stdtr(df, -t)
        assert t_tail(t, df) == pytest.approx(tail, rel=1e-12, abs=1e-300)
        assert t_tail(-t, df) == pytest.approx(special.stdtr(df, t), rel=1e-12)


@pytest.mark.parametrize("df", DEGREES)
def test_quantiles_are_those_of_scipy(df):
    for probability in (0.01, 0.05, 0.2, 0.5, 0.55, 0.8, 0.95, 0.975, 0.9995):
        assert t_quantile(probability, df) == pytest.approx(special.stdtrit(df, probability), rel=1e-10, abs=1e-12)


def test_a_dry_run_gets_its_effect_without_scipy_or_numpy():
    code = (
        "import sys; from runner.score.power import least_gain as effect; effect(25, 0.2, 0.05); "
        "print({'numpy', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
