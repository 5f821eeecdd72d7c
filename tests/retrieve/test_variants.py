"""Quantised and truncated cells, against sqlite-vec and brute force."""

from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import RUN_DEPTH
from runner.base.store import Store
from runner.embed import vectors as vector_files
from runner.retrieve.ranking import SCORE_STEPS, chunk_table
from runner.retrieve.retrieve import DenseArm
from runner.retrieve.variants import (
    cut_rows,
    int8_codes,
    nearest_by_signs,
    sign_words,
    variant_run,
)
from runner.substrate.database import load_vec0, open_substrate
from runner.substrate.search import BINARY, Searches
from tests.support.substrate_builder import Build, build, fictional, unit_rows

DIM = 32
DOCUMENTS, CHUNKS = fictional(700, words=30)
VECTORS = unit_rows(len(CHUNKS), DIM, seed=2)
QUERIES = {"q1": "bramonl clotine Section", "q2": "dreskul, (ficlo) dreral AND", "q3": "Section 17", "q4": "…"}
ASKED = unit_rows(len(QUERIES), DIM, seed=5)
ARM = DenseArm(list(QUERIES), ASKED, CHUNKS, VECTORS, chunk_table(CHUNKS))


def variant(name: str, tmp_path: Path, arm: DenseArm = ARM):
    return variant_run(f"cell@{name}", name, arm, Store(tmp_path / "cache"))


@pytest.fixture(scope="module")
def vec0():
    connection = apsw.Connection(":memory:")
    load_vec0(connection)
    yield connection
    connection.close()


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 64, 400]))
def test_codes_are_those_of_vec_quantize_int8(vec0, seed, dim):
    rows = unit_rows(4, dim, seed)
    stored = [next(vec0.execute("SELECT vec_quantize_int8(?, 'unit')", (row.tobytes(),)))[0] for row in rows]
    assert [row.tobytes() for row in int8_codes(rows)] == stored


def test_a_cut_vector_is_vec_slice_at_unit_length(vec0):
    rows = unit_rows(50, DIM, seed=3)
    for row, cut in zip(rows, cut_rows(rows, 12), strict=True):
        sql = "SELECT vec_normalize(vec_slice(vec_f32(?), 0, 12))"
        theirs = np.frombuffer(next(vec0.execute(sql, (row.tobytes(),)))[0], np.float32)
        assert cut == pytest.approx(theirs, abs=1e-7)
    assert cut_rows(np.array([[0, 0, 1]], np.float32), 2).tolist() == [[0, 0]]


def test_int8_scores_are_sqlite_vecs_cosines(vec0, tmp_path):
    found = variant("int8", tmp_path)
    assert found.index_bytes == len(CHUNKS) * DIM
    by_place = {(chunk.doc_id, chunk.span): row for row, chunk in enumerate(CHUNKS)}
    sql = "SELECT 1 - vec_distance_cosine(vec_int8(?), vec_int8(?))"
    for asked, hits in zip(int8_codes(ASKED), found.run.hits.values(), strict=True):
        theirs = [
            next(vec0.execute(sql, (int8_codes(VECTORS)[by_place[hit.doc_id, hit.span]].tobytes(), asked.tobytes())))[0]
            for hit in hits[:20]
        ]
        assert [hit.score for hit in hits[:20]] == pytest.approx(theirs, abs=1 / SCORE_STEPS)


@pytest.mark.parametrize("name", ["12", "int8"])
def test_less_of_a_vector_is_ranked_as_brute_force_ranks_it(name, tmp_path):
    """MaxP over the cosines of what is stored, in float64."""
    stored, asked = ((int8_codes(rows) if name == "int8" else rows[:, :12]).astype(float) for rows in (VECTORS, ASKED))
    found = variant(name, tmp_path)
    for query, hits in zip(asked, found.run.hits.values(), strict=True):
        cosines = stored @ query / np.linalg.norm(stored, axis=1) / np.linalg.norm(query)
        best: dict[str, float] = {}
        for chunk, cosine in zip(CHUNKS, cosines.tolist(), strict=True):
            best[chunk.doc_id] = max(best.get(chunk.doc_id, -1.0), cosine)
        nearest = sorted(best.values(), reverse=True)[:RUN_DEPTH]
        assert [hit.score for hit in hits] == pytest.approx(nearest, abs=1 / SCORE_STEPS)
        assert [best[hit.doc_id] for hit in hits] == pytest.approx(nearest, abs=1 / SCORE_STEPS)
    assert found.index_bytes == len(CHUNKS) * (DIM if name == "int8" else 4 * 12)


@given(st.integers(1, 2600), st.integers(1, 500), st.integers(0, 2**32), st.sampled_from([8, 24, 72]))
def test_candidates_come_in_the_order_of_sqlite_vec_ties_included(vec0, n, count, seed, dim):
    rows, query = unit_rows(n, dim, seed), unit_rows(1, dim, seed + 1)
    vec0.execute(f"DROP TABLE IF EXISTS v; CREATE VIRTUAL TABLE v USING vec0(id integer primary key, bits bit[{dim}])")
    with vec0:
        numbered = enumerate((row.tobytes() for row in rows), start=1)
        vec0.executemany("INSERT INTO v VALUES (?, vec_quantize_binary(?))", numbered)
    sql = "SELECT id FROM v WHERE bits MATCH vec_quantize_binary(?) AND k = ?"
    theirs = [number - 1 for (number,) in vec0.execute(sql, (query.tobytes(), count))]
    assert nearest_by_signs(sign_words(query)[0], sign_words(rows), count).tolist() == theirs


@pytest.fixture(scope="module")
def production(tmp_path_factory):
    """The substrate's own searches of a database with these chunks."""
    path = build(tmp_path_factory.mktemp("production") / "s.db", Build(DOCUMENTS, CHUNKS, VECTORS))
    doc_ids = [document.doc_id for document in DOCUMENTS]
    with open_substrate(path, "bills") as substrate:
        return Searches(substrate, QUERIES, ASKED, doc_ids, restricted=False).runs()


def places(run):
    return {query_id: [(hit.doc_id, hit.span) for hit in hits] for query_id, hits in run.hits.items()}


def test_bits_with_rescoring_are_the_substrates_search_hit_by_hit(production, tmp_path):
    """700 documents, so that the 400 candidates leave most chunks out and tie at their last distance."""
    found = variant("bit", tmp_path)
    assert places(found.run) == places(production[BINARY])
    assert found.index_bytes == len(CHUNKS) * (4 * DIM + DIM // 8)
    for hits, theirs in zip(found.run.hits.values(), production[BINARY].hits.values(), strict=True):
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in theirs], abs=1.1 / SCORE_STEPS)


def test_large_vectors_are_cut_in_a_file_and_small_ones_in_memory_alike(tmp_path, monkeypatch):
    path = tmp_path / "vectors" / vector_files.ROWS
    path.parent.mkdir()
    vector_files.save_array(path, VECTORS)
    mapped = ARM._replace(chunk_vectors=np.load(path, mmap_mode="r"))
    in_memory = {name: variant(name, tmp_path, mapped) for name in ("12", "int8", "bit")}
    monkeypatch.setattr(vector_files, "COPIED_BYTES", 0)
    monkeypatch.setattr(vector_files, "_ROWS_AT_ONCE", 100)
    for name, found in in_memory.items():
        assert variant(name, tmp_path, mapped) == found == variant(name, tmp_path)
    assert len([*(tmp_path / "cache" / "placed").glob("*/rows.npy")]) == 2
