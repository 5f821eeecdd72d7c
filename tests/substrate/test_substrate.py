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
from runner.substrate.checks import Checks, Expected, check_substrate, tokenizer_finding
from runner.substrate.database import document_ids, open_substrate
from runner.substrate.search import Search, index_recall, search_runs
from runner.substrate.shapes import FindingResult
from runner.substrate.tables import Layout
from runner.substrate.texts import Cut, Stored, Texts, coverage, others
from tests.support import substrate_builder
from tests.support.substrate_builder import (
    FAULTS,
    MODEL,
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
EXPECTED = Expected(*MODEL, Cut("fictional_v1", CHUNKS), version=VERSION)
NOTES = ("substrate version", "documents not in the manifest")


def made(path: Path, *faults: str, **changed: object) -> Path:
    return build(path, Build(DOCUMENTS, CHUNKS, VECTORS, faults=faults, **changed))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("substrate") / "substrate.db")


@pytest.fixture
def own(healthy: Path, tmp_path: Path) -> Path:
    """A copy to be spoiled."""
    return shutil.copy(healthy, tmp_path / "own.db")


def checks(path: Path, documents=DOCUMENTS, expected=EXPECTED, **more: object) -> Checks:
    with open_substrate(path, "bills") as substrate:
        return check_substrate(substrate, documents, expected, **more)


def faults(path: Path, **more: object) -> list[str]:
    return [finding.name for finding in checks(path, **more).faults]


def read_all(path: Path) -> None:
    """Everything that is ever read of a substrate."""
    with open_substrate(path, "bills") as substrate:
        check_substrate(substrate, DOCUMENTS, EXPECTED, embed=stored_vectors)
        for restricted in (True, False):
            search = Search({"q": "mon Act"}, VECTORS[:1], [d.doc_id for d in DOCUMENTS], restricted)
            search_runs(substrate, search)
            index_recall(substrate, search)


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
    assert found.faults == ()
    assert [finding.count for finding in found.findings] == [0] * len(found.findings)
    characters = sum(len("".join(document.text.split())) for document in DOCUMENTS)
    assert found.coverage.characters == found.coverage.covered == characters
    assert found.coverage.documents == found.coverage.with_chunks == len(DOCUMENTS)


@pytest.mark.parametrize("fault", [name for name in FAULTS if name not in (*NOTES, "quantisation loss")])
def test_each_planted_fault_is_the_only_one_found(fault, tmp_path):
    found = checks(made(tmp_path / "s.db", fault))
    assert [finding.name for finding in found.faults] == [fault.partition(",")[0]]
    (finding,) = found.faults
    assert 0 < finding.count <= finding.of
    assert finding.examples


def test_faults_planted_together_are_all_found_in_the_order_of_the_checks(tmp_path):
    planted = ["stale model", "missing vectors", "changed documents", "FTS tokenizer mismatch"]
    assert faults(made(tmp_path / "s.db", *planted)) == planted


def test_another_version_of_the_substrate_is_a_note_and_no_fault(tmp_path):
    found = checks(made(tmp_path / "s.db", "substrate version"))
    assert found.faults == ()
    (note,) = [finding for finding in found.findings if finding.count]
    assert note.sentence == f"The substrate's version is 'another', not '{VERSION}'."


def test_without_a_table_of_facts_the_version_is_the_users_own_of_sqlite(own):
    edit(own, "DROP TABLE substrate_meta")
    edit(own, "PRAGMA user_version = 7")
    with open_substrate(own, "bills") as substrate:
        assert substrate.version == "7"


def test_documents_outside_the_manifest_are_counted_and_blamed_on_nobody(healthy):
    found = checks(healthy, DOCUMENTS[:30])
    assert found.faults == ()
    (note,) = [finding for finding in found.findings if finding.count]
    assert (note.name, note.count, note.of) == ("documents not in the manifest", 10, 40)


def test_a_chunk_less_at_the_end_of_a_document_leaves_its_characters_uncovered(own):
    last = max(number for number, chunk in enumerate(CHUNKS, 1) if chunk.doc_id == CHUNKS[-1].doc_id)
    edit(
        own,
        "UPDATE bills_chunks SET char_end = char_end - 5, text = substr(text, 1, length(text) - 5) WHERE chunk_id = ?",
        (last,),
    )
    found = checks(own)
    (finding,) = [finding for finding in found.faults if finding.name == "missing chunks"]
    assert finding.examples[0].startswith(f"{CHUNKS[-1].doc_id}: 5 of ")
    assert found.coverage.characters - found.coverage.covered == 5


