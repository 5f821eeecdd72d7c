from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from runner.base.errors import DocumentError, InputError
from runner.base.records import Document
from samplers.corpus import outcome
from samplers.corpus import parse as reading_module
from samplers.corpus.inputs import CorpusFile
from samplers.corpus.parse import QUARANTINE_LIMIT, Reading, fault, read_corpus, swallowing
from samplers.registry import SOURCES, source_format
from samplers.source_format import FileContent, SourceFormat
from tests.support.reader_goldens import fixtures
from tests.support.small_bills import bill, in_folder, numbered

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


def test_a_contradiction_is_kept_with_its_place(tmp_path):
    files = {"x/BILLS-117hr1ih.xml": bill("x", title="104 HR 1 IH: Title"), "y.xml": bill("y", title="104 HR 2 IH: T")}
    assert read(tmp_path, files).contradictions == [
        ("x/BILLS-117hr1ih.xml", "read as BILLS-104hr1ih, but its file name says 117hr1ih"),
    ]


SWALLOWED = {
    "crs_reports": ("CRS R11111: Oil", "Report No.: R22222", "R22222"),
    "federal_register": ("Rule 2031-11111", "[FR Doc. 2031-22222 Filed 5-4-31]", "2031-22222"),
    "bills": ("H.R. 1 (117th Congress)", "H. R. 22", "H. R. 22"),
    "us_code": ("§ 1. Oil (9 U.S.C.)", "§ 22a. Lamps", "22a"),
    "public_laws": ("Section 1, Public Law 140-7", "SEC. 22. LAMPS.", "22"),
    "hearing_transcripts": ("Hearing (131st Congress)", "[House Hearing, 131 Congress]", "House Hearing, 131 Congress"),
    "congressional_record": (
        "195 Cong. Rec. H1",
        "[Congressional Record Volume 195, 1]",
        "Congressional Record Volume 195",
    ),
    "committee_reports": ("House Report 131-1", "[House Report 131-22]", "House Report 131-22"),
    "ecfr_and_cfr": ("§ 1.1 (91 CFR Part 1)", "§ 1.22 Lamps.", "1.22"),
    "cbo_cost_estimates": ("CBO cost estimate: H.R. 1, Oil", "S. 22, Lamps", "S. 22"),
    "statements_of_administration_policy": ("Statement: H.R. 1 – Oil", "H.R. 22 – Lamps", "H.R. 22"),
}


@pytest.mark.parametrize("source", [name for name, spec in SOURCES.items() if spec.trigger_order])
def test_a_document_that_has_swallowed_another_is_named_with_its_length_and_the_others_number(source):
    unit = SOURCES[source].unit
    title, line, number = SWALLOWED.get(source, ("GAO-1", "", ""))
    texts = [
        "Words.",
        f"Words.\n{line}\nWords.",
        f"Words of {line}\nWords.",
        "x" * (unit.longest or 1),
        "x" * (unit.longest + 1),
    ]
    documents = [Document(f"d{n}", text, title, "", "", "") for n, text in enumerate(texts)]
    # Its own number may stand there again.
    documents.append(Document("d5", texts[1], f"{title}; {number}", "", "", ""))
    holding = [("d1", len(texts[1]), number)] if number else []
    long = [("d4", unit.longest + 1, "")] if unit.longest else []
    assert list(swallowing(documents, unit)) == holding + long


def test_what_may_hold_others_is_in_the_reading(tmp_path):
    reading = read(tmp_path, {"a.xml": numbered(1, "x" * 340_001), "b.xml": numbered(2)})
    assert reading.swallowing == [(reading.documents[0].doc_id, len(reading.documents[0].text), "")]


def test_up_to_two_percent_may_be_unreadable(tmp_path):
    reading = read(tmp_path, many(49) | {"bad.xml": b"<bill>"})
    assert QUARANTINE_LIMIT == 0.02
    assert reading.quarantined == [("bad.xml", "malformed XML (line 1)")]


def test_more_than_two_percent_unreadable_stops_the_run_and_counts_ten_reasons(tmp_path):
    others = {f"bad{n:02}.xml": b"<html/>" for n in range(12)} | {
        f"x{n:02}.xml": b"\n" * n + b"<bill>" for n in range(11)
    }
    with pytest.raises(InputError) as caught:
        read(tmp_path, many(49) | others)
    message = str(caught.value)
    assert "23 of 72 files" in message
    assert message.count("12 x the root element is <html>") == message.count("(first bad00.xml)") == 1
    assert message.count("1 x malformed XML") == 9
    assert "and 2 more reasons" in message


