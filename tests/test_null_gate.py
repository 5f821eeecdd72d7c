import json
import math

import numpy as np
import pytest

from runner import null_gate as gate_module
from runner.null_gate import (
    cross_scores,
    draw_documents,
    null_gate,
    permutation_groups,
    permuted_totals,
    random_totals,
)
from runner.records import SCORE_UNIT, Hit, Run, Span
from runner.score import score

DOCS = [f"d{i:03}" for i in range(200)]
CHUNKS = {doc_id: 1 + i % 17 for i, doc_id in enumerate(DOCS)}


def graded(n_queries, seed=0):
    rng = np.random.default_rng(seed)
    return {
        f"q{i:02}": {DOCS[j]: int(rng.integers(0, 4)) for j in rng.choice(len(DOCS), 8, replace=False)} | {DOCS[i]: 3}
        for i in range(n_queries)
    }


def run_of(rankings):
    return Run("cell", {q: tuple(Hit(d, 1.0, Span(0, 1)) for d in docs) for q, docs in rankings.items()})


def oracle(qrels):
    return run_of({q: sorted(grades, key=lambda d: (-grades[d], d)) for q, grades in qrels.items()})


def verdict(run, qrels, seed=1, draws=500, strata=None, **thresholds):
    query_ids = list(run.hits)
    strata = strata or dict.fromkeys(query_ids, "all")
    thresholds = {"tau": 0.05, "alpha": 0.05} | thresholds
    return null_gate(run, query_ids, qrels, strata, CHUNKS, draws=draws, seed=seed, **thresholds)


def test_an_oracle_passes_both_nulls():
    qrels = graded(25)
    found = verdict(oracle(qrels), qrels)
    assert found.verdict == "pass"
    assert [null.name for null in found.nulls] == ["permuted qrels", "random retrieval"]
    assert found.real == 1
    assert all(null.p == pytest.approx(1 / 501) and null.delta > 0.8 for null in found.nulls)


def test_a_list_that_ignores_the_query_fails_even_where_it_is_a_popular_one():
    qrels = graded(25)
    for query_id in list(qrels)[:18]:
        qrels[query_id] |= {DOCS[150]: 3, DOCS[151]: 3}
    found = verdict(run_of(dict.fromkeys(qrels, DOCS[150:160])), qrels)
    permuted, drawn = found.nulls
    assert (permuted.verdict, permuted.p, permuted.delta, permuted.sd) == (
        "fail",
        1,
        pytest.approx(0),
        pytest.approx(0),
    )
    assert drawn.verdict == "pass"
    assert found.verdict == "fail"


def test_retrieval_with_the_labels_of_other_queries_fails():
    qrels = graded(25)
    names = list(qrels)
    shifted = {q: qrels[names[(i + 1) % len(names)]] for i, q in enumerate(names)}
    assert verdict(oracle(shifted), qrels).verdict == "fail"


def test_random_retrieval_passes_a_null_about_as_often_as_alpha_and_the_gate_no_more_often():
    qrels, rng = graded(20), np.random.default_rng(5)
    weights = np.array(list(CHUNKS.values())) / sum(CHUNKS.values())
    small, passed = np.zeros(2), 0
    for seed in range(200):
        run = run_of({q: rng.choice(DOCS, 10, replace=False, p=weights).tolist() for q in qrels})
        found = verdict(run, qrels, seed=seed, draws=99, tau=0.0)
        small += [null.p <= 0.05 for null in found.nulls]
        passed += found.verdict == "pass"
    assert (small / 200 >= 0.01).all()
    assert (small / 200 <= 0.1).all()
    assert passed / 200 <= 0.08


def test_an_effect_below_tau_fails_however_small_its_p():
    qrels = graded(25)
    found = verdict(oracle(qrels), qrels, tau=0.99)
    assert found.nulls[0].p < 0.01
    assert found.nulls[0].verdict == "fail"


def test_three_queries_are_insufficient_and_so_are_too_few_draws():
    qrels = graded(3)
    found = verdict(oracle(qrels), qrels)
    assert [null.verdict for null in found.nulls] == ["insufficient", "pass"]
    assert found.nulls[0].smallest_p == pytest.approx(1 / 6)
    assert found.verdict == "insufficient"
    qrels = graded(25)
    assert {null.verdict for null in verdict(oracle(qrels), qrels, draws=18).nulls} == {"insufficient"}
    assert verdict(oracle(qrels), qrels, draws=19).verdict == "pass"


def test_queries_that_share_one_qrels_are_insufficient():
    qrels = {f"q{i}": {DOCS[3]: 3} for i in range(25)}
    found = verdict(oracle(qrels), qrels)
    assert (found.nulls[0].verdict, found.nulls[0].smallest_p) == ("insufficient", 1)


def test_judgments_without_a_relevant_document_are_insufficient():
    qrels = {q: dict.fromkeys(grades, 0) for q, grades in graded(25).items()}
    found = verdict(oracle(qrels), qrels)
    assert (found.verdict, found.real) == ("insufficient", 0)


