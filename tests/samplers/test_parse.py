from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from runner.base.errors import InputError
from runner.base.records import Document
from samplers.corpus import outcome
from samplers.corpus import parse as reading_module
from samplers.corpus.parse import N_UNREAD, QUARANTINE_LIMIT, Reading, fault, read_corpus, swallowed, unread_lines
from samplers.registry import SOURCES, source_format
from samplers.source_format import FileContent, SourceFormat
from tests.support.reader_goldens import fixtures
from tests.support.small_bills import in_folder, numbered

BILLS = [path for path in fixtures("bills") if path.name.startswith("BILLS-")]


def many(n: int) -> dict[str, bytes]:
    return {f"bill-{i:03}.xml": numbered(i) for i in range(1, n + 1)}


def read(folder: Path, files: dict[str, bytes]) -> Reading:
    return read_corpus(in_folder(folder, files), "bills")


def test_a_folder_is_read_whole_and_sorted(tmp_path):
    files = {f"{n}/{path.name}": path.read_bytes() for n, path in enumerate(BILLS)}
    reading = read(tmp_path, files | {"readme.txt": b"", "9/x.pdf": b""})
    ids = [document.doc_id for document in reading.documents]
    assert ids == sorted(path.stem for path in BILLS)
    assert (reading.quarantined, reading.n_duplicates, sum(reading.ignored.values())) == ([], 0, 2)
    assert (reading.n_files, reading.n_empty, reading.n_superseded) == (len(BILLS), 0, 0)


def test_the_account_of_a_reading_is_the_sum_of_its_files(tmp_path):
    reading = read(tmp_path, {path.name: path.read_bytes() for path in BILLS})
    contents = [source_format("bills").read(path.read_bytes(), path.name, frozenset()) for path in BILLS]
    visible = sum(len("".join(document.text.split())) for content in contents for document in content.documents)
    assert reading.n_characters == visible - sum(content.supplied for content in contents)
    assert reading.left_out == sum((Counter(content.left_out) for content in contents), Counter())
    assert reading.coverage == reading.n_characters / (reading.n_characters + sum(reading.left_out.values()))


def test_an_equal_document_is_dropped_and_another_text_of_one_id_quarantined(tmp_path):
    reading = read(tmp_path, many(60) | {"z/twin.xml": numbered(1), "z/other.xml": numbered(1, "other")})
    assert len(reading.documents) == 60
    assert reading.n_duplicates == 1
    expected = "its id has another text (BILLS-117hr1ih was read from bill-001.xml)"
    assert reading.quarantined == [("z/other.xml", expected)]


SWALLOWED = {
    "crs_reports": ("CRS R11111: Oil", "Report No.: R22222", "R22222"),
    "federal_register": ("Rule 2031-11111", "[FR Doc. 2031-22222 Filed 5-4-31]", "2031-22222"),
    "bills": ("H.R. 1 (117th Congress)", "H. R. 22", "H. R. 22"),
    "us_code": ("§ 1. Oil (9 U.S.C.)", "§ 22a. Lamps", "22a"),
    "public_laws": ("Section 1, Public Law 140-7", "SEC. 22. LAMPS.", "22"),
    "hearing_transcripts": ("Hearing (131st Congress)", "[House Hearing, 131 Congress]", "House Hearing, 131 Congress"),
    "congressional_record": (
        "195 Cong. Rec.",
        "[Congressional Record Volume 195, 1]",
        "Congressional Record Volume 195",
    ),
    "committee_reports": ("House Report 131-1", "[House Report 131-22]", "House Report 131-22"),
    # An appendix that begins its part's first section; a statement over a second measure or another than its name.
    "ecfr_and_cfr": ("Appendix A to Part 1—Oil (91 CFR Part 1)", "§ 1.22 Lamps.", "1.22"),
    "cbo_cost_estimates": ("CBO cost estimate: H.R. 1, Oil", "S. 22, Lamps", "S. 22"),
    "statements_of_administration_policy": ("Statement: H.R. 1 – Oil", "H.R. 22 – Lamps", "H.R. 22"),
}
"""A document's title, the line in it that begins another, and the other's number."""


