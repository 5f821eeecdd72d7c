import os
import shutil
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.base.canonical import file_sha256
from runner.base.errors import InputError
from runner.base.records import Chunk, Document, Span
from runner.substrate import database
from runner.substrate.checks import Expected, check_substrate, tokenizer_finding
from runner.substrate.database import document_id, open_substrate
from runner.substrate.documents import Stored, differences
from runner.substrate.search import Searches
from runner.substrate.shapes import FindingResult
from tests.support import substrate_builder
from tests.support.substrate_builder import (
    FAULTS,
    MODEL,
    REBUILD,
    VERSION,
    Build,
    build,
    edit,
    fictional,
    replace_vector,
    schema,
    unit_rows,
    writing_connection,
)

DIM = 16
DOCUMENTS, CHUNKS = fictional(40)
VECTORS = unit_rows(len(CHUNKS), DIM, seed=2)
EXPECTED = Expected(*MODEL, "fictional_v1", CHUNKS, VERSION)
FIRST = CHUNKS[0].doc_id
LAST = max(number for number, chunk in enumerate(CHUNKS, 1) if chunk.doc_id == CHUNKS[-1].doc_id)


def made(path: Path, *faults: str, **changed: object) -> Path:
    return build(path, Build(DOCUMENTS, CHUNKS, VECTORS, faults=faults, **changed))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("substrate") / "substrate.db")


@pytest.fixture
def own(healthy: Path, tmp_path: Path) -> Path:
    """A copy to be spoiled."""
    return shutil.copy(healthy, tmp_path / "own.db")


def checks(path: Path, documents=DOCUMENTS, expected=EXPECTED, **more: object) -> list[FindingResult]:
    with open_substrate(path, "bills") as substrate:
        return check_substrate(substrate, documents, expected, **more)


def counted(path: Path, *given: object, **more: object) -> dict[str, int]:
    """The faults with their counts, in the order of the checks."""
    return {finding.name: finding.count for finding in checks(path, *given, **more) if finding.fault}


def named(name: str, path: Path, *given: object, **more: object) -> FindingResult:
    return next(finding for finding in checks(path, *given, **more) if finding.name == name)


def read_all(path: Path) -> None:
    """Everything that is ever read of a substrate."""
    with open_substrate(path, "bills") as substrate:
        check_substrate(substrate, DOCUMENTS, EXPECTED, embed=stored_vectors)
        for restricted in (True, False):
            asked = Searches(substrate, {"q": "mon Act"}, VECTORS[:1], [d.doc_id for d in DOCUMENTS], restricted)
            asked.runs()
            asked.index_recall()


@cache
def _vector_of() -> dict[str, np.ndarray]:
    texts = {document.doc_id: document for document in DOCUMENTS}
    readings = [chunk.reading(texts[chunk.doc_id]) for chunk in CHUNKS]
    return dict(zip(readings, VECTORS, strict=True))


def stored_vectors(texts: list[str]) -> np.ndarray:
    """An encoder that made the substrate's vectors."""
    return np.array([_vector_of().get(text, VECTORS[0]) for text in texts])


# What is wrong is found by its name.


def test_a_healthy_substrate_has_no_fault_and_every_finding_says_so(healthy):
    found = checks(healthy, embed=stored_vectors)
    assert [(finding.fault, finding.count) for finding in found] == [(False, 0)] * len(found)


def test_documents_of_ones_own_are_tables_by_the_name_of_their_source(tmp_path):
    with open_substrate(made(tmp_path / "s.db", source="tenants"), "tenants") as substrate:
        assert not [finding for finding in check_substrate(substrate, DOCUMENTS, EXPECTED) if finding.fault]


@pytest.mark.parametrize("fault", [name for name in FAULTS if name not in ("substrate version", "quantisation loss")])
def test_each_planted_fault_is_the_only_one_found(fault, tmp_path):
    (finding,) = [finding for finding in checks(made(tmp_path / "s.db", fault)) if finding.fault]
    assert finding.name == fault.partition(",")[0]
    assert 0 < finding.count <= finding.of
    assert finding.examples or fault == "FTS tokenizer mismatch"


