"""The share of queries whose list does not depend on the query: by its definition, and where it is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.score.score import score
from tests.support.graded_sets import DOCS, gate_of, graded, oracle, run_of

KINDS = {
    "one list": lambda rng: DOCS[90:100],
    "one of three": lambda rng: DOCS[(start := 60 * int(rng.integers(3))) : start + 10],
    "shuffled": lambda rng: rng.permutation(DOCS[40:50]).tolist(),
    "drawn": lambda rng: rng.choice(DOCS, 10, replace=False).tolist(),
}


def share(run, qrels, strata=None):
    return gate_of(qrels, strata).blind(run)


def lists_of(run):
    return {query: [hit.doc_id for hit in hits] for query, hits in run.hits.items()}


@given(st.integers(0, 10_000), st.integers(2, 9), st.booleans())
def test_it_is_twice_the_chance_that_another_querys_list_serves_as_well(seed, n_queries, two_strata):
    qrels, rng = graded(n_queries, seed), np.random.default_rng(seed)
    strata = {q: "ab"[place % 2] if two_strata and n_queries > 3 else "a" for place, q in enumerate(qrels)}
    run = run_of({q: rng.choice(DOCS[:40], rng.integers(0, 12), replace=False).tolist() for q in qrels})
    chances = []
    for query, grades in qrels.items():
        scores = {
            other: score(run_of({query: lists_of(run)[other]}), [query], {query: grades}, 1).values["ndcg@10"][0]
            for other in qrels
            if strata[other] == strata[query]
        }
        own = scores.pop(query)
        if any(grade > 0 for grade in grades.values()):
            chances.append(np.mean([(theirs > own) + (theirs == own) / 2 for theirs in scores.values()]))
    assert share(run, qrels, strata) == pytest.approx(min(1, 2 * np.mean(chances)))


@given(st.integers(0, 10_000), st.sampled_from(sorted(KINDS)), st.sampled_from([0, 10, 25, 40, 50]))
def test_a_planted_share_of_blind_queries_is_found_whatever_the_kind(seed, kind, n_blind):
    qrels, rng = graded(50, seed), np.random.default_rng(seed)
    lists = lists_of(oracle(qrels))
    for query in rng.permutation(list(qrels))[:n_blind].tolist():
        lists[query] = KINDS[kind](rng)
    assert share(run_of(lists), qrels) == pytest.approx(n_blind / 50, abs=0.25)


def test_an_engine_that_knows_its_query_is_not_blind_and_one_list_is():
    qrels = graded(25)
    assert share(oracle(qrels), qrels) < 0.05
    assert share(run_of(dict.fromkeys(qrels, DOCS[:10])), qrels) == 1
    assert share(run_of({q: [] for q in qrels}), qrels) == 1


def test_a_list_for_each_stratum_is_blind_within_it():
    strata = {f"q{i:02}": "ab"[i % 2] for i in range(24)}
    qrels = {q: {DOCS[i]: 3} for i, q in enumerate(strata)}
    run = run_of({q: DOCS[i % 2 : 20 : 2] for i, q in enumerate(qrels)})
    assert (share(run, qrels, strata), share(run, qrels) < 1) == (1, True)


def test_without_two_queries_that_ask_for_something_nothing_is_blind():
    assert share(run_of({"q": []}), {"q": {DOCS[0]: 1}}) == 0
    qrels = {"q": {DOCS[0]: 0}, "r": {DOCS[1]: 0}}
    assert share(run_of({"q": [], "r": []}), qrels) == 0