@pytest.mark.parametrize("source", [name for name, spec in SOURCES.items() if spec.trigger_order])
def test_a_document_that_holds_another_or_exceeds_its_kind_is_known(source):
    unit = SOURCES[source].unit
    title, line, number = SWALLOWED.get(source, ("GAO-1", "", ""))
    held = f"Words.\n{line}\nWords."
    within = "x" * (unit.longest or 1)
    for name, text, expected in [
        (title, "Words.", None),
        (title, f"Words of {line}\nWords.", None),
        (title, held, number or None),
        (f"{title}; {number}", held, None),  # its own number may stand there again
        (title, within, None),
        (title, f"{within}x", "" if unit.longest else None),
    ]:
        assert swallowed(Document("d", text, name, "", "", ""), unit) == expected


def test_up_to_two_percent_may_be_unreadable(tmp_path):
    reading = read(tmp_path, many(49) | {"bad.xml": b"<bill>"})
    assert QUARANTINE_LIMIT == 0.02
    assert reading.quarantined == [("bad.xml", "malformed XML (line 1)")]


def test_more_than_two_percent_unreadable_stops_the_run_and_names_them(tmp_path):
    others = {f"bad{n:02}.xml": b"<html/>" for n in range(12)} | {
        f"x{n:02}.xml": b"\n" * n + b"<bill>" for n in range(11)
    }
    with pytest.raises(InputError) as caught:
        read(tmp_path, many(49) | others)
    message = str(caught.value)
    assert "23 of 72 files" in message
    assert message.count("12 x the root element is <html>") == 1
    assert message.count("1 x malformed XML") == 11
    assert all(message.count(name) == 1 for name in others)


def test_so_many_unreadable_files_are_named_and_the_others_counted():
    unread = [(f"{n:03}.xml", "empty" if n % 3 else "malformed") for n in range(N_UNREAD + 10)]
    *lines, more = unread_lines(unread)
    assert sum(line.count(".xml") for line in lines) == N_UNREAD
    assert more.startswith("10 more")


def test_a_file_of_another_source_is_named_as_such(tmp_path):
    others = {"rule.xml": b"<RULE><PREAMB/></RULE>", "code.xml": b'<?xml version="1.0"?><uscDoc xmlns="x"/>'}
    reading = read(tmp_path, many(200) | others)
    assert dict(reading.quarantined) == {
        "code.xml": "this is a us_code file (root <uscDoc>), not one of bills",
        "rule.xml": "this is a federal_register file (root <RULE>), not one of bills",
    }


@pytest.mark.parametrize("files", [{}, {"notes.txt": b"no bills here"}])
def test_a_folder_without_bills_is_an_input_error(tmp_path, files):
    with pytest.raises(InputError, match=r"holds no \.xml file"):
        read(tmp_path, files)


def test_an_option_that_the_source_does_not_have_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="bills has no option 'notices'"):
        read_corpus(in_folder(tmp_path, many(1)), "bills", frozenset({"notices"}))


def document(doc_id: str, text: str = "some text", family: str = "") -> Document:
    return Document(doc_id, text, "title", "stratum", family or doc_id, "")


