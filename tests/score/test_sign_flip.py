import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runner.base.records import SCORE_UNIT, Interval
from runner.score import flips
from runner.score.flips import exact_p, flip_blocks, flipped
from runner.score.sign_flip import left_out, paired_tests

TENTH = SCORE_UNIT // 10
STEP = Fraction(1, SCORE_UNIT)


def compared(rows, *, draws=1000, alpha=0.05, seed=1):
    return paired_tests(np.array(rows, np.int64), draws=draws, alpha=alpha, seed=seed)


def deltas(n_rows, n_queries, seed=0, mean=0.0):
    rng = np.random.default_rng(seed)
    return np.rint(np.clip(rng.normal(mean, 0.15, (n_rows, n_queries)), -1, 1) * SCORE_UNIT).astype(np.int64)


def ways(n_queries, draws, seed):
    """The flips that the tests see, as rows of 0 and 1; all of them, no negations, where they are few."""
    if 2 ** (n_queries - 1) - 1 <= draws:
        return [(*way, 0) for way in product((0, 1), repeat=n_queries - 1)][1:]
    return np.concatenate(list(flip_blocks(n_queries, draws, seed))).astype(int).tolist()


class Naive:
    """The same tests by their definitions: every draw is flipped, shifted and compared, in fractions."""

    def __init__(self, rows, draws, seed):
        self.rows = [[Fraction(int(value), SCORE_UNIT) for value in row] for row in rows]
        self.n = len(self.rows[0])
        self.signs = [[1 - 2 * flip for flip in way] for way in ways(self.n, draws, seed)]

    def total(self, row, signs, shift=Fraction(0)):
        return sum(sign * (value - shift) for sign, value in zip(signs, self.rows[row], strict=True))

    def p(self, row, shift=Fraction(0)):
        seen = abs(self.total(row, [1] * self.n, shift))
        return Fraction(1 + sum(abs(self.total(row, s, shift)) >= seen for s in self.signs), 1 + len(self.signs))

    def squared_t(self, row, total, shift=Fraction(0)):
        squares = sum((value - shift) ** 2 for value in self.rows[row])
        spread = self.n * squares - total**2
        return (self.n - 1) * total**2 / spread if spread else (math.inf if total else Fraction(0))

    def p_adjusted(self, row, shift=Fraction(0)):
        seen = self.total(row, [1] * self.n, shift)
        t = self.squared_t(row, seen, shift)
        others = [other for other in range(len(self.rows)) if other != row]
        extreme = sum(
            abs(self.total(row, s, shift)) >= abs(seen)
            or any(self.squared_t(other, self.total(other, s)) >= t for other in others)
            for s in self.signs
        )
        return Fraction(1 + extreme, 1 + len(self.signs))


def check_ends(interval, p_at, mean, alpha):
    """Inside the ends no shift is rejected, beyond them every one is; ends at the limits of a score are not tried."""
    for end, outwards in ((Fraction(interval[0]), -STEP), (Fraction(interval[1]), STEP)):
        inwards = end - outwards if (end - mean) * outwards > STEP**2 else mean
        if abs(inwards) <= 1:
            assert p_at(inwards) > alpha
        if abs(end) < 1:
            assert p_at(end + outwards) <= alpha


small = arrays.arrays(
    np.int64,
    st.tuples(st.integers(1, 3), st.integers(2, 7)),
    elements=st.integers(-4, 4).map(lambda tenths: tenths * TENTH),
)


@given(small, st.sampled_from([(7, 0.2), (19, 0.1), (40, 0.05), (63, 0.05), (63, 0.049)]), st.integers(0, 5))
def test_p_and_intervals_are_those_of_the_definition(rows, setting, seed):
    draws, alpha = setting
    naive = Naive(rows, draws, seed)
    for row, test in enumerate(compared(rows, draws=draws, alpha=alpha, seed=seed)):
        mean = sum(naive.rows[row]) / naive.n
        exact = len(naive.signs) == 2 ** (naive.n - 1) - 1
        assert test.p == float(naive.p(row)) if exact else test.p <= 1
        assert test.p_adjusted == float(max(naive.p_adjusted(row), Fraction(test.p)))
        check_ends(test.interval, lambda shift, row=row: naive.p(row, shift), mean, alpha)
        check_ends(test.simultaneous, lambda shift, row=row: naive.p_adjusted(row, shift), mean, alpha)