def test_a_cheater_that_knows_only_the_stratum_fails():
    strata = {f"q{i:02}": "house" if i % 2 else "senate" for i in range(30)}
    lists = {"house": DOCS[:10], "senate": DOCS[100:110]}
    rng = np.random.default_rng(6)
    qrels = {q: dict.fromkeys(rng.choice(lists[strata[q]], 4, replace=False).tolist(), 3) for q in strata}
    run = run_of({q: lists[strata[q]] for q in strata})
    assert verdict(run, qrels, strata=strata).nulls[0].verdict == "fail"
    assert verdict(run, qrels).nulls[0].verdict == "pass"


def test_cross_scores_are_the_scores_of_every_run_under_every_qrels():
    qrels = graded(12)
    rng = np.random.default_rng(7)
    run = run_of({q: rng.choice(DOCS, 2 * i, replace=False).tolist() for i, q in enumerate(qrels)})
    cross = cross_scores(run, list(qrels), qrels)
    for row, query_id in enumerate(qrels):
        swapped = Run("cell", dict.fromkeys(qrels, run.hits[query_id]))
        assert cross[row].tolist() == list(score(swapped, list(qrels), qrels, 2).values["ndcg@10"])


def test_queries_alone_in_their_stratum_exchange_among_themselves():
    def groups(*strata):
        return [group.tolist() for group in permutation_groups(strata)]

    assert groups("b", "a", "a", "b") == [[1, 2], [0, 3]]
    assert groups("b", "a", "c", "a") == [[1, 3], [0, 2]]
    assert groups("b", "a", "a", "c", "c", "c") == [[1, 2], [0, 3, 4, 5]]
    assert groups("a") == [[0]]
    assert groups() == []


def test_permutations_stay_in_their_group_and_average_to_its_mean():
    cross = np.arange(36).reshape(6, 6) * 1000
    groups = permutation_groups(["a", "a", "a", "b", "b", "b"])
    totals = permuted_totals(cross, groups, 20_000, np.random.default_rng(1))
    expected = sum(cross[np.ix_(group, group)].sum() / 3 for group in groups)
    assert totals.mean() == pytest.approx(expected, rel=0.005)
    assert {int(t) for t in permuted_totals(cross, [np.array([0])], 5, np.random.default_rng(1))} == {0}


@pytest.mark.parametrize("weights", [[1, 1, 2, 4, 8, 1000, 1, 1, 1, 1, 1, 5], [3] * 40, [1, 7, 2]])
def test_documents_are_drawn_by_weight_without_replacement(weights):
    weights = np.array(weights)
    drawn = draw_documents(weights, 20_000, np.random.default_rng(2))
    depth = min(10, len(weights))
    assert drawn.shape == (20_000, depth)
    assert all(len(set(row)) == depth for row in drawn[:500].tolist())
    first = np.bincount(drawn[:, 0], minlength=len(weights)) / 20_000
    share = weights / weights.sum()
    assert first == pytest.approx(share, abs=0.015)
    second = sum(
        share[i] * np.where(np.arange(len(weights)) == i, 0, share / (1 - share[i])) for i in range(len(share))
    )
    assert np.bincount(drawn[:, 1], minlength=len(weights)) / 20_000 == pytest.approx(second, abs=0.015)


def test_the_race_and_the_tickets_follow_one_law(monkeypatch):
    weights = np.array([1, 2, 3, 4, 10, 20, 2, 2, 2, 2, 2, 2, 6])
    tickets = draw_documents(weights, 40_000, np.random.default_rng(3))
    monkeypatch.setattr(gate_module, "_TICKETS", 1)
    raced = draw_documents(weights, 40_000, np.random.default_rng(4))
    for place in (1, 4, 9):
        shares = [np.bincount(drawn[:, place], minlength=13) / 40_000 for drawn in (tickets, raced)]
        assert shares[0] == pytest.approx(shares[1], abs=0.012)


def test_random_retrieval_averages_to_the_exact_expectation_under_equal_weights():
    qrels = {"q1": {DOCS[0]: 3}, "q2": {DOCS[5]: 2, DOCS[6]: 1}}
    totals = random_totals(list(qrels), qrels, dict.fromkeys(DOCS[:50], 4), 40_000, np.random.default_rng(5))
    discounts = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    ideal = [3, 2 + 1 / math.log2(3)]
    expected = discounts / 50 * (3 / ideal[0] + 3 / ideal[1])
    assert totals.mean() / SCORE_UNIT == pytest.approx(expected, rel=0.03)


def test_documents_without_a_chunk_are_never_drawn():
    qrels = {"q1": {DOCS[0]: 3}}
    totals = random_totals(["q1"], qrels, {DOCS[0]: 0, DOCS[1]: 2, DOCS[2]: 1}, 100, np.random.default_rng(6))
    assert set(totals.tolist()) == {0}


def test_the_same_seed_gives_the_same_verdict_and_json_takes_it():
    qrels = graded(25)
    first, second = verdict(oracle(qrels), qrels), verdict(oracle(qrels), qrels)
    assert first == second
    assert first != verdict(oracle(qrels), qrels, seed=2)
    row = json.loads(json.dumps(first.model_dump(), allow_nan=False))
    assert (row["verdict"], row["nulls"][0]["name"], row["draws"]) == ("pass", "permuted qrels", 500)
