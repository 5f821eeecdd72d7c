import re
from pathlib import Path

import pytest

from runner.base.records import Document
from samplers.formats.headings import TITLE_LENGTH
from samplers.source_format import FileContent
from samplers.sources.federal_register.reader import FORMAT

FIXTURES = Path(__file__).parents[1] / "data" / "federal_register"
ALL = frozenset(("notices",))


def read(name: str, options: frozenset[str] = ALL, as_name: str = "") -> FileContent:
    return FORMAT.read((FIXTURES / name).read_bytes(), as_name or name, options)


def one(content: FileContent) -> Document:
    (document,) = content.documents
    return document


def rule(body: str, number: str = "2031-1", preamble: str = "", name: str = "x.xml", tag: str = "RULE") -> Document:
    filing = f"<FRDOC>[FR Doc. {number} Filed 6-12-31; 8:45 am]</FRDOC>" if number else ""
    data = f"<{tag}><PREAMB>{preamble}</PREAMB>{body}{filing}</{tag}>"
    return one(FORMAT.read(data.encode(), name, ALL))


def outline(document: Document) -> list[tuple[int, str, str]]:
    return [(section.level, section.kind, section.label) for section in document.sections]


def test_an_issue_holds_its_notices_where_they_are_asked_for():
    with_notices = read("FR-2031-06-16.xml")
    assert [d.doc_id for d in with_notices.documents][2] == "FR-2031-10202"
    assert with_notices.skipped == {"documents without text": 1}


@pytest.mark.parametrize(
    ("number", "year"),
    [("04-16753", "2004"), ("99-12345", "1999"), ("E8-23178", "2008"), ("2016-02630", "2016"), ("C1-2013-1", "2013")],
)
def test_the_year_is_in_the_documents_number(number, year):
    document = rule("<P>a</P>", number)
    assert document.stratum == f"rule/{year}/short"
    assert document.doc_id == f"FR-{number}"


def test_a_document_without_a_number_has_its_file_as_id_and_no_page():
    document = rule("<P>a</P>", "", name="some folder/a rule.xml")
    assert (document.doc_id, document.family, document.url) == ("a-rule", "a-rule", "")
    assert document.stratum == "rule/unknown/short"


def test_documents_of_an_issue_have_different_ids_whatever_their_numbers():
    doc = "<RULE><P>a</P><FRDOC>[FR Doc. 2031-7 Filed 1-2-31]</FRDOC></RULE>"
    data = f"<FEDREG><DATE>Monday, May 5, 2031</DATE>{doc}{doc}<RULE><P>b</P></RULE><RULE><P>c</P></RULE></FEDREG>"
    documents = FORMAT.read(data.encode(), "FR-2031-05-05.xml", ALL).documents
    assert [d.doc_id for d in documents] == ["FR-2031-7", *(f"FR-2031-05-05-{n}" for n in (2, 3, 4))]
    assert {d.stratum for d in documents} == {"rule/2031/short"}


@pytest.mark.parametrize(
    ("kind", "line", "stratum", "title"),
    [
        (
            "PROCLA",
            "<PROC>Proclamation 9 of May 1, 2031</PROC>",
            "proclamation",
            "Proclamation 9 of May 1, 2031: Bells",
        ),
        ("PRNOTICE", "<PRNOTC>Notice of May 1, 2031</PRNOTC>", "notice", "Notice of May 1, 2031: Bells"),
        ("PRMEMO", "<MEMO>Memorandum of May 1, 2031</MEMO>", "memorandum", "Memorandum of May 1, 2031: Bells"),
        ("PRMEMO", "", "memorandum", "Presidential Memorandum 2031-1: Bells"),
        ("PRORDER", "", "other", "Presidential Document 2031-1: Bells"),
    ],
)
def test_presidential_documents_are_named_by_their_own_line(kind, line, stratum, title):
    body = f'<{kind}>{line}<HD SOURCE="HED">Bells</HD><FP>Ring.</FP></{kind}>'
    document = rule(body, tag="PRESDOCU")
    assert document.stratum == f"presidential-{stratum}/2031/short"
    assert document.title == title


def test_sections_of_an_executive_order_are_found_in_running_text():
    body = "<EXECORD><FP><E T='04'>Sec. 2</E>. <E T='03'>Policy</E>. Ring.</FP></EXECORD>"
    assert outline(rule(body, tag="PRESDOCU")) == [(1, "section", "Sec. 2. Policy")]
    body = "<EXECORD><FP>Section 5 of the Act binds.</FP><FP>Sec. 7.5 of it too.</FP></EXECORD>"
    assert outline(rule(body, tag="PRESDOCU")) == []


