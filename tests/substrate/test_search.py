import math
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.records import RUN_DEPTH, Chunk, Document, Hit, Run, Span
from runner.retrieve.ranking import SCORE_STEPS, chunk_table, rank
from runner.retrieve.retrieve import DenseArm, dense_run
from runner.retrieve.sums import summed
from runner.substrate.database import open_substrate
from runner.substrate.search import (
    BINARY,
    EXACT,
    KEYWORD,
    SUM,
    Searches,
    match_expression,
)
from tests.support.substrate_builder import Build, build, edit, fictional, unit_rows

DIM = 32
DOCUMENTS, CHUNKS = fictional(260, words=30)
IDS = [document.doc_id for document in DOCUMENTS]
VECTORS = unit_rows(len(CHUNKS), DIM, seed=2)
QUERIES = {"q1": "bramonl clotine Section", "q2": "dreskul, (ficlo) dreral AND", "q3": "Section 17", "q4": "…"}
QUERY_VECTORS = unit_rows(len(QUERIES), DIM, seed=5)
SAMPLE = IDS[:150]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("search") / "substrate.db", Build(DOCUMENTS, CHUNKS, VECTORS))


@contextmanager
def searches(path: Path, doc_ids=IDS, texts=QUERIES, vectors=QUERY_VECTORS, **more) -> Iterator[Searches]:
    with open_substrate(path, "bills") as substrate:
        yield Searches(substrate, texts, vectors, doc_ids, **more)


def runs(path: Path, *given, **more):
    with searches(path, *given, **more) as asked:
        return asked.runs()


def recall(path: Path, *given, **more):
    with searches(path, *given, **more) as asked:
        return asked.index_recall()


def brute_force(vectors=VECTORS, queries=QUERY_VECTORS, chunks=CHUNKS, query_ids=QUERIES):
    """The harness' own exact dense retrieval of the same chunks."""
    return dense_run("dense", DenseArm(list(query_ids), queries, chunks, vectors, chunk_table(chunks))).run


def same_runs(found: Run, wanted: Run) -> None:
    """The same queries, each with the same hits but for the last step."""
    assert found.hits.keys() == wanted.hits.keys() == QUERIES.keys()
    for query_id, hits in wanted.hits.items():
        same_but_for_last_step(found.hits[query_id], hits)


def same_but_for_last_step(found: tuple[Hit, ...], wanted: tuple[Hit, ...]) -> None:
    """sqlite-vec sums in float32, so that a score may round to the neighbouring step and order may follow it."""
    assert len(found) == len(wanted)
    scores = {hit.doc_id: hit for hit in wanted}
    lowest = wanted[-1].score if wanted else 0.0
    for place, hit in enumerate(found):
        assert abs(hit.score - wanted[place].score) < 2.5 / SCORE_STEPS
        if hit.doc_id in scores:
            assert abs(hit.score - scores[hit.doc_id].score) < 1.5 / SCORE_STEPS
            assert hit.span == scores[hit.doc_id].span
        else:
            assert abs(hit.score - lowest) < 1.5 / SCORE_STEPS


@pytest.mark.parametrize("metric", ["", "cosine", "l2"])
def test_exact_search_is_brute_force_over_all_chunks(metric, tmp_path):
    found = runs(build(tmp_path / "s.db", Build(DOCUMENTS, CHUNKS, VECTORS, metric=metric)))
    same_runs(found[EXACT], brute_force())


def test_exact_search_of_a_sample_is_brute_force_over_the_samples_chunks(path):
    rows = [row for row, chunk in enumerate(CHUNKS) if chunk.doc_id in set(SAMPLE)]
    wanted = brute_force(VECTORS[rows], chunks=[CHUNKS[row] for row in rows])
    same_runs(runs(path, SAMPLE)[EXACT], wanted)


def test_without_restriction_documents_outside_the_eval_set_are_found_under_their_own_ids(path):
    found = runs(path, SAMPLE, restricted=False)
    names = {doc_id: doc_id if doc_id in set(SAMPLE) else f"bill:118-hr-{doc_id[11:-2]}" for doc_id in IDS}
    wanted = {query_id: {names[hit.doc_id] for hit in hits} for query_id, hits in brute_force().hits.items()}
    for query_id, hits in found[EXACT].hits.items():
        assert len({hit.doc_id for hit in hits} & wanted[query_id]) >= RUN_DEPTH - 1
    restricted = runs(path, SAMPLE)
    for run in restricted.values():
        assert {hit.doc_id for hits in run.hits.values() for hit in hits} <= set(SAMPLE)