def test_faults_planted_together_are_all_found_in_the_order_of_the_checks(tmp_path):
    planted = ["stale model", "missing vectors", "changed documents", "FTS tokenizer mismatch"]
    assert list(counted(made(tmp_path / "s.db", *planted))) == planted


def test_another_version_is_a_note_and_documents_outside_the_manifest_are_nothing(tmp_path):
    found = checks(made(tmp_path / "s.db", "substrate version"), DOCUMENTS[:30])
    (note,) = [row for row in found if row.count]
    assert (note.name, note.count, note.of, note.fault) == ("substrate version", 1, 1, False)


def test_without_a_table_of_facts_the_version_is_the_users_own_of_sqlite(own):
    edit(own, "DROP TABLE substrate_meta; PRAGMA user_version = 7")
    with open_substrate(own, "bills") as substrate:
        assert substrate.facts.version == "7"


EDITS = {
    "its last characters are in no chunk": (
        f"UPDATE bills_chunks SET char_end = char_end - 5, text = substr(text, 1, length(text) - 5) "
        f"WHERE chunk_id = {LAST}; {REBUILD}",
        {"other chunks": 1},
        f"{CHUNKS[-1].doc_id}: 1 missing, 1 too many, first chunk {LAST}",
    ),
    "another context": (
        f"UPDATE bills_chunks SET context = 'another title' WHERE chunk_id = 1; {REBUILD}",
        {"other chunks": 1},
        f"{FIRST}: 1 missing, 1 too many, first chunk 1",
    ),
    "a job that is done without a vector": (
        "DELETE FROM bills_chunks_vec0 WHERE chunk_id = 5", {"missing vectors": 1}, "chunk 5"
    ),
    "not marked as embedded": (
        "UPDATE bills_chunks SET embedded_at = NULL WHERE chunk_id = 4",
        {"missing vectors": 1},
        "chunk 4",
    ),
    "jobs by status": (
        "UPDATE chunk_embedding_jobs SET status = iif(chunk_id < 3, 'failed', 'done')",
        {"missing vectors": 2},
        "chunk 2",
    ),
    "another model": (
        "UPDATE bills_chunks SET embedded_model_id = 'old' WHERE chunk_id < 4",
        {"stale model": 3},
        "old version 2: 3 chunks",
    ),
    "words that are not in the index": (
        "UPDATE bills_chunks SET text = replace(text, 'ra', 'zz') WHERE chunk_id = 7",
        {"changed documents": 1, "FTS index stale": 1},
        "chunk 7",
    ),
    # These are no fault.
    "a job that is done, of a chunk that is gone": (
        "INSERT INTO chunk_embedding_jobs VALUES ('bills_chunks', 123456, 'fictional/encoder', '2', 'done')", {}, ""
    ),
    "a job of another model": (
        "INSERT INTO chunk_embedding_jobs VALUES ('bills_chunks', 1, 'next/encoder', '2', 'pending')", {}, ""
    ),
    "a job of another table": (
        "INSERT INTO chunk_embedding_jobs VALUES ('us_code_chunks', 1, 'fictional/encoder', '2', 'pending')", {}, ""
    ),
    "an index with more columns": (
        "DROP TABLE bills_fts; CREATE VIRTUAL TABLE bills_fts USING fts5(document_id UNINDEXED, text, context, "
        f"content='bills_chunks', content_rowid='chunk_id', tokenize='porter unicode61'); {REBUILD}",
        {},
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "faults", "example"), EDITS.values(), ids=EDITS)
def test_an_edit_is_found_by_name_and_count_with_an_example(statements, faults, example, own):
    edit(own, statements)
    found = [finding for finding in checks(own) if finding.fault]
    assert {finding.name: finding.count for finding in found} == faults
    named_by = [text for finding in found for text in finding.examples]
    assert not faults or any(text.startswith(example) for text in named_by), named_by


