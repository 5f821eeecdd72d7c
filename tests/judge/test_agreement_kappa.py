import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from runner.judge.agreement.kappa import agreement_share, binary, confusion, estimates, kappa

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


def estimated(*tables, confidence=0.95, **given):
    """Kappa and binary agreement of one query a table, relevant from grade 2 on."""
    by_query = {str(number): confusion(grades) for number, grades in enumerate(tables)}
    return estimates(by_query, 2, **{"seed": 1, "confidence": confidence} | given)


@given(grades=GRADES)
def test_kappa_is_scikit_learns_and_undefined_where_its_is(grades):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cohen_kappa_score(*zip(*grades, strict=True), labels=[0, 1, 2, 3], weights="quadratic")
    assert float(kappa(confusion(grades))) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


@given(grades=GRADES, relevant_grade=st.integers(1, 3))
def test_binary_agreement_is_that_of_relevant_against_not(grades, relevant_grade):
    same = [(first >= relevant_grade) == (second >= relevant_grade) for first, second in grades]
    assert float(agreement_share(binary(confusion(grades), relevant_grade))) == pytest.approx(np.mean(same), abs=1e-12)


def test_a_figure_that_is_not_defined_is_none_with_no_interval():
    assert math.isnan(float(kappa(confusion([(0, 0)] * 9))))
    assert math.isnan(float(agreement_share(confusion([]))))
    found, share = estimated([(0, 0)] * 4, [(0, 0)])
    assert (found.value, found.low, found.high) == (None, None, None)
    assert (share.value, share.low, share.high) == (1, pytest.approx(0.05**0.2), 1)
    assert [one.value for one in estimated()] == [None, None]


@pytest.mark.parametrize(("n", "confidence"), [(60, 0.95), (18, 0.9), (1, 0.95)])
def test_pairs_that_were_all_graded_alike_leave_the_bound_of_clopper_and_pearson_and_no_other_interval(n, confidence):
    found, share = estimated(*([(number % 4, number % 4)] for number in range(n)), confidence=confidence)
    exact = binomtest(n, n, alternative="greater").proportion_ci(confidence, method="exact")
    assert (share.value, share.low, share.high) == (1, pytest.approx(exact.low), 1)
    assert (found.low, found.high) == (None, None)


def test_pairs_of_which_none_was_graded_alike_leave_the_bound_at_the_other_end():
    _, share = estimated(*[[(0, 3)]] * 30)
    exact = binomtest(0, 30, alternative="less").proportion_ci(0.95, method="exact")
    assert (share.low, share.high) == (0, pytest.approx(exact.high))


def test_a_figure_that_no_draw_of_queries_changes_has_no_interval():
    for one in (*estimated(*[[(0, 0), (2, 2), (1, 3), (3, 1)]] * 20), *estimated([(0, 2), (2, 2), (3, 1), (0, 0)])):
        assert one.value is not None
        assert one.low is None


def test_an_interval_that_rests_on_too_few_defined_draws_is_not_given():
    # Only one query of three varies, and 8 in 27 draws leave it out.
    found, share = estimated([(0, 2), (1, 1), (2, 2)], [(0, 0)], [(0, 0)])
    assert found.value is not None
    assert found.low is None
    assert share.low is not None


def test_the_interval_is_that_of_queries_drawn_one_by_one():
    generator = np.random.default_rng(5)
    grades = [
        [(int(g), int(np.clip(g + e, 0, 3))) for g, e in zip(generator.integers(0, 4, 6), noise, strict=True)]
        for noise in generator.choice([-1, 0, 0, 1], size=(12, 6))
    ]
    found, _ = estimated(*grades, confidence=0.9)
    draws = []
    for _ in range(4000):
        rows = [pair for n in generator.integers(12, size=12) for pair in grades[n]]
        draws.append(float(kappa(confusion(rows))))
    assert [found.low, found.high] == pytest.approx(np.quantile(draws, [0.05, 0.95]), abs=0.015)


@given(tables=st.lists(GRADES, min_size=2, max_size=8), seed=st.integers(0, 99))
def test_intervals_hold_their_order_and_stay_within_bounds(tables, seed):
    found = estimated(*tables, seed=seed, resamples=100)
    for one in found:
        if one.low is not None:
            assert -1 <= one.low <= one.high <= 1
    assert found == estimated(*tables, seed=seed, resamples=100)