def _beside(query: np.ndarray, n: int, noise: float, seed: int = 9) -> np.ndarray:
    rows = unit_rows(n, DIM, seed=seed) * noise + query
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_documents_with_many_near_chunks_do_not_hide_the_hundredth(tmp_path):
    """The 400 chunks that exact search begins with are of 80 documents."""
    n_near, each, noise, n_far = 80, 5, 0.25, 60
    documents, _ = fictional(n_near + n_far)
    near = [Chunk(d.doc_id, n, Span(n, n + 1), "", 1) for d in documents[:n_near] for n in range(each)]
    chunks = near + [Chunk(document.doc_id, 0, Span(0, 1), "", 1) for document in documents[n_near:]]
    query = unit_rows(1, DIM, seed=8)
    vectors = np.concatenate([_beside(query, len(near), noise), unit_rows(n_far, DIM, seed=10)]).astype(np.float32)
    path = build(tmp_path / "s.db", Build(documents, chunks, vectors))
    ids = [document.doc_id for document in documents]
    found = runs(path, ids, {"q": "none"}, query)[EXACT].hits["q"]
    assert {hit.doc_id for hit in found[:n_near]} == set(ids[:n_near])
    same_but_for_last_step(found, brute_force(vectors, query, chunks, ["q"]).hits["q"])
    assert runs(path, ids, {"q": "none"}, query, restricted=False)[EXACT].hits["q"] == found


def test_equal_vectors_rank_by_document_id_descending_and_by_their_first_chunk(tmp_path):
    """4,000 chunks score alike, so that only going through all of them shows which documents come first."""
    documents, _ = fictional(125, words=200)
    chunks = [Chunk(d.doc_id, place, Span(place, place + 1), "", 1) for d in documents for place in range(32)]
    vectors = np.repeat(unit_rows(1, DIM, seed=1), len(chunks), axis=0)
    order = np.random.default_rng(0).permutation(len(chunks))
    path = build(tmp_path / "s.db", Build(documents, [chunks[i] for i in order], vectors))
    found = runs(path, [d.doc_id for d in documents], {"q": "Section"}, vectors[:1])[EXACT].hits["q"]
    wanted = sorted((document.doc_id for document in documents), reverse=True)[:RUN_DEPTH]
    assert [(hit.doc_id, hit.span, hit.score) for hit in found] == [(doc_id, Span(0, 1), 1.0) for doc_id in wanted]


def nearest_by_bits(query: np.ndarray, candidates: int) -> tuple[list[int], list[int]]:
    """Chunks that must be among the candidates, and those that tie for the places that are left."""
    distances = ((VECTORS > 0) != (query > 0)).sum(axis=1)
    nearest = np.argsort(distances, kind="stable")
    last = distances[nearest[candidates - 1]]
    return np.flatnonzero(distances < last).tolist(), np.flatnonzero(distances == last).tolist()


def test_binary_search_rescores_the_nearest_by_bits(path):
    """Which of the candidates that tie at the last Hamming distance are taken is sqlite-vec's choice."""
    found = runs(path, oversample=1)
    for query_id, query in zip(QUERIES, QUERY_VECTORS, strict=True):
        sure, tied = nearest_by_bits(query, RUN_DEPTH)
        hits = {(hit.doc_id, hit.span): hit.score for hit in found[BINARY].hits[query_id]}
        possible = {(CHUNKS[row].doc_id, CHUNKS[row].span): float(VECTORS[row] @ query) for row in sure + tied}
        for place, score in hits.items():
            assert abs(possible[place] - score) < 2 / SCORE_STEPS
        best: dict[str, float] = {}
        for row in sure:
            best[CHUNKS[row].doc_id] = max(best.get(CHUNKS[row].doc_id, -1), float(VECTORS[row] @ query))
        by_document = {doc_id: score for (doc_id, _), score in hits.items()}
        for doc_id, score in best.items():
            assert by_document[doc_id] > score - 2 / SCORE_STEPS


def test_with_as_many_candidates_as_chunks_binary_search_is_exact(path):
    found = runs(path, oversample=40)
    assert found[BINARY].hits == found[EXACT].hits
    assert recall(path, oversample=40) == {10: (1.0,) * 4, 100: (1.0,) * 4}


def fts_reference(text_query: str, doc_ids: list[str]) -> list[str]:
    """Documents by the best chunk of Python's own sqlite3 with the same words, statistics over all chunks."""
    texts = {document.doc_id: document.text for document in DOCUMENTS}
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(context, text, tokenize='porter unicode61')")
    rows = [(n, c.context, texts[c.doc_id][c.span.start : c.span.end]) for n, c in enumerate(CHUNKS)]
    connection.executemany("INSERT INTO f(rowid, context, text) VALUES (?, ?, ?)", rows)
    scored = connection.execute("SELECT rowid, -bm25(f) FROM f WHERE f MATCH ?", (text_query,)).fetchall()
    connection.close()
    kept = [(row, round(score * SCORE_STEPS)) for row, score in scored if CHUNKS[row].doc_id in set(doc_ids)]
    numbers = {doc_id: number for number, doc_id in enumerate(sorted(set(doc_ids)))}
    columns = np.array([(s, numbers[CHUNKS[r].doc_id], CHUNKS[r].index, r) for r, s in kept], np.int64).reshape(-1, 4)
    order = rank(columns[:, 0], columns[:, 1], columns[:, 2])
    best = order[np.sort(np.unique(columns[order, 1], return_index=True)[1])][:RUN_DEPTH]
    return [CHUNKS[row].doc_id for row in columns[best, 3]]