def test_an_amended_document_is_a_changed_one(healthy):
    amended = Document(FIRST, "X" + DOCUMENTS[0].text[1:], "Act", "118", "f", "")
    assert counted(healthy, [amended, *DOCUMENTS[1:]]) == {"changed documents": 1}


@pytest.mark.parametrize(
    ("fault", "count", "missing", "surplus"),
    [("other chunks", 1, 1, 1), ("other chunks, repeated", len(DOCUMENTS), 0, len(CHUNKS))],
)
def test_other_chunks_counts_documents_and_what_is_missing_or_too_many(fault, count, missing, surplus, tmp_path):
    found = named("other chunks", made(tmp_path / "s.db", fault))
    assert (found.count, found.of) == (count, len(DOCUMENTS))
    counts = f"{missing} of its chunks are missing, and {surplus} stored ones are not"
    assert f"not cut as fictional_v1 cuts them: {counts}" in found.sentence


def test_chunks_are_held_to_those_of_the_chunker_in_the_manifests_documents(own):
    bare = [Chunk(chunk.doc_id, chunk.index, chunk.span, "", 1) for chunk in CHUNKS]
    within = Chunk(FIRST, 9, Span(2, 7), CHUNKS[0].context, 1)
    found = named("other chunks", own, expected=Expected(*MODEL, "fictional_v1", [*CHUNKS, within]))
    assert found.examples == [f"{FIRST}: 1 missing, 0 too many, first characters 2 to 7"]
    edit(own, f"UPDATE bills_chunks SET context = 'other' WHERE document_id = 'bill:118-hr-40'; {REBUILD}")
    assert counted(own, DOCUMENTS[:30]) == {}
    assert counted(own) == {"other chunks": 1}
    edit(own, "UPDATE bills_chunks SET context = NULL")
    assert not named("other chunks", own, expected=Expected(*MODEL, "fictional_v1-bare", bare)).fault


def test_amended_documents_are_left_out_of_other_chunks(tmp_path):
    path = made(tmp_path / "s.db", "other chunks, repeated")
    edit(path, f"UPDATE bills_chunks SET text = 'amended' WHERE chunk_id = {len(CHUNKS)}")
    found = named("other chunks", path)
    assert found.count == found.of == len(DOCUMENTS) - 1


PLACES = st.lists(st.tuples(st.integers(0, 2), st.just(5), st.sampled_from(["", "Act"])), max_size=12)


@given(PLACES, PLACES)
def test_missing_and_surplus_chunks_are_the_differences_of_two_multisets(expected, stored):
    rows = [Stored(number, place, True, True) for number, place in enumerate(stored)]
    missing, surplus = differences(expected, rows)
    assert Counter(missing) == Counter(expected) - Counter(stored)
    assert Counter(row.place for row in surplus) == Counter(stored) - Counter(expected)


def test_a_vector_with_nan_is_found(own):
    connection = writing_connection(own)
    replace_vector(connection, "bills", 3, np.full(DIM, np.nan))
    connection.close()
    assert counted(own) == {"vectors not unit": 1}
    assert named("vectors not unit", own).examples == ["chunk 3"]
    read_all(own)


def _other_model(texts: list[str]) -> np.ndarray:
    return unit_rows(len(texts), DIM, seed=9)


def _half_precision(texts: list[str]) -> np.ndarray:
    return stored_vectors(texts).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize(("embed", "count"), [(_other_model, 64), (_half_precision, 0)])
def test_vectors_of_another_model_are_told_from_the_models_own_in_half_precision(embed, count, healthy):
    found = named("stored vectors are not the model's", healthy, embed=embed)
    assert (found.count, found.of, found.fault) == (count, 64, count > 0)


def test_vectors_that_are_nothing_but_nan_are_not_the_models(tmp_path):
    path = build(tmp_path / "s.db", Build(DOCUMENTS, CHUNKS, VECTORS * np.float32("nan")))
    assert list(counted(path, embed=stored_vectors)) == ["vectors not unit", "stored vectors are not the model's"]


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        *(("porter", False), ("porter unicode61", False), ("PORTER  unicode61", False)),
        *(("unicode61", True), ("porter ascii", True), ("porter unicode61 tokenchars '-'", True)),
    ],
)
def test_the_index_is_held_to_the_declared_tokenizer(declared, fault):
    found = tokenizer_finding(declared)
    assert (found.fault, "not by 'porter unicode61'" in found.sentence) == (fault, fault)