def test_an_amended_document_is_a_changed_one(healthy):
    amended = Document(DOCUMENTS[0].doc_id, "X" + DOCUMENTS[0].text[1:], "Act", "118", "f", "")
    found = checks(healthy, [amended, *DOCUMENTS[1:]])
    assert [(finding.name, finding.count) for finding in found.faults] == [("changed documents", 1)]


def other_chunks(path: Path, **more: object) -> FindingResult:
    return next(finding for finding in checks(path, **more).findings if finding.name == "other chunks")


def test_a_chunk_of_other_length_is_one_missing_and_one_too_many(tmp_path):
    found = other_chunks(made(tmp_path / "s.db", "other chunks"))
    assert (found.count, found.of) == (1, len(DOCUMENTS))
    assert "not cut as fictional_v1 cuts them: 1 of its chunks are missing, and 1 stored ones are not" in found.sentence
    assert found.examples[0].endswith(", not its own")


def test_chunks_that_are_stored_twice_are_counted_as_often_as_they_are_too_many(tmp_path):
    found = other_chunks(made(tmp_path / "s.db", "other chunks, repeated"))
    assert found.count == found.of == len(DOCUMENTS)
    assert f": 0 of its chunks are missing, and {len(CHUNKS)} stored ones are not" in found.sentence
    first = CHUNKS[0].span
    assert ", first chunk 1000001, " in found.examples[0]
    assert found.examples[0].endswith(f", characters {first.start} to {first.end}, stored again")


def test_a_chunk_with_another_context_is_another_chunk_and_null_is_no_context(own):
    edit(own, "UPDATE bills_chunks SET context = 'another title' WHERE chunk_id = 1")
    edit(own, "INSERT INTO bills_fts(bills_fts) VALUES ('rebuild')")
    (finding,) = checks(own).faults
    assert (finding.name, finding.count) == ("other chunks", 1)
    assert finding.examples[0].endswith(", with another context")
    edit(own, "UPDATE bills_chunks SET context = NULL")
    bare = [Chunk(chunk.doc_id, chunk.index, chunk.span, "", 1) for chunk in CHUNKS]
    assert not other_chunks(own, expected=Expected(*MODEL, Cut("fictional_v1-bare", bare))).fault


def test_a_chunk_less_that_others_cover_is_missing_among_the_chunks(healthy):
    within = Chunk(CHUNKS[0].doc_id, 9, Span(2, 7), CHUNKS[0].context, 1)
    (finding,) = checks(healthy, expected=Expected(*MODEL, Cut("fictional_v1", [*CHUNKS, within]))).faults
    assert finding.examples == [f"{CHUNKS[0].doc_id}: 1 missing, first characters 2 to 7"]


def test_amended_and_incomplete_documents_are_left_out_of_other_chunks(tmp_path):
    path = made(tmp_path / "s.db", "missing chunks", "other chunks, repeated")
    edit(path, "UPDATE bills_chunks SET text = 'amended' WHERE chunk_id = ?", (len(CHUNKS),))
    found = other_chunks(path)
    assert found.count == found.of == len(DOCUMENTS) - 2


def test_chunks_of_documents_outside_the_manifest_are_not_held_to_the_chunker(own):
    edit(own, "UPDATE bills_chunks SET context = 'another title' WHERE document_id = 'bill:118-hr-40'")
    edit(own, "INSERT INTO bills_fts(bills_fts) VALUES ('rebuild')")
    assert checks(own, DOCUMENTS[:30]).faults == ()
    assert faults(own) == ["other chunks"]


PLACES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.sampled_from(["", "Act"])), max_size=12)


@given(PLACES, PLACES)
def test_missing_and_surplus_chunks_are_the_differences_of_two_multisets(expected, stored):
    chunks = [Chunk(doc_id, 0, Span(start, 5), context, 1) for doc_id, start, context in expected]
    rows = [Stored(doc_id, number, (start, 5, context)) for number, (doc_id, start, context) in enumerate(stored)]
    found = others(chunks, rows)
    missing = Counter((doc_id, place[0], place[2]) for doc_id, places in found.missing.items() for place in places)
    surplus = Counter((row.doc_id, row.place[0], row.place[2]) for rows in found.surplus.values() for row in rows)
    assert missing == Counter(expected) - Counter(stored)
    assert surplus == Counter(stored) - Counter(expected)
    assert all([*found.missing.values(), *found.surplus.values()])


def test_a_job_that_is_done_without_a_vector_is_not_done(own):
    edit(own, "DELETE FROM bills_chunks_vec0 WHERE chunk_id = 5")
    by_name = {finding.name: finding for finding in checks(own).faults}
    assert by_name["unfinished jobs"].examples == ["chunk 5: done without a vector"]
    assert by_name["missing vectors"].examples == ["chunk 5"]


