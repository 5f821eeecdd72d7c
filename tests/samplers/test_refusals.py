"""What each reader refuses, beside what is no XML (`test_safe_xml`) and the files of other sources."""

import pytest

from runner.base.errors import DocumentError
from samplers.registry import source_format


def code(body: str) -> bytes:
    return f"<uscDoc><meta><docNumber>9</docNumber></meta><main><title>{body}</title></main></uscDoc>".encode()


def page(*lines: str) -> bytes:
    return "\n".join(("<html><body><pre>", *lines, "</pre></body></html>")).encode()


SECTION = '<section identifier="/us/usc/t9/s1"><num value="1">§ 1.</num><content>{}</content></section>'
RULE = "=" * 70

ROWS = {
    "federal_register": [
        (b"<bill><P>a</P></bill>", "the root element is <bill>"),
        (b"<RULE/>", "no text in the body"),
        (b"<RULE><FRDOC>[FR Doc. 2031-1]</FRDOC></RULE>", "no text in the body"),
    ],
    "ecfr_and_cfr": [
        (b"<RULE><P>Text</P></RULE>", "the root element is <RULE>"),
        (b'<section identifier="/us/usc/t9/s1"/>', "the root element is <section>"),
        ("<PART><P>\ufdd0</P></PART>".encode(), "holds U+FDD0"),
        (b"<PART><P>Text.</P></PART>", "neither the file nor its name states a title of the CFR"),
    ],
    "us_code": [
        (b"<bill><legis-body/></bill>", "the root element is <bill>"),
        (b"<section><num>1.</num></section>", "the root element is <section>"),
        (b"<uscDoc><main/></uscDoc>", "it does not say which title"),
        (code(""), "no section of the Code"),
        (code(f"{'<chapter><num>1.</num>' * 17}{SECTION}{'</chapter>' * 17}"), "more than 16 parts"),
        (code(SECTION.format("<p>" * 200 + "</p>" * 200)), "nested more than 120"),
    ],
    "public_laws": [
        (b"<bill/>", "the root element is <bill>"),
        (b"<pLaw><main><section><content>x</content></section></main></pLaw>", "it does not say which law"),
        (b"<pLaw><meta><citableAs>Public Law 1-2</citableAs></meta><main/></pLaw>", "no text"),
        (
            b"<!DOCTYPE pLaw SYSTEM 'law.dtd'><pLaw><meta><citableAs>Public Law 1-2</citableAs></meta><main><title>"
            b"<appropriations level='major'><heading>OIL</heading></appropriations>&nonsense;</title></main></pLaw>",
            "unknown entity &nonsense;",
        ),
    ],
    "hearing_transcripts": [
        (page("[Senate Report 118-62]", "x"), "no hearing: the page begins '[Senate Report"),
        (page("[House Hearing, 110 Congress]"), "a hearing without text"),
    ],
    "congressional_record": [
        (page("[House Hearing, 110 Congress]", "words"), "no line '[Congressional Record"),
        (page("[Congressional Record Volume 165, Number 46 (Thursday, March 14, 2019)]", ""), "no text after"),
    ],
    "committee_reports": [
        (page("[House Hearing, 110 Congress]", "words"), "no line '[Senate Report"),
        (page("[House Report 116-7]", RULE), "no text after the cover"),
    ],
}


@pytest.mark.parametrize(("source", "data", "reason"), [(s, *row) for s, rows in ROWS.items() for row in rows])
def test_what_is_no_document_of_a_source_is_refused_with_its_reason(source: str, data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as refused:
        source_format(source).read(data, "x", frozenset())
    assert refused.value.reason.startswith(reason)