def test_the_sample_is_drawn_by_the_seed(tmp_path):
    documents, chunks = fictional(120)
    path = build(tmp_path / "s.db", Build(documents, chunks, unit_rows(len(chunks), DIM, seed=3)))

    def asked(seed: int) -> list[str]:
        texts: list[str] = []

        def embed(some: list[str]) -> np.ndarray:
            texts.extend(some)
            return unit_rows(len(some), DIM, seed=1)

        checks(path, documents, Expected(*MODEL, "fictional_v1", chunks), embed=embed, seed=seed)
        return texts

    assert asked(1) == asked(1) != asked(2)


def test_a_substrate_without_a_chunk_lacks_those_of_every_document(tmp_path):
    path = build(tmp_path / "s.db", Build([], [], np.zeros((0, DIM), np.float32)))
    assert counted(path, embed=stored_vectors) == {"other chunks": len(DOCUMENTS)}
    assert named("other chunks", path).examples[0] == f"{FIRST}: no chunk"


# Document ids.


@pytest.mark.parametrize(
    ("source", "doc_id", "expected"),
    [
        ("bills", "BILLS-118hr1ih", "bill:118-hr-1"),
        ("bills", "BILLS-118hr1enr", "bill:118-hr-1"),
        ("bills", "BILLS-118hjres12rfs2", "bill:118-hjres-12"),
        ("bills", "bill:118-hr-1", "bill:118-hr-1"),
        ("demo", "BILLS-41hr101ih", "bill:41-hr-101"),
        ("us_code", "usc:42-1396a@119-73", "usc:42-1396a"),
        ("us_code", "usc:42-1396a", "usc:42-1396a"),
        ("congressional_record", "CREC-2025-12-18-pt1-PgS8351", "crec-granule:CREC-2025-12-18-pt1-PgS8351"),
        ("congressional_record", "crec:2025-12-18", "crec:2025-12-18"),
        ("gao_reports", "GAO-24-1", "GAO-24-1"),
    ],
)
def test_eval_set_ids_become_the_substrates(source, doc_id, expected):
    assert document_id(source, doc_id) == expected


def test_an_id_that_the_substrate_holds_itself_is_not_mapped(tmp_path):
    with open_substrate(made(tmp_path / "s.db", ids=lambda doc_id: doc_id), "bills") as substrate:
        ids = [document.doc_id for document in DOCUMENTS]
        assert substrate.ids_of(ids) == dict(zip(ids, ids, strict=True))


def test_two_versions_of_a_bill_cannot_be_told_apart_there(healthy):
    with open_substrate(healthy, "bills") as substrate, pytest.raises(InputError, match="one document"):
        substrate.ids_of(["BILLS-118hr1ih", "BILLS-118hr1enr"])


def test_a_document_of_the_same_id_in_another_case_is_another_document(tmp_path, monkeypatch):
    """A column may compare without case; ids never do."""
    plain = substrate_builder.schema
    nocase = "document_id TEXT COLLATE NOCASE"
    monkeypatch.setattr(substrate_builder, "schema", lambda *given: plain(*given).replace("document_id TEXT", nocase))
    path = made(tmp_path / "s.db")
    edit(path, "UPDATE bills_chunks SET document_id = upper(document_id) WHERE chunk_id = 1")
    assert counted(path) == {"other chunks": 1}


# Nothing is written.


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_reading_changes_no_byte_and_makes_no_file_and_needs_no_right_to(journal, tmp_path):
    path = made(tmp_path / "s.db", journal=journal)
    before = file_sha256(path)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        read_all(path)
        assert file_sha256(path) == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["s.db"]  # root may write there all the same
    finally:
        tmp_path.chmod(0o755)