def test_a_chunk_that_is_not_marked_as_embedded_counts_as_without_a_vector(own):
    edit(own, "UPDATE bills_chunks SET embedded_at = NULL WHERE chunk_id = 4")
    (finding,) = checks(own).faults
    assert (finding.name, finding.examples) == ("missing vectors", ["chunk 4"])


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(("bills_chunks", 123456, *MODEL, "done"), id="done, of a chunk that is gone"),
        pytest.param(("bills_chunks", 1, "next/encoder", "2", "pending"), id="of another model"),
        pytest.param(("us_code_chunks", 1, MODEL[0], "2", "pending"), id="of another table"),
    ],
)
def test_jobs_that_concern_nobody_here_are_no_fault(own, job):
    edit(own, "INSERT INTO chunk_embedding_jobs VALUES (?, ?, ?, ?, ?)", job)
    assert faults(own) == []


def test_chunks_may_overlap_and_lie_within_one_another():
    document = Document("d", "ab cd ef gh", "", "", "", "")
    covered, lacking = coverage(Texts({"d": [(3, 5), (0, 8), (1, 2)]}, {}), [document])
    assert (covered.characters, covered.covered) == (8, 6)
    assert lacking == {"d": "d: 2 of 8 characters in no chunk"}


def test_a_vector_with_nan_is_found_and_said_to_spoil_exact_search(own):
    connection = writing_connection(own)
    replace_vector(connection, "bills", 3, np.full(DIM, np.nan))
    connection.close()
    (finding,) = checks(own).faults
    assert (finding.name, finding.count, finding.examples) == ("vectors not finite", 1, ["chunk 3"])
    read_all(own)


def test_vectors_that_are_nothing_but_nan_are_not_the_models(tmp_path):
    path = build(tmp_path / "s.db", Build(DOCUMENTS, CHUNKS, VECTORS * np.float32("nan")))
    assert faults(path, embed=stored_vectors) == ["vectors not finite", "stored vectors are not the model's"]


def test_vectors_of_another_model_are_told_from_the_models_own(healthy):
    def other(texts: list[str]) -> np.ndarray:
        return unit_rows(len(texts), DIM, seed=9)

    (finding,) = checks(healthy, embed=other).faults
    assert finding.name == "stored vectors are not the model's"
    assert finding.count == finding.of == 64


def test_half_precision_does_not_make_another_model(healthy):
    assert faults(healthy, embed=lambda texts: stored_vectors(texts).astype(np.float16).astype(np.float32)) == []


def test_an_encoder_of_another_dimension_is_refused(healthy):
    with pytest.raises(InputError, match="16 dimensions"):
        checks(healthy, embed=lambda texts: unit_rows(len(texts), 8, seed=1))


def test_a_full_text_index_with_more_columns_is_not_stale_for_that(own):
    edit(
        own,
        "DROP TABLE bills_fts; CREATE VIRTUAL TABLE bills_fts USING fts5(document_id UNINDEXED, text, context, "
        "content='bills_chunks', content_rowid='chunk_id', tokenize='porter unicode61'); "
        "INSERT INTO bills_fts(bills_fts) VALUES ('rebuild')",
    )
    assert faults(own) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replace(text, 'ra', 'zz')", "chunk 7: its word "),
        ("substr(text, 1, instr(text, ' '))", "chunk 7: the index counts other words"),
    ],
    ids=["words that are not in the index", "words that are there still, by their number"],
)
def test_a_full_text_index_of_other_words_is_stale(own, text, said):
    edit(own, f"UPDATE bills_chunks SET text = {text} WHERE chunk_id = 7")
    (finding,) = [finding for finding in checks(own).faults if finding.name == "FTS index stale"]
    assert [example.startswith(said) for example in finding.examples] == [True]


@pytest.mark.parametrize(
    ("declared", "lost"),
    [
        ("porter", set()),
        ("porter unicode61", set()),
        ("PORTER  unicode61", set()),
        ("unicode61", {"inflection"}),
        ("trigram", {"section number printed with an en dash"}),
        ("porter ascii", {"section number printed with an en dash"}),
        ("porter unicode61 tokenchars '-'", {"section number printed with an en dash", "hyphenated word"}),
        ("porter unicode61 remove_diacritics 0", set()),
    ],
)
def test_what_a_tokenizer_loses_is_said_by_what_it_does_not_find(declared, lost):
    finding = tokenizer_finding(declared, "porter unicode61")
    said = finding.sentence.partition("does not find: ")[2].partition(".")[0]
    assert set(filter(None, said.split(", "))) == lost
    same = " ".join(declared.lower().split()) in ("porter", "porter unicode61")
    assert finding.fault == (not same)