HTM = b"<html><body><pre>\n[Congressional Bills 199th Congress]\n[From the U.S. Government Publishing Office]\n"
REGISTER = b'<?xml version="1.0"?>\n<frDoc xmlns="http://schemas.gpo.gov/xml/uslm"><meta/></frDoc>'


def test_files_that_are_not_read_are_counted_by_what_they_are(tmp_path):
    others = {f"{n}.htm": HTM for n in range(5)} | {"a.htm": b"<html>", "BILLS-199hr1ih.pdf": b"%PDF-", "b.pdf": b""}
    by_kind = read(tmp_path, many(3) | others).ignored
    assert sorted(by_kind.values()) == [1, 1, 6]
    ((kind, _),) = Counter(by_kind).most_common(1)
    assert kind == str(SOURCES["bills"].unread[0])


def test_a_folder_of_a_format_that_is_not_read_is_told_what_to_take(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, {f"{n}.htm": HTM for n in range(5)})
    assert f"5 x {SOURCES['bills'].unread[0]}\n" in str(caught.value)
    with pytest.raises(InputError) as caught:
        read(tmp_path, many(3) | {f"FR{n}.xml": REGISTER for n in range(4)})
    assert f"4 x {SOURCES['federal_register'].unread[0]} (first FR0.xml)\n" in str(caught.value)


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
        monkeypatch.setitem(SOURCES, "any", SOURCES["demo"])
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


def test_a_corpus_of_nothing_but_what_is_out_of_scope_is_an_input_error(tmp_path, planted):
    planted()
    with pytest.raises(InputError, match="holds no document of any: 1 left out as notices"):
        read_corpus(in_folder(tmp_path, {"1.txt": b"b notice"}), "any")


def test_sidecars_are_no_documents_and_reach_the_source(tmp_path, planted):
    seen = {}

    def enrich(documents, sidecars):
        seen.update(sidecars)
        return [replace(item, stratum="enriched") for item in documents]

    planted(sidecar=r"(^|/)index\.(yaml|txt)$", enrich=enrich)
    reading = read_corpus(in_folder(tmp_path, {"a/1.txt": b"d1", "a/index.txt": b"d2", "index.yaml": b"y"}), "any")
    assert seen == {"a/index.txt": b"d2", "index.yaml": b"y"}
    assert [item.stratum for item in reading.documents] == ["enriched"]
    assert (reading.n_files, sum(reading.ignored.values())) == (1, 0)


def titled(documents, sidecars):
    """Documents with the words of all sidecars as their stratum."""
    if "recursion" in "".join(map(bytes.decode, sidecars.values())):
        raise RecursionError
    for place, data in sidecars.items():
        if data == b"bad":
            raise DocumentError(place, "no list")
    return [replace(item, stratum=b"+".join(sidecars.values()).decode()) for item in documents]


def test_a_sidecar_that_cannot_be_used_is_quarantined_and_the_others_count(tmp_path, planted):
    planted(sidecar="yaml$", enrich=titled)
    files = {f"{n}.txt": f"d{n}".encode() for n in range(200)}
    sidecars = {"a.yaml": b"good", "b.yaml": b"bad", "c.yaml": b"recursion", "d.yaml": b"fine"}
    reading = read_corpus(in_folder(tmp_path, files | sidecars), "any")
    assert reading.quarantined == [("b.yaml", "no list"), ("c.yaml", "nested too deep")]
    assert {item.stratum for item in reading.documents} == {"good+fine"}


def test_of_two_sidecars_with_one_path_and_other_bytes_the_second_is_quarantined(tmp_path, planted, monkeypatch):
    planted(sidecar="yaml$", enrich=titled)
    listed = [("a.yaml", b"good"), ("a.yaml", b"other"), ("a.yaml", b"good"), *HUNDRED.items()]
    files = [CorpusFile(place, len(data), partial(bytes, data)) for place, data in listed]
    monkeypatch.setattr(reading_module, "corpus_files", lambda *_, **__: nullcontext(files))
    reading = read_corpus(tmp_path, "any")
    assert [place for place, _ in reading.quarantined] == ["a.yaml"]
    assert {item.stratum for item in reading.documents} == {"good"}


def test_a_sidecar_with_an_endless_word_changes_nothing(tmp_path, planted):
    planted(sidecar="yaml$", enrich=titled)
    reading = read_corpus(in_folder(tmp_path, {"1.txt": b"d1", "a.yaml": b"x" * 1_000_000}), "any")
    assert [item.stratum for item in reading.documents] == ["stratum"]