@pytest.mark.parametrize("doc_ids", [IDS, SAMPLE])
def test_keyword_search_is_fts5_bm25_by_the_best_chunk(path, doc_ids):
    found = runs(path, doc_ids)[KEYWORD].hits
    for query_id, words in {
        "q1": '"bramonl" OR "clotine" OR "Section"',
        "q2": '"dreskul" OR "ficlo" OR "dreral" OR "AND"',
        "q3": '"Section" OR "17"',
    }.items():
        assert [hit.doc_id for hit in found[query_id]] == fts_reference(words, doc_ids)
    assert found["q4"] == ()


def test_a_query_that_matches_every_chunk_is_ranked_to_the_depth(path):
    found = runs(path, IDS, {"q": "Act"}, QUERY_VECTORS[:1])[KEYWORD].hits["q"]
    assert [hit.doc_id for hit in found] == fts_reference('"Act"', IDS)
    assert len(found) == RUN_DEPTH


def test_keyword_search_ranks_as_the_substrates_maker_weighted_it(tmp_path):
    path = build(tmp_path / "s.db", Build(DOCUMENTS, CHUNKS, VECTORS))
    even = runs(path)[KEYWORD].hits["q3"]
    edit(path, "INSERT INTO bills_fts(bills_fts, rank) VALUES ('rank', 'bm25(50.0, 1.0)')")
    weighted = runs(path)[KEYWORD].hits["q3"]
    assert weighted[0].doc_id == "BILLS-118hr17ih"  # its context is "Act 17"
    assert weighted != even


def test_a_rank_function_that_makes_no_number_is_refused(tmp_path):
    path = build(tmp_path / "s.db", Build(DOCUMENTS[:3], CHUNKS[:4], VECTORS[:4]))
    edit(path, "INSERT INTO bills_fts(bills_fts, rank) VALUES ('rank', 'highlight(1, ''<'', ''>'')')")
    for restricted in (True, False):
        with pytest.raises(InputError, match="no number"):
            runs(path, IDS[:1], restricted=restricted)


@pytest.mark.parametrize("doc_ids", [IDS, SAMPLE])
def test_the_sum_is_the_harness_sum_of_both_arms(path, doc_ids):
    with searches(path, doc_ids) as asked:
        found, bounds = asked.runs(), {query_id: asked.bound(text) for query_id, text in QUERIES.items()}
    for query_id, hits in found[SUM].hits.items():
        keyword, dense = (found[arm].hits[query_id] for arm in (KEYWORD, BINARY))
        assert len(dense) == RUN_DEPTH
        assert hits == tuple(arms.hit for arms in summed(keyword, bounds[query_id], dense)[:RUN_DEPTH])
        assert all(hit.score <= bounds[query_id] for hit in keyword)
    assert bounds["q4"] == 0 < bounds["q3"]


def test_the_bound_is_fts5s_own_idf_by_its_vocabulary_and_no_chunk_of_that_word_alone_passes_it(tmp_path):
    words = ["bramonl " * n for n in (1, 2, 40, 900)] + ["clotine ficlo", "Section"]
    documents = [Document(f"BILLS-118hr{n}ih", text, "", "118", f"f{n}", "") for n, text in enumerate(words, start=1)]
    chunks = [Chunk(each.doc_id, 0, Span(0, len(each.text)), "", 1) for each in documents]
    path = build(tmp_path / "s.db", Build(documents, chunks, VECTORS[: len(chunks)]))
    asked = {
        "rare": "clotine",
        "half": "bramonl",
        "both": "bramonl clotine zebra",
        "phrase": "clotine-ficlo ficlo-clotine",
    }
    ids = [each.doc_id for each in documents]
    with searches(path, ids, asked, QUERY_VECTORS) as found:
        counts = {"bramonl": 4, "clotin": 1, "ficlo": 1, "section": 1}
        # FTS5's source: log((N - n + 0.5) / (n + 0.5)), and 1e-6 where that is not above 0.
        idf = {word: max(1e-6, math.log((6 - n + 0.5) / (n + 0.5))) for word, n in counts.items()}
        bounds = {query_id: found.bound(text) for query_id, text in asked.items()}
        keyword = found.runs()[KEYWORD].hits
    assert bounds["rare"] == pytest.approx(2.2 * idf["clotin"])
    assert bounds["half"] == pytest.approx(2.2 * 1e-6)
    nowhere = 2.2 * math.log(6.5 / 0.5)
    assert bounds["both"] == pytest.approx(bounds["rare"] + bounds["half"] + nowhere)
    assert bounds["phrase"] == pytest.approx(bounds["rare"] + nowhere)  # "ficlo clotine" stands nowhere
    for query_id, hits in keyword.items():
        assert all(hit.score <= bounds[query_id] + 1e-5 for hit in hits)


