import json
import re
from pathlib import Path
from typing import Any

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source_format import FileContent
from samplers.sources.gao_reports import FORMAT, OTHER_FIELDS, TOPICS
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
    assert record(topics=["Lamps"], published="soon", released="2019-01-02").stratum == "unknown/other"
    assert record(topics=["Energy", 7, None], published=None, released="2019-01-02").stratum == "2019/energy"
    assert record(topics="Energy").stratum == "unknown/other"


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
        (b'{"gao_id": "GAO-1-1", "summary": null}', "no summary"),
        (b'{"gao_id": "GAO-1-1", "summary": " \\u00ad "}', "no summary"),
        (b'{"gao_id": "GAO-1-1", "summary": "half \\ud83d of it"}', "surrogate"),
        (b'{"gao_id": "GAO-1-1", "summary": "nul \\u0000"}', "control character"),
        (b" " * 1_000_001, "limit"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data)


def unescaped(source: str) -> str:
    return re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), source).replace("\\n", "\n").replace('\\"', '"')


def check_account(path: Path) -> Document:
    content = read(path.read_bytes(), path.name)
    (document,) = content.documents
    whole = unescaped(path.read_text(encoding="utf-8"))
    assert len("".join(whole.split())) == len("".join(document.text.split())) + content.left_out[OTHER_FIELDS]
    return document


def test_every_visible_character_is_text_or_accounted_for() -> None:
    for name in ("GAO-20-9001.json", "GAO-21-9002T.json", "t-hehs-00-21.json"):
        check_account(FIXTURES / name)


@pytest.mark.shared
def test_every_real_record_reads(shared: Path) -> None:
    paths = real_files(shared, "gao_reports")
    documents = [check_account(path) for path in paths]
    assert {document.doc_id for document in documents} == {path.stem for path in paths}
    assert all(document.status == "" for document in documents)
    assert sum(document.stratum.endswith("/other") for document in documents) <= 1
    assert len({document.stratum.partition("/")[2] for document in documents}) <= len(TOPICS)
