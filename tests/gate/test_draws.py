import math
from itertools import permutations as orders

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import SCORE_UNIT, Run
from runner.gate import bench, draws
from runner.gate.bench import bench_of, permutation_groups
from runner.gate.draws import (
    draw_documents,
    generator_for,
    greatest,
    most_retrieved,
    permutations,
    random_totals,
    shuffled_totals,
)
from runner.score.score import score, units
from tests.support.graded_sets import DOCS, graded, oracle, run_of

SOME = DOCS[:14]


def rng(seed=1):
    return generator_for(seed, "test")


def bench_from(qrels, names=None, docs=DOCS):
    names = names or list(qrels)
    return bench_of(names, qrels, dict.fromkeys(docs, 1), [np.arange(len(names))])


def in_units(scores):
    return units(scores).tolist()


@st.composite
def sets(draw):
    """Qrels with grades from -1 to 3, some outside the corpus, some queries without any, and a run of short lists."""
    names = [f"q{i}" for i in range(draw(st.integers(1, 6)))]
    grades = st.dictionaries(st.sampled_from([*SOME, "elsewhere"]), st.integers(-1, 3), max_size=13)
    qrels = {name: draw(grades) for name in names if draw(st.booleans())}
    lists = {name: draw(st.lists(st.sampled_from(SOME), unique=True)) for name in names}
    return names, qrels, run_of(lists)


@given(sets())
def test_scores_are_those_of_every_run_under_every_qrels(drawn):
    names, qrels, run = drawn
    table = bench_from(qrels, names, SOME)
    rankings = table.rankings(run)
    crossed = table.scores(rankings)
    for row, name in enumerate(names):
        swapped = Run("cell", dict.fromkeys(names, run.hits[name]))
        assert in_units(crossed[row]) == list(score(swapped, names, qrels, 2).values["ndcg@10"])
        assert in_units(table.scores_for(row, rankings)) == in_units(crossed[:, row])
    assert in_units(table.own_scores(rankings)) == in_units(crossed.diagonal())


def test_a_document_that_is_neither_judged_nor_in_the_corpus_is_an_error():
    table = bench_from({"q1": {DOCS[0]: 3, "judged elsewhere": 1}})
    assert table.rankings(run_of({"q1": ["judged elsewhere"]}))[0, 0] >= 0
    with pytest.raises(ValueError, match="query q1 retrieves 'unknown', not in the corpus"):
        table.rankings(run_of({"q1": ["unknown"]}))
    with pytest.raises(ValueError, match="'unknown' is not in the corpus"):
        table.column({"unknown": 1})
    with pytest.raises(KeyError):
        table.rankings(run_of({}))


def test_queries_alone_in_their_stratum_exchange_among_themselves():
    def groups(*strata):
        return [group.tolist() for group in permutation_groups(strata)]

    assert groups("b", "a", "a", "b") == [[1, 2], [0, 3]]
    assert groups("b", "a", "c", "a") == [[1, 3], [0, 2]]
    assert groups("b", "a", "a", "c", "c", "c") == [[1, 2], [0, 3, 4, 5]]
    assert groups("a") == [[0]]
    assert groups() == []


def test_permutations_stay_in_their_group_and_are_equally_likely():
    groups = permutation_groups(["a", "b", "a", "b", "a"])
    assigned = permutations(groups, 12_000, rng())
    assert (np.sort(assigned[[0, 2, 4]], axis=0).T == [0, 2, 4]).all()
    assert (np.sort(assigned[[1, 3]], axis=0).T == [1, 3]).all()
    for order in orders([0, 2, 4]):
        assert np.equal(assigned[[0, 2, 4]].T, order).all(axis=1).mean() == pytest.approx(1 / 6, abs=0.015)


def test_exchanged_totals_are_sums_over_the_assigned_qrels_in_blocks_of_any_size(monkeypatch):
    qrels = graded(7)
    table = bench_from(qrels)
    rankings = table.rankings(oracle(qrels))
    assigned = permutations(permutation_groups("aaabbbb"), 40, rng())
    crossed = units(table.scores(rankings))
    totals = [sum(crossed[row, column] for row, column in enumerate(draw)) for draw in assigned.T.tolist()]
    assert table.exchanged(rankings, assigned)[0].tolist() == totals
    monkeypatch.setattr(bench, "_SCORES_AT_ONCE", 15)
    assert table.exchanged(rankings, assigned)[0].tolist() == totals