def test_no_statement_can_write(healthy):
    with open_substrate(healthy, "bills") as substrate:
        for statement in ("DELETE FROM {chunks}", "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)"):
            with pytest.raises(InputError, match="readonly"):
                list(substrate.rows(statement))


def test_a_live_wal_database_is_read_as_one_snapshot(tmp_path):
    path = made(tmp_path / "s.db", journal="wal")
    writer = writing_connection(path)
    writer.execute("UPDATE bills_chunks SET embedded_model_version = '1' WHERE chunk_id = 1")  # lies in the -wal file
    with open_substrate(path, "bills") as substrate:
        writer.execute("UPDATE bills_chunks SET embedded_model_version = '1' WHERE chunk_id = 2")
        found = check_substrate(substrate, DOCUMENTS, EXPECTED)
    assert [(finding.name, finding.count) for finding in found if finding.fault] == [("stale model", 1)]
    writer.close()


def test_a_wal_database_that_is_written_meanwhile_is_said_to_be(tmp_path):
    path = made(tmp_path / "s.db", journal="wal")
    with pytest.raises(InputError, match="written while it was read"), open_substrate(path, "bills"):
        edit(path, "UPDATE substrate_meta SET value = 'x'")


# Hostile input.


def _refused(path: Path, match: str) -> None:
    with pytest.raises(InputError, match=match) as refused, open_substrate(path, "bills"):
        pass
    assert str(path.name) in str(refused.value)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "too short"),
        (b"SQLite format 3 is what this is not" * 9, "damaged or encrypted"),
        (b"SQLite format 3\0", "too short"),
        (bytes(range(256)) * 16, "damaged or encrypted"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "damaged|cannot be read"),
    ],
    ids=["empty", "text", "short", "cipher", "header"],
)
def test_what_is_no_database_is_refused(content, match, tmp_path):
    (tmp_path / "s.db").write_bytes(content)
    _refused(tmp_path / "s.db", match)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "none.db")
    for name, match in (("none.db", "not exist"), (".", "not a"), ("pipe.db", "not a"), ("dangling.db", "not exist")):
        _refused(tmp_path / name, match)


def test_a_symbolic_link_and_a_strange_name_are_followed(healthy, tmp_path):
    path = shutil.copy(healthy, tmp_path / "a b?mode=rw&x#%41.db")
    (tmp_path / "link.db").symlink_to(path)
    assert counted(tmp_path / "link.db") == counted(path) == {}


def test_a_source_that_the_catalogue_does_not_know_is_refused(healthy):
    with pytest.raises(InputError, match="no source"), open_substrate(healthy, 'bills_chunks"; DROP TABLE x; --'):
        pass


def test_everything_that_is_missing_is_named_at_once(tmp_path):
    path = tmp_path / "s.db"
    edit(
        path,
        "CREATE TABLE bills_chunks (chunk_id TEXT PRIMARY KEY, document_id, text);"
        "CREATE TABLE chunk_embedding_jobs (chunk_id, status); CREATE TABLE substrate_meta (name, value);"
        "CREATE VIEW bills_fts AS SELECT 1 AS text",
    )
    with pytest.raises(InputError) as refused, open_substrate(path, "bills"):
        pass
    message = str(refused.value)
    for column in ("chunk_index", "char_start", "char_end", "context", "embedded_model_id", "embedded_at"):
        assert f"bills_chunks has no column {column}" in message
    for column in ("chunk_table", "model_id", "model_version"):
        assert f"chunk_embedding_jobs has no column {column}" in message
    for table in ("bills_chunks_vec0", "bills_fts", "bills_fts_docsize"):
        assert f"there is no table {table}" in message
    assert "substrate_meta has no column key" in message
    assert "not its INTEGER PRIMARY KEY" in message


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("embedding float[16]", "embedding int8[16]", r"embedding is 'int8\[16\].*not float\[D\]"),
        ("embedding_bq bit[16]", "embedding_bq float[16]", r"embedding_bq is 'float\[16\]', not bit\[D\]"),
        ("embedding_bq bit[16]", "embedding_bq bit[32]", r"embedding float\[16\] and embedding_bq bit\[32\]"),
        ("embedding_bq bit[16]", "bits bit[16]", "has no column embedding_bq"),
        ("content='bills_chunks'", "content='chunk_embedding_jobs'", "content='chunk_embedding_jobs', not"),
        ("content='bills_chunks', ", "", "content='', not 'bills_chunks'"),
        ("content_rowid='chunk_id'", "content_rowid='chunk_index'", "content_rowid='chunk_index'"),
        ("content_rowid='chunk_id'", "content_rowid='chunk_id', columnsize=0", "no table bills_fts_docsize"),
        ("context, text, content='bills_chunks'", "body, content='bills_chunks'", "bills_fts has no column context"),
        ("chunk_id integer primary key, e", "id integer primary key, e", "has no column chunk_id"),
    ],
)  # fmt: skip
def test_an_index_that_declares_something_else_is_refused(old, new, match, tmp_path):
    declared = schema("bills", DIM)
    assert old in declared
    edit(tmp_path / "s.db", declared.replace(old, new))
    _refused(tmp_path / "s.db", match)


