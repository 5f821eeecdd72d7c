from itertools import pairwise

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import READ_TOKENS, ChunkHit, Span
from runner.score.recall_curves import RANKS, TOKENS, recall_curves
from tests.support.example_results import BASELINE, SPARSE
from tests.support.pool_cases import comparison, random_case

DOCS = "abcdef"
READINGS = st.lists(st.tuples(st.sampled_from(DOCS), st.integers(1, 3000)), max_size=12)
GRADES = st.dictionaries(st.sampled_from(DOCS), st.integers(0, 3))


def chunk(doc_id, n_tokens):
    return ChunkHit(doc_id, Span(0, 1), n_tokens)


def reading(*chunks):
    return tuple(chunk(*one) for one in chunks)


def means(points):
    return [point.mean for point in points]


def token_by_token(chunks, budget, wanted):
    """Recall of a reader who takes one token after the other and writes down whose it was."""
    stream = [doc_id for doc_id, n_tokens in chunks for _ in range(n_tokens)]
    return len(set(stream[:budget]) & wanted) / len(wanted) if wanted else 0.0


@pytest.mark.parametrize("seed", range(4))
def test_recall_by_rank_is_what_trec_eval_computes(seed):
    rankings, qrels = random_case(seed, (BASELINE, SPARSE))
    found = recall_curves(comparison(rankings, qrels), {})
    binary = {q: {d: int(grade >= 2) for d, grade in judged.items()} for q, judged in qrels.items()}
    ranks = ",".join(map(str, RANKS))
    for cell, by_query in rankings.items():
        run = {q: {d: -float(place) for place, d in enumerate(docs)} for q, docs in by_query.items()}
        theirs = pytrec_eval.RelevanceEvaluator(binary, {f"recall.{ranks}"}).evaluate(run)
        for point in found[cell].by_rank:
            total = sum(theirs[q][f"recall_{point.at}"] for q in by_query if q in theirs)
            assert point.mean == pytest.approx(total / len(by_query), abs=2e-9)


def test_at_10_and_100_mean_and_interval_are_those_of_the_ranking():
    rankings, qrels = random_case(9, (BASELINE, SPARSE))
    whole = comparison(rankings, qrels)
    found = recall_curves(whole, {})
    for rank in (10, 100):
        for curve, measured in zip(found.values(), whole.means(f"recall@{rank}"), strict=True):
            (point,) = [point for point in curve.by_rank if point.at == rank]
            assert (point.mean, point.low, point.high) == (measured.mean, measured.low, measured.high)


@given(READINGS, READINGS, GRADES, GRADES)
def test_a_document_is_met_by_whoever_reads_a_token_of_it(first, second, first_grades, second_grades):
    chunks = {"p": first, "q": second}
    grades = {"p": first_grades, "q": second_grades}
    whole = comparison({BASELINE: {q: [] for q in chunks}}, grades)
    found = recall_curves(whole, {BASELINE: {q: reading(*read) for q, read in chunks.items()}})[BASELINE].by_tokens
    wanted = {q: {d for d, grade in judged.items() if grade >= 2} for q, judged in grades.items()}
    expected = [sum(token_by_token(chunks[q], budget, wanted[q]) for q in chunks) / 2 for budget in TOKENS]
    assert means(found) == pytest.approx(expected, abs=1e-9)
    assert [point.at for point in found] == list(TOKENS)


def test_large_chunks_cost_what_is_read_before_the_next_document():
    """Under one budget, three small chunks bring three documents, and a large one keeps the reader with the first."""
    read = {
        BASELINE: {"q": reading(("a", 200), ("b", 200), ("c", 200))},
        SPARSE: {"q": reading(("a", 3000), ("b", 3000), ("c", 3000))},
    }
    whole = comparison({cell: {"q": ["a", "b", "c"]} for cell in read}, {"q": {"a": 3, "b": 2, "c": 3}})
    found = recall_curves(whole, read)
    assert means(found[BASELINE].by_tokens) == [1, 1, 1, 1, 1]
    assert means(found[SPARSE].by_tokens) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 1], abs=1e-9)
    assert found[BASELINE].by_rank == found[SPARSE].by_rank


def test_the_token_that_a_document_begins_with_decides():
    whole = comparison({BASELINE: {"q": ["a", "b"]}}, {"q": {"b": 2}})
    for before, met in ((511, [1, 1, 1, 1, 1]), (512, [0, 1, 1, 1, 1]), (READ_TOKENS - 1, [0, 0, 0, 0, 1])):
        found = recall_curves(whole, {BASELINE: {"q": reading(("a", before), ("b", 5000))}})
        assert means(found[BASELINE].by_tokens) == met


def test_a_document_of_many_chunks_is_met_once():
    whole = comparison({BASELINE: {"q": ["a", "b"]}}, {"q": {"a": 3, "b": 3}})
    found = recall_curves(whole, {BASELINE: {"q": reading(("a", 100), ("a", 100), ("a", 100), ("b", 100))}})
    assert means(found[BASELINE].by_tokens) == [1] * 5


def test_a_query_without_anything_relevant_counts_as_0():
    whole = comparison({BASELINE: {"p": ["a"], "q": ["a"], "r": ["a"]}}, {"p": {"a": 3}, "q": {"a": 1}})
    found = recall_curves(whole, {BASELINE: {q: reading(("a", 9)) for q in "pqr"}})[BASELINE]
    found_means = [*means(found.by_rank), *means(found.by_tokens)]
    assert found_means == pytest.approx([1 / 3] * len(found_means), abs=1e-9)


def test_the_plan_says_what_is_relevant():
    whole = comparison({BASELINE: {"q": ["a", "b"]}}, {"q": {"a": 1, "b": 1}}, relevant_grade=1)
    assert means(recall_curves(whole, {})[BASELINE].by_rank)[:2] == [0.5, 1]


def test_a_cell_without_a_reading_list_has_no_curve_by_tokens_and_keeps_the_other():
    whole = comparison({cell: {"q": ["a"]} for cell in (BASELINE, SPARSE)}, {"q": {"a": 3}})
    found = recall_curves(whole, {BASELINE: {"q": reading(("a", 9))}})
    assert found[SPARSE].by_tokens is None
    assert found[SPARSE].by_rank == found[BASELINE].by_rank
    assert all(curve.by_tokens is None for curve in recall_curves(whole, {}).values())


@pytest.mark.parametrize("seed", range(3))
def test_curves_never_fall_and_lie_in_their_intervals(seed):
    rankings, qrels = random_case(seed, (BASELINE,))
    read = {q: reading(*((d, 700) for d in docs)) for q, docs in rankings[BASELINE].items()}
    found = recall_curves(comparison(rankings, qrels), {BASELINE: read})[BASELINE]
    for points in (found.by_rank, found.by_tokens):
        assert all(less.mean <= more.mean for less, more in pairwise(points))
        assert all(0 <= point.low <= point.mean <= point.high <= 1 for point in points)


def test_with_chunks_of_one_length_tokens_and_ranks_say_the_same():
    rankings, qrels = random_case(5, (BASELINE,), n_queries=6)
    read = {q: reading(*((d, 512) for d in docs)) for q, docs in rankings[BASELINE].items()}
    found = recall_curves(comparison(rankings, qrels), {BASELINE: read})[BASELINE]
    by_rank, by_tokens = ({point.at: point for point in points} for points in (found.by_rank, found.by_tokens))
    for rank in (1, 2):
        ranked, met = by_rank[rank], by_tokens[512 * rank]
        assert (ranked.mean, ranked.low, ranked.high) == (met.mean, met.low, met.high)
