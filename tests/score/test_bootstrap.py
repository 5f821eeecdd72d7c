import json
import math
import tracemalloc
from itertools import permutations

import falsify_eval
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT, Scores
from runner.score import bootstrap as significance
from runner.score.bootstrap import (
    bonferroni,
    bootstrap_ci,
    bootstrap_counts,
    bootstrap_diff_ci,
    cohens_d_paired,
    holm,
    mean_intervals,
    paired_permutation_p,
    power_n_required,
    resampled_totals,
    score_matrix,
)
from runner.score.comparison import paired_differences, planned_intervals
from tests.support.example_results import PLAN


def values(cells, queries, seed=0):
    return np.random.default_rng(seed).integers(0, SCORE_UNIT + 1, size=(cells, queries))


def ends(intervals):
    return [(interval.low, interval.high) for interval in intervals]


def test_counts_are_draws_with_replacement_of_as_many_queries():
    counts = np.concatenate(list(bootstrap_counts(7, 5000, seed=1)))
    assert counts.shape == (5000, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=0.06)
    assert counts.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.08)


def test_the_same_draws_come_from_blocks_of_any_size(monkeypatch):
    whole = np.concatenate(list(bootstrap_counts(11, 1000, seed=3)))
    monkeypatch.setattr(significance, "_COUNTS_AT_ONCE", 50)
    blocks = list(bootstrap_counts(11, 1000, seed=3))
    assert len(blocks) > 100
    assert (np.concatenate(blocks) == whole).all()


def test_totals_are_exact_whole_numbers():
    matrix = values(3, 40)
    counts = np.concatenate(list(bootstrap_counts(40, 200, seed=5))).astype(int).tolist()
    expected = [[sum(c * int(v) for c, v in zip(row, cell, strict=True)) for row in counts] for cell in matrix]
    assert resampled_totals(matrix, seed=5, resamples=200).tolist() == expected


def test_the_ends_are_order_statistics_that_leave_a_fortieth_outside():
    matrix = values(2, 25)
    totals = np.sort(resampled_totals(matrix, seed=9, resamples=10_000), axis=1)
    expected = [(float(row[250]) / (25 * SCORE_UNIT), float(row[9749]) / (25 * SCORE_UNIT)) for row in totals]
    assert ends(mean_intervals(matrix, seed=9)) == expected


def test_every_row_sees_the_same_queries_whatever_the_other_rows():
    matrix = values(4, 30)
    together = mean_intervals(matrix, seed=2)
    assert [mean_intervals(matrix[i : i + 1], seed=2)[0] for i in range(4)] == list(together)
    doubled = np.vstack([matrix[:1], matrix[:1]])
    assert len(set(ends(mean_intervals(doubled, seed=2)))) == 1


