import os
import sqlite3
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from runner.base.errors import DocumentError, InputError
from samplers.corpus import inputs, parse
from samplers.corpus.inputs import corpus_files
from samplers.corpus.parse import read_corpus
from tests.support.reader_goldens import fixtures
from tests.support.small_bills import in_folder, numbered

FILES = {f"{number:02}/BILLS-117hr{number}ih.xml": numbered(number) for number in range(1, 60)}


def in_zip(place: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = place / "corpus.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def in_database(place: Path, files: dict[str, bytes], columns: str = "doc_id, path, raw", *more: str) -> Path:
    place.mkdir(exist_ok=True)
    path = place / "substrate.db"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE bills_documents ({columns})")
        database.execute("CREATE TABLE bills_chunks (chunk_id)")
        rows = [(f"bill:{n}", name, data) for n, (name, data) in enumerate(files.items())]
        database.executemany("INSERT INTO bills_documents VALUES (?, ?, ?)", rows)
        for statement in more:
            database.execute(statement)
    database.close()
    return path


def read(path: Path) -> list[tuple[str, int, bytes]]:
    with corpus_files(path, "bills_documents") as files:
        return [(file.place, file.size, file.load()) for file in files]


@pytest.mark.parametrize("laid_down", [in_folder, in_zip, in_database])
def test_folder_zip_and_database_give_the_same_files_in_the_order_of_their_places(tmp_path, laid_down):
    shuffled = dict(sorted(FILES.items(), key=lambda item: item[0][::-1]))
    expected = [(name, len(data), data) for name, data in sorted(FILES.items())]
    assert read(laid_down(tmp_path, shuffled)) == expected


def test_a_place_that_is_none_of_the_three_is_an_input_error(tmp_path):
    (tmp_path / "empty.xml").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name in ("empty.xml", "nowhere", "pipe"):
        with pytest.raises(InputError, match="is not a folder, a ZIP, an SQLite database or a file with content"):
            read(tmp_path / name)


def test_names_that_a_terminal_would_obey_are_shown_with_question_marks(tmp_path):
    folder = os.fsencode(tmp_path)
    for name in (b"a\x1b[2J.xml", b"b\xff.xml", b"c\n.xml"):
        with open(os.path.join(folder, name), "wb") as handle:  # noqa: PTH118, PTH123  # not a text name
            handle.write(numbered(1))
    assert [place for place, _, _ in read(tmp_path)] == ["a?[2J.xml", "b?.xml", "c?.xml"]


def test_a_folder_below_that_cannot_be_listed_ends_the_reading_by_name(tmp_path, monkeypatch):
    in_folder(tmp_path, FILES)
    listed = os.scandir

    def scandir(path):
        if Path(path).name == "07":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        with pytest.raises(InputError, match=r"/07 cannot be read \(Permission denied\)"):
            read(tmp_path)


def test_hidden_names_and_what_this_tool_keeps_of_an_evaluation_are_not_read(tmp_path):
    plan, read_too = b"source: mine", ("a.xml", "v2/b.xml", "acts/v1/c.xml")
    unread = (".git/d.xml", ".work/e.xml", ".f.xml", "acts/.g/h.xml", "mine/i.xml", "mine/v2/j.xml", "v1/k.xml")
    files = {"mine/v1/plan.yaml": plan, "v1/plan.yaml": plan, "plan.yaml": plan}
    in_folder(tmp_path, files | dict.fromkeys([*read_too, *unread], numbered(1)))
    assert [place for place, _, _ in read(tmp_path)] == sorted(["plan.yaml", *read_too])


def test_links_to_files_are_read_and_what_is_no_file_is_counted_and_never_opened(tmp_path):
    in_folder(tmp_path / "elsewhere", {"linked.xml": numbered(2), "folder.xml/unseen.xml": numbered(3)})
    corpus = in_folder(tmp_path / "corpus", {"a.xml": numbered(1)})
    (corpus / "b.xml").symlink_to(tmp_path / "elsewhere" / "linked.xml")
    (corpus / "c.xml").symlink_to(tmp_path / "elsewhere" / "folder.xml")
    (corpus / "d.xml").symlink_to(tmp_path / "nowhere.xml")
    (corpus / "e.xml").symlink_to(corpus / "e.xml")
    os.mkfifo(corpus / "f.xml")
    with corpus_files(corpus, "bills_documents") as files:
        assert [(file.place, file.is_regular) for file in files] == [
            (f"{letter}.xml", letter in "ab") for letter in "abcdef"
        ]
    reading = read_corpus(corpus, "bills")
    assert (reading.n_files, sum(reading.ignored.values()), reading.quarantined) == (2, 4, [])


def test_nothing_is_quoted_of_a_file_that_a_link_leads_to_outside_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(parse, "QUARANTINE_LIMIT", 1)
    corpus = in_folder(tmp_path / "corpus", {"page.htm": fixtures("hearing_transcripts")[0].read_bytes()})
    secret = in_folder(tmp_path / "elsewhere", {"passwd": b"root:x:0:0:root:/root:/bin/bash"}) / "passwd"
    (corpus / "inside.htm").write_bytes(b"the first words")
    (corpus / "link-inside.htm").symlink_to("inside.htm")
    (corpus / "link-outside.htm").symlink_to(secret)
    (corpus / "up-and-down.htm").symlink_to(tmp_path / "corpus" / ".." / "elsewhere" / "passwd")
    reasons = dict(read_corpus(corpus, "hearing_transcripts").quarantined)
    assert "the first words" in reasons["inside.htm"]
    assert reasons["link-inside.htm"] == reasons["inside.htm"]
    assert reasons["link-outside.htm"] == reasons["up-and-down.htm"]
    assert "root" not in reasons["link-outside.htm"]


REFUSED = {
    "../out.xml": "its path leads out of the archive",
    "a/../../out.xml": "its path leads out of the archive",
    "/etc/out.xml": "its path leads out of the archive",
    "C:out.xml": "its path leads out of the archive",
    "..\\out.xml": "its path leads out of the archive",
}


def test_a_member_whose_path_leads_out_of_the_archive_is_quarantined_and_nothing_is_written(tmp_path):
    (folder := tmp_path / "a" / "b").mkdir(parents=True)
    path = in_zip(folder, {f"{n}.xml": numbered(n) for n in range(300)} | dict.fromkeys(REFUSED, numbered(999)))
    before = sorted(tmp_path.rglob("*"))
    reading = read_corpus(path, "bills")
    assert dict(reading.quarantined) == REFUSED
    assert len(reading.documents) == 300
    assert sorted(tmp_path.rglob("*")) == before


def loaded(path: Path) -> list[str]:
    """The reason why each member is refused, "" for one that loads."""
    reasons = []
    with corpus_files(path, "bills_documents") as files:
        for file in files:
            try:
                file.load()
                reasons.append("")
            except DocumentError as error:
                reasons.append(error.reason)
    return reasons


def test_a_member_that_expands_too_far_is_refused_unread(tmp_path):
    assert loaded(in_zip(tmp_path, {"a.xml": b" " * 20_000_000, "b.xml": b" " * 900_000})) == [
        "expands more than 200 times",
        "",
    ]


def test_a_member_that_is_larger_than_it_declares_is_cut_there_and_refused(tmp_path):
    path = in_zip(tmp_path, {"a.xml": os.urandom(50_000)})
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, entry + 24, 100)
    path.write_bytes(data)
    assert loaded(path) == ["damaged in the archive"]


