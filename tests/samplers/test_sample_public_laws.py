from pathlib import Path

import pytest

from chunkers.registry import chunker
from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source_format import FileContent
from samplers.sources.public_laws import FORMAT
from tests.samplers.test_sample_us_code import n_open_sections
from tests.support.corpora import real_files

FIXTURES = Path(__file__).parents[1] / "data" / "public_laws"


def content(name: str) -> FileContent:
    return FORMAT.read((FIXTURES / f"{name}.xml").read_bytes(), f"{name}.xml", frozenset())


def document(doc_id: str) -> Document:
    package = "-".join(doc_id.split("-")[:2])
    (found,) = (each for each in content(package).documents if each.doc_id == doc_id)
    return found


def ids(name: str) -> list[str]:
    return [each.doc_id for each in content(name).documents]


def test_a_section_is_a_document_and_its_law_the_family() -> None:
    found = document("PLAW-119publ901-s2")
    assert found.title == "Pub. L. 119–901, § 2 – LAMPS (Lighthouse Act)"
    assert (found.family, found.stratum) == ("PLAW-119publ901", "119/public/short")
    assert found.url == "https://www.govinfo.gov/app/details/PLAW-119publ901"
    assert FORMAT.families == "parts"


def test_sidenotes_and_page_marks_leave_sentences_and_words_whole() -> None:
    found = document("PLAW-119publ901-s2")
    assert "The keeper shall trim each lamp at dusk and at midnight." in found.text
    (sidenotes,) = (each for each in found.sections if each.kind == "sidenotes")
    assert found.text[sidenotes.span.start : sidenotes.span.end] == "Deadline.\n14 USC 99 note."
    assert sidenotes.span.end == len(found.text)
    assert content("PLAW-119publ901").left_out["page marks"] == len("140STAT.901140STAT.902140STAT.903") - len(
        "140STAT.901"
    )


def test_sidenotes_belong_to_their_section_and_share_its_last_chunk() -> None:
    found = document("PLAW-119publ906-s101")
    spans = {each.kind: each.span for each in found.sections}
    assert spans["sidenotes"].start > spans["subsection"].end
    assert spans["section"].end == spans["sidenotes"].end == len(found.text)
    assert len(chunker("usc_uslm_section_v1")(found)) == 1


def test_a_word_that_the_column_of_sidenotes_breaks_is_mended() -> None:
    assert document("PLAW-119publ906-s101").text.endswith("\n\nRecommendations.\nPost-\nRoads Act.")
    assert content("PLAW-119publ906").left_out["hyphens at the ends of lines"] == 1


def test_short_counts_neither_number_nor_heading_nor_sidenotes() -> None:
    assert {each.doc_id: each.status for each in content("PLAW-119publ906").documents} == {
        "PLAW-119publ906-s0": "short",
        "PLAW-119publ906-s1": "short",
        "PLAW-119publ906-s2": "short",
        "PLAW-119publ906-s101": "",
        "PLAW-119publ906-s102": "",
    }
    assert document("PLAW-119publ901-s1").status == "short"


def test_a_short_title_in_the_role_of_the_act_needs_no_fixed_words() -> None:
    assert document("PLAW-119publ906-s1").title == "Pub. L. 119–906, § 1 – SHORT TITLE (Second Mill Act, 2017)"


def test_a_section_in_quoted_text_is_text() -> None:
    assert ids("PLAW-119publ902") == ["PLAW-119publ902-s1", "PLAW-119publ902-s1001", "PLAW-119publ902-s1002"]
    found = document("PLAW-119publ902-s1001")
    assert "“SEC. 12. HEIGHTS.\nA dyke is nine feet high.”." in found.text
    assert [each.label for each in found.sections[:2]] == ["Title I—DYKES", "Subtitle A—Earthworks"]