def lines_reader(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    """Documents of a file whose lines are: an id, and what is to happen to it."""
    documents, skipped = [], {}
    for line in data.decode().splitlines():
        doc_id, _, what = line.partition(" ")
        if what == "notice" and what not in options:
            skipped["notices"] = skipped.get("notices", 0) + 1
        elif what == "memory":
            raise MemoryError
        elif what == "recursion":
            raise RecursionError
        elif what == "defect":
            raise KeyError(name)
        elif doc_id:
            documents.append(document(doc_id, what or "some text", family=doc_id.partition("v")[0]))
    return FileContent(tuple(documents), skipped=skipped)


HUNDRED = {f"{n}.txt": f"d{n}".encode() for n in range(100)}
"""Files for `lines_reader`."""


@pytest.fixture
def planted(monkeypatch):
    """Makes a row that the registry does not have the one of every source."""

    def plant(**fields: object) -> None:
        row = SourceFormat(lines_reader, suffixes=(".txt", ".text"), **fields)
        for module in (reading_module, outcome):
            monkeypatch.setattr(module, "source_format", lambda _: row)

    return plant


def test_a_file_with_one_taken_id_still_gives_its_other_documents(tmp_path, planted):
    planted()
    reading = read_corpus(in_folder(tmp_path, HUNDRED | {"z.text": b"new1\nd7 other words\nnew2"}), "any")
    assert {"new1", "new2"} < {item.doc_id for item in reading.documents}
    assert reading.quarantined == [("z.text", "its id has another text (d7 was read from 7.txt)")]


@pytest.mark.parametrize("doc_id", ["../../x", "a" * 151, "a\x1bb", "a/b"])
def test_a_document_whose_id_is_no_file_name_is_quarantined(tmp_path, planted, doc_id):
    planted()
    files = HUNDRED | {"bad.txt": doc_id.encode()}
    ((place, reason),) = read_corpus(in_folder(tmp_path, files), "any").quarantined
    assert place == "bad.txt"
    assert reason.startswith("its id is no file name (")
    assert len(reason) < 80
    assert reason.isprintable()


def test_a_document_with_an_endless_title_is_quarantined():
    assert fault(document("d")) == ""
    assert fault(replace(document("d"), title="x" * 401)) == "its title is longer than 400 characters or a line"
    assert fault(replace(document("d"), family="x\ny")) == "its family is longer than 400 characters or a line"


@pytest.mark.parametrize(
    ("what", "reason"), [("memory", "needs more memory than there is"), ("recursion", "nested too deep")]
)
def test_a_reader_that_runs_out_of_memory_or_stack_quarantines_the_file(tmp_path, planted, what, reason):
    planted()
    assert read_corpus(in_folder(tmp_path, HUNDRED | {"bad.txt": f"x {what}".encode()}), "any").quarantined == [
        ("bad.txt", reason),
    ]


def test_any_other_exception_of_a_reader_is_a_defect_and_surfaces(tmp_path, planted):
    planted()
    with pytest.raises(KeyError):
        read_corpus(in_folder(tmp_path, {"1.txt": b"x defect"}), "any")


def test_a_file_above_the_limit_is_quarantined_unread(tmp_path, planted):
    planted(max_bytes=50)
    reading = read_corpus(in_folder(tmp_path, HUNDRED | {"big.txt": b"x defect" + b" " * 50}), "any")
    assert reading.quarantined == [("big.txt", "0 MB, more than the limit of 0 MB")]


def test_only_the_newest_of_a_family_stays_where_the_source_says_so(tmp_path, planted):
    planted(newest=lambda item: (int(item.doc_id.partition("v")[2]),))
    reading = read_corpus(in_folder(tmp_path, {"1.txt": b"R1v9\nR1v10\nR1v2\nR2v1"}), "any")
    assert [item.doc_id for item in reading.documents] == ["R1v10", "R2v1"]
    assert reading.n_superseded == 2


def test_what_is_outside_the_scope_is_counted_unless_an_option_asks_for_it(tmp_path, planted):
    planted(options={"notice": "notices too"})
    folder = in_folder(tmp_path, {"1.txt": b"a\nb notice\nc notice", "2.txt": b"d notice", "3.txt": b""})
    reading = read_corpus(folder, "any")
    assert ([item.doc_id for item in reading.documents], reading.skipped) == (["a"], {"notices": 3})
    assert reading.n_empty == 1
    assert len(read_corpus(folder, "any", frozenset({"notice"})).documents) == 4