def test_damaged_encrypted_linked_and_doubled_members_are_refused_each_with_its_reason(tmp_path):
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        link = zipfile.ZipInfo("a-link.xml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("b-twice.xml", numbered(1))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("b-twice.xml", numbered(2))
        archive.writestr("c-lzma.xml", numbered(3), zipfile.ZIP_LZMA)
        archive.writestr("d-broken.xml", os.urandom(1000))
        archive.writestr("e-locked.xml", numbered(4))
        broken = archive.getinfo("d-broken.xml").header_offset
    data = bytearray(path.read_bytes())
    data[broken + 100] ^= 0xFF
    locked = data.rindex(b"PK\x01\x02")
    data[locked + 8] |= 1
    path.write_bytes(data)
    assert loaded(path) == [
        "a link, not a file",
        "",
        "the archive holds another file of this name",
        "compressed by a method that is not read (14)",
        "damaged in the archive",
        "encrypted",
    ]


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_TOTAL"])
def test_an_archive_that_declares_too_much_is_an_input_error(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(inputs, limit, 20)
    with pytest.raises(InputError, match="more than the limits"):
        read(in_zip(tmp_path, FILES))


@pytest.mark.parametrize("keep", [10, 200, -10])
def test_a_damaged_archive_is_an_input_error(tmp_path, keep):
    path = in_zip(tmp_path, FILES)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="is a damaged ZIP"):
        read(path)


def test_a_database_is_opened_for_reading_only_and_not_changed(tmp_path):
    path = in_database(tmp_path, FILES, "doc_id, name, raw")
    path.chmod(0o444)
    before = path.read_bytes()
    assert len(read(path)) == len(FILES)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["substrate.db"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("doc_id, title, raw", "has the columns doc_id, raw, title"),
        ("id, path, text", "has the columns id, path, text"),
        ("path, raw, RowId", "has the columns RowId, path, raw"),
    ],
)
def test_a_table_without_the_columns_is_an_input_error_that_says_what_is_needed(tmp_path, columns, said):
    with pytest.raises(InputError) as caught:
        read(in_database(tmp_path, {}, columns))
    assert f"the table bills_documents {said}" in str(caught.value)
    assert "the columns doc_id, path or name, and raw" in str(caught.value)


ENDLESS = """CREATE VIEW us_code_documents AS WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows)
SELECT n AS doc_id, n AS path, zeroblob(1000000) AS raw FROM rows"""
SPARSE = "CREATE VIRTUAL TABLE us_code_documents USING fts5(doc_id, path, raw)"


CALLED_A_TABLE = (
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET type = 'table' WHERE name = 'us_code_documents'",
)
COMPUTED = "CREATE TABLE us_code_documents (doc_id, path, raw AS (zeroblob(900000000)))"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ((ENDLESS,), "us_code_documents is a view, not a table"),
        ((SPARSE,), "us_code_documents is a virtual, not a table"),
        ((ENDLESS, *CALLED_A_TABLE), "Give another place"),
        ((COMPUTED,), r"has the columns doc_id, path\. Documents"),
    ],
)
def test_a_view_or_a_computed_column_is_not_read_whatever_it_would_give(tmp_path, statements, said):
    path = in_database(tmp_path, {}, "doc_id, path, raw", *statements)
    with pytest.raises(InputError, match=said), corpus_files(path, "us_code_documents"):
        pass


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_TOTAL"])
def test_a_table_of_too_many_rows_or_bytes_is_an_input_error(tmp_path, monkeypatch, limit):
    path = in_database(tmp_path, FILES)
    monkeypatch.setattr(inputs, limit, 20)
    with pytest.raises(InputError, match=r"more than .* rows or"):
        read(path)


def test_a_damaged_database_is_an_input_error(tmp_path):
    path = in_database(tmp_path, FILES)
    path.write_bytes(path.read_bytes()[:2000] + b"\xff" * 6000)
    with pytest.raises(InputError, match="cannot be read as a database"):
        read(path)
