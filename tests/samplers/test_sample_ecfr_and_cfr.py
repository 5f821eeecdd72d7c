import random
import re
from pathlib import Path

import pytest

from runner.base.records import Document
from samplers.source_format import FileContent
from samplers.sources.cfr.reader import FORMAT
from tests.support.corpora import assert_accounted, real_files, words_of


def content(data: bytes | str, name: str = "CFR-2019-title91-vol1.xml") -> FileContent:
    return FORMAT.read(data.encode() if isinstance(data, str) else data, name, frozenset())


def section(body: str, number: str = "§ 1.1") -> Document:
    text = f"<PART><HD SOURCE='HED'>PART 1—BOATS</HD><SECTION><SECTNO>{number}</SECTNO>{body}</SECTION></PART>"
    return content(text).documents[0]


def labels(document: Document, kind: str = "paragraph") -> list[tuple[int, str]]:
    return [(section.level, section.label) for section in document.sections if section.kind == kind]


def test_a_designator_after_a_run_in_heading_begins_a_section_inside_the_line():
    document = section("<P>(a) <E T='03'>Fees</E>—(1) <E T='03'>In general.</E> One.</P><P>(2) Two.</P>")
    assert labels(document) == [(2, "(a) Fees"), (3, "(1) In general"), (3, "(2)")]
    inner = document.sections[2].span
    assert document.text[inner.start : inner.end] == "(1) In general. One."


def test_designators_in_a_quoted_form_are_not_the_sections_own():
    document = section("<P>(a) The form:</P><EXTRACT><P>(a) I am late.</P></EXTRACT><P>(b) It is sent.</P>")
    assert labels(document) == [(2, "(a)"), (2, "(b)")]
    assert labels(document, "extract") == [(3, "")]


def test_a_citation_and_notes_at_the_end_belong_to_the_whole_section():
    document = section(
        "<P>(a) A.</P><P>(1) B.</P><CITA>[1 FR 2]</CITA><EDNOTE><HD SOURCE='HED'>Note:</HD><P>C.</P></EDNOTE>"
    )
    assert labels(document, "citation") == [(2, "")]
    assert labels(document, "ednote") == [(2, "Note")]
    assert document.text.endswith("\n\n[1 FR 2]\n\nNote: C.")


def test_a_note_before_the_next_member_of_a_list_stays_inside_its_paragraph():
    document = section("<P>(a) A:</P><P>(1) B.</P><NOTE><P>C.</P></NOTE><P>(2) D.</P>")
    assert [(part.level, part.kind) for part in document.sections] == [
        *((1, "section"), (2, "paragraph"), (3, "paragraph"), (3, "note"), (3, "paragraph"))
    ]


def test_reserved_and_short_documents_have_a_status():
    assert section("<RESERVED>[Reserved]</RESERVED>").status == "reserved"
    assert section("<SUBJECT>Boats.</SUBJECT><P>[Reserved]</P>").status == "reserved"
    assert section("<SUBJECT>Boats. [Reserved]</SUBJECT>").status == "reserved"
    assert section("<SUBJECT>Boats.</SUBJECT><P>Few words.</P>").status == "short"
    assert section(f"<SUBJECT>Boats.</SUBJECT><P>Few words.</P><CITA>[{'80 FR 1, ' * 20}]</CITA>").status == "short"
    assert section(f"<SUBJECT>Boats.</SUBJECT><P>{'Many words. ' * 10}</P>").status == ""


def test_a_reserved_part_is_left_out():
    read = content("<PART><RESERVED>PART 2 [RESERVED]</RESERVED></PART>")
    assert read.documents == ()
    assert read.left_out == {"headings of parts and chapters": 15}


@pytest.mark.parametrize(
    ("facts", "name", "doc_id"),
    [
        (
            "<FMTR><TITLEPG><TITLENUM>Title 9</TITLENUM><REVISED>Revised as of 2011</REVISED></TITLEPG></FMTR>",
            "a",
            "9@2011",
        ),
        ("<FDSYS><CFRTITLE>9</CFRTITLE><DATE>2012-01-01</DATE></FDSYS>", "CFR-2019-title91-vol1", "9@2012"),
        ("", "2020/CFR-title91-vol1", "91@2020"),
        ("", "title-8", "8@undated"),
    ],
)
def test_the_edition_is_the_files_own_before_its_names(facts, name, doc_id):
    one = "<SECTION><SECTNO>§ 1.1</SECTNO><SUBJECT>Boats.</SUBJECT><P>Boats float.</P></SECTION>"
    found = content(f"<CFRDOC>{facts}{one}</CFRDOC>", f"{name}.xml").documents
    assert [document.doc_id for document in found] == [f"cfr:{doc_id.replace('@', '-1.1@')}"]


