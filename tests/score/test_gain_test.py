import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runner.base.records import SCORE_UNIT
from runner.score.flips import flip_blocks
from runner.score.gain_test import FIRST_SHARE, SKEWNESS
from runner.score.gain_test import gain_tests as both_tests

TENTH = SCORE_UNIT // 10
NEARLY = 1e-9


def gain_tests(rows, first, **settings):
    """The adjusted p alone."""
    return [one.p for one in both_tests(rows, first, **settings)]


def with_one_more_loss(rows):
    return np.hstack([rows, -np.floor(np.sqrt((rows.astype(float) ** 2).mean(axis=1, keepdims=True))).astype(np.int64)])


def halls_t(values):
    """Hall's t by its definition with SKEWNESS times the skewness, over the square root of n."""
    if not any(values):
        return 0.0
    n, mean, deviation = len(values), np.mean(values), np.std(values)
    if deviation < 1e-9:
        return math.copysign(math.inf, mean)
    g = SKEWNESS * np.mean((values - mean) ** 3) / deviation**3
    u = mean / deviation
    return u + g * u**2 / 3 + g**2 * u**3 / 27 + g / (6 * n)


def ways(n_queries, draws, seed):
    """Every draw with its negation, and the observed signs with theirs."""
    if 2 ** (n_queries - 1) - 1 <= draws:
        return np.array(list(product((1, -1), repeat=n_queries)))
    drawn = 1 - 2 * np.concatenate(list(flip_blocks(n_queries, draws, seed)))
    ones = np.ones((1, n_queries))
    return np.vstack([ones, -ones, drawn, -drawn])


def closed_p(rows, draws, seed):
    """Adjusted p by the closure: the greatest p of all sets that hold the row, by their greatest t."""
    scores = with_one_more_loss(rows) / SCORE_UNIT
    drawn = np.array([[halls_t(signs * row) for signs in ways(scores.shape[1], draws, seed)] for row in scores])
    seen = [halls_t(row) for row in scores]
    found = [0.0] * len(rows)
    for size in range(1, len(rows) + 1):
        for held in map(list, combinations(range(len(rows)), size)):
            most = max(seen[row] for row in held)
            bar = most - NEARLY * (1 + abs(most)) * 10 if math.isfinite(most) else most
            p = float((drawn[held].max(axis=0) >= bar).mean())
            for row in held:
                found[row] = max(found[row], p)
    return found


def shown(one, other, alpha):
    """Which rows of the two steps are shown at alpha, by playing the procedure until nothing more is."""
    steps, shares, rejected = (one, other), [FIRST_SHARE * alpha, (1 - FIRST_SHARE) * alpha], [set(), set()]
    for _ in range(3):
        for step, share, found in zip(steps, shares, rejected, strict=True):
            found |= {row for row, p in enumerate(step) if p <= share + 1e-12}
        for mine, theirs in ((0, 1), (1, 0)):
            if len(rejected[theirs]) == len(steps[theirs]):
                shares[mine] = alpha
    return [row in rejected[0] for row in range(len(one))] + [row in rejected[1] for row in range(len(other))]


few = arrays.arrays(
    np.int64,
    st.tuples(st.integers(1, 3), st.sampled_from([5, 6, 9, 16])),
    elements=st.integers(-7, 7).map(lambda tenths: tenths * TENTH),
)


@given(few, st.integers(0, 9))
def test_p_of_one_step_is_that_of_the_closure(rows, seed):
    found = gain_tests(rows, 0, draws=60, seed=seed)
    assert found == pytest.approx(closed_p(rows, 60, seed), abs=1e-12)
    assert gain_tests(rows, len(rows), draws=60, seed=seed) == found


@given(few, st.integers(0, 3), st.sampled_from([0.05, 0.1, 0.3, 0.6]))
def test_the_first_challengers_have_most_of_the_error_and_either_step_leaves_its_share(rows, first, alpha):
    first = min(first, len(rows))
    one, other = (gain_tests(part, 0, draws=60, seed=1) if len(part) else [] for part in (rows[:first], rows[first:]))
    together = gain_tests(rows, first, draws=60, seed=1)
    assert [test.p_step for test in both_tests(rows, first, draws=60, seed=1)] == one + other
    if one and other:
        assert [p <= alpha + 1e-12 for p in together] == shown(one, other, alpha)
    else:
        assert together == one + other


