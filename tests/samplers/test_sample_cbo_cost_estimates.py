from pathlib import Path

import pytest

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.pdf.lines import pdf_pages
from samplers.source_format import FileContent
from samplers.sources.cbo_cost_estimates import FORMAT
from tests.support.corpora import assert_accounted
from tests.support.small_pdf import column, pdf

FIXTURES = Path(__file__).parents[1] / "data" / "cbo_cost_estimates"


def read(data: bytes | str, name: str = "hr1.txt") -> FileContent:
    return FORMAT.read(data if isinstance(data, bytes) else data.encode(), name, frozenset())


def fixture(name: str) -> Document:
    return read((FIXTURES / name).read_bytes(), name).documents[0]


def headings(document: Document) -> list[tuple[int, str]]:
    return [(section.level, section.label) for section in document.sections if section.kind == "heading"]


@pytest.mark.parametrize(
    ("name", "doc_id", "family", "stratum", "title"),
    [
        (
            "hr9001.pdf",
            "CBO-hr9001",
            "CBO-118-hr9001",
            "118/house/short",
            "CBO cost estimate: H.R. 9001 (2023-03-03), Harbor Lamps Act",
        ),
        (
            "s9003_old.txt",
            "CBO-s9003_old",
            "CBO-105-s9003",
            "105/senate/short",
            "CBO cost estimate: S. 9003 (1998-06-05), Ferry Safety Act of 1998",
        ),
        (
            "hr9005-letter.txt",
            "CBO-hr9005-letter",
            "CBO-106-hr9005",
            "106/unknown/short",
            "CBO cost estimate: H.R. 9005 (2001-01-02), Canal Banks Act",
        ),
        (
            "59999-hjres9006.txt",
            "CBO-59999",
            "CBO-118-hjres9006",
            "118/house/short",
            "CBO cost estimate: H.J. Res. 9006 (2023-04-24), a joint resolution disapproving the rule on oars",
        ),
        (
            "Undated Estimate.txt",
            "CBO-undated-estimate",
            "CBO-undated-estimate",
            "unknown/unknown/short",
            "CBO cost estimate: Undated Estimate",
        ),
    ],
)
def test_an_estimate_is_identified_by_what_it_says_of_itself(
    name: str, doc_id: str, family: str, stratum: str, title: str
) -> None:
    document = fixture(name)
    assert (document.doc_id, document.family) == (doc_id, family)
    assert (document.stratum, document.title) == (stratum, title)


def test_only_a_stated_publication_number_gives_a_link() -> None:
    assert fixture("59999-hjres9006.txt").url == "https://www.cbo.gov/publication/59999"
    assert fixture("hr9001.pdf").url == ""


def test_headings_of_the_present_form_are_found_with_those_below_them() -> None:
    assert headings(fixture("hr9001.pdf")) == [
        (1, "At a Glance"),
        (1, "Bill Summary"),
        (1, "Estimated Federal Cost"),
        (1, "Basis of Estimate"),
        (2, "Direct Spending"),
        (2, "Spending Subject to Appropriation"),
        (1, "Mandates"),
        (1, "Estimate Prepared By"),
        (1, "Estimate Approved By"),
    ]


def test_headings_of_the_old_form_are_lines_of_capitals() -> None:
    assert headings(fixture("s9003_old.txt")) == [
        (1, "SUMMARY"),
        (1, "ESTIMATED COST TO THE FEDERAL GOVERNMENT"),
        (1, "BASIS OF ESTIMATE"),
        (2, "Spending Subject to Appropriation"),
        (1, "PREVIOUS CBO ESTIMATE"),
        (1, "ESTIMATE PREPARED BY"),
        (1, "ESTIMATE APPROVED BY"),
    ]


def test_what_stands_above_the_first_heading_is_the_head() -> None:
    head = fixture("s9003_old.txt").sections[0]
    assert (head.kind, head.level) == ("head", 1)
    assert fixture("s9003_old.txt").text[: head.span.end].endswith("on May 21, 1998")
    low = read("CBO estimate\n\nHarbor Lamps Today\n\nA long sentence about lamps stands here, with CBO in it.\n")
    assert [(s.kind, s.level) for s in low.documents[0].sections] == [("head", 1), ("heading", 1)]


def test_rows_of_tables_have_tabs_and_no_leaders() -> None:
    assert (
        "1999\t2000\t2001\nEstimated Authorization\t2\t3\t3\nEstimated Outlays\t1\t3\t3"
        in fixture("s9003_old.txt").text
    )
    assert "Direct Spending (Outlays)\t*\t5\t11\nRevenues\t0\t-2\t-4" in fixture("hr9001.pdf").text


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


def test_every_visible_character_is_text_or_accounted_for() -> None:
    for path in sorted(FIXTURES.glob("*.[tp][xd][tf]")):
        data = path.read_bytes()
        try:
            content = read(data, path.name)
        except DocumentError:
            continue
        if path.suffix == ".pdf":
            whole = "".join(line.text for page in pdf_pages(data, path.name) for line in page)
        else:
            whole = data.decode()
        assert_accounted(content, whole)