def test_the_sum_takes_100_documents_of_vectors_where_the_binary_arms_candidates_are_of_fewer(tmp_path):
    n_chunks = 20
    documents = [Document(f"BILLS-118hr{n}ih", "law " * n_chunks, "", "118", f"f{n}", "") for n in range(120)]
    chunks = [Chunk(d.doc_id, n, Span(4 * n, 4 * n + 3), "", 1) for d in documents for n in range(n_chunks)]
    vectors = np.repeat(unit_rows(len(documents), DIM, seed=4), n_chunks, axis=0)
    path = build(tmp_path / "s.db", Build(documents, chunks, vectors))
    ids = [document.doc_id for document in documents]
    found = runs(path, ids, {"q": "nothing"}, QUERY_VECTORS[:1])
    exact, binary, both = (found[arm].hits["q"] for arm in (EXACT, BINARY, SUM))
    assert len(binary) < RUN_DEPTH
    assert [hit.doc_id for hit in both] == [arms.doc_id for arms in summed((), 0.0, exact)]


def test_vectors_whose_signs_are_all_alike_lose_the_binary_index_and_not_exact_search(tmp_path):
    healthy = build(tmp_path / "healthy.db", Build(DOCUMENTS, CHUNKS, VECTORS))
    lossy = build(tmp_path / "lossy.db", Build(DOCUMENTS, CHUNKS, VECTORS, faults=["quantisation loss"]))
    recalls, exact = [], []
    for path in (healthy, lossy):
        recalls.append(float(np.mean(recall(path, oversample=2)[10])))
        exact.append([hit.doc_id for hit in runs(path)[EXACT].hits["q1"][:20]])
    assert recalls[0] > recalls[1] + 0.3
    assert len(set(exact[0]) & set(exact[1])) >= 14


def test_index_recall_counts_what_bits_found_of_exact_search(path):
    shares = recall(path, oversample=1)
    for place, query in enumerate(QUERY_VECTORS):
        sure, tied = nearest_by_bits(query, RUN_DEPTH)
        for depth, share in ((10, shares[10][place]), (100, shares[100][place])):
            nearest = set(np.argsort(-(VECTORS @ query), kind="stable")[:depth].tolist())
            fewest = len(nearest & set(sure))
            most = fewest + min(len(nearest & set(tied)), RUN_DEPTH - len(sure))
            assert fewest / depth <= share <= most / depth


def test_every_query_is_in_every_run_also_without_documents(path):
    for run in runs(path, []).values():
        assert run.hits == dict.fromkeys(QUERIES, ())
    assert recall(path, [])[10] == (1.0,) * 4
    assert recall(path, IDS, {}, np.zeros((0, DIM), np.float32)) == {10: (), 100: ()}


# What people type.


def test_words_are_quoted_and_joined_by_or():
    assert match_expression('grants, to "small" grants, §78dd-1 — NEAR(a b*)') == (
        '"grants," OR "to" OR """small""" OR "§78dd-1" OR "NEAR(a" OR "b*)"'
    )
    assert match_expression(" … -- \0 _ ") == ""


@pytest.fixture(scope="module")
def differently_cut(tmp_path_factory):
    """Substrates whose full-text tables have four tokenizers."""
    documents, chunks = fictional(3)
    vectors = unit_rows(len(chunks), 8, seed=1)
    with ExitStack() as stack:
        yield [
            stack.enter_context(open_substrate(build(path, Build(documents, chunks, vectors, tokenizer=cut)), "bills"))
            for cut in ("porter unicode61", "unicode61 tokenchars '-'", "trigram", "ascii")
            for path in [tmp_path_factory.mktemp("match") / "substrate.db"]
        ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80) | st.text(alphabet="\"'()*^:+-_ NEARORANDT{}\0\ud800a1\n§", max_size=80))
@example('"')
@example("a\0b")
@example("\ud800")
@example("a" * 70_000)
@example(" ".join(f"w{number}" for number in range(5000)))
def test_no_text_breaks_the_search(differently_cut, text):
    expression = match_expression(text)
    for substrate in differently_cut if expression else ():
        list(substrate.rows("SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? ORDER BY rank", (expression,)))