@pytest.mark.parametrize("sizes", [[1, 2, 3, 5, 8, 13, 21], [1, 1, 1, 1, 1, 1, 9], [0, 0, 0, 4, 5, 6, 7]])
def test_where_signs_are_chance_p_is_at_most_alpha_with_a_chance_of_alpha(sizes):
    """Over every way that the signs of these differences could have fallen."""
    rows = np.array(list(product((1, -1), repeat=len(sizes)))) * np.array(sizes) * TENTH
    found = np.array([gain_tests(row[None], 0, draws=1000, seed=1)[0] for row in rows])
    assert all((found <= alpha + NEARLY).mean() <= alpha + NEARLY for alpha in found)


def test_it_looks_upwards_alone():
    rows = np.rint(np.random.default_rng(1).normal(0.1, 0.15, (1, 40)) * SCORE_UNIT).astype(np.int64)
    (up,), (down,) = (gain_tests(sign * rows, 0, draws=5000, seed=1) for sign in (1, -1))
    assert up < 0.01
    assert down > 0.99


def test_a_first_challenger_is_shown_where_nine_at_once_are_not():
    rng = np.random.default_rng(3)
    rows = np.rint(rng.normal(0, 0.2, (9, 50)) * SCORE_UNIT).astype(np.int64)
    rows[0] += 7 * TENTH // 10 - int(rows[0].mean())
    assert gain_tests(rows, 1, draws=5000, seed=1)[0] <= 0.05 < gain_tests(rows, 0, draws=5000, seed=1)[0]


def test_many_small_gains_with_a_few_large_losses_convince_less_than_their_mirror():
    """Nine gains in ten of .1 and one loss of .3, or the same mean by few large gains."""
    small = np.tile([1.0] * 9 + [-3.0], 3) * TENTH + np.arange(30) * TENTH // 100
    mirrored = 2 * round(small.mean()) - small
    (down,), (up,) = (gain_tests(row[None].astype(np.int64), 0, draws=5000, seed=1) for row in (small, mirrored))
    assert up < down


def test_skewed_cells_that_equal_the_baseline_are_rarely_shown():
    """Nine cells with a very long tail of losses: Student's t shows one in a quarter of all runs, this one in few."""
    wrong = 0
    for seed in range(150):
        rng = np.random.default_rng(seed + 1000)
        own, shared = rng.gamma(0.25, size=(9, 25)), rng.gamma(0.25, size=25)
        rows = np.rint(-0.2 * (own + shared - 0.5) * SCORE_UNIT).astype(np.int64)
        wrong += min(gain_tests(rows, 0, draws=199, seed=seed)) <= 0.05
    assert wrong <= 6


def test_order_and_unit_of_rows_change_nothing_and_copies_cost_nothing():
    rows = np.rint(np.random.default_rng(2).normal(0.04, 0.1, (4, 25)) * 1e7).astype(np.int64) * 10
    found = gain_tests(rows, 0, draws=500, seed=3)
    assert gain_tests(rows[::-1], 0, draws=500, seed=3) == found[::-1]
    assert gain_tests(rows // 10, 0, draws=500, seed=3) == found
    (alone,) = gain_tests(rows[:1], 0, draws=500, seed=3)
    assert gain_tests(np.vstack([rows[:1]] * 3), 0, draws=500, seed=3) == [alone] * 3


def test_rows_without_scatter():
    rows = np.vstack([np.zeros(25, np.int64), np.full(25, TENTH), np.full(25, -TENTH)])
    zero, gains, loses = (gain_tests(rows[[place]], 0, draws=999, seed=1)[0] for place in range(3))
    assert (zero, gains, loses) == (1, 1 / 2000, 1)
    assert gain_tests(rows[:, :1], 0, draws=999, seed=1)[1:] == [1, 1]
    assert gain_tests(rows[:0], 0, draws=999, seed=1) == []


def test_what_cannot_be_tested_is_refused():
    for rows, first, draws in ((np.ones((1, 3)), 0, 0), (np.full((1, 4), 1 << 52), 0, 5), (np.ones((1, 3)), 2, 9)):
        with pytest.raises(ValueError, match=r"0 draws|added exactly|cannot be the first"):
            gain_tests(rows.astype(np.int64), first, draws=draws, seed=1)
