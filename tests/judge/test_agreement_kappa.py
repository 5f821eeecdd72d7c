import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from runner.judge.agreement.kappa import ac2, alike, confusion, estimates, kappa

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


def estimated(*tables, confidence=0.95, **given):
    """Share alike, kappa and AC2 of one query a table, relevant from grade 2 on."""
    by_query = {str(number): confusion(grades) for number, grades in enumerate(tables)}
    return estimates(by_query, 2, **{"seed": 1, "confidence": confidence} | given)


@given(grades=GRADES)
def test_kappa_is_scikit_learns_and_undefined_where_its_is(grades):
    from sklearn.metrics import cohen_kappa_score  # takes a second

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cohen_kappa_score(*zip(*grades, strict=True), labels=[0, 1, 2, 3], weights="quadratic")
    assert float(kappa(confusion(grades))) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


@given(grades=GRADES)
def test_ac2_is_gwets_by_its_definition_category_by_category(grades):
    weights = {(k, m): 1 - Fraction((k - m) ** 2, 9) for k in range(4) for m in range(4)}
    observed = sum(weights[pair] for pair in grades) / len(grades)
    shares = [
        Fraction(sum((first == k) + (second == k) for first, second in grades), 2 * len(grades)) for k in range(4)
    ]
    by_guess = sum(weights.values()) / 12 * sum(share * (1 - share) for share in shares)
    expected = (observed - by_guess) / (1 - by_guess)
    assert float(ac2(confusion(grades))) == pytest.approx(float(expected), abs=1e-12)


def test_ac2_of_two_categories_is_the_ac1_that_was_published():
    # Gwet 2008 and the R package irrCAC: of two categories any weights are those of no partial agreement.
    assert float(ac2(np.array([[118, 5], [2, 0]]))) == pytest.approx(0.9408, abs=5e-5)
    assert math.isnan(float(ac2(confusion([]))))
    assert float(ac2(confusion([(0, 0)] * 9))) == 1


@given(grades=GRADES, relevant_grade=st.integers(1, 3))
def test_alike_is_the_share_that_both_call_relevant_of_those_that_either_does(grades, relevant_grade):
    either = [pair for pair in grades if max(pair) >= relevant_grade]
    both = sum(min(pair) >= relevant_grade for pair in either)
    found = float(alike(confusion(grades), relevant_grade))
    assert found == pytest.approx(both / len(either), abs=1e-12) if either else math.isnan(found)


def test_a_figure_that_is_not_defined_is_none_with_no_interval():
    assert math.isnan(float(kappa(confusion([(0, 0)] * 9))))
    share, found, guess = estimated([(0, 0)] * 4, [(0, 0)])
    assert [(one.value, one.low, one.high) for one in (share, found)] == [(None, None, None)] * 2
    assert (guess.value, guess.low) == (1, None)
    assert [one.value for one in estimated()] == [None, None, None]


@pytest.mark.parametrize(("n", "confidence"), [(60, 0.95), (18, 0.9), (1, 0.95)])
def test_relevant_pairs_that_were_all_alike_leave_the_bound_of_clopper_and_pearson(n, confidence):
    share, found, _ = estimated(
        *([(2 + number % 2, 2 + number % 2), (0, 0)] for number in range(n)), confidence=confidence
    )
    exact = binomtest(n, n, alternative="greater").proportion_ci(confidence, method="exact")
    assert (share.value, share.low, share.high) == (1, pytest.approx(exact.low), 1)
    assert (found.low, found.high) == (None, None)


def test_relevant_pairs_of_which_none_was_alike_leave_the_bound_at_the_other_end():
    share, *_ = estimated(*[[(0, 3)]] * 30)
    exact = binomtest(0, 30, alternative="less").proportion_ci(0.95, method="exact")
    assert (share.low, share.high) == (0, pytest.approx(exact.high))


def test_a_figure_that_no_draw_of_queries_changes_has_no_interval():
    for one in (*estimated(*[[(0, 0), (2, 2), (1, 3), (3, 1)]] * 20), *estimated([(0, 2), (2, 2), (3, 1), (0, 0)])):
        assert one.value is not None
        assert one.low is None


def test_an_interval_that_rests_on_too_few_defined_draws_is_not_given():
    # Only one query of three varies, and 8 in 27 draws leave it out.
    share, found, guess = estimated([(0, 2), (1, 1), (2, 2)], [(0, 0)], [(0, 0)])
    assert (share.value, found.value) == (0.5, pytest.approx(found.value))
    assert (share.low, found.low) == (None, None)
    assert guess.low is not None


def test_the_interval_is_that_of_queries_drawn_one_by_one():
    generator = np.random.default_rng(5)
    grades = [
        [(int(g), int(np.clip(g + e, 0, 3))) for g, e in zip(generator.integers(0, 4, 6), noise, strict=True)]
        for noise in generator.choice([-1, 0, 0, 1], size=(12, 6))
    ]
    found = estimated(*grades, confidence=0.9)
    draws = []
    for _ in range(4000):
        table = confusion(pair for n in generator.integers(12, size=12) for pair in grades[n])
        draws.append([float(figure) for figure in (alike(table, 2), kappa(table), ac2(table))])
    for one, ends in zip(found, np.quantile(draws, [0.05, 0.95], axis=0).T, strict=True):
        assert [one.low, one.high] == pytest.approx(ends, abs=0.02)


@given(tables=st.lists(GRADES, min_size=2, max_size=8), seed=st.integers(0, 99))
def test_intervals_hold_their_order_and_stay_within_bounds(tables, seed):
    found = estimated(*tables, seed=seed, resamples=100)
    # AC2 alone may fall below -1: readers who differ by more than chance, where little chance is left.
    for one, least in zip(found, (0, -1, -math.inf), strict=True):
        if one.low is not None:
            assert least <= one.low <= one.high <= 1
    assert found == estimated(*tables, seed=seed, resamples=100)
