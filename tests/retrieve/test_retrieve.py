import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import READ_TOKENS, RUN_DEPTH, SCORE_UNIT, Chunk, Hit, Run, Span
from runner.retrieve import retrieve, shortlist
from runner.retrieve.ranking import chunk_table, leading
from runner.retrieve.retrieve import DenseArm, ExactScores, dense_run, fused_ids, rerank_run, rrf_run

DIM = 24


def corpus(n_documents, n_chunks, seed, distinct=30):
    """Chunks of many documents whose unit vectors repeat a few `distinct` ones, and queries near them."""
    rng = np.random.default_rng(seed)
    owners = np.concatenate([np.arange(n_documents), rng.integers(n_documents, size=n_chunks - n_documents)])
    chunks, counts = [], {}
    for owner in np.sort(owners).tolist():
        index = counts[owner] = counts.get(owner, -1) + 1
        chunks.append(Chunk(f"d{owner:04}", index, Span(index * 10, index * 10 + 10), "", int(rng.integers(1, 300))))
    directions = unit(rng.normal(size=(distinct, DIM)))
    vectors = directions[rng.integers(distinct, size=len(chunks))]
    queries = unit(directions[: min(5, distinct)] + 0.3 * rng.normal(size=(min(5, distinct), DIM)))
    return chunks, vectors, [f"q{i}" for i in range(len(queries))], queries


def apart(n):
    """Chunks of n documents, one each."""
    return [Chunk(f"d{i:05}", 0, Span(0, 5), "", 10) for i in range(n)]


def dense_arm(query_ids, queries, chunks, vectors):
    return DenseArm(query_ids, queries, chunks, vectors, chunk_table(chunks))


def ranked(queries, chunks, vectors):
    """The hits of every query, which is numbered."""
    run = dense_run("cell", dense_arm([f"q{i}" for i in range(len(queries))], queries, chunks, vectors)).run
    return [list(hits) for hits in run.hits.values()]


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def sparse_run(picked):
    return Run("bm25", {q: tuple(Hit(d, 1 / (i + 1), Span(0, 1)) for i, d in enumerate(p)) for q, p in picked.items()})


def brute_force(chunks, vectors, queries):
    """MaxP over every chunk in float64, sorted by Python; a list of (doc_id, score, span) for each query."""
    rankings = []
    for query in queries.astype(np.float64):
        best = {}
        for chunk, row in zip(chunks, vectors.astype(np.float64), strict=True):
            steps = round(float((row * query).sum()) * 100_000)
            key = (steps, -chunk.index)
            if chunk.doc_id not in best or key > best[chunk.doc_id][0]:
                best[chunk.doc_id] = (key, chunk.span)
        ordered = sorted(best, key=lambda doc_id: (best[doc_id][0][0], doc_id), reverse=True)[:RUN_DEPTH]
        rankings.append([Hit(doc_id, best[doc_id][0][0] / 100_000, best[doc_id][1]) for doc_id in ordered])
    return rankings


@given(st.integers(1, 250), st.integers(0, 400), st.integers(0, 2**32), st.sampled_from([1, 2, 7, 60, 400]))
def test_a_dense_run_equals_brute_force_in_float64_with_many_duplicates(n_documents, more, seed, distinct):
    chunks, vectors, _, queries = corpus(n_documents, n_documents + more, seed, distinct)
    assert ranked(queries, chunks, vectors) == brute_force(chunks, vectors, queries)


def test_rows_so_long_that_float32_misorders_them_are_ordered_as_in_float64():
    rng = np.random.default_rng(13)
    base = 1000 * unit(rng.normal(size=(1, DIM)))
    vectors = np.repeat(base, 2000, axis=0) + rng.normal(scale=1e-3, size=(2000, DIM)).astype(np.float32)
    queries = base + rng.normal(scale=100, size=(3, DIM)).astype(np.float32)
    assert ranked(queries, apart(2000), vectors) == brute_force(apart(2000), vectors, queries)