def test_paired_intervals_are_of_the_differences():
    matrix = values(3, 30)
    paired = ends(paired_differences(matrix, 1, PLAN))
    assert paired[1] == (0, 0)
    assert paired[0] == ends(planned_intervals(matrix[:1] - matrix[1:2], PLAN))[0]
    shifted = np.vstack([matrix[0] // 2, matrix[0] // 2 + SCORE_UNIT // 4])
    assert ends(paired_differences(shifted, 0, PLAN))[1] == (0.25, 0.25)


def test_another_seed_gives_other_draws():
    matrix = values(1, 30)
    assert mean_intervals(matrix, seed=1) != mean_intervals(matrix, seed=2)
    assert mean_intervals(matrix, seed=1) == mean_intervals(matrix, seed=1)


def test_intervals_cover_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(8)
    samples = (np.clip(rng.normal(0.5, 0.12, size=(300, 50)), 0, 1) * SCORE_UNIT).astype(np.int64)
    covered = [low <= 0.5 <= high for low, high in ends(mean_intervals(samples, seed=1, resamples=2000))]
    assert 0.89 <= np.mean(covered) <= 0.98


def test_values_too_large_to_add_exactly_are_refused():
    with pytest.raises(ValueError, match="cannot be added exactly"):
        mean_intervals(np.full((1, 4), 1 << 52), seed=1)
    with pytest.raises(ValueError, match="0 queries"):
        mean_intervals(np.zeros((1, 0), np.int64), seed=1)


def test_a_matrix_is_made_only_of_cells_over_the_same_queries():
    first = Scores("a", ("q1", "q2"), {"ndcg@10": (1, 2)})
    second = Scores("b", ("q1", "q2"), {"ndcg@10": (3, 4)})
    assert score_matrix([first, second], "ndcg@10").tolist() == [[1, 2], [3, 4]]
    other = Scores("c", ("q2", "q1"), {"ndcg@10": (3, 4)})
    with pytest.raises(ValueError, match="different queries: a, c"):
        score_matrix([first, other], "ndcg@10")


FUNCTIONS = {
    function.__name__: function
    for function in (
        bootstrap_ci,
        bootstrap_diff_ci,
        paired_permutation_p,
        cohens_d_paired,
        power_n_required,
        bonferroni,
    )
}

DIFFERENT = {
    ("bootstrap_diff_ci", "length 1"): "numpy's IndexError there; a ValueError that names both lengths here",
    ("paired_permutation_p", "length 1"): "b is repeated for every a there; pairs must be pairs here",
    ("paired_permutation_p", "constant"): "p counts what was observed among the draws, so it is never 0",
    (
        "cohens_d_paired",
        "constant",
    ): "d of a constant shift is rounding noise there; what does not scatter has d 0 here",
    ("power_n_required", "alpha 0.01"): "quantiles are drawn at random there, exact here",
    ("power_n_required", "power 0.3"): "the quantile of a power below 0.5 has the wrong sign there",
}
"""Parity cases that ours answers otherwise, and why."""


def kind(case):
    """Which of DIFFERENT a parity case is, if any."""
    name, arguments, options = case["fn"], case["args"], case["kwargs"]
    if options:
        return next(
            (f"{option} {value}" for option, value in options.items() if (name, f"{option} {value}") in DIFFERENT), ""
        )
    if len(arguments) == 2 and isinstance(arguments[0], list):
        if len(arguments[1]) == 1 < len(arguments[0]):
            return "length 1"
        shifts = np.subtract(*arguments)
        if shifts[0] and np.ptp(shifts) < 1e-9:
            return "constant"
    return ""


@pytest.mark.shared
def test_parity_with_falsify_eval_but_for_what_is_named(shared):
    cases = json.loads((shared / "vectors" / "parity.json").read_bytes())["stats"]
    different = set()
    for case in cases:
        function = FUNCTIONS[case["fn"]]
        if (named := (case["fn"], kind(case))) in DIFFERENT:
            different.add(named)
        elif isinstance(case["out"], str) and case["out"].startswith("ValueError: "):
            with pytest.raises(
                ValueError, match=case["out"].removeprefix("ValueError: ").replace("(", r"\(").replace("[", r"\[")
            ):
                function(*case["args"], **case["kwargs"])
        elif isinstance(case["out"], dict):
            assert function(*case["args"], **case["kwargs"]) == case["out"]
        else:
            expected = math.inf if case["out"] == "inf" else case["out"]
            assert function(*case["args"], **case["kwargs"]) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert different == set(DIFFERENT)


def test_where_ours_is_different_it_says_what_is_right():
    tenths, zeros = [0.1] * 8, [0.0] * 8
    mean, p = paired_permutation_p(tenths, zeros)
    assert (mean, p) == (pytest.approx(0.1), (1 + 82) / (1 + 10_000))
    assert falsify_eval.paired_permutation_p(tenths, zeros)[1] == 82 / 10_000
    shifted = np.array([0.1, 0.47, 0.84, 0.2]) + 0.1
    assert falsify_eval.cohens_d_paired(shifted, shifted - 0.1) > 1e15
    assert cohens_d_paired(shifted, shifted - 0.1) == 0
    assert power_n_required(0.05, 0.3, alpha=0.01) == pytest.approx(420.44, abs=0.01)
    assert power_n_required(0.05, 0.3, power=0.9) == pytest.approx(378.27, abs=0.01)
    assert power_n_required(0.05, 0.3, power=0.3) == pytest.approx(74.19, abs=0.01)
    assert power_n_required(0.05, 0.3, power=0.01) == 0


@pytest.mark.parametrize("n", [1, 2, 25, 300])
def test_intervals_and_draws_are_those_of_falsify_eval(n):
    a, b = np.random.default_rng(n).random((2, n))
    options = {"n_resamples": 500, "seed": 7}
    assert bootstrap_ci(a, alpha=0.1, **options) == falsify_eval.bootstrap_ci(a, alpha=0.1, **options)
    assert bootstrap_diff_ci(a, b, alpha=0.1, **options) == falsify_eval.bootstrap_diff_ci(a, b, alpha=0.1, **options)
    mean, p = falsify_eval.paired_permutation_p(a, b, **options)
    assert paired_permutation_p(a, b, **options) == pytest.approx((mean, (1 + 500 * p) / 501), abs=1e-14)
    if n > 1:
        assert cohens_d_paired(a, b) == pytest.approx(falsify_eval.cohens_d_paired(a, b))


def test_draws_do_not_depend_on_the_size_of_blocks(monkeypatch):
    a, b = np.random.default_rng(3).random((2, 33))
    whole = bootstrap_ci(a, n_resamples=999), bootstrap_diff_ci(a, b, n_resamples=999), paired_permutation_p(a, b)
    monkeypatch.setattr(significance, "_DRAWN_AT_ONCE", 100)
    assert (
        bootstrap_ci(a, n_resamples=999),
        bootstrap_diff_ci(a, b, n_resamples=999),
        paired_permutation_p(a, b),
    ) == whole


def test_memory_does_not_grow_with_queries_times_resamples():
    a, b = np.random.default_rng(3).random((2, 3000))
    tracemalloc.start()
    paired_permutation_p(a, b, n_resamples=1500)
    bootstrap_ci(a, n_resamples=1500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6  # 36 MB for the draws alone, were they held at once


def test_differences_that_only_rounding_tells_apart_are_ties():
    a = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    exact = 10 * a
    _, p = paired_permutation_p(a, -a, n_resamples=4000)
    _, whole = paired_permutation_p(np.rint(exact), -np.rint(exact), n_resamples=4000)
    assert p == whole
    assert paired_permutation_p(a, a) == (0.0, 1.0)


def test_one_pair_has_no_effect_size_and_scatter_has_its_sign():
    assert cohens_d_paired([0.7], [0.2]) == 0
    assert cohens_d_paired([0.2, 0.5, 0.4], [0.3, 0.9, 0.8]) < 0
    assert cohens_d_paired([0.2, 0.5], [0.2, 0.5]) == 0


@pytest.mark.parametrize("call", [bootstrap_diff_ci, paired_permutation_p, cohens_d_paired])
def test_pairs_must_be_pairs(call):
    with pytest.raises(ValueError, match="equally long, not 3 and 1"):
        call([1.0, 2.0, 3.0], [0.5])
    with pytest.raises(ValueError, match="a must be a flat sequence"):
        call([], [])
    with pytest.raises(ValueError, match="b holds a number that is not finite, at position 1"):
        call([0.1, 0.2], [0.1, math.nan])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        call([[0.1, 0.2]], [[0.1, 0.2]])


def test_what_cannot_be_resampled_is_refused():
    with pytest.raises(ValueError, match="x must be a flat sequence"):
        bootstrap_ci([])
    with pytest.raises(ValueError, match="n_resamples must be 1 or more"):
        bootstrap_ci([0.5], n_resamples=0)
    for alpha in (0, 1, math.nan):
        with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\)"):
            bootstrap_ci([0.5], alpha=alpha)


@pytest.mark.parametrize(
    "options",
    [
        *({name: value} for name in ("alpha", "power") for value in (0, 1, math.nan)),
        *({"observed_sd": value} for value in (-0.1, math.inf, math.nan)),
        *({"observed_diff": value} for value in (math.inf, math.nan)),
    ],
)
def test_a_sample_size_for_nonsense_is_refused(options):
    with pytest.raises(ValueError, match=r"must (lie in|be finite)"):
        power_n_required(**({"observed_diff": 0.05, "observed_sd": 0.3} | options))


def test_no_number_of_queries_shows_no_difference():
    for arguments in ((0.0, 0.3), (0.05, 0.0)):
        assert power_n_required(*arguments) == falsify_eval.power_n_required(*arguments) == math.inf
    assert power_n_required(0.2, 0.3, target_delta=-0.05) == power_n_required(0.05, 0.3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.01, 1))
def test_bonferroni_is_falsify_evals(p_values, alpha):
    assert bonferroni(p_values, alpha=alpha) == falsify_eval.bonferroni(p_values, alpha=alpha)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_holm_rejects_what_its_closed_family_of_bonferroni_tests_rejects(p_values):
    """Adjusted p of one hypothesis: the largest Bonferroni p of any set of hypotheses that holds it."""
    adjusted = holm(p_values)
    for i, p in enumerate(p_values):
        others = sorted(q for j, q in enumerate(p_values) if j != i)
        sets = [[p, *others[len(others) - size :]] for size in range(len(others) + 1)]
        assert adjusted[i] == pytest.approx(max(min(1, len(held) * min(held)) for held in sets), abs=1e-15)
    assert all(p <= h <= b for p, h, b in zip(p_values, adjusted, bonferroni(p_values)["p_adjusted"], strict=True))


def test_holm_keeps_the_order_given():
    for order in permutations(range(3)):
        p_values = [(0.01, 0.04, 0.03)[i] for i in order]
        assert holm(p_values) == [(0.03, 0.06, 0.06)[i] for i in order]


@pytest.mark.parametrize("call", [holm, bonferroni])
def test_p_values_are_shares(call):
    for wrong in ([], [[0.1]]):
        with pytest.raises(ValueError, match="non-empty 1-d"):
            call(wrong)
    for wrong in ([1.1], [-0.1], [math.nan]):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            call(wrong)
