"""`sum(bm25,ENCODER) x CHUNKER`: held to its formula written out, and every plausible error in it found."""

import bz2
import math
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base import records
from runner.base.canonical import file_sha256, read_json
from runner.base.errors import IntegrityError
from runner.base.records import EVIDENCE_DEPTH, RUN_DEPTH, SCORE_UNIT, Arms, Hit, Span, parse_cell
from runner.embed.backends import LocalBackend
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import embed
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.runs import arms_bytes, has_arms, read_arms, read_run
from runner.retrieve import make_runs, sums
from runner.retrieve.bm25 import BM25_VARIANTS, bm25_run
from runner.retrieve.retrieve import ExactScores
from runner.retrieve.sums import sum_run, summed
from runner.retrieve.words import stemmed_terms
from tests.retrieve.test_bm25 import QUERIES, corpus, expected_hits, lucene_scores
from tests.retrieve.test_retrieve import brute_force, dense_arm, unit
from tests.support.small_set import begin, fake_encoders

CELL = "sum(bm25,minilm-l6-v2) x section_aware_bills_v1"


def lucene_bound(corpus_tokens, query_tokens):
    """The sum of idf over the query's terms, repeated and unknown ones too."""
    n = len(corpus_tokens)
    having = [sum(term in tokens for tokens in corpus_tokens) for term in query_tokens]
    return sum(math.log(1 + (n - df + 0.5) / (df + 0.5)) for df in having)


