import gzip
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.corpus.parse import read_corpus
from samplers.source_format import FileContent
from samplers.sources.statements.index import read_index
from samplers.sources.statements.reader import ERROR_PAGE, FORMAT
from tests.support.corpora import real_files
from tests.support.small_pdf import column, pdf

FIXTURES = Path(__file__).parents[1] / "data" / "statements_of_administration_policy"
INDEX = (FIXTURES / "46-Biden.yaml").read_bytes()
OBAMA = (FIXTURES / "44-Obama.yaml").read_bytes()


def read(data: bytes, name: str = "46-Biden-118-2024-05-06_hr9001.pdf") -> FileContent:
    return FORMAT.read(data, name, frozenset())


def fixture(part: str) -> Document:
    (path,) = FIXTURES.glob(f"*{part}.pdf")
    return read(path.read_bytes(), f"sap-pdf/{path.name}").documents[0]


def statement(*lines: str, name: str = "SAP-HR9001.pdf") -> Document:
    return read(pdf([column(["STATEMENT OF ADMINISTRATION POLICY", "", *lines])]), name).documents[0]


LINES = ("June 3, 2024", "", "H.R. 9001 – Lamp Act", "", "The Administration supports H.R. 9001.")


@pytest.mark.parametrize(
    ("name", "doc_id", "said"),
    [
        # A name of this statement wins over a misprinted date; that of another statement over nothing.
        ("118/2024-06-04_hr9001.pdf", "SAP-118-2024-06-04-hr9001", ["text says 2024-06-03"]),
        ("111/2009-01-01_s5.pdf", "SAP-118-2024-06-03-hr9001", ["file name says 2009-01-01", "file name says s5"]),
        ("118/2024-06-03_hr9001.pdf", "SAP-118-2024-06-03-hr9001", []),
        ("118/2024-13-99_hr9001.pdf", "SAP-118-2024-06-03-hr9001", []),
        ("SAP-HR9001.pdf", "SAP-118-2024-06-03-hr9001", []),
    ],
)
def test_of_two_dates_the_one_in_a_name_of_this_statement_is_taken_and_the_other_said(
    name: str, doc_id: str, said: list[str]
) -> None:
    content = read(pdf([column(["STATEMENT OF ADMINISTRATION POLICY", "", *LINES])]), name)
    assert content.documents[0].doc_id == doc_id
    assert list(content.contradictions) == [f"read as {doc_id}, but its {each}" for each in said]


@pytest.mark.parametrize("form", ["STATEMENT OFADMINISTRATION POLICY", "STATEMENT OF ADMINIS TRATION POL ICY"])
def test_kerning_hides_neither_form_nor_letterhead_nor_date(form: str) -> None:
    lines = ["EXECUTIVE OFFICEOF THE PRESIDENT", form, "", "June3,2024", "", "The Administration has no view."]
    content = read(pdf([column(lines)]), "letter.pdf")
    assert content.documents[0].text == "June3,2024\n\nThe Administration has no view."
    assert content.documents[0].stratum == "biden/other"


def test_a_statement_that_names_neither_date_nor_measure_is_named_after_its_file() -> None:
    document = statement("The Administration has no view.", name="folder/my file.pdf")
    assert (document.doc_id, document.family, document.stratum) == ("SAP-my-file", "SAP-my-file", "unknown/other")


@pytest.mark.parametrize(
    ("sentence", "position"),
    [
        ("The Administration strongly supports House passage of H.R. 9001.", "supports"),
        ("The Administration strongly opposes H.R. 9001.", "opposes"),
        ("The Administration supports lamps. However, the Administration opposes H.R. 9001.", "opposes"),
        ("The Administration opposes H.R. 9001. If it came to the President, he would veto it.", "veto"),
        ("The Administration supports efforts to light lamps.", "supports"),
        ("The Administration urges swift passage of H.R. 9001.", "other"),
    ],
)
def test_the_position_is_the_one_on_the_measure(sentence: str, position: str) -> None:
    document = statement("June 3, 2024", "", "H.R. 9001 – Lamp Act", "", sentence)
    assert document.stratum == f"biden/{position}"


def test_the_index_of_each_president_adds_the_official_address_and_what_was_taken_back() -> None:
    assert FORMAT.enrich is not None
    documents = [fixture("_hr9001"), fixture("_hr6119sa"), fixture("_s77"), fixture("_sjr12")]
    enriched = FORMAT.enrich(documents, {"archive/46-Biden.yaml": INDEX, "archive/44-Obama.yaml": OBAMA})
    assert [document.doc_id for document in enriched] == [document.doc_id for document in documents]
    assert [document.url for document in enriched] == [
        "https://www.whitehouse.gov/wp-content/uploads/2024/05/SAP-HR9001.pdf",
        "",
        "https://obamawhitehouse.archives.gov/sites/default/files/omb/legislative/sap/112/saps77s_20110725.pdf",
        "",
    ]
    assert [document.status for document in enriched] == ["", "rescinded", "", ""]