def test_shuffled_totals_follow_the_enumeration_of_all_orders():
    qrels = {"q1": {DOCS[0]: 3, DOCS[1]: 1}, "q2": {DOCS[2]: 2}}
    table = bench_from(qrels)
    run = run_of({"q1": DOCS[:4], "q2": DOCS[1:4]})
    totals = shuffled_totals(table, table.rankings(run), 20_000, rng())
    every = [
        sum(score(run_of({"q1": first, "q2": second}), ["q1", "q2"], qrels, 2).values["ndcg@10"])
        for first in orders(DOCS[:4])
        for second in orders(DOCS[1:4])
    ]
    assert set(totals.tolist()) == set(every)
    for value in set(every):
        assert (totals == value).mean() == pytest.approx(every.count(value) / len(every), abs=0.013)


@pytest.mark.parametrize("weights", [[1, 1, 2, 4, 8, 1000, 1, 1, 1, 1, 1, 5], [3] * 40, [1, 7, 2]])
def test_documents_are_drawn_by_weight_without_replacement(weights):
    weights = np.array(weights)
    drawn = draw_documents(weights, 20_000, 10, rng())
    depth = min(10, len(weights))
    assert drawn.shape == (20_000, depth)
    assert (np.diff(np.sort(drawn, axis=1)) > 0).all()
    first = np.bincount(drawn[:, 0], minlength=len(weights)) / 20_000
    share = weights / weights.sum()
    assert first == pytest.approx(share, abs=0.015)
    second = sum(
        share[i] * np.where(np.arange(len(weights)) == i, 0, share / (1 - share[i])) for i in range(len(share))
    )
    assert np.bincount(drawn[:, 1], minlength=len(weights)) / 20_000 == pytest.approx(second, abs=0.015)


def test_the_race_and_the_tickets_follow_one_law(monkeypatch):
    weights = np.array([1, 2, 3, 4, 10, 20, 2, 2, 2, 2, 2, 2, 6])
    tickets = draw_documents(weights, 40_000, 10, rng(3))
    monkeypatch.setattr(draws, "_TICKETS", 1)
    raced = draw_documents(weights, 40_000, 10, rng(4))
    for place in (1, 4, 9):
        shares = [np.bincount(drawn[:, place], minlength=13) / 40_000 for drawn in (tickets, raced)]
        assert shares[0] == pytest.approx(shares[1], abs=0.012)


def test_documents_of_weight_0_are_never_drawn():
    drawn = draw_documents(np.array([0, 2, 0, 5, 0]), 50, 10, rng())
    assert (np.sort(drawn, axis=1) == [1, 3]).all()
    assert draw_documents(np.zeros(4, np.int64), 50, 10, rng()).shape == (50, 0)


def test_random_retrieval_averages_to_the_exact_expectation_under_equal_weights(monkeypatch):
    qrels = {"q1": {DOCS[0]: 3}, "q2": {DOCS[5]: 2, DOCS[6]: 1}}
    table = bench_from(qrels)
    weights = table.column(dict.fromkeys(DOCS[:50], 4))
    monkeypatch.setattr(draws, "ROWS_AT_ONCE", 40_000)
    totals = random_totals(table, weights, 40_000, rng())
    discounts = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    expected = discounts / 50 * (3 / 3 + 3 / (2 + 1 / math.log2(3)))
    assert totals.mean() / SCORE_UNIT == pytest.approx(expected, rel=0.03)


def test_the_most_retrieved_list_goes_by_count_then_rank_then_doc_id():
    rankings = np.array([[4, 7, 1, 3], [7, 4, 2, -1], [9, 7, 3, -1]])
    assert most_retrieved(rankings).tolist() == [7, 4, 3, 9]
    assert most_retrieved(np.tile([5, 3, 8, 1], (6, 1))).tolist() == [5, 3, 8, 1]
    assert most_retrieved(np.arange(30).reshape(3, 10)).tolist() == [0, 10, 20, 1, 11, 21, 2, 12, 22, 3]
    assert most_retrieved(np.full((3, 10), -1)).tolist() == []


def test_the_greatest_values_come_first_and_zeros_not_at_all():
    assert greatest(np.array([3, 9, 0, 9, 1]), 10).tolist() == [1, 3, 0, 4]
    assert len(greatest(np.arange(1, 40), 10)) == 10