def test_the_sample_is_drawn_by_the_seed(tmp_path):
    documents, chunks = fictional(120)
    path = build(tmp_path / "s.db", Build(documents, chunks, unit_rows(len(chunks), DIM, seed=3)))

    def asked(seed: int) -> list[str]:
        texts: list[str] = []
        expected = Expected(*MODEL, Cut("fictional_v1", chunks))
        checks(path, documents, expected, embed=lambda some: _kept(texts, some), seed=seed)
        return texts

    assert asked(1) == asked(1) != asked(2)


def _kept(texts: list[str], some: list[str]) -> np.ndarray:
    texts += some
    return unit_rows(len(some), DIM, seed=1)


def test_a_substrate_without_a_chunk_is_all_missing_chunks(tmp_path):
    path = build(tmp_path / "s.db", Build([], [], np.zeros((0, DIM), np.float32)))
    found = checks(path, embed=stored_vectors)
    assert [(finding.name, finding.count) for finding in found.faults] == [("missing chunks", len(DOCUMENTS))]
    assert found.coverage.covered == 0


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
    assert document_ids(source)(doc_id) == expected


def test_an_id_that_the_substrate_holds_itself_is_not_mapped(tmp_path):
    with open_substrate(made(tmp_path / "s.db", ids=lambda doc_id: doc_id), "bills") as substrate:
        ids = [document.doc_id for document in DOCUMENTS]
        assert substrate.ids_of(ids) == dict(zip(ids, ids, strict=True))


def test_two_versions_of_a_bill_cannot_be_told_apart_there(healthy):
    with open_substrate(healthy, "bills") as substrate, pytest.raises(InputError, match="one document"):
        substrate.ids_of(["BILLS-118hr1ih", "BILLS-118hr1enr"])


# Nothing is written.


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_reading_changes_no_byte_and_makes_no_file(journal, tmp_path):
    path = made(tmp_path / "s.db", journal=journal)
    before = file_sha256(path)
    read_all(path)
    assert file_sha256(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.db"]


def test_no_statement_can_write(healthy):
    with open_substrate(healthy, "bills") as substrate:
        for statement in ("DELETE FROM {chunks}", "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)"):
            with pytest.raises(InputError, match="readonly"):
                list(substrate.rows(statement))


def test_a_read_only_folder_is_enough(tmp_path):
    path = made(tmp_path / "folder.db", journal="wal")
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        read_all(path)
        assert [file.name for file in tmp_path.iterdir()] == [path.name]  # for root may write there all the same
    finally:
        tmp_path.chmod(0o755)


def test_a_live_wal_database_is_read_as_one_snapshot(tmp_path):
    path = made(tmp_path / "s.db", journal="wal")
    writer = writing_connection(path)
    writer.execute("UPDATE bills_chunks SET embedded_model_version = '1' WHERE chunk_id = 1")  # lies in the -wal file
    with open_substrate(path, "bills") as substrate:
        writer.execute("UPDATE bills_chunks SET embedded_model_version = '1' WHERE chunk_id = 2")
        (finding,) = check_substrate(substrate, DOCUMENTS, EXPECTED).faults
        assert (finding.name, finding.count) == ("stale model", 1)
    writer.close()


def test_a_wal_database_that_is_written_meanwhile_is_said_to_be(tmp_path):
    path = made(tmp_path / "s.db", journal="wal")

    def reads_while_another_writes() -> None:
        with open_substrate(path, "bills") as substrate:
            edit(path, "UPDATE substrate_meta SET value = 'x'")
            substrate.count_chunks()

    with pytest.raises(InputError, match="written while it was read"):
        reads_while_another_writes()


# Hostile input.


def _refused(path: Path, match: str) -> None:
    with pytest.raises(InputError, match=match) as refused:
        open_substrate(path, "bills")
    assert str(path.name) in str(refused.value)


def test_what_is_no_database_is_refused(tmp_path):
    _refused(tmp_path / "none.db", "does not exist")
    _refused(tmp_path, "not a regular file")
    for name, content, match in (
        ("empty.db", b"", "is empty"),
        ("text.db", b"SQLite format 3 is what this is not" * 9, "not an SQLite database"),
        ("short.db", b"SQLite format 3\0", "not an SQLite database"),
        ("cipher.db", bytes(range(256)) * 16, "not an SQLite database"),
        ("header.db", b"SQLite format 3\0" + b"\xff" * 4096, "damaged|cannot be read"),
    ):
        (tmp_path / name).write_bytes(content)
        _refused(tmp_path / name, match)
    os.mkfifo(tmp_path / "pipe.db")
    _refused(tmp_path / "pipe.db", "not a regular file")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "none.db")
    _refused(tmp_path / "dangling.db", "does not exist")