def test_the_index_writes_measures_in_its_own_way() -> None:
    assert ("114", "2015-09-24", "hjres61") in read_index(OBAMA, "44-Obama.yaml")


def test_a_copy_of_the_archive_is_read_with_its_indexes_and_nothing_else_of_it(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    for path in FIXTURES.glob("4*-*-*.pdf"):
        number, president, congress, name = path.name.split("-", 3)
        place = archive / "statements" / f"{number}-{president}" / congress / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes() if "hr5" not in name else pdf([column(["x", *LINES])]))
    for path in FIXTURES.glob("*.yaml"):
        shutil.copy(path, archive)
    (tmp_path / "presidents.yaml").write_text("44-Obama:\n  name: {first: A}\n")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "run_scraper.yaml").write_text("on: [push]\n")
    reading = read_corpus(tmp_path, "statements_of_administration_policy")
    assert (reading.quarantined, sum(reading.ignored.values())) == ((), 2)
    by_id = {document.doc_id: document for document in reading.documents}
    assert by_id["SAP-112-2011-07-25-s77"].url.startswith("https://obamawhitehouse.archives.gov/")
    assert by_id["SAP-117-2023-01-02-hr6119"].status == "rescinded"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a: [", "not YAML"),
        (b"\xff\xfe\x00", "YAML|list"),
        (b"bills: x", "is a list"),
        (b"", "is a list"),
        (b"- &a [1]\n- *a", "plain values"),
        (b"- !!python/object:os.system x", "plain values"),
        (b"[" * 50_000, "plain values"),
        (b"- date_issued: 2024-13-45", "not YAML"),
        (b"- a\n" * 1_300_000, "limit"),
    ],
)
def test_an_index_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read_index(data, "index-1.yaml")


def test_rows_of_an_index_that_say_nothing_are_passed_over() -> None:
    assert read_index(b"- 7\n- bills: x\n- bills: [hr1]\n  congress: [1]\n", "index-1.yaml").keys() == {("", "", "hr1")}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"words", "no PDF"),
        (b"<html><title> Gone\n away</title>", "a web page, not a PDF: Gone away"),
        (gzip.compress(b"<html><title>Lamps</title>" + bytes(10_000_000)), "a web page, not a PDF: Lamps"),
        (b"\x1f\x8bbroken", "data packed with gzip, not a PDF"),
        (b"%PDF-1.4", "PDF: damaged"),
        (pdf([[]]), "no text on any page"),
        (pdf([column(["STATEMENT OF ADMINISTRATION POLICY"])]), "no text below"),
        (pdf([column(["Menu of the Harbor House"])]), "no Statement of Administration Policy"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_error_page_in_place_of_a_statement_is_counted_and_no_document(pack: Callable[[bytes], bytes]) -> None:
    content = read(pack(b"<html><title>404 Page\nNot Found</title></html>"))
    assert content.documents == ()
    assert content.skipped == {ERROR_PAGE: 1}
    assert content.left_out == {ERROR_PAGE: len("<html><title>404PageNotFound</title></html>")}


@pytest.mark.shared
def test_every_real_statement_reads(shared: Path) -> None:
    left_out: Counter[str] = Counter()
    documents = []
    assert FORMAT.enrich is not None
    for path in real_files(shared, "statements_of_administration_policy", "*.pdf"):
        if not (content := read(path.read_bytes(), path.name)).documents:
            assert content.skipped == {ERROR_PAGE: 1}, path.name
            continue
        (document,) = content.documents
        left_out.update(content.left_out)
        documents.append(document)
        date, _, _ = path.stem.split("-", 3)[3].partition("_")
        assert document.doc_id.startswith(f"SAP-{path.stem.split('-')[2]}-{date}-"), path.name
        assert document.sections[0].kind == "head", path.name
        assert document.text[document.sections[0].span.end :].strip(), path.name
    assert {document.stratum.partition("/")[2] for document in documents} == {"veto", "opposes", "supports", "other"}
    assert sum(left_out.values()) < 120 * len(documents)
    indexes = real_files(shared, "statements_of_administration_policy", "*.yaml")
    assert all(re.search(FORMAT.sidecar, path.name) for path in indexes)
    enriched = FORMAT.enrich(documents, {path.name: path.read_bytes() for path in indexes})
    of_biden = [document for document in enriched if document.stratum.startswith("biden/")]
    assert of_biden
    assert all(document.url for document in of_biden)