@pytest.mark.parametrize("metric", ["", "cosine", "l2", "l1"])
def test_dimension_distance_and_tokenizer_are_read_from_the_declarations(metric, tmp_path):
    path = made(tmp_path / "s.db", metric=metric, tokenizer="porter unicode61 remove_diacritics 2 tokenchars '-,'")
    with open_substrate(path, "bills") as substrate:
        facts = substrate.facts
    assert (facts.dim, facts.metric, facts.chunks) == (DIM, metric or "l2", len(CHUNKS))
    assert facts.tokenizer == "porter unicode61 remove_diacritics 2 tokenchars '-,'"


def test_a_locked_database_says_so(own, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MS", 10)
    writer = apsw.Connection(str(own))
    writer.execute("BEGIN EXCLUSIVE")
    _refused(own, "is locked")
    writer.close()
    assert counted(own) == {}


def test_chunks_that_hold_nonsense_are_found_or_refused_in_words(own):
    edit(
        own,
        "UPDATE bills_chunks SET text = x'00ff' WHERE chunk_id = 1;"
        "UPDATE bills_chunks SET text = NULL, char_start = 'no' WHERE chunk_id = 2;"
        "UPDATE bills_chunks SET char_end = 9000000000000000000 WHERE chunk_id = 3;"
        "UPDATE bills_chunks SET char_start = -4 WHERE chunk_id = 4;"
        "UPDATE bills_chunks SET embedded_model_id = char(27) || '[31m' || char(0) WHERE chunk_id = 5;"
        "UPDATE bills_chunks SET embedded_model_id = x'ff00' WHERE chunk_id = 6;"
        "UPDATE chunk_embedding_jobs SET status = NULL WHERE chunk_id = 6;"
        "UPDATE chunk_embedding_jobs SET chunk_id = 'seven' WHERE chunk_id = 7",
    )
    found = checks(own, embed=stored_vectors)
    names = {finding.name for finding in found if finding.fault}
    assert {"changed documents", "stale model", "missing vectors"} <= names
    assert "".join(finding.sentence + "".join(finding.examples) for finding in found).isprintable()
    with pytest.raises(InputError, match="chunk 2 has document_id"):
        read_all(own)


def test_text_that_is_not_utf8_is_refused(own):
    edit(own, "UPDATE bills_chunks SET text = CAST(x'ffff' AS TEXT) WHERE chunk_id = 1")
    with pytest.raises(InputError, match="not UTF-8"):
        checks(own)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(healthy, tmp_path, data):
    content = bytearray(healthy.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        damage = data.draw(st.binary(min_size=1, max_size=64))
        content[at : at + len(damage)] = damage
    path = tmp_path / "damaged.db"
    path.write_bytes(content[: data.draw(st.integers(1, len(content)) | st.just(len(content)))])
    with suppress(InputError):
        read_all(path)
