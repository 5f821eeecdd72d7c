import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runner.base.records import SCORE_UNIT
from runner.score.flips import flip_blocks, skew_adjusted_p
from runner.score.sign_flip import paired_tests

TENTH = SCORE_UNIT // 10


def halls_t(values):
    """Hall's t by its definition, over the square root of n."""
    if not any(values):
        return 0.0
    n, mean, deviation = len(values), np.mean(values), np.std(values)
    if deviation < 1e-9:
        return math.inf
    g = np.mean((values - mean) ** 3) / deviation**3
    u = mean / deviation
    return abs(u + g * u**2 / 3 + g**2 * u**3 / 27 + g / (6 * n))


def naive(rows, draws, seed):
    signs = 1 - 2 * np.concatenate(list(flip_blocks(rows.shape[1], draws, seed)))
    most = np.array([max(halls_t(sign * row) for row in rows / SCORE_UNIT) for sign in signs])
    return [(1 + int((most >= halls_t(row) * (1 - 1e-6) - 1e-9).sum())) / (1 + draws) for row in rows / SCORE_UNIT]


@given(
    arrays.arrays(
        np.int64,
        st.tuples(st.integers(1, 3), st.integers(9, 24)),
        elements=st.integers(-7, 7).map(lambda tenths: tenths * TENTH),
    ),
    st.integers(0, 9),
)
def test_p_is_that_of_the_definition(rows, seed):
    assert skew_adjusted_p(rows, draws=60, seed=seed) == naive(rows, 60, seed)


def test_symmetric_differences_are_told_about_as_by_t():
    rows = np.rint(np.random.default_rng(1).normal(0.08, 0.15, (4, 40)) * SCORE_UNIT).astype(np.int64)
    tests = paired_tests(rows, draws=20_000, alpha=0.05, seed=1)
    assert [test.p_skew for test in tests] == skew_adjusted_p(rows, draws=20_000, seed=1)
    assert [test.p_skew for test in tests] == pytest.approx([test.p_adjusted for test in tests], abs=0.05)


def test_many_small_gains_with_a_few_large_losses_convince_less_than_their_mirror():
    """Nine gains in ten of .1 and one loss of .3, or the same mean by few large gains."""
    small = np.tile([1.0] * 9 + [-3.0], 3) * TENTH + np.arange(30) * TENTH // 100
    mirrored = 2 * round(small.mean()) - small
    down, up = (
        paired_tests(row[None].astype(np.int64), draws=5000, alpha=0.05, seed=1)[0] for row in (small, mirrored)
    )
    assert down.mean == pytest.approx(up.mean)
    assert down.p_skew > down.p
    assert up.p_skew < down.p_skew


def test_skewed_cells_that_equal_the_baseline_are_rarely_significant():
    """Nine cells with a long tail of losses: max-T alone is wrong in about a fifth of runs."""
    wrong = {"p_adjusted": 0, "p_skew": 0}
    for seed in range(150):
        rng = np.random.default_rng(seed + 1000)
        own, shared = rng.gamma(0.25, size=(9, 25)), rng.gamma(0.25, size=25)
        rows = np.rint(-0.2 * (own + shared - 0.5) * SCORE_UNIT).astype(np.int64)
        tests = paired_tests(rows, draws=199, alpha=0.05, seed=seed)
        for name in wrong:
            wrong[name] += any(getattr(test, name) <= 0.05 and test.mean > 0 for test in tests)
    assert wrong["p_adjusted"] > 15
    assert wrong["p_skew"] <= 14  # 7.5 at the level, standard deviation 2.7


def test_rows_in_any_order_sign_and_unit_have_the_same_p():
    rows = np.rint(np.random.default_rng(2).normal(0.04, 0.1, (4, 25)) * 1e7).astype(np.int64) * 10
    found = skew_adjusted_p(rows, draws=500, seed=3)
    assert skew_adjusted_p(rows[::-1], draws=500, seed=3) == found[::-1]
    assert skew_adjusted_p(-rows, draws=500, seed=3) == found
    assert skew_adjusted_p(rows // 10, draws=500, seed=3) == found


def test_copies_of_a_row_cost_it_nothing():
    row = np.rint(np.random.default_rng(2).normal(0.04, 0.1, (1, 25)) * SCORE_UNIT).astype(np.int64)
    (alone,) = skew_adjusted_p(row, draws=500, seed=3)
    assert skew_adjusted_p(np.vstack([row, -row, row]), draws=500, seed=3) == [alone] * 3


def test_rows_without_scatter():
    rows = np.vstack([np.zeros(25, np.int64), np.full(25, TENTH), np.tile([TENTH, -TENTH, TENTH, 0, 0], 5)])
    zero, constant, mixed = skew_adjusted_p(rows, draws=999, seed=1)
    assert (zero, constant) == (1, 1 / 1000)
    assert 0.02 < mixed < 1
    assert skew_adjusted_p(rows[:, :1], draws=999, seed=1) == [1, 1, 1]
    assert skew_adjusted_p(rows[:0], draws=999, seed=1) == []


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ValueError, match="0 draws"):
        skew_adjusted_p(np.ones((1, 3), np.int64), draws=0, seed=1)
    with pytest.raises(ValueError, match="cannot be added exactly"):
        skew_adjusted_p(np.full((1, 4), 1 << 52), draws=5, seed=1)
