import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.score.other_measures import arms, pool_bias
from tests.support.example_results import BASELINE, BETTER, HYBRID, SPARSE
from tests.support.pool_cases import comparison, random_case

WORTH = [0.0] + [1 / math.log2(rank + 1) for rank in range(1, 11)]
"""What a grade counts at each rank, from 1."""
OTHER = "nomic-v1.5 x fixed_token_512_50"


def test_a_cell_alone_with_its_find_loses_it_and_others_lose_nothing():
    rankings = {BASELINE: {"q": ["a", "b"]}, SPARSE: {"q": ["c", "a"]}}
    found = pool_bias(comparison(rankings, {"q": {"a": 3, "b": 0, "c": 3}}, pool_depth=2))
    sparse, baseline = found[SPARSE], found[BASELINE]
    assert (sparse.pairs, sparse.kin.pairs, sparse.kin.relevant) == (2, 1, 1)
    # Without c the ideal is a alone, which the baseline has first and the sparse cell second.
    assert (sparse.kin.ndcg, sparse.kin.difference) == pytest.approx((WORTH[2], WORTH[2] - 1), abs=1e-8)
    assert (baseline.kin.pairs, baseline.kin.relevant, baseline.kin.difference) == (1, 0, 0)


def test_what_lies_below_the_pools_depth_was_brought_by_nobody():
    rankings = {BASELINE: {"q": ["a"]}, SPARSE: {"q": ["a", "c"]}}
    qrels = {"q": {"a": 1, "c": 3}}
    assert pool_bias(comparison(rankings, qrels, pool_depth=1))[SPARSE].kin.pairs == 0
    assert pool_bias(comparison(rankings, qrels, pool_depth=2))[SPARSE].kin.pairs == 1


def test_a_score_rises_where_the_cell_had_its_own_find_far_down():
    fillers = [f"f{i}" for i in range(12)]
    rankings = {BASELINE: {"q": ["a", *fillers]}, SPARSE: {"q": ["a", *fillers, "c"]}}
    found = pool_bias(comparison(rankings, {"q": {"a": 2, "c": 3}}, pool_depth=30))[SPARSE]
    assert found.kin.ndcg == 1


def test_what_cells_of_one_encoder_brought_is_left_out_together():
    rankings = {
        BASELINE: {"q": ["a"]},
        OTHER: {"q": ["c", "a"]},
        "nomic-v1.5 x fixed_token_1024_100": {"q": ["c", "b"]},
    }
    found = pool_bias(comparison(rankings, {"q": {"a": 1, "b": 2, "c": 3}}))[OTHER]
    assert (found.kin.pairs, found.kin.relevant) == (2, 2)
    assert found.kin.ndcg == pytest.approx(WORTH[2], abs=1e-8)


def test_the_baseline_stays_in_the_pool_for_its_own_kin():
    rankings = {BASELINE: {"q": ["a"]}, BETTER: {"q": ["a", "b"]}, SPARSE: {"q": ["c"]}}
    found = pool_bias(comparison(rankings, {"q": {"a": 3, "b": 3, "c": 3}}))
    assert found[BETTER].kin.pairs == 1
    assert found[BASELINE].kin.pairs == 2


def test_what_a_cell_ranks_by():
    assert arms(BASELINE) == arms(BETTER) == {"minilm-l6-v2"}
    assert arms("bm25-okapi x whole_doc") == arms(SPARSE) == {"bm25"}
    assert arms(HYBRID) == arms("rrf(bm25,minilm-l6-v2) x whole_doc") == {"bm25", "minilm-l6-v2"}
    assert arms("trec:their-run") == {"trec:their-run"}


def test_a_pool_of_one_cell_cannot_spare_it():
    found = pool_bias(comparison({BASELINE: {"q": ["a"]}}, {"q": {"a": 3}}))[BASELINE]
    assert (found.pairs, found.kin) == (1, None)
    relatives = pool_bias(comparison({BASELINE: {"q": ["a"]}, BETTER: {"q": ["a"]}}, {"q": {"a": 3}}))
    assert relatives[BASELINE].kin is None


def test_of_published_judgments_nothing_is_said_since_no_cell_of_the_page_pooled_them():
    rankings, qrels = random_case(1, (BASELINE, SPARSE))
    assert pool_bias(comparison(rankings, qrels, published=True)) == {}


@given(st.integers(0, 10_000), st.sampled_from([1, 5, 30]))
def test_a_cell_scores_as_under_the_judgments_that_the_others_pools_hold(seed, depth):
    cells = (BASELINE, SPARSE, OTHER)
    rankings, qrels = random_case(seed, cells)
    pooled = {cell: {(q, d) for q, docs in rankings[cell].items() for d in docs[:depth]} for cell in cells}
    only = pooled[SPARSE] - pooled[BASELINE] - pooled[OTHER]
    found = pool_bias(comparison(rankings, qrels, pool_depth=depth))[SPARSE]
    assert found.kin.pairs == len(only)
    assert found.kin.relevant == sum(qrels.get(q, {}).get(d, 0) >= 2 for q, d in only)
    kept = {q: {d: g for d, g in grades.items() if (q, d) not in only} for q, grades in qrels.items()}
    scores = comparison(rankings, kept).scores
    own, baseline = (sum(scores[cell].values["ndcg@10"]) / (1e9 * 12) for cell in (SPARSE, BASELINE))
    assert found.kin.ndcg == pytest.approx(own, abs=1e-12)
    assert found.kin.difference == pytest.approx(own - baseline, abs=1e-12)