def test_a_subdivision_is_a_part_though_its_heading_stands_in_a_division_or_in_the_section_before() -> None:
    found = [document(f"PLAW-119publ907-s{number}") for number in (20101, 21101)]
    labels = [[each.label for each in one.sections if each.kind == "subdivision"] for one in found]
    assert labels == [["Subdivision 1—Plums and Damsons"], ["Subdivision 2—Cherries"]]
    assert found[0].text.endswith("out of the sun.")
    assert not any("-dA" in doc_id for doc_id in ids("PLAW-119publ907"))


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


def test_a_section_without_heading_is_titled_with_its_first_words() -> None:
    assert document("PLAW-119publ902-s1002").title == (
        "Pub. L. 119–902, § 1002 – A dyke that leaks shall be stopped within … (Fen Act of 2026)"
    )


def test_a_part_of_which_only_number_heading_and_sidenote_are_left_is_no_document() -> None:
    assert "PLAW-119publ906-dA" not in ids("PLAW-119publ906")


def test_a_preamble_is_a_document_and_a_title_page_none() -> None:
    assert ids("PLAW-119publ904") == ["PLAW-119publ904", "PLAW-119publ904-s0"]
    assert ids("PLAW-119pvtl9") == ["PLAW-119pvtl9-s1"]
    left_out = content("PLAW-119pvtl9").left_out
    assert left_out["official title and headings of larger parts"] == len("ForthereliefofAdaWherry.")


def test_a_number_that_a_law_has_twice_stands_behind_its_parts() -> None:
    assert ids("PLAW-119publ905") == [
        "PLAW-119publ905-dA-tI-s101",
        "PLAW-119publ905-dB-s101",
        "PLAW-119publ905-s102",
    ]
    assert "Stone\tWeight\nUpper\t900\nLower\t1,100" in document("PLAW-119publ905-dA-tI-s101").text


def test_a_section_in_a_plain_level_stands_below_its_heading() -> None:
    levels = [(each.level, each.kind, each.label) for each in document("PLAW-119publ905-s102").sections]
    assert levels == [(1, "division", "Division B—WEIRS"), (11, "level", "General provisions"), (12, "section", "")]


def test_the_name_counts_only_where_the_law_says_nothing() -> None:
    bare = b"<pLaw><main><section><content>Words.</content></section></main></pLaw>"
    (found,) = FORMAT.read(bare, "x/PLAW-113pvtl2.xml", frozenset()).documents
    assert (found.doc_id, found.title) == ("PLAW-113pvtl2-s0", "Pvt. L. 113–2 – Words")
    data = (FIXTURES / "PLAW-119publ901.xml").read_bytes()
    other = FORMAT.read(data, "x/PLAW-113publ1.xml", frozenset())
    assert other.documents[0].family == "PLAW-119publ901"
    assert other.contradictions == ("read as PLAW-119publ901, but its file name says PLAW-113publ1",)
    assert FORMAT.read(data, "plaw-119PUBL0901.xml", frozenset()).contradictions == ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<bill/>", "the root element is <bill>"),
        (b"<pLaw><main><section><content>x</content></section></main></pLaw>", "which law"),
        (b"<pLaw><meta><citableAs>Public Law 1-2</citableAs></meta><main/></pLaw>", "no text"),
        (b"<pLaw>", "malformed"),
    ],
)
def test_what_is_no_law_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        FORMAT.read(data, "x.xml", frozenset())


@pytest.mark.shared
def test_every_section_of_a_real_law_is_a_document_and_nothing_else_is_lost(shared: Path) -> None:
    n_sections = n_others = 0
    for path in real_files(shared, "public_laws"):
        data = path.read_bytes()
        read = FORMAT.read(data, path.name, frozenset())
        sections = [each for each in read.documents if any(s.kind == "section" and not s.label for s in each.sections)]
        assert len(sections) == n_open_sections(data), path.name
        assert {each.family for each in read.documents} == {path.stem}
        assert len({each.doc_id for each in read.documents}) == len(read.documents)
        assert all("STAT. " not in each.text for each in read.documents)
        assert all(chunk.n_tokens <= 512 for each in read.documents for chunk in chunker("usc_uslm_section_v1")(each))
        n_others += len(read.documents) - len(sections)
        n_sections += len(sections)
    assert 0 < n_others < n_sections / 20