many = arrays.arrays(
    np.int64,
    st.tuples(st.integers(1, 4), st.integers(21, 40)),
    elements=st.integers(1, 9).flatmap(lambda size: st.sampled_from([size * TENTH, -size * TENTH // 2])),
)


@given(many, st.sampled_from([0.01, 0.05, 0.1, 0.25]), st.integers(0, 9))
def test_an_interval_excludes_no_difference_exactly_where_its_p_is_small(rows, alpha, seed):
    for row, test in zip(rows, compared(rows, draws=199, alpha=alpha, seed=seed), strict=True):
        assert (test.p <= alpha) == (not test.interval[0] <= 0 <= test.interval[1])
        assert (test.p_adjusted <= alpha) == (not test.simultaneous[0] <= 0 <= test.simultaneous[1])
        assert test.p <= test.p_adjusted
        ends = [test.simultaneous[0], test.interval[0], row.mean() / SCORE_UNIT, test.interval[1], test.simultaneous[1]]
        assert ends == sorted(ends)


def test_multiples_of_a_row_tie_with_it_and_cost_it_nothing():
    for seed in range(20):
        row = deltas(1, 25, seed=seed, mean=0.05) // 8
        for test in compared(np.vstack([row, 3 * row, -7 * row, row])):
            assert test.p_adjusted == test.p


def test_exact_p_is_the_share_of_all_flips():
    stats = pytest.importorskip("scipy.stats")
    rows = [*deltas(2, 8, mean=0.08), np.tile([1, 0, -1, 2], 2) * TENTH]
    for row, test in zip(rows, compared(rows, draws=5000), strict=True):
        result = stats.permutation_test(
            (row / SCORE_UNIT,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=True
        )
        assert test.p == pytest.approx(result.pvalue, abs=1e-12)


def test_p_is_exact_with_20_differences_and_drawn_with_21():
    padded = np.zeros(60, np.int64)
    padded[3:23] = deltas(1, 20, seed=5, mean=0.05)[0]
    more = padded.copy()
    more[40] = TENTH
    exact, drawn = compared([padded, more], draws=999)
    (dense,) = compared([padded[3:23]], draws=2**19)
    assert exact.p == dense.p == exact_p(padded.tolist())
    assert drawn.p * 1000 == round(drawn.p * 1000)


def test_p_adjusted_is_never_below_an_exact_p():
    rows = np.zeros((1, 30), np.int64)
    rows[0, :12] = TENTH
    for seed in range(20):
        (test,) = compared(rows, draws=99, seed=seed)
        assert test.p == 2 / 2**12
        assert test.p_adjusted >= test.p


def test_leaving_queries_out_names_the_one_that_moves_the_mean_most():
    row = [TENTH, 3 * TENTH, -TENTH, -5 * TENTH, 2 * TENTH]
    means = [(sum(row) - value) / 4 / SCORE_UNIT for value in row]
    assert left_out(row) == (Interval(min(means), max(means)), 3)
    assert left_out([TENTH, -TENTH, TENTH, -TENTH])[1] == 0
    assert left_out([TENTH]) == (Interval(-1, 1), 0)


def test_a_row_equal_to_the_baseline_shows_nothing():
    zero, other = compared([np.zeros(25, np.int64), deltas(1, 25, mean=0.1)[0]])
    assert (zero.sd, zero.p, zero.p_adjusted) == (0, 1, 1)
    assert zero.interval == zero.simultaneous == [0, 0]
    (alone,) = compared([deltas(1, 25, mean=0.1)[0]])
    assert (other.p_adjusted, other.simultaneous) == (alone.p_adjusted, alone.interval)
    assert all(math.copysign(1, end) == 1 for end in (zero.interval[0], zero.simultaneous[0]))


def test_a_constant_shift_is_an_interval_of_no_width():
    shifted, mixed = compared([np.full(25, TENTH), np.tile([TENTH, -TENTH, TENTH, TENTH, TENTH], 5)])
    assert shifted.interval == [0.1, 0.1]
    assert shifted.simultaneous == [0.1, 0.1]
    assert shifted.sd == 0
    assert shifted.p == shifted.p_adjusted == 1 / 1001
    assert mixed.simultaneous[0] <= mixed.interval[0] <= 0.06


def test_rows_that_are_all_one_size_do_not_disturb_the_others():
    """Flips that give such a row one sign make its t infinite, and that draw counts for every row."""
    signs = np.array([1, -1, 1, 1, 1, 1, 1, 1]) * TENTH
    found = compared([signs, 3 * signs, deltas(1, 8)[0]], alpha=0.2)
    naive = Naive([signs, 3 * signs, deltas(1, 8)[0]], 1000, 1)
    assert [test.p_adjusted for test in found] == [float(naive.p_adjusted(row)) for row in range(3)]
    assert all(math.isfinite(end) for test in found for end in test.simultaneous)


def test_few_queries_reject_nothing():
    (one,) = compared([[SCORE_UNIT]])
    assert (one.p, one.p_adjusted, one.sd) == (1, 1, 0)
    assert one.interval == one.simultaneous == [-1, 1]
    (two,) = compared([[SCORE_UNIT, SCORE_UNIT // 2]])
    assert (two.p, two.interval) == (0.5, [-1, 1])
    (five,), (six,) = compared([[TENTH, 2 * TENTH] * 2 + [TENTH]]), compared([[TENTH, 2 * TENTH] * 3])
    assert (five.p, five.interval) == (1 / 16, [-1, 1])
    assert (six.p, six.interval) == (1 / 32, [0.1, 0.2])


def test_p_under_no_difference_is_at_most_alpha_as_often_as_alpha():
    rng = np.random.default_rng(11)
    rejected, family = 0, 0
    for seed in range(400):
        rows = np.rint(rng.laplace(0, 0.1, (3, 12)) * (rng.random((3, 12)) < 0.6) * 10).astype(np.int64) * TENTH // 10
        found = compared(rows, draws=99, alpha=0.1, seed=seed)
        rejected += found[0].p <= 0.1
        family += any(test.p_adjusted <= 0.1 for test in found)
    assert rejected <= 57  # 40 expected, standard deviation 6
    assert family <= 57


def test_blocks_of_any_size_give_the_same_flips(monkeypatch):
    whole = [np.concatenate(list(flip_blocks(n, 300, seed=3))) for n in (7, 64, 130)]
    rows = deltas(3, 130)
    found = compared(rows, draws=300), compared(rows[:, :9], draws=300)
    monkeypatch.setattr(flips, "_FLIPS_AT_ONCE", 500)
    for n_queries, flat in zip((7, 64, 130), whole, strict=True):
        blocks = list(flip_blocks(n_queries, 300, seed=3))
        assert len(blocks) > 4
        assert (np.concatenate(blocks) == flat).all()
    assert (compared(rows, draws=300), compared(rows[:, :9], draws=300)) == found


def test_flips_are_fair_and_another_seed_gives_others():
    drawn = np.concatenate(list(flip_blocks(70, 4000, seed=1)))
    assert set(np.unique(drawn)) == {0, 1}
    assert drawn.mean(axis=0) == pytest.approx(np.full(70, 0.5), abs=0.035)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(70)).max() < 0.08
    assert not (drawn == np.concatenate(list(flip_blocks(70, 4000, seed=2)))).all()


def test_sums_over_5000_queries_are_exact():
    rows = np.random.default_rng(2).integers(-SCORE_UNIT, SCORE_UNIT, size=(2, 5000), endpoint=True)
    drawn = flipped(rows, draws=30, seed=9)
    exact = [[sum(row[np.array(way, bool)].tolist()) for way in ways(5000, 30, 9)] for row in rows]
    assert drawn.sums.tolist() == exact
    assert drawn.sizes.tolist() == [sum(way) for way in ways(5000, 30, 9)]


def test_no_rows_have_no_tests():
    assert compared(np.empty((0, 25))) == []


def test_what_cannot_be_tested_is_refused():
    for alpha in (0, 0.5, math.nan):
        with pytest.raises(ValueError, match=r"alpha must lie in \(0, 0.5\)"):
            compared([[1, 2]], alpha=alpha)
    with pytest.raises(ValueError, match="0 draws"):
        compared([[1, 2]], draws=0)
    with pytest.raises(ValueError, match="over 0 queries"):
        compared(np.empty((2, 0)))
    with pytest.raises(ValueError, match="cannot be added exactly"):
        compared(np.full((1, 4), 1 << 52))