def test_a_symbolic_link_and_a_strange_name_are_followed(healthy, tmp_path):
    path = shutil.copy(healthy, tmp_path / "a b?mode=rw&x#%41.db")
    (tmp_path / "link.db").symlink_to(path)
    assert faults(tmp_path / "link.db") == faults(path) == []


def test_a_source_that_the_catalogue_does_not_know_is_refused(healthy):
    with pytest.raises(InputError, match="no source"):
        open_substrate(healthy, 'bills_chunks"; DROP TABLE x; --')


def test_everything_that_is_missing_is_named_at_once(tmp_path):
    path = tmp_path / "s.db"
    edit(path, "CREATE TABLE bills_chunks (chunk_id TEXT PRIMARY KEY, document_id, text)")
    edit(path, "CREATE TABLE chunk_embedding_jobs (chunk_id, status)")
    edit(path, "CREATE TABLE substrate_meta (name, value)")
    edit(path, "CREATE VIEW bills_fts AS SELECT 1 AS text")
    with pytest.raises(InputError) as refused:
        open_substrate(path, "bills")
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
        ("USING fts5(\n            context, text, content='bills_chunks'", "USING fts5(body, content='bills_chunks'",
         "bills_fts has no column context"),
        ("USING vec0(\n            chunk_id integer primary key", "USING vec0(\n            id integer primary key",
         "has no column chunk_id"),
    ],
)  # fmt: skip
def test_an_index_that_declares_something_else_is_refused(old, new, match, tmp_path):
    declared = schema(Layout("bills"), DIM)
    assert old in declared
    edit(tmp_path / "s.db", declared.replace(old, new))
    _refused(tmp_path / "s.db", match)


@pytest.mark.parametrize("metric", ["", "cosine", "l2", "l1"])
def test_dimension_distance_and_tokenizer_are_read_from_the_declarations(metric, tmp_path):
    path = made(tmp_path / "s.db", metric=metric, tokenizer="porter unicode61 remove_diacritics 2 tokenchars '-,'")
    with open_substrate(path, "bills") as substrate:
        assert (substrate.dim, substrate.metric) == (DIM, metric or "l2")
        assert substrate.tokenizer == "porter unicode61 remove_diacritics 2 tokenchars '-,'"


def test_a_locked_database_says_so(own, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MS", 10)
    writer = apsw.Connection(str(own))
    writer.execute("BEGIN EXCLUSIVE")
    _refused(own, "is locked")
    writer.close()
    assert faults(own) == []


def test_chunks_that_hold_nonsense_are_found_or_refused_in_words(own):
    edit(own, "UPDATE bills_chunks SET text = x'00ff' WHERE chunk_id = 1")
    edit(own, "UPDATE bills_chunks SET text = NULL, char_start = 'no' WHERE chunk_id = 2")
    edit(own, "UPDATE bills_chunks SET char_end = 9000000000000000000 WHERE chunk_id = 3")
    edit(own, "UPDATE bills_chunks SET char_start = -4 WHERE chunk_id = 4")
    edit(own, "UPDATE bills_chunks SET embedded_model_id = char(27) || '[31m' || char(0) WHERE chunk_id = 5")
    edit(own, "UPDATE chunk_embedding_jobs SET status = NULL WHERE chunk_id = 6")
    edit(own, "UPDATE chunk_embedding_jobs SET chunk_id = 'seven' WHERE chunk_id = 7")
    found = checks(own, embed=stored_vectors)
    names = [finding.name for finding in found.faults]
    assert {"changed documents", "missing chunks", "stale model", "unfinished jobs"} <= set(names)
    printed = "".join(finding.sentence + "".join(finding.examples) for finding in found.findings)
    assert printed.isprintable()
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


def test_a_document_of_the_same_id_in_another_case_is_another_document(tmp_path, monkeypatch):
    """A column may compare without case; ids never do."""
    plain = substrate_builder.schema
    nocase = "document_id TEXT COLLATE NOCASE"
    monkeypatch.setattr(substrate_builder, "schema", lambda *given: plain(*given).replace("document_id TEXT", nocase))
    path = made(tmp_path / "s.db")
    edit(path, "UPDATE bills_chunks SET document_id = upper(document_id) WHERE chunk_id = 1")
    assert "missing chunks" in faults(path)