def test_regulatory_text_of_another_part_begins_anew_and_headings_end_it():
    def amended(part: str, number: int) -> str:
        return f'<REGTEXT TITLE="93" PART="{part}"><AMDPAR>{number}. Strike it.</AMDPAR></REGTEXT>'

    between = '<HD SOURCE="HD1">B</HD>'
    body = f'<SUPLINF><HD SOURCE="HED">S:</HD><P>a</P>{amended("1", 1)}{amended("1", 2)}{amended("2", 3)}{between}'
    assert outline(rule(f"{body}{amended('2', 4)}</SUPLINF>")) == [
        (1, "supplementary", "S"),
        (1, "regtext", "93 CFR part 1"),
        (2, "amdpar", "Instruction 1"),
        (2, "amdpar", "Instruction 2"),
        (1, "regtext", "93 CFR part 2"),
        (2, "amdpar", "Instruction 3"),
        (1, "hd1", "B"),
        (1, "regtext", "93 CFR part 2"),
        (2, "amdpar", "Instruction 4"),
    ]


def heading_of(number: str, subject: str) -> str:
    return f"<SECTION><SECTNO>§ {number}</SECTNO><SUBJECT>{subject}</SUBJECT></SECTION>"


@pytest.mark.parametrize("split", ["", '</REGTEXT>{}<REGTEXT TITLE="93" PART="1">'], ids=["inside", "between"])
def test_a_heading_that_announces_what_is_amended_opens_its_instruction(split):
    headings = heading_of("1.2", "[Amended]")
    between = split.format(headings) if split else headings
    one, two = "<AMDPAR>1. Cite it.</AMDPAR>", "<AMDPAR>2. Amend § 1.2.</AMDPAR>"
    document = rule(f'<SUPLINF><REGTEXT TITLE="93" PART="1">{one}{between}{two}</REGTEXT></SUPLINF>')
    assert outline(document) == [
        (1, "regtext", "93 CFR part 1"),
        (2, "amdpar", "Instruction 1"),
        (2, "amdpar", "§ 1.2 [Amended]"),
    ]
    assert document.text == "1. Cite it.\n\n§ 1.2 [Amended]\n2. Amend § 1.2."


@pytest.mark.parametrize(
    ("instruction", "label"),
    [
        ("1. The authority citation for part 1 is revised.", "Authority citation"),
        ("2. Section 1.4a, as added on May 1, is amended by striking § 9.9.", "§ 1.4a"),
        ("■ 3. Remove §§ 1.10, 1.11, and § 1.12.", "§§ 1.10, 1.11, and 1.12"),
        ("4. In Supplement I to part 1, under Section 1.3, revise 2.", "Supplement I to part 1"),
        ("5. Add subpart C to read as follows:", "Subpart C"),
        ("6. Strike the heading.", "Instruction 6"),
    ],
)
def test_an_instruction_is_named_by_what_it_amends(instruction, label):
    assert outline(rule(f"<AMDPAR>{instruction}</AMDPAR>")) == [(1, "amdpar", label)]


def test_the_heading_of_a_subpart_holds_the_regulatory_text_after_it():
    regtext = '<REGTEXT TITLE="93" PART="1">{}</REGTEXT>'
    first = "<AMDPAR>1. Cite it.</AMDPAR><SUBPART><HD SOURCE='HED'>Subpart B—Oil</HD></SUBPART>"
    document = rule(regtext.format(first) + regtext.format("<AMDPAR>2. Strike § 1.2.</AMDPAR>"))
    assert outline(document)[1:] == [
        (2, "amdpar", "Instruction 1"),
        (2, "subpart", "Subpart B—Oil"),
        (3, "amdpar", "§ 1.2"),
    ]


@pytest.mark.parametrize("subject", ["[Reserved]", "Wicks."])
def test_a_heading_that_an_instruction_puts_into_the_code_stays_with_it(subject):
    body = f"<AMDPAR>1. Add § 1.2.</AMDPAR>{heading_of('1.2', subject)}<AMDPAR>2. Strike § 1.3.</AMDPAR>"
    document = rule(body)
    assert outline(document) == [
        (1, "amdpar", f"§ 1.2 {subject}"),
        (2, "section", f"§ 1.2 {subject}"),
        (1, "amdpar", "§ 1.3"),
    ]


@pytest.mark.parametrize(
    ("preamble", "number", "status"),
    [
        ('<HD SOURCE="HD2">CFR Correction</HD><P>a</P>', "2031-1", "correction"),
        ('<HD SOURCE="HD2">Corrections</HD><P>a</P>', "2031-1", "correction"),
        ("<P>In rule document 2031-1, strike a.</P>", "C1-2031-1", "correction"),
        ('<HD SOURCE="HD2">Why Lamps Need Correction by Hand</HD><P>a</P>', "2031-1", ""),
        ('<HD SOURCE="HD2">Background</HD><P>A correction of lamps.</P>', "2031-1", ""),
    ],
)
def test_a_correction_without_an_action_is_known_by_its_heading_or_number(preamble, number, status):
    assert rule("", number, preamble).status == status


def test_a_long_title_keeps_the_citation_and_is_cut_at_a_word():
    subject = f"<AGENCY>{'LAMPS ' * 40}</AGENCY><SUBJECT>{'Wicks and oil ' * 40}</SUBJECT>"
    title = rule("", preamble=subject).title
    assert len(title) <= TITLE_LENGTH
    assert re.fullmatch(r"Rule 2031-1 \((?:LAMPS )+…\): Wicks .* …", title)