def written_out(chunks, texts, vectors, text, query):
    """The sum of one query by its formula: a list of (doc_id, steps of 1e-9, evidence, share, room), best first."""
    tokens, terms = [stemmed_terms(each) for each in texts], stemmed_terms(text)
    words = expected_hits(chunks, lucene_scores(tokens, terms))
    meaning = [(hit.doc_id, hit.score, hit.span) for hit in brute_force(chunks, vectors, query[None])[0]]
    floor, bound = meaning[-1][1], lucene_bound(tokens, terms)
    share = {doc_id: min(1.0, score / bound) for doc_id, score, _ in words}
    room = {doc_id: (score - floor) / (1 - floor) for doc_id, score, _ in meaning}
    evidence = {doc_id: span for doc_id, _, span in (*words, *meaning)}  # meaning's, if it has the document
    halves = {d: [round(half.get(d, 0) * SCORE_UNIT) for half in (share, room)] for d in evidence}
    order = sorted(evidence, key=lambda d: (sum(halves[d]) // 2, d), reverse=True)
    return [(d, sum(halves[d]) // 2, evidence[d], share.get(d), room.get(d)) for d in order]


def check(found_hits, found_arms, expected, with_evidence=RUN_DEPTH):
    """The hits and arms of one query are those of the formula; the first ones have their evidence."""
    steps = [(hit.doc_id, round(hit.score * SCORE_UNIT), hit.span) for hit in found_hits]
    assert steps == [
        (*row[:2], row[2] if rank < with_evidence else None) for rank, row in enumerate(expected[:RUN_DEPTH])
    ]
    assert [(arms.doc_id, arms.words, arms.meaning) for arms in found_arms] == [
        (doc_id, *(None if half is None else round(half * SCORE_UNIT) / SCORE_UNIT for half in row))
        for doc_id, _, _, *row in expected
    ]


def summed_corpus(n_chunks=400, seed=0):
    """Chunks with texts, unit vectors and their arm; every query of QUERIES has a vector."""
    chunks, texts = corpus(n_chunks=n_chunks, seed=seed)
    rng = np.random.default_rng(seed)
    vectors, queries = unit(rng.normal(size=(len(chunks), 24))), unit(rng.normal(size=(len(QUERIES), 24)))
    return chunks, texts, dense_arm(list(QUERIES), queries, chunks, vectors)


def test_a_sum_equals_its_formula_written_out_and_keeps_both_arms():
    chunks, texts, arm = summed_corpus()
    retrieved = sum_run("cell", bm25_run("bm25 x c", "bm25", QUERIES, chunks, texts), arm)
    for (query_id, text), query in zip(QUERIES.items(), arm.query_vectors, strict=True):
        expected = written_out(chunks, texts, arm.chunk_vectors, text, query)
        check(retrieved.run.hits[query_id], retrieved.arms[query_id], expected)
    both = retrieved.arms["common"]
    assert {arms.words is None for arms in both} == {arms.meaning is None for arms in both} == {True, False}
    for half in ("words", "meaning"):
        assert sum(getattr(arms, half) is not None for arms in both) == RUN_DEPTH
    order = np.random.default_rng(1).permutation(len(chunks)).tolist()
    mixed = dense_arm(arm.query_ids, arm.query_vectors, [chunks[i] for i in order], arm.chunk_vectors[order])
    sparse = bm25_run("bm25 x c", "bm25", QUERIES, mixed.chunks, [texts[i] for i in order])
    assert sum_run("cell", sparse, mixed) == retrieved


@pytest.mark.parametrize(("n_chunks", "tokens"), [(160, 5), (400, 5), (400, 300)])
def test_a_sums_reading_list_has_the_evidence_first_then_other_chunks_in_rounds_by_cosine(n_chunks, tokens):
    chunks, texts, arm = summed_corpus(n_chunks)
    arm = arm._replace(table=arm.table.__class__(**{**vars(arm.table), "n_tokens": np.full(len(chunks), tokens)}))
    retrieved = sum_run("cell", bm25_run("bm25 x c", "bm25", QUERIES, chunks, texts), arm)
    for query_id, query in zip(QUERIES, arm.query_vectors, strict=True):
        hits = retrieved.run.hits[query_id]
        cosines = ExactScores(arm.chunk_vectors).of(query, np.arange(len(chunks)))
        rows = sorted(range(len(chunks)), key=lambda row: (-cosines[row], chunks[row].index))
        left = {hit.doc_id: [chunks[row].span for row in rows if chunks[row].doc_id == hit.doc_id] for hit in hits}
        rounds = [(d, left[d][turn]) for turn in range(9) for d in left if turn < len(left[d])]
        evidence = [(hit.doc_id, hit.span) for hit in hits]
        expected = evidence + [chunk for chunk in rounds if chunk not in evidence]
        assert [(chunk.doc_id, chunk.span) for chunk in retrieved.reading[query_id]] == expected[: -(-8192 // tokens)]


# Properties of the sum of two rankings.


@st.composite
def rankings(draw, low=-100_000, high=99_999):
    """A ranking of some of 30 documents, in steps of 1e-5."""
    scores = draw(
        st.dictionaries(st.sampled_from([f"d{i:02}" for i in range(30)]), st.integers(low, high), max_size=30)
    )
    return ranked({doc_id: score / 100_000 for doc_id, score in scores.items()})


def ranked(scores):
    ordered = sorted(scores, key=lambda doc_id: (scores[doc_id], doc_id), reverse=True)
    return tuple(Hit(doc_id, scores[doc_id], Span(n, n + 1)) for n, doc_id in enumerate(ordered))


words_lists, meaning_lists = rankings(low=1), rankings()


@given(words_lists, st.floats(0, 3), meaning_lists)
def test_each_half_is_bounded_and_the_score_is_half_their_sum(words, bound, meaning):
    found = summed(words, bound, meaning)
    evidence = {hit.doc_id: hit.span for hit in (*words, *meaning)}  # meaning's, if it has the document
    assert {arms.doc_id: arms.span for arms in found} == evidence
    for arms in found:
        halves = [half or 0.0 for half in (arms.words, arms.meaning)]
        assert all(0 <= value <= 1 for value in halves)
        assert arms.hit.score == pytest.approx(sum(halves) / 2, abs=1.1e-9)
    keys = [(arms.hit.score, arms.doc_id) for arms in found]
    assert keys == sorted(keys, reverse=True)


@given(words_lists, st.floats(0.5, 3), meaning_lists, st.sampled_from(["words", "meaning"]), st.data())
def test_a_sum_is_monotone_in_each_half(words, bound, meaning, which, data):
    ranking = words if which == "words" else meaning[:-1]  # the last one is the floor
    if not ranking:
        return
    raised = data.draw(st.sampled_from(ranking))
    more = {hit.doc_id: hit.score for hit in (words if which == "words" else meaning)}
    more[raised.doc_id] += data.draw(st.floats(0, 0.5))
    lists = (ranked(more), bound, meaning) if which == "words" else (words, bound, ranked(more))

    def place(found):
        return next((arms.hit.score, -n) for n, arms in enumerate(found) if arms.doc_id == raised.doc_id)

    before, after = place(summed(words, bound, meaning)), place(summed(*lists))
    assert after[0] >= before[0]
    assert after[1] >= before[1]


@given(words_lists, st.floats(0.5, 3), meaning_lists, st.floats(1e-3, 1e3))
def test_a_constant_factor_on_idf_changes_nothing(words, bound, meaning, factor):
    scaled = tuple(Hit(hit.doc_id, hit.score * factor, hit.span) for hit in words)
    pairs = zip(summed(words, bound, meaning), summed(scaled, bound * factor, meaning), strict=True)
    assert all(one == other or one.words == pytest.approx(other.words, abs=1.1e-9) for one, other in pairs)


@given(meaning_lists, st.floats(1e-2, 1))
def test_cosines_squeezed_towards_one_leave_room_as_it_is(meaning, squeeze):
    squeezed = tuple(Hit(hit.doc_id, 1 - squeeze * (1 - hit.score), hit.span) for hit in meaning)
    before, after = (summed((), 0.0, each) for each in (meaning, squeezed))
    rooms = [{arms.doc_id: arms.meaning for arms in found} for found in (before, after)]
    assert rooms[0] == pytest.approx(rooms[1], abs=1e-7)


def test_a_document_is_found_by_words_alone_or_by_meaning_alone():
    words, meaning = ranked({"w": 2.0, "both": 1.0}), ranked({"m": 0.9, "both": 0.7, "last": 0.6})
    found = {arms.doc_id: arms for arms in summed(words, 4.0, meaning)}
    scores = {doc_id: arms.hit.score for doc_id, arms in found.items()}
    assert scores == {"w": 0.25, "m": 0.375, "both": 0.25, "last": 0.0}
    assert (found["w"].meaning, found["m"].words) == (None, None)
    assert [*found] == ["m", "w", "both", "last"]
    assert summed((), 0.0, ()) == ()


@pytest.mark.parametrize(
    ("words", "bound", "meaning", "halves"),
    [
        ({}, 0.0, {"a": 1.0, "b": 1.0}, (None, 0.0)),  # a floor of 1
        ({}, 0.0, {"a": 1.00001, "b": 1.00001}, (None, 0.0)),  # vectors rounded above 1
        ({"a": 1.0}, 0.0, {}, (0.0, None)),  # no bound
        ({"a": 1.00001}, 1.0, {}, (1.0, None)),  # a score rounded above its bound
        ({}, 0.0, {"a": 0.5}, (None, 0.0)),  # the only document is the floor
    ],
)
def test_where_a_half_has_no_scale_it_is_nothing(words, bound, meaning, halves):
    (arms,) = (each for each in summed(ranked(words), bound, ranked(meaning)) if each.doc_id == "a")
    assert (arms.words, arms.meaning) == halves


@pytest.mark.parametrize("variant", [*BM25_VARIANTS, "bm25@de"])
@given(seed=st.integers(0, 50), asked=st.lists(st.sampled_from(["water", "tax", "zebra", "the", "42"]), max_size=6))
def test_no_text_scores_above_the_bound_whatever_is_asked_and_however_often(variant, seed, asked):
    chunks, texts = corpus(20, 30, seed)
    asked = " ".join(asked)
    found = bm25_run("cell", variant, {"q": asked, "twice": f"{asked} {asked}"}, chunks, texts)
    for query_id, hits in found.run.hits.items():
        assert all(hit.score <= found.bounds[query_id] + 1e-5 for hit in hits)
    assert found.bounds["twice"] == pytest.approx(2 * found.bounds["q"])


def test_an_unknown_term_counts_as_the_rarest_and_a_repeated_one_as_often_as_it_is():
    chunks, texts = corpus()
    queries = {"known": "water grants", "unknown": "water zebra grants", "again": "water water grants"}
    found = bm25_run("cell", "bm25", queries, chunks, texts)
    tokens = [stemmed_terms(text) for text in texts]
    for query_id, text in queries.items():
        assert found.bounds[query_id] == pytest.approx(lucene_bound(tokens, stemmed_terms(text)))
    assert found.bounds["unknown"] == pytest.approx(found.bounds["known"] + math.log(2 * (len(texts) + 1)))
    assert bm25_run("cell", "bm25", {"q": "zebra"}, chunks, texts).run.hits == {"q": ()}
    assert bm25_run("cell", "bm25", {"q": "zebra"}, chunks, [""] * len(chunks)).bounds == {"q": 0.0}


# In a version's record, and with errors put into the code.


def cell_of(version, module=make_runs):
    """The hits and arms of the cell's record, by query."""
    documents = corpus_documents(version, None)
    runs = module.CellRuns(version, lambda: documents, LocalBackend(fake_encoders))
    runs.make([module.Wanted(parse_cell(CELL))])
    query_ids = [query.id for query in runs.queries]
    return read_run(version.run_path(CELL), CELL, query_ids).hits, read_arms(version.run_path(CELL), query_ids)


def fresh(version, tmp_path):
    """The version without what was made of it before."""
    return replace(version, cache=tmp_path / "cache", apart=tmp_path / "record")


def check_record(version, module=make_runs):
    """The recorded cell is the formula over the version's chunks."""
    hits, lists = cell_of(version, module)
    documents = {document.doc_id: document for document in corpus_documents(version, None)}
    runs = module.CellRuns(version, list, LocalBackend(fake_encoders))
    chunks = chunk_corpus(list(documents.values()), "section_aware_bills_v1")
    texts = [chunk.reading(documents[chunk.doc_id]) for chunk in chunks]
    encoder, asked = fake_encoders("minilm-l6-v2"), [query.text for query in runs.queries]
    vectors, queries = (
        np.asarray(embed(runs.store, encoder, rows, side).rows)
        for rows, side in ((texts, "document"), (asked, "query"))
    )
    for query, row in zip(runs.queries, queries, strict=True):
        expected = written_out(chunks, texts, vectors, query.text, row)
        check(hits[query.id], lists[query.id], expected, EVIDENCE_DEPTH)


def mutated(module, old, new):
    """The module with an error in its text."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, old
    made = types.ModuleType(module.__name__)
    exec(compile(source.replace(old, new), module.__file__, "exec"), vars(made))
    return made


SAME_CHUNKS = "sum_run(name, self.sparse(cell.variant, cell.chunker), arm)"
WHOLE = "self.sparse(cell.variant, SPARSE_CHUNKER)"
MUTANTS = {
    "idf of the wrong corpus": (
        make_runs,
        SAME_CHUNKS,
        SAME_CHUNKS.replace("chunker)", f"chunker)._replace(bounds={WHOLE}.bounds)"),
    ),
    "floor of the other list": (sums, "meaning[-1].score if meaning", "words[-1].score if words"),
    "floor of the first document": (sums, "floor = meaning[-1]", "floor = meaning[0]"),
    "max in place of sum": (records, "steps = sum(", "steps = max("),
    "chunk lists mixed up": (make_runs, SAME_CHUNKS, SAME_CHUNKS.replace("cell.chunker", "SPARSE_CHUNKER")),
    "evidence of words first": (sums, "(*words, *meaning)", "(*meaning, *words)"),
    "arms exchanged": (sums, "Arms(doc_id, shares.get(doc_id), rooms", "Arms(doc_id, rooms.get(doc_id), shares"),
}


@pytest.fixture(name="version", scope="module")
def _version(tmp_path_factory):
    return begin(tmp_path_factory.mktemp("sum"))


def test_a_recorded_sum_is_the_formula_over_the_versions_own_chunks(version):
    check_record(version)


@pytest.mark.parametrize(("module", "old", "new"), MUTANTS.values(), ids=MUTANTS)
def test_an_error_in_the_sum_is_found(version, tmp_path, monkeypatch, module, old, new):
    wrong = mutated(module, old, new)
    if module is sums:
        monkeypatch.setattr(make_runs, "sum_run", wrong.sum_run)
    if module is records:
        monkeypatch.setattr(Arms, "hit", wrong.Arms.hit)
    with pytest.raises((AssertionError, IndexError)):
        check_record(fresh(version, tmp_path), wrong if module is make_runs else make_runs)


def test_bm25_reads_the_chunks_of_a_chunker_once_for_all_cells(version, tmp_path, monkeypatch):
    version, indexed = fresh(version, tmp_path), []
    honest = make_runs.bm25_run
    monkeypatch.setattr(make_runs, "bm25_run", lambda cell, *given: indexed.append(cell) or honest(cell, *given))
    runs = make_runs.CellRuns(version, lambda: corpus_documents(version, None), LocalBackend(fake_encoders))
    chunker = CELL.rpartition(" x ")[2]
    cells = (
        CELL,
        f"bm25 x {chunker}",
        *(f"{dense} x {chunker}" for dense in ("rrf(bm25,minilm-l6-v2)", "bm25>minilm-l6-v2")),
    )
    runs.make([make_runs.Wanted(parse_cell(cell)) for cell in (*cells, "bm25 x whole_doc")])
    assert sorted(indexed) == [f"bm25 x {chunker}", "bm25 x whole_doc"]
    assert [has_arms(version.run_path(cell)) for cell in cells] == [True, False, False, False]


def test_arms_that_were_edited_stop_scoring(version, tmp_path):
    version = fresh(version, tmp_path)
    _, lists = cell_of(version)
    path = version.run_path(CELL)
    assert arms_bytes(lists) == path.read_bytes()
    assert read_json(version.cell_path(CELL))["run_sha256"] == file_sha256(path)
    path.write_bytes(bz2.compress(bz2.decompress(path.read_bytes()).replace(b"\t0.", b"\t0.1", 1)))
    with pytest.raises(IntegrityError, match=r"\.tsv\.bz2 is not the run of sum"):
        cell_of(version)