PATH = 'hierarchy_metadata="{&quot;path&quot;:&quot;/on/2023-02-01/title-9/part-1&quot;}"'


@pytest.mark.parametrize(
    ("root", "name", "date"),
    [
        ('<DIV1 N="2" NODE="9:1" TYPE="TITLE">{}</DIV1>', "a.xml", "ecfr"),
        ('<ECFR><DIV1 N="9" TYPE="TITLE">{}</DIV1></ECFR>', "2024-03-01/title-9.xml", "2024-03-01"),
        ('<DIV5 N="1" TYPE="PART" PATH>{}</DIV5>'.replace("PATH", PATH), "2024-03-01.xml", "2023-02-01"),
    ],
)
def test_an_ecfr_edition_is_its_date_or_the_current_one(root, name, date):
    one = '<DIV8 N="§ 1.1" TYPE="SECTION"><HEAD>§ 1.1   Boats.</HEAD><P>Boats float.</P></DIV8>'
    assert [document.doc_id for document in content(root.replace("{}", one), name).documents] == [f"cfr:9-1.1@{date}"]


def test_the_newest_edition_of_a_family_is_the_greatest():
    one = section("<P>Boats float.</P>")
    ids = ("undated", "2019", "2024-01-15", "2024", "2024-05-17", "2025", "ecfr")
    in_2024_of = {"9": ("2024", "2024-01-15", "2024-05-17"), "45": ("2024-01-15", "2024-05-17", "2024")}
    for title, in_2024 in in_2024_of.items():
        editions = [Document(f"cfr:{title}-1.1@{date}", one.text, "", "", f"cfr:{title}-1.1", "") for date in ids]
        assert FORMAT.newest is not None
        random.Random(0).shuffle(editions)
        ordered = sorted(editions, key=FORMAT.newest)
        assert [edition.doc_id.partition("@")[2] for edition in ordered] == [*ids[:2], *in_2024, "2025", "ecfr"]


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Appendix A to Part 1—Boats", "appendix-a-to-part-1"),
        ("Appendix A to Subpart B of Part 1—Boats", "appendix-a-to-subpart-b-of-part-1"),
        ("Appendix 1—Boats", "1-appendix-1"),
        ("Appendix A to Part 12—Boats", "1-appendix-a-to-part-12"),
        ("Supplement I to § 1.5", "1-supplement-i-to-1.5"),
    ],
)
def test_the_id_of_an_appendix_names_its_part(heading, slug):
    appendix = f"<APPENDIX><HD SOURCE='HED'>{heading}</HD><P>Boats float.</P></APPENDIX>"
    found = content(f"<PART><HD SOURCE='HED'>PART 1—BOATS</HD>{appendix}</PART>").documents
    assert [document.doc_id for document in found] == [f"cfr:91-{slug}@2019"]


def test_a_granule_knows_its_part_from_its_ancestors():
    ancestors = (
        "<ANCESTORS><PARENT HEADING='PART 7'>RAFTS</PARENT><PARENT HEADING='Subpart C'>Logs</PARENT></ANCESTORS>"
    )
    one = "<SECTION><SECTNO>§ 7.3</SECTNO><SUBJECT>Logs.</SUBJECT><P>Logs float.</P></SECTION>"
    document = content(f"<CFRGRANULE><FDSYS>{ancestors}</FDSYS>{one}</CFRGRANULE>").documents[0]
    assert document.title == "§ 7.3 (91 CFR Part 7, Subpart C): Logs"
    assert document.sections[0].label == "PART 7—RAFTS; Subpart C—Logs"


@pytest.mark.parametrize(
    "body",
    [
        f"<P>{' ' * 200_000}</P>",
        f"<P>({' ' * 200_000})</P>",
        f"<P>{'(a)' * 60_000}</P>",
        f"<P>(<E T='03'>{'i' * 200_000}</E>)</P>",
        "<P>(a) A:</P>" * 5_000,
        "<P><E T='03'>A</E> b</P>" * 5_000,
        "".join(f"<P>({n}) a</P>" for n in range(5_000)),
        "<NOTE>" * 60 + "<P>a</P>" + "</NOTE>" * 60,
        "<P>" * 60 + "a" + "</P>" * 60,
    ],
    ids=["spaces", "open", "designators", "italics", "same", "terms", "numbers", "notes", "paragraphs"],
)
def test_odd_sections_are_read_in_full(body):
    data = f"<PART><SECTION><SECTNO>§ 1.1</SECTNO>{body}</SECTION></PART>".encode()
    assert_accounted(content(data), words_of(data, ".xml"))


