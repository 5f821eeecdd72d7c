import numpy as np
import pytest

from runner.base.records import SCORE_UNIT, Scores
from runner.score import bootstrap as significance
from runner.score.bootstrap import (
    bootstrap_counts,
    mean_intervals,
    resampled_totals,
    score_matrix,
)
from runner.score.comparison import wins_ties_losses


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


def test_queries_are_won_lost_or_tied_and_0_is_a_tie():
    assert wins_ties_losses(np.array([3, 0, -1, 0, 2])) == (2, 2, 1)
