import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from runner.eval_set.shapes.judges import Coefficients
from runner.judge.agreement.kappa import (
    ac1,
    agreement_share,
    binary,
    coefficients,
    confusion,
    kappa,
    mean_difference,
    pabak,
)

ABSTRACTORS = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
"""Gwet, Handbook of Inter-Rater Reliability; the R package irrCAC prints what follows from it."""

GRADES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@pytest.mark.parametrize(("power", "weights"), [(0, None), (1, "linear"), (2, "quadratic")])
@given(grades=GRADES)
def test_kappas_are_scikit_learns_and_undefined_where_its_are(power, weights, grades):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cohen_kappa_score(*zip(*grades, strict=True), labels=[0, 1, 2, 3], weights=weights)
    assert float(kappa(confusion(grades), power)) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


@given(grades=GRADES, relevant_grade=st.integers(1, 3))
def test_the_binary_kappa_is_scikit_learns_of_relevant_against_not(grades, relevant_grade):
    relevant = [[grade >= relevant_grade for grade in reading] for reading in zip(*grades, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cohen_kappa_score(*relevant, labels=[False, True])
    ours = kappa(binary(confusion(grades), relevant_grade), 0)
    assert float(ours) == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def test_published_examples_come_out():
    assert float(kappa(ABSTRACTORS, 0)) == pytest.approx(0.7964094, abs=5e-8)
    assert float(agreement_share(ABSTRACTORS)) == 0.89
    # Gwet 2008: with 118, 5, 2 and 0 of 125 subjects raters agree on 94 %, kappa is negative, AC1 .9408.
    rare = np.array([[118, 5], [2, 0]])
    assert float(agreement_share(rare)) == 0.944
    assert float(kappa(rare, 0)) == pytest.approx(-0.0234, abs=5e-5)
    assert float(ac1(rare)) == pytest.approx(0.9408, abs=5e-5)


def test_ac1_by_hand_over_three_categories():
    shares = [0.13, (27 + 24) / 200, (60 + 63) / 200]
    by_chance = sum(share * (1 - share) for share in shares) / 2
    assert float(ac1(ABSTRACTORS)) == pytest.approx((0.89 - by_chance) / (1 - by_chance), abs=1e-12)


def test_one_category_alone_leaves_kappa_undefined_and_ac1_at_one():
    zeros = confusion([(0, 0)] * 9)
    assert all(math.isnan(float(kappa(zeros, power))) for power in (0, 1, 2))
    assert (float(ac1(zeros)), float(pabak(binary(zeros, 2)))) == (1, 1)
    nothing = confusion([])
    assert all(math.isnan(float(f(nothing))) for f in (ac1, pabak, agreement_share, mean_difference))


def test_an_undefined_coefficient_is_none_with_no_interval():
    found = coefficients({"q1": confusion([(0, 0)] * 4), "q2": confusion([(0, 0)])}, 2, seed=1, confidence=0.95)
    assert (found.linear.value, found.linear.low, found.linear.high) == (None, None, None)
    assert (found.exact.value, found.exact.low, found.exact.high) == (1, pytest.approx(0.05**0.2), 1)
    none = coefficients({}, 2, seed=1, confidence=0.95)
    assert all(getattr(none, name).value is None for name in Coefficients.model_fields)


@pytest.mark.parametrize(("n", "confidence"), [(60, 0.95), (18, 0.9), (1, 0.95)])
def test_pairs_that_were_all_graded_alike_leave_the_bound_of_clopper_and_pearson_and_no_other_interval(n, confidence):
    tables = {str(number): confusion([(number % 4, number % 4)]) for number in range(n)}
    found = coefficients(tables, 2, seed=1, confidence=confidence)
    exact = binomtest(n, n, alternative="greater").proportion_ci(confidence, method="exact")
    for share in (found.exact, found.binary):
        assert (share.value, share.low, share.high) == (1, pytest.approx(exact.low), 1)
    for name in set(Coefficients.model_fields) - {"exact", "binary"}:
        assert (getattr(found, name).low, getattr(found, name).high) == (None, None)


def test_pairs_of_which_none_was_graded_alike_leave_the_bound_at_the_other_end():
    found = coefficients({str(number): confusion([(0, 3)]) for number in range(30)}, 2, seed=1, confidence=0.95)
    exact = binomtest(0, 30, alternative="less").proportion_ci(0.95, method="exact")
    assert (found.exact.low, found.exact.high) == (0, pytest.approx(exact.high))
    assert (found.difference.value, found.difference.low) == (-3, None)


def test_a_figure_that_no_draw_of_queries_changes_has_no_interval():
    tables = {str(number): confusion([(0, 0), (2, 2), (1, 3), (3, 1)]) for number in range(20)}
    found = coefficients(tables, 2, seed=1, confidence=0.95)
    assert found.exact.value == 0.5
    assert all(getattr(found, name).low is None for name in Coefficients.model_fields if name != "binary")


def test_one_query_has_no_interval():
    found = coefficients({"q1": confusion([(0, 1), (2, 2), (3, 1)])}, 2, seed=1, confidence=0.95)
    assert found.difference.value == pytest.approx(1 / 3)
    assert found.difference.low is None


def test_an_interval_that_rests_on_too_few_defined_draws_is_not_given():
    # Only one query of three varies, and 8 in 27 draws leave it out.
    tables = {"q1": confusion([(0, 1), (1, 1), (2, 2)]), "q2": confusion([(0, 0)]), "q3": confusion([(0, 0)])}
    found = coefficients(tables, 2, seed=1, confidence=0.95)
    assert found.linear.value is not None
    assert found.linear.low is None
    assert found.exact.low is not None


def test_the_interval_is_that_of_queries_drawn_one_by_one():
    generator = np.random.default_rng(5)
    grades = [
        [(int(g), int(np.clip(g + e, 0, 3))) for g, e in zip(generator.integers(0, 4, 6), noise, strict=True)]
        for noise in generator.choice([-1, 0, 0, 1], size=(12, 6))
    ]
    found = coefficients({str(n): confusion(rows) for n, rows in enumerate(grades)}, 2, seed=1, confidence=0.9)
    draws = []
    for _ in range(4000):
        rows = [pair for n in generator.integers(12, size=12) for pair in grades[n]]
        draws.append(float(kappa(confusion(rows), 2)))
    assert [found.quadratic.low, found.quadratic.high] == pytest.approx(np.quantile(draws, [0.05, 0.95]), abs=0.015)


@given(tables=st.lists(GRADES, min_size=2, max_size=8), seed=st.integers(0, 99))
def test_intervals_hold_their_order_and_stay_within_bounds(tables, seed):
    by_query = {str(n): confusion(grades) for n, grades in enumerate(tables)}
    found = coefficients(by_query, 2, seed=seed, confidence=0.95, resamples=100)
    for name in Coefficients.model_fields:
        estimate = getattr(found, name)
        if estimate.low is not None:
            assert estimate.low <= estimate.high
            assert max(abs(estimate.low), abs(estimate.high)) <= (3 if name == "difference" else 1) + 1e-12
    assert found == coefficients(by_query, 2, seed=seed, confidence=0.95, resamples=100)
