import json
from pathlib import Path
from typing import Any

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.corpus.parse import read_corpus
from samplers.source_format import FileContent
from samplers.sources.gao_reports import FORMAT, NO_SUMMARY, OTHER_FIELDS, TOPICS
from tests.support.corpora import real_files

FIXTURES = Path(__file__).parents[1] / "data" / "gao_reports"
SUMMARY = "We looked at lamps. " * 25


def read(data: bytes, name: str = "GAO-20-9001.json") -> FileContent:
    return FORMAT.read(data, name, frozenset())


def record(**fields: Any) -> Document:
    known = {"gao_id": "GAO-20-9001", "title": "Harbor Lamps", "summary": SUMMARY, "topics": []}
    return read(json.dumps({**known, **fields}).encode()).documents[0]


def test_a_record_is_identified_by_its_gao_id() -> None:
    document = read((FIXTURES / "GAO-20-9001.json").read_bytes(), "elsewhere.json").documents[0]
    assert (document.doc_id, document.family) == ("GAO-20-9001", "GAO-20-9001")
    assert document.title == "GAO-20-9001: Harbor Lamps: Boards Should Say Why They Burn More Oil"
    assert document.url == "https://www.gao.gov/products/gao-20-9001"
    assert document.stratum == "2020/transportation"
    assert record(gao_id="t-hehs-00-21").doc_id == "T-HEHS-00-21"


def test_the_text_is_the_summary_alone() -> None:
    document = record(summary=" One.\n\nTwo   words—“so to speak”. ")
    assert document.text == "One.\nTwo words—“so to speak”."


def test_ampersands_and_angle_brackets_are_words_not_markup() -> None:
    assert record(summary="Q&A on R&D where p < 0.05 &amp; more").text == "Q&A on R&D where p < 0.05 &amp; more"


def test_the_stratum_is_year_and_gao_s_broad_topic() -> None:
    assert record(topics=["Health care", "Health Care"], published="2021-03-01T05:00:00Z").stratum == "2021/health-care"
    assert record(topics=["Lamps"], published="soon").stratum == "unknown/other"
    assert record(topics=["Energy", 7, None], published=None, released="2019-01-02").stratum == "2019/energy"
    assert record(topics="Energy").stratum == "unknown/other"


@pytest.mark.parametrize(
    ("published", "released", "year", "is_contradicted"),
    [
        ("2004-12-12", "2019-12-12", "2019", True),
        ("2026-06-26", "2021-06-26", "2021", True),
        ("2019-11-01", "2020-02-01", "2019", False),
        ("2004-12-12", "2005-12-12", "2004", False),  # neither is near the fiscal year of the id, 2020
        ("2004-12-12", "", "2004", False),
        ("", "", "unknown", False),
    ],
)
def test_of_two_years_the_one_near_the_fiscal_year_in_the_id_is_taken(
    published: str, released: str, year: str, is_contradicted: bool
) -> None:
    fields = {"gao_id": "GAO-20-9001", "summary": SUMMARY, "published": published, "released": released}
    content = read(json.dumps(fields).encode())
    assert content.documents[0].stratum == f"{year}/other"
    assert bool(content.contradictions) == is_contradicted


def test_a_short_summary_is_no_source_of_queries() -> None:
    assert record(summary="x" * 399).status == "short"
    assert record(summary="x" * 400).status == ""


def test_only_gao_s_own_pages_are_linked() -> None:
    assert record(url="https://example.org/x").url == "https://www.gao.gov/products/gao-20-9001"
    assert record(url="https://www.gao.gov/products/gao-20-9001a").url.endswith("/gao-20-9001a")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "no object"),
        (b"\xff{}", "not UTF-8"),
        (b'{"gao_id": "GAO-1-1", "gao_id": "GAO-1-2"}', "occurs twice"),
        (b'{"gao_id": "GAO-1-1", "summary": "x", "cost": NaN}', "NaN is no number"),
        (b'{"gao_id": "GAO-1-1", "summary": "x", "cost": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "not JSON"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "not JSON"),
        (b'{"title": "A bill"}', "without a gao_id"),
        (b'{"gao_id": 7, "summary": "x"}', "gao_id is no text"),
        (b'{"gao_id": "../../etc", "summary": "x"}', "without a gao_id"),
        (b'{"gao_id": "GAO-1-1", "summary": ["x"]}', "summary is no text"),
        (b'{"gao_id": "GAO-1-1", "summary": "half \\ud83d of it"}', "surrogate"),
        (b'{"gao_id": "GAO-1-1", "summary": "nul \\u0000"}', "control character"),
        (b" " * 1_000_001, "limit"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data)


@pytest.mark.parametrize("gao_id", ["GAO-24-109001", "AIMD-99.1.22", "AIMD-99-21.2.2", "B-958766", "987889"])
def test_ids_of_every_age_are_taken(gao_id: str) -> None:
    document = record(gao_id=gao_id, url=f"https://www.gao.gov/products/{gao_id.lower()}")
    assert (document.doc_id, document.url) == (gao_id, f"https://www.gao.gov/products/{gao_id.lower()}")


def test_products_that_share_an_id_are_told_apart_by_their_pages() -> None:
    pages = [f"https://www.gao.gov/products/b-958766-{n}" for n in (15, 16)]
    assert [record(gao_id="B-958766", url=page).doc_id for page in pages] == ["B-958766-15", "B-958766-16"]


@pytest.mark.parametrize("summary", ["", " \n", None, "\u00ad"])
def test_a_record_without_a_summary_is_counted_and_no_document(summary: str | None) -> None:
    content = read(json.dumps({"gao_id": "GAO-99-9", "summary": summary}).encode())
    assert (content.documents, content.skipped) == ((), {NO_SUMMARY: 1})
    assert set(content.left_out) == {OTHER_FIELDS}


def test_most_records_of_the_archive_have_no_summary_and_stop_no_run(tmp_path: Path) -> None:
    for n in range(20):
        path = tmp_path / "data" / f"2001-01-{n + 1:02}" / f"GAO-01-90{n:02}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"gao_id": path.stem, "summary": "" if n % 4 else SUMMARY, "topics": []}))
    reading = read_corpus(tmp_path, "gao_reports")
    assert (len(reading.documents), reading.skipped, reading.quarantined) == (5, {NO_SUMMARY: 15}, ())


@pytest.mark.shared
def test_every_real_record_reads(shared: Path) -> None:
    paths = real_files(shared, "gao_reports")
    contents = [read(path.read_bytes(), path.name) for path in paths]
    assert all(set(content.left_out) == {OTHER_FIELDS} for content in contents)
    documents = [document for content in contents for document in content.documents]
    assert {document.doc_id for document in documents} == {path.stem for path in paths}
    assert all(document.status == "" for document in documents)
    assert sum(document.stratum.endswith("/other") for document in documents) <= 1
    assert len({document.stratum.partition("/")[2] for document in documents}) <= len(TOPICS)