Real = dict[Path, tuple[bytes, FileContent]]


@pytest.fixture(scope="module")
def real(shared: Path) -> Real:
    paths = real_files(shared, "ecfr_and_cfr")
    return {path: (path.read_bytes(), content(path.read_bytes(), f"{path.parent.name}/{path.name}")) for path in paths}


@pytest.mark.shared
def test_what_real_sections_cite_of_themselves_is_found_in_them(real):
    """An outside witness: "paragraph (b)(2)(i) of this section" names the levels that the text alone shows."""
    cited = re.compile(
        r"paragraphs? ((?:\(\w{1,5}\))+)(?:[ ,–-]*(?:(?:and|or|through|to|,) *)*(?:\(\w{1,5}\))*)* of this section"
    )
    n_found = n_missing = 0
    for _, read in real.values():
        for document in read.documents:
            if "/appendix/" not in document.stratum:
                known = set(paths_of(document))
                for match in cited.finditer(document.text):
                    n_found += match[1] in known
                    n_missing += match[1] not in known
    assert n_found > 500
    assert n_missing / n_found < 0.015


def paths_of(document: Document) -> list[str]:
    """The designators from the outermost to each paragraph's own, as people cite them."""
    around: list[tuple[int, str]] = []
    paths = []
    for part in document.sections:
        while around and around[-1][0] <= part.span.start:
            around.pop()
        own = re.match(r"(?:\(\w+\))?", part.label)
        around.append((part.span.end, own[0] if own and part.kind == "paragraph" else ""))
        paths.append("".join(designator for _, designator in around))
    return paths


def unit(number: str, inside: str = "") -> str:
    return f"<SECTION><SECTNO>§ {number}</SECTNO><P>Of {number}.</P>{inside}</SECTION>"


def appendix(letter: str, inside: str) -> str:
    return f"<APPENDIX><HD SOURCE='HED'>Appendix {letter} to Part 1—Lamps</HD><P>Of {letter}.</P>{inside}</APPENDIX>"


def note(inside: str) -> str:
    return f"<EFFDNOT><HD SOURCE='HED'>Effective Date Note:</HD><REVTXT>{inside}</REVTXT></EFFDNOT>"


PART_2 = f"<PART><HD SOURCE='HED'>PART 2—OIL</HD>{unit('2.1', unit('2.2'))}</PART>"


@pytest.mark.parametrize(
    ("inside", "ids"),
    [
        (unit("1.1", unit("1.2") + unit("1.3")), ["1.1", "1.2", "1.3"]),
        (unit("1.1", unit("1.2", unit("1.3")) + unit("1.4")) + unit("1.5"), ["1.1", "1.2", "1.3", "1.4", "1.5"]),
        (unit("1.1", note(unit("1.1") + unit("1.2"))), ["1.1", "1.2"]),
        (unit("1.1", note(unit("1.1", unit("1.2")))), ["1.1", "1.2"]),
        (unit("1.1", appendix("A", unit("1.2"))), ["1.1", "appendix-a-to-part-1", "1.2"]),
        (unit("1.1", PART_2) + unit("1.2"), ["1.1", "2.1", "2.2", "1.2"]),
        (appendix("A", note(appendix("A", "")) + PART_2), ["appendix-a-to-part-1", "2.1", "2.2"]),
        # Sections of a model act in an appendix are its text, and so is what has no number.
        (appendix("A", unit("4") + "<SECTION><SUBJECT>Oil.</SUBJECT></SECTION>"), ["appendix-a-to-part-1"]),
    ],
)
def test_a_unit_inside_the_text_of_another_is_a_document_unless_it_has_the_same_number(inside, ids) -> None:
    data = f"<PART><HD SOURCE='HED'>PART 1—LAMPS</HD>{inside}</PART>"
    read = content(data)
    assert [document.doc_id for document in read.documents] == [f"cfr:91-{name}@2019" for name in ids]
    assert_accounted(read, words_of(data.encode(), ".xml"))
