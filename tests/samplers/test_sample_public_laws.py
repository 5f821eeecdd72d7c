from pathlib import Path

import pytest

from samplers.sources.public_laws import FORMAT

FIXTURES = Path(__file__).parents[1] / "data" / "public_laws"


def test_the_sections_of_a_law_stay_together() -> None:
    assert FORMAT.families == "parts"


@pytest.mark.parametrize(
    "paragraph",
    [
        "<p>Subdivision 2—Cherries.</p>",
        "<p>Subdivision 2—Cher<b>ries</b></p>",
        "<p>Subdivision 2—Cherries</p> and pears",
        "<quotedContent><p>Subdivision 2—Cherries</p></quotedContent>",
    ],
)
def test_a_paragraph_that_is_more_than_a_subdivision_s_heading_stays_text(paragraph: str) -> None:
    body = f"<division><section><content>Nets. {paragraph}</content></section><section><p>Jam.</p></section></division>"
    data = f"<pLaw><meta><citableAs>Public Law 119–907</citableAs></meta><main>{body}</main></pLaw>"
    first, second = FORMAT.read(data.encode(), "x.xml", frozenset()).documents
    assert "Subdivision 2—Cherries" in first.text
    assert [each.kind for each in second.sections] == ["section"]


def test_the_name_counts_only_where_the_law_says_nothing() -> None:
    bare = b"<pLaw><main><section><content>Words.</content></section></main></pLaw>"
    (found,) = FORMAT.read(bare, "x/PLAW-113pvtl2.xml", frozenset()).documents
    assert (found.doc_id, found.title) == ("PLAW-113pvtl2-s0", "Pvt. L. 113–2 – Words")
    data = (FIXTURES / "PLAW-119publ901.xml").read_bytes()
    other = FORMAT.read(data, "x/PLAW-113publ1.xml", frozenset())
    assert other.documents[0].family == "PLAW-119publ901"
