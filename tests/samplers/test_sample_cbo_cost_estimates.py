from pathlib import Path

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source_format import FileContent
from samplers.sources.cbo_cost_estimates import FORMAT
from tests.support.small_pdf import column, pdf

FIXTURES = Path(__file__).parents[1] / "data" / "cbo_cost_estimates"


def read(data: bytes | str, name: str = "hr1.txt") -> FileContent:
    return FORMAT.read(data if isinstance(data, bytes) else data.encode(), name, frozenset())


def fixture(name: str) -> Document:
    return read((FIXTURES / name).read_bytes(), name).documents[0]


def test_what_stands_above_the_first_heading_is_the_head() -> None:
    head = fixture("s9003_old.txt").sections[0]
    assert (head.kind, head.level) == ("head", 1)
    assert fixture("s9003_old.txt").text[: head.span.end].endswith("on May 21, 1998")
    low = read("CBO estimate\n\nHarbor Lamps Today\n\nA long sentence about lamps stands here, with CBO in it.\n")
    assert [(s.kind, s.level) for s in low.documents[0].sections] == [("head", 1), ("heading", 1)]


def test_letterhead_and_references_to_explanations_are_no_text() -> None:
    text = fixture("hr9001.pdf").text
    for words in ("Congressional Budget Office", "See also", "54437", "next page", "Page 2", "CBO Cost Estimate for"):
        assert words not in text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "nowhere"),
        (b"Harbor News", "nowhere"),
        (b"<html><body>Congressional Budget Office</body></html>", "HTML or XML"),
        (b"\x00CBO", "binary"),
        (b"CBO \xff", "not UTF-8"),
        (b"CONGRESSIONAL BUDGET OFFICE\nCOST ESTIMATE\n", "no text below"),
        ("CONGRESSIONAL BUDGET OFFICE\n\n\u00ad".encode(), "no text below"),
        (b"CBO estimates. " * 40_000, "too many"),
        (b"%PDF-1.4 CBO", "PDF: damaged"),
        (pdf([[]]), "no text on any page"),
        (pdf([column(["Harbor News"])]), "nowhere"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        read(data)