def close_calls(n_documents, more, seed):
    """Documents in no order, most of them within 1e-4 of one score; the later half of the rows is up to 1000 long.

    What makes those rows long stands nearly at right angles to the query, so that float32 sums of large numbers that
    cancel decide; and some rows occur twice.
    """
    rng = np.random.default_rng(seed)
    n = n_documents + more
    query = unit(rng.normal(size=(1, DIM))).astype(np.float64)
    across = rng.normal(size=(n, DIM))
    across = (
        unit(across - (across @ query.T) * query) * np.where(np.arange(n) < n // 2, 0.8, rng.choice([9, 999]))[:, None]
    )
    vectors = (query * (0.5 + rng.integers(-9, 10, size=(n, 1)) * 1e-5) + across).astype(np.float32)
    vectors[rng.integers(n, size=n // 3)] = vectors[rng.integers(n, size=n // 3)]
    owners = rng.permutation(np.concatenate([np.arange(n_documents), rng.integers(n_documents, size=more)]))
    counts: dict[int, int] = {}
    chunks = []
    for owner in owners.tolist():
        index = counts[owner] = counts.get(owner, -1) + 1
        chunks.append(Chunk(f"d{owner:04}", index, Span(index, index + 1), "", 50))
    return chunks, vectors, np.concatenate([query, -query, unit(vectors[:2])]).astype(np.float32)


@pytest.mark.slow
@given(
    st.integers(90, 700),
    st.integers(0, 700),
    st.integers(0, 2**32),
    st.sampled_from([1, 5, 50, 100_000]),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 2, 32]),
)
def test_close_calls_of_long_and_short_rows_are_ranked_as_in_float64(n_documents, more, seed, rows, workers, together):
    chunks, vectors, queries = close_calls(n_documents, more, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortlist, "BLOCK_BYTES", rows * DIM * 4)
        patch.setattr(shortlist, "QUERIES_TOGETHER", together)
        patch.setattr(shortlist, "cores", lambda: workers)
        found = ranked(queries, chunks, vectors)
    assert found == brute_force(chunks, vectors, queries)


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_longer_than_all_before_them_are_given_the_wider_margin_they_need(monkeypatch, workers):
    rng = np.random.default_rng(17)
    query = unit(rng.normal(size=(1, DIM)))
    across = unit(rng.normal(size=(20_000, DIM)))
    across = unit(across - (across @ query.T) * query)
    long = (0.5 * query + 1e5 * across.astype(np.float64)).astype(np.float32)
    exact = long.astype(np.float64) @ query[0].astype(np.float64)
    long = long[(exact > 0.5001) & (exact < 0.5005)][:90]  # the float32 scores of some lie far below 0.5
    vectors = np.concatenate([np.tile(query / 2, (900, 1)), long])
    chunks = apart(len(vectors))
    monkeypatch.setattr(shortlist, "cores", lambda: workers)
    monkeypatch.setattr(shortlist, "BLOCK_BYTES", (450 if workers == 1 else 900) * DIM * 4)
    (hits,) = found = ranked(query, chunks, vectors)
    assert len(long) == 90
    assert found == brute_force(chunks, vectors, query)
    assert {hit.doc_id for hit in hits[:90]} == {chunk.doc_id for chunk in chunks[900:]}


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_a_shortlist_leaves_most_documents_out_and_none_that_counts(monkeypatch, workers):
    rng = np.random.default_rng(21)
    vectors, queries = unit(rng.normal(size=(20_000, DIM))), unit(rng.normal(size=(40, DIM)))
    monkeypatch.setattr(shortlist, "cores", lambda: workers)
    found = shortlist.shortlists(queries, chunk_table(apart(20_000)), vectors)
    exact = queries.astype(np.float64) @ vectors.T.astype(np.float64)
    for documents, scores in zip(found, exact, strict=True):
        assert set(np.argsort(scores)[-RUN_DEPTH:]) <= set(documents.tolist())
        assert RUN_DEPTH <= len(documents) < 2 * RUN_DEPTH
        assert (np.diff(documents) > 0).all()


def test_documents_that_all_tie_all_stay_on_the_shortlist(monkeypatch):
    vectors = np.tile(unit(np.ones((1, DIM))), (3000, 1))
    monkeypatch.setattr(shortlist, "BLOCK_BYTES", 100 * DIM * 4)
    (found,) = shortlist.shortlists(vectors[:1], chunk_table(apart(3000)), vectors)
    assert found.tolist() == list(range(3000))


@pytest.mark.parametrize("block_rows", [1, 3, 64, 100_000])
def test_block_size_and_query_turns_change_nothing(monkeypatch, block_rows):
    chunks, vectors, query_ids, queries = corpus(180, 500, seed=1, distinct=200)
    expected = dense_run("cell", dense_arm(query_ids, queries, chunks, vectors))
    monkeypatch.setattr(shortlist, "BLOCK_BYTES", block_rows * DIM * 4)
    monkeypatch.setattr(shortlist, "PAIRS_AT_ONCE", 180)
    assert dense_run("cell", dense_arm(query_ids, queries, chunks, vectors)) == expected
    assert [
        dense_run("cell", dense_arm([q], queries[i : i + 1], chunks, vectors)).run.hits[q]
        for i, q in enumerate(query_ids)
    ] == [expected.run.hits[q] for q in query_ids]


def test_the_order_of_the_chunks_changes_nothing():
    chunks, vectors, query_ids, queries = corpus(150, 600, seed=2, distinct=40)
    order = np.random.default_rng(0).permutation(len(chunks))
    shuffled = [chunks[i] for i in order]
    expected = dense_run("cell", dense_arm(query_ids, queries, chunks, vectors))
    assert dense_run("cell", dense_arm(query_ids, queries, shuffled, vectors[order])) == expected
    sparse = expected.run
    for hybrid in (rerank_run, rrf_run):
        assert hybrid("cell", sparse, dense_arm(query_ids, queries, shuffled, vectors[order])) == hybrid(
            "cell", sparse, dense_arm(query_ids, queries, chunks, vectors)
        )


def test_a_row_scores_alike_alone_and_among_others():
    rng = np.random.default_rng(4)
    for dim in (1, 7, 8, 129, 384, 1024):
        vectors, query = unit(rng.normal(size=(300, dim))), unit(rng.normal(size=(1, dim)))[0]
        together = ExactScores(vectors).of(query, np.arange(300))
        alone = [ExactScores(vectors).of(query, np.array([i]))[0] for i in range(300)]
        assert together.tolist() == alone


def test_neither_the_layout_in_memory_nor_a_mapped_file_changes_anything(tmp_path: Path):
    chunks, vectors, query_ids, queries = corpus(300, 5000, seed=5, distinct=900)
    np.save(tmp_path / "rows.npy", vectors)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    turned = np.asfortranarray(vectors)
    expected = dense_run("cell", dense_arm(query_ids, queries, chunks, vectors))
    assert dense_run("cell", dense_arm(query_ids, np.asfortranarray(queries), chunks, turned)) == expected
    assert dense_run("cell", dense_arm(query_ids, queries, chunks, mapped)) == expected
    tail = dense_run("cell", dense_arm(query_ids, queries, chunks[100:], vectors[100:]))
    assert dense_run("cell", dense_arm(query_ids, queries, chunks[100:], mapped[100:])) == tail
    every_row = np.arange(len(chunks))
    assert (ExactScores(turned).of(queries[0], every_row) == ExactScores(vectors).of(queries[0], every_row)).all()


THREADS = """
import sys
from test_retrieve import *
chunks, vectors, query_ids, queries = corpus(900, 4000, seed=12, distinct=3000)
arm = dense_arm(query_ids, queries, chunks, vectors)
found = [hybrid("cell", dense_run("cell", arm).run, arm) for hybrid in (rerank_run, rrf_run)]
print(repr(found))
"""


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", THREADS],
            env=os.environ | {"OMP_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).parent,
            capture_output=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10_000


def test_vectors_that_do_not_fit_or_are_not_finite_raise():
    chunks, vectors, _, queries = corpus(10, 20, seed=6)
    with pytest.raises(ValueError, match="do not fit"):
        ranked(queries, chunks[1:], vectors)
    with pytest.raises(ValueError, match="do not fit"):
        ranked(queries[:, 1:], chunks, vectors)
    with pytest.raises(ValueError, match="not finite"):
        ranked(queries * np.float32("nan"), chunks, vectors)
    for value in (np.nan, np.inf, -np.inf):
        vectors[7, 3] = value
        with pytest.raises(ValueError, match="chunk vectors 0 to 20 hold a value that is not finite"):
            ranked(queries, chunks, vectors)


def test_no_chunks_at_all_give_every_query_an_empty_list():
    retrieved = dense_run("cell", dense_arm(["q"], np.zeros((1, DIM), np.float32), [], np.zeros((0, DIM), np.float32)))
    assert retrieved.run.hits == {"q": ()}
    assert retrieved.reading == {"q": ()}


def test_the_reading_list_runs_by_chunk_score_and_ends_with_the_chunk_that_reaches_the_budget():
    chunks, vectors, query_ids, queries = corpus(140, 900, seed=7, distinct=500)
    retrieved = dense_run("cell", dense_arm(query_ids, queries, chunks, vectors))
    for query, query_id in zip(queries, query_ids, strict=True):
        kept = {hit.doc_id for hit in retrieved.run.hits[query_id]}
        scores = ExactScores(vectors).of(query, np.arange(len(chunks)))
        keyed = [(score, chunk.doc_id, -chunk.index, chunk) for score, chunk in zip(scores, chunks, strict=True)]
        ordered = [entry[3] for entry in sorted(keyed, key=lambda e: e[:3], reverse=True) if entry[1] in kept]
        reading = retrieved.reading[query_id]
        assert [(c.doc_id, c.span, c.n_tokens) for c in reading] == [
            (c.doc_id, c.span, c.n_tokens) for c in ordered[: len(reading)]
        ]
        tokens = [c.n_tokens for c in reading]
        assert sum(tokens[:-1]) < READ_TOKENS <= sum(tokens)


def test_reranking_keeps_the_sparse_documents_and_takes_the_dense_order():
    chunks, vectors, query_ids, queries = corpus(300, 700, seed=9, distinct=500)
    rng = np.random.default_rng(9)
    picked = {q: [f"d{i:04}" for i in rng.choice(300, 40, replace=False)] for q in query_ids}
    picked[query_ids[0]] = []
    reranked = rerank_run("cell", sparse_run(picked), dense_arm(query_ids, queries, chunks, vectors))
    for i, query_id in enumerate(query_ids):
        subset = [j for j, chunk in enumerate(chunks) if chunk.doc_id in picked[query_id]]
        expected = brute_force([chunks[j] for j in subset], vectors[subset], queries[i : i + 1])[0]
        assert list(reranked.run.hits[query_id]) == expected
        assert {chunk.doc_id for chunk in reranked.reading[query_id]} <= set(picked[query_id])


def test_a_sparse_run_with_a_document_of_another_corpus_raises():
    chunks, vectors, query_ids, queries = corpus(10, 20, seed=6)
    sparse = Run("bm25", dict.fromkeys(query_ids, (Hit("elsewhere", 1.0, Span(0, 1)),)))
    with pytest.raises(ValueError, match="elsewhere"):
        rerank_run("cell", sparse, dense_arm(query_ids, queries, chunks, vectors))


def test_reciprocal_ranks_keep_every_difference_between_exact_sums():
    places = range(1, RUN_DEPTH + 1)
    k = retrieve.RRF_K
    sums = {(2 * k + r + s) / ((k + r) * (k + s)) for r in places for s in range(r, RUN_DEPTH + 1)}
    sums |= {1 / (k + r) for r in places}
    gaps = np.diff(sorted(sums))
    assert gaps[gaps > 1e-15].min() > 1 / SCORE_UNIT
    expected = [("3", round(1e9 / 62 + 1e9 / 61)), ("7", round(1e9 / 61)), ("9", round(1e9 / 62))]
    assert fused_ids([["7", "3"], ["3", "9"]]) == expected
    assert [doc_id for doc_id, _ in fused_ids([["a", "b"], ["b", "a"]])] == ["b", "a"]


def test_fusion_ranks_by_summed_reciprocal_ranks_with_the_dense_arms_evidence():
    chunks, vectors, query_ids, queries = corpus(260, 700, seed=10, distinct=600)
    rng = np.random.default_rng(10)
    picked = {q: [f"d{i:04}" for i in rng.choice(260, 80, replace=False)] for q in query_ids}
    dense = dense_run("dense", dense_arm(query_ids, queries, chunks, vectors)).run
    fused = rrf_run("cell", sparse_run(picked), dense_arm(query_ids, queries, chunks, vectors))
    for i, query_id in enumerate(query_ids):
        sums = {}
        for ranking in (picked[query_id], [hit.doc_id for hit in dense.hits[query_id]]):
            for place, doc_id in enumerate(ranking, start=1):
                sums[doc_id] = sums.get(doc_id, 0) + 1 / (60 + place)
        ordered = sorted(sums, key=lambda d: (round(sums[d] * 1e9), d), reverse=True)[:RUN_DEPTH]
        hits = fused.run.hits[query_id]
        assert [hit.doc_id for hit in hits] == ordered
        assert [hit.score for hit in hits] == pytest.approx([sums[d] for d in ordered], abs=5.1e-10)
        below = [j for j, chunk in enumerate(chunks) if chunk.doc_id in ordered]
        alone = brute_force([chunks[j] for j in below], vectors[below], queries[i : i + 1])[0]
        evidence = {hit.doc_id: hit.span for hit in alone}
        assert {hit.doc_id: hit.span for hit in hits} == evidence


def test_a_fused_reading_list_goes_round_the_documents_best_chunks_first():
    chunks, vectors, query_ids, queries = corpus(6, 18, seed=11, distinct=18)
    fused = rrf_run("cell", Run("bm25", dict.fromkeys(query_ids, ())), dense_arm(query_ids, queries, chunks, vectors))
    for i, query_id in enumerate(query_ids):
        order = [hit.doc_id for hit in fused.run.hits[query_id]]
        rows = sorted(
            range(len(chunks)), key=lambda j: (-ExactScores(vectors).of(queries[i], np.array([j]))[0], chunks[j].index)
        )
        rounds = {doc_id: [chunks[j].span for j in rows if chunks[j].doc_id == doc_id] for doc_id in order}
        expected = [(d, rounds[d][turn]) for turn in range(18) for d in order if turn < len(rounds[d])]
        assert [(chunk.doc_id, chunk.span) for chunk in fused.reading[query_id]] == expected


def test_leading_keeps_everything_that_ties_with_the_last():
    assert leading(np.array([3, 1, 2, 2, 5, 2]), 3).tolist() == [0, 2, 3, 4, 5]
    assert leading(np.array([1, 1]), 3).tolist() == [0, 1]


@given(st.lists(st.tuples(st.sampled_from(["a", "ab", "b", "c", "é"]), st.integers(0, 9)), max_size=30, unique=True))
def test_a_table_of_chunks_in_any_order_says_where_each_documents_rows_are(owned):
    chunks = [Chunk(doc_id, index, Span(0, 1), "", index + 1) for doc_id, index in owned]
    table = chunk_table(chunks)
    assert list(table.doc_ids) == sorted({doc_id for doc_id, _ in owned}) == list(table.numbers)
    assert [table.doc_ids[number] for number in table.documents] == [doc_id for doc_id, _ in owned]
    assert [(table.indices[row], table.n_tokens[row]) for row in range(len(owned))] == [(i, i + 1) for _, i in owned]
    for number, doc_id in enumerate(table.doc_ids):
        rows = table.rows_of(np.array([number]))
        assert [owned[row] for row in rows] == sorted(pair for pair in owned if pair[0] == doc_id)
