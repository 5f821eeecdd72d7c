"""Each cell's own test of a gain, held to scipy, and the bars, held to the closed test."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT
from runner.score.gain_test import FIRST_SHARE, effective_number, gain_tests, holm_bars, most_lost, phantom_t

stats = pytest.importorskip("scipy.stats")

TENTH = SCORE_UNIT // 10

DIFFERENCES = st.lists(st.integers(-SCORE_UNIT, SCORE_UNIT), min_size=2, max_size=40)
SCATTERED = DIFFERENCES.filter(lambda values: max(values) - min(values) > TENTH)


def units(scores):
    return np.rint(np.asarray(scores) * SCORE_UNIT).astype(np.int64)


@given(SCATTERED)
def test_p_is_students_t_over_the_queries_and_one_that_loses_their_root_mean_square(values):
    phantom = -math.sqrt(sum(value * value for value in values) / len(values))
    by_scipy = stats.ttest_1samp([*map(float, values), phantom], 0, alternative="greater").pvalue
    assert phantom_t(values) == pytest.approx(by_scipy, rel=1e-9)


@given(SCATTERED, st.integers(SCORE_UNIT // 100, SCORE_UNIT))
def test_p_falls_when_all_differences_rise_by_one_constant(values, rise):
    assert phantom_t([value + rise for value in values]) < phantom_t(values)


@given(SCATTERED, st.integers(2, 1000), st.randoms())
def test_p_is_the_same_in_every_unit_and_every_order_of_queries(values, factor, random):
    shuffled = random.sample(values, len(values))
    assert phantom_t(shuffled) == phantom_t(values)
    assert phantom_t([factor * value for value in values]) == pytest.approx(phantom_t(values), rel=1e-12)


def test_a_great_gain_on_25_queries_is_beyond_doubt():
    spread = np.random.default_rng(1).normal(size=25)
    spread = 0.57 + 0.30 * (spread - spread.mean()) / spread.std(ddof=1)
    assert phantom_t(units(spread)) < 1e-6


def test_differences_without_scatter():
    assert phantom_t([0] * 25) == 1
    assert phantom_t([-TENTH] * 25) == 1
    # All alike, they are as far above 0 as differences can be: what is left is the phantom's doubt.
    for n in (2, 5, 25):
        t = (n - 1) / 2
        assert phantom_t([TENTH] * n) == phantom_t([1] * n) == pytest.approx(stats.t.sf(t, n), rel=1e-9)
    assert (phantom_t([TENTH]), phantom_t([-TENTH])) == (0.5, 1)


WEIGHTS = st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), min_size=40, max_size=40)


@given(SCATTERED, WEIGHTS)
def test_weights_make_as_many_queries_of_their_mean_and_variance_as_they_are_worth(values, weights):
    values, weights = np.array(values, float), np.array(weights[: len(values)])
    n = weights.sum() ** 2 / (weights @ weights)
    # The moments of n queries and the phantom, from which Student's t is taken as usual.
    mean, square = np.average(values, weights=weights), np.average(values**2, weights=weights)
    with_phantom = (n * mean - math.sqrt(square)) / (n + 1)
    variance = ((n + 1) * square / (n + 1) - with_phantom**2) * (n + 1) / n
    p = stats.t.sf(with_phantom / math.sqrt(variance / (n + 1)), n)
    assert phantom_t(values, weights.tolist()) == pytest.approx(p, rel=1e-9)
    assert phantom_t(values, (7 * weights).tolist()) == pytest.approx(p, rel=1e-9)
    assert phantom_t(values + SCORE_UNIT // 50, weights.tolist()) < phantom_t(values, weights.tolist())


def test_whole_weights_are_copies_but_for_what_copies_pretend_to_know():
    values, weights = units([0.3, -0.1, 0.2, 0.25, -0.05]).tolist(), [2, 1, 1, 2, 1]
    copies = [value for value, weight in zip(values, weights, strict=True) for _ in range(weight)]
    assert phantom_t(copies) < phantom_t(values, weights)


@pytest.mark.parametrize("heavy", [1.0, 2.0, 4.0])
def test_with_weights_p_is_at_most_alpha_no_more_often_than_alpha(heavy):
    weights = [heavy] * 20 + [1.0] * 40
    rows = units(np.random.default_rng(5).normal(0, 0.2, (3000, 60)))
    assert np.mean([phantom_t(row, weights) <= 0.05 for row in rows.tolist()]) <= 0.05


def test_effective_numbers_are_those_of_equal_weights_and_of_one_that_outweighs_all():
    assert effective_number([0.5] * 60) == pytest.approx(60)
    assert effective_number([1, 3, 1, 3]) == pytest.approx(64 / 20)
    assert effective_number([1e6, *[1.0] * 99]) == pytest.approx(1, abs=0.001)


def shares_of(n, first):
    if first in (0, n):
        return [1 / n] * n
    return [FIRST_SHARE / first] * first + [(1 - FIRST_SHARE) / (n - first)] * (n - first)


def closed(p_values, first, alpha):
    """Which cells every set that holds them rejects, each set by Bonferroni with its own weights, at nine places."""
    shares = shares_of(len(p_values), first)

    def rejected(held):
        whole = math.fsum(shares[cell] for cell in held)
        return any(p_values[cell] <= round(alpha * shares[cell] / whole, 9) for cell in held)

    cells = range(len(p_values))
    sets = [held for size in range(1, len(p_values) + 1) for held in combinations(cells, size)]
    return [all(rejected(held) for held in sets if cell in held) for cell in cells]


P_VALUES = st.lists(st.floats(0.00001, 1) | st.sampled_from([0.001, 0.004, 0.011, 0.02, 0.041]), min_size=1, max_size=6)


@given(P_VALUES, st.integers(0, 6))
@example([1.0, 1.0, 1.0, 1.0, 1.0, 0.005], 4)
def test_a_cell_is_shown_if_every_set_that_holds_it_is(p_values, first):
    bars = holm_bars(p_values, min(first, len(p_values)), 0.05)
    shown = [p <= bar for p, bar in zip(p_values, bars, strict=True)]
    assert shown == closed(p_values, min(first, len(p_values)), 0.05)


@given(P_VALUES, st.integers(0, 6))
def test_bars_never_fall_below_a_cells_own_share_of_alpha(p_values, first):
    first = min(first, len(p_values))
    shares = shares_of(len(p_values), first)
    for bar, share in zip(holm_bars(p_values, first, 0.05), shares, strict=True):
        assert 0.05 * share <= bar + 1e-9 <= 0.05 + 2e-9


ROWS = st.lists(st.lists(st.integers(-SCORE_UNIT, SCORE_UNIT), min_size=9, max_size=9), min_size=2, max_size=5)


@given(ROWS, st.integers(0, 2), st.randoms())
def test_a_cells_p_does_not_know_the_other_cells(rows, first, random):
    tests = gain_tests(np.array(rows), first, 0.05)
    for row, test in zip(rows, tests, strict=True):
        assert gain_tests(np.array([row]), 0, 0.05)[0].p == test.p == round(phantom_t(row), 9)
    order = random.sample(range(9), 9)
    assert gain_tests(np.array(rows)[:, order], first, 0.05) == tests


@given(ROWS, st.integers(1, 3))
def test_a_cell_equal_to_the_baseline_changes_a_verdict_by_its_share_alone(rows, copies):
    tests = gain_tests(np.array(rows), 1, 0.05)
    among = gain_tests(np.array([*rows, *[[0] * 9] * copies]), 1, 0.05)
    n = len(rows) - 1
    for test, other in zip(tests, among, strict=False):
        assert other.p == test.p
        # The others of the plan share a fifth of alpha with so many more, and no bar falls by more than that.
        assert test.bar * n / (n + copies) - 1e-9 <= other.bar <= test.bar + 1e-9
    assume(tests[0].p > tests[0].bar or all(test.p > test.bar for test in tests[1:]))
    assert among[0].bar == pytest.approx(tests[0].bar)


def test_where_differences_are_normal_p_is_at_most_alpha_no_more_often_than_alpha():
    rows = units(np.random.default_rng(5).normal(0, 0.2, (4000, 50)))
    p_values = np.array([phantom_t(row) for row in rows.tolist()])
    for alpha in (0.01, 0.05, 0.2):
        assert (p_values <= alpha).mean() <= alpha
    # The phantom keeps them below it, by a third.
    assert (p_values <= 0.05).mean() > 0.025


def test_many_small_gains_with_a_few_large_losses_convince_less_than_under_students_t():
    """Long tails of losses that equal the baseline: Student's t shows a gain in one of nine."""
    rng = np.random.default_rng(1)
    rows = [units(0.15 * (1 - rng.gamma(1, size=25))).tolist() for _ in range(1500)]
    own = np.mean([phantom_t(row) <= 0.05 for row in rows])
    students = np.mean([stats.ttest_1samp(row, 0, alternative="greater").pvalue <= 0.05 for row in rows])
    assert own < 0.85 * students


@given(SCATTERED.filter(lambda values: len(values) >= 15), st.sampled_from([0.05, 0.01]))
def test_the_most_that_is_lost_is_the_mean_and_a_multiple_of_the_scatter_that_scipys_quantile_gives(values, alpha):
    """The test solved for its bar: s at the bar, then the mean over the root mean square, then over the scatter."""
    n, losses = len(values), np.array(values, float)
    t = stats.t.ppf(1 - alpha, n)
    ratio = (1 + t / math.sqrt(n + t * t) * (n + 1)) / n
    expected = losses.mean() + losses.std() * ratio / math.sqrt(1 - ratio**2)
    assert most_lost(values, alpha) == pytest.approx(min(expected / SCORE_UNIT, 1.0), abs=2e-9)


def test_nothing_lost_in_any_query_is_told_as_such_and_few_queries_bound_nothing():
    assert most_lost([0] * 25, 0.05) == pytest.approx(0, abs=1e-8)
    assert most_lost([-TENTH] * 25, 0.05) == pytest.approx(-0.1, abs=1e-8)
    assert most_lost([0, TENTH], 0.05) == 1.0
