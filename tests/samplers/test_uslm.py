from pathlib import Path

import pytest

from samplers.formats.text_writer import Part
from samplers.formats.uslm import marks
from samplers.formats.uslm.marks import (
    BLOCK,
    CLOSING,
    GLUE,
    JOIN,
    LEAD,
    LINE,
    OPENING,
    PARAGRAPH,
    PART_END,
    PART_START,
    SPACE,
    STOP,
    TAB,
    Resolved,
    mended,
    resolve,
)
from samplers.formats.uslm.walk import Walk, walk
from samplers.sources.bills.reader import ROOTS

FIXTURES = Path(__file__).parents[1] / "data" / "bills"
LAWS = ROOTS | {"uscDoc", "pLaw"}


def read(name: str) -> Walk:
    return walk((FIXTURES / name).read_bytes(), name, LAWS)


def labels(walked: Walk) -> list[tuple[int, str, str]]:
    return [(section.level, section.kind, section.label) for section in walked.sections]


def section_text(walked: Walk, label: str) -> str:
    (section,) = (section for section in walked.sections if section.label == label)
    return walked.text[section.span.start : section.span.end]


def walked_body(body: str) -> Walk:
    return walk(f"<bill><legis-body>{body}</legis-body></bill>".encode(), "x", ROOTS)


def text_of(body: str) -> str:
    return walked_body(body).text


DTD_TEXT = """\
To restore village ponds, and for other purposes.

1. Short title; contents
(a) Short title. This Act may be cited as the “Village Pond Restoration Act”.
(b) Contents. The contents of this Act are as follows:

2. Grants
A village may apply for a grant if—
(1) its pond is older than 100 years; and
(2) Depth. the pond is at least 1/2 fathom deep,
but not if the pond was filled under section 12 of the Fen Drainage Act (33 U.S.C. 78dd–1) as it stood.

3. No grant shall exceed the cost of the works, and the Warden shall publish each grant within 30 days.

4. Amendments to the Fen Drainage Act
(a) New part. The Fen Drainage Act is amended by adding at the end the following:
“IX Ponds
1. Meaning of pond
The term pond has the meaning given in the ‘Water Words Act’.”; and
(b) Clerical. Section 7 of that Act is amended by striking “mere” and inserting “pond”, and the Mere Act may be \
cited as it was. “pond or mere”.

5. Fees
Fees are as follows:
Pond fees
Pond\tFee
Small pond\t$5
Great pond\t$50"""


def test_a_bill_of_the_dtd_reads_as_printed() -> None:
    assert read("BILLS-117hr9001ih.xml").text == DTD_TEXT


def test_sections_are_labelled_as_cited_and_quoted_ones_are_not_recorded() -> None:
    assert labels(read("BILLS-117hr9001ih.xml")) == [
        (11, "section", "Sec. 1. Short title; contents"),
        (12, "subsection", "(a) Short title"),
        (12, "subsection", "(b) Contents"),
        (11, "section", "Sec. 2. Grants"),
        (13, "paragraph", "(1)"),
        (13, "paragraph", "(2) Depth"),
        (11, "section", "Sec. 3. No grant shall exceed the cost of the …"),
        (11, "section", "Sec. 4. Amendments to the Fen Drainage Act"),
        (12, "subsection", "(a) New part"),
        (12, "subsection", "(b) Clerical"),
        (11, "section", "Sec. 5. Fees"),
    ]


def test_a_quoted_block_and_its_tail_stay_in_the_subsection_around_them() -> None:
    text = section_text(read("BILLS-117hr9001ih.xml"), "(a) New part")
    assert "“IX Ponds\n1. Meaning of pond\n" in text
    assert text.endswith("”; and")


def test_flush_text_after_paragraphs_belongs_to_their_parent() -> None:
    walked = read("BILLS-117hr9001ih.xml")
    assert section_text(walked, "Sec. 2. Grants").endswith("as it stood.")
    assert section_text(walked, "(2) Depth").endswith("fathom deep,")


def test_appropriations_siblings_become_levels() -> None:
    assert labels(read("BILLS-118s9002rs.xml")) == [
        (11, "section", "That the following sums are appropriated for lighthouses, …"),
        (2, "title", "Title I"),
        (8, "appropriations-major", "Department of Beacons"),
        (9, "appropriations-intermediate", "Coast service"),
        (10, "appropriations-small", "Salaries and expenses"),
        (11, "appropriations-small", "(including transfer of funds)"),
        (10, "appropriations-small", "Construction"),
        (13, "paragraph", "(1)"),
        (9, "appropriations-intermediate", "General provisions—department of beacons"),
        (11, "section", "Sec. 101. None of the funds may be used to …"),
        (11, "section", "Sec. 102. Lamps shall be trimmed."),
        (2, "title", "Title II"),
        (8, "appropriations-major", "Related agencies"),
        (10, "appropriations-small", "Foghorn board"),
        (11, "section", "Sec. 201. This title may be cited as the “Foghorn …"),
    ]


def test_a_heading_spans_what_stands_under_it() -> None:
    walked = read("BILLS-118s9002rs.xml")
    assert section_text(walked, "Coast service").endswith("(1) Of which $5 is for paint.")
    assert section_text(walked, "General provisions—department of beacons").endswith("102. Lamps shall be trimmed.")
    assert section_text(walked, "Foghorn board") == "Foghorn board\nFor the Foghorn Board, $3."


def test_struck_text_is_dropped_and_counted_and_inserted_text_stays() -> None:
    walked = read("BILLS-118s9002rs.xml")
    assert "Struck" not in walked.text
    assert "appropriated for lighthouses, namely" in walked.text
    struck = "1. Struck heading This Act may be cited as the Struck Lamp Act. lamps"
    assert walked.dropped["struck text"] == len(struck.replace(" ", ""))
    assert "short-title" not in walked.facts


def test_an_account_keeps_its_name_over_siblings_that_belong_to_it() -> None:
    assert labels(read("BILLS-118s9010rs.xml"))[3:] == [
        (10, "appropriations-small", "OFFICE OF LANDINGS"),
        (11, "appropriations-small", "SALARIES AND EXPENSES"),
        (10, "appropriations-small", "ROPES AND CHAINS"),
        (11, "appropriations-small", "(INCLUDING TRANSFER OF FUNDS)"),
        (10, "appropriations-small", "BELLS"),
        (9, "appropriations-intermediate", "Administrative provisions"),
        (10, "appropriations-small", "(TRANSFER OF FUNDS)"),
        (11, "section", "Sec. 101. Not more than $1 may be moved between …"),
        (10, "appropriations-small", "(TRANSFER OF FUNDS)"),
        (11, "section", "Sec. 102. Not more than $2 may be moved between …"),
        (10, "appropriations-small", "This title may be cited as the “Ferry …"),
    ]


def test_text_without_heading_continues_the_account_before_it_and_not_the_sections() -> None:
    walked = read("BILLS-118s9010rs.xml")
    assert section_text(walked, "ROPES AND CHAINS").endswith("for chains.\nIn addition, $1 for hooks.")
    assert section_text(walked, "BELLS") == "BELLS\n\nFor bells, $3."


@pytest.mark.parametrize("header", ["Office", "(including transfer of funds)"])
def test_headings_without_text_do_not_nest_without_end(header: str) -> None:
    body = f"<appropriations-small><header>{header}</header></appropriations-small>" * 3_000
    walked = walked_body(body)
    assert len(walked.sections) == 3_000
    assert max(section.level for section in walked.sections) < 30


def test_a_heading_before_the_number_follows_it_in_the_label() -> None:
    section = "<section><heading>(transfer of funds)</heading><num>Sec. 205. </num><content>Words.</content></section>"
    walked = walked_body(section)
    assert walked.text == "(transfer of funds)\nSec. 205. Words."
    assert labels(walked) == [(11, "section", "Sec. 205. (transfer of funds)")]


def test_each_committee_to_which_members_are_elected_is_a_part_of_its_own() -> None:
    committee = "committee-appointment-paragraph"
    bodies = (f"<{committee}><header>On {what}:</header><text>Mr. Sluice.</text></{committee}>" for what in "AB")
    walked = walked_body(f"<section><text>That these are elected:</text>{''.join(bodies)}</section>")
    assert walked.text == "That these are elected:\nOn A: Mr. Sluice.\nOn B: Mr. Sluice."
    assert labels(walked) == [
        (11, "section", "That these are elected:"),
        (13, committee, "On A"),
        (13, committee, "On B"),
    ]


USLM2_TEXT = """\
To care for orchards, and for other purposes.

SECTION 1. SHORT TITLE.
This Act may be cited as the “Orchard Care Act”.

DIVISION A— TREES

TITLE I— PRUNING

SEC. 2. PRUNING.
(a) In general.— A Representative of the orchards shall prune—
(1) apple trees; and
(2) pear trees in autumn,
except on Sundays.
(b) The Grove Act is amended—
“SEC. 2A. GROVES.
“(a) A grove has 10 trees.”; and

DIVISION B— MONEY

DEPARTMENT OF ORCHARDS

cider
For cider, $4: Provided, That the caf\u00e9 gains: Provided further, That it pays.

SEC. 3. Yields are:
Yields
Tree\tBushels
Apple\t9
They are estimates.

This is the end."""


def test_a_bill_of_uslm_2_reads_without_marginal_notes_pages_footnotes_and_soft_hyphens() -> None:
    walked = read("BILLS-116hr9004rfs.xml")
    assert walked.text == USLM2_TEXT
    assert walked.dropped == {
        "metadata": 114,
        "form": 122,
        "enacting formula": 48,
        "table of contents": 14,
        "sidenotes": 9,
        "page marks": 10,
        "footnotes": 14,
        "struck text": 27,
        "attestation": 59,
        "soft hyphens and zero-width characters": 1,
    }


def test_uslm_2_levels_are_the_same_kinds_as_those_of_the_dtd() -> None:
    assert labels(read("BILLS-116hr9004rfs.xml")) == [
        (11, "section", "Sec. 1. SHORT TITLE"),
        (1, "division", "Division A—TREES"),
        (2, "title", "Title I—PRUNING"),
        (11, "section", "Sec. 2. PRUNING"),
        (12, "subsection", "(a) In general"),
        (13, "paragraph", "(1)"),
        (13, "paragraph", "(2)"),
        (12, "subsection", "(b)"),
        (1, "division", "Division B—MONEY"),
        (8, "appropriations-major", "DEPARTMENT OF ORCHARDS"),
        (10, "appropriations-small", "cider"),
        (11, "section", "Sec. 3. Yields are:"),
        (11, "level", ""),
    ]


def test_recitals_are_sections_of_the_preamble() -> None:
    walked = read("BILLS-116sconres9005ats.xml")
    assert labels(walked)[:3] == [(11, "preamble", "Preamble"), (12, "recital", ""), (12, "recital", "")]
    assert section_text(walked, "That Congress—").endswith("(2) likes honey.")


def test_an_engrossed_amendment_holds_the_sections_that_it_adds() -> None:
    walked = read("BILLS-116hr9006eas.xml")
    assert "\n\nAMENDMENT:\nAt the end, add the following:\n\nSEC. 9. SEALS.\n" in walked.text
    assert (11, "section", "Sec. 9. SEALS") in labels(walked)


def test_uslm_1_of_the_code_walks_by_the_same_names() -> None:
    walked = read("usc96-uslm1.xml")
    assert labels(walked) == [
        (2, "title", "Title 96—BRIDGES"),
        (6, "chapter", "Chapter 1—TOLLS"),
        (7, "part", "Part A—Common Tolls"),
        (11, "section", "§ 78dd–1. Tolls"),
        (12, "subsection", "(a) Rate"),
        (12, "sourceCredit", ""),
        (12, "notes", ""),
        (13, "note", "Amendments"),
        (11, "section", "§ 79. Repealed. Aug. 1, 1950, ch. 2"),
    ]
    assert "Old tolls" in section_text(walked, "§ 78dd–1. Tolls")


def test_facts_are_collected_from_form_and_meta() -> None:
    dtd = read("BILLS-117hr9001ih.xml").facts
    assert dtd["congress"] == ("117th CONGRESS",)
    assert dtd["number"] == ("H. R. 9001",)
    assert dtd["stage"] == ("Introduced-in-House",)
    assert dtd["session"] == ("1st Session",)
    assert dtd["chamber"] == ("IN THE HOUSE OF REPRESENTATIVES",)
    assert dtd["official-title"] == ("To restore village ponds, and for other purposes.",)
    assert dtd["short-title"] == ("Village Pond Restoration Act",)
    assert (dtd["sponsor"], dtd["cosponsor"]) == (("Ms. Pondwell",), ("Mr. Reed",))
    assert dtd["committee"] == ("Committee on Ponds",)
    uslm = read("BILLS-116hr9004rfs.xml").facts
    assert uslm["citable"] == ("116 HR 9004 RFS", "116hr9004rfs")
    assert uslm["short-title"] == ("Orchard Care Act",)
    assert uslm["sponsor"] == ("Mrs. Appleyard",)
    assert uslm["congress"] == ("116",)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<section><enum>1.</enum><header>Short title</header></section>", "1. Short title"),
        ("<text>a <term>b</term>c<italic>d</italic> e</text>", "a bc d e".replace("c d", "cd")),
        ("<text>one<linebreak/>two<pagebreak/> three</text>", "one two three"),
        ("<text> two\n  lines\u00a0and\u2003spaces </text>", "two lines and spaces"),
        ("<text>first</text><text>second</text>", "first\nsecond"),
        ("<text>a<page>1</page>b <page>2</page>c</text>", "ab c"),
        ("<text>a<!-- x -->b<?y z?>c</text>", "abc"),
        ("<text>say <quote>so <quote>then</quote> </quote>now</text>", "say “so ‘then’” now"),
        ("<text>nothing <quote></quote>quoted</text>", "nothing quoted"),
        ("<subsection><enum>(a)</enum><header>Why?</header><text>Because.</text></subsection>", "(a) Why? Because."),
        ("<quoted-block><text>x</text></quoted-block>.", "“x”."),
    ],
)
def test_words_are_neither_glued_nor_split(body: str, expected: str) -> None:
    assert text_of(body) == expected


def test_an_undeclared_reference_to_a_known_character_is_that_character() -> None:
    assert "Sørine — Queen" in read("BILLS-112hr9003enr.xml").text


def test_a_level_inside_a_heading_leaves_no_mark_in_text_or_labels() -> None:
    section = "<section><header>a<paragraph>b</paragraph>c</header><text>d</text></section>"
    walked = walked_body(section)
    words = walked.text + "".join(section.label for section in walked.sections)
    assert not any(character < " " and character not in "\n\t" for character in words)


@pytest.mark.parametrize("filler", [" ", ".", "\u2014", "-", "x.", "[", "\u201c"])
def test_a_heading_of_any_length_is_read_in_one_pass(filler: str) -> None:
    heading = f"{filler * (400_000 // len(filler))}x"
    body = f"<section><enum>1.</enum><header>{heading}</header><text>d</text></section>"
    assert text_of(body).endswith("d")


def test_marks_between_words_resolve_to_the_strongest_separator() -> None:
    pieces = ["a ", LINE, " ", PARAGRAPH, "b", SPACE, LEAD, BLOCK, "c", PARAGRAPH, JOIN, "  .", TAB, GLUE, "d", LINE]
    assert resolve(pieces).text == "a\n\nb c.d"


def test_a_part_in_which_nothing_was_written_has_no_span() -> None:
    outer, empty, inner = (Part(kind, 1) for kind in ("outer", "empty", "inner"))
    pieces = ["a", LINE + PART_START, PART_START, PART_END, " ", PART_START, "e\u0301", PART_END, "f", PART_END]
    assert resolve(pieces, [outer, empty, inner]).text == "a\néf"
    assert [(part.start, part.end) for part in (outer, empty, inner)] == [(2, 4), (-1, -1), (2, 3)]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.xml")), ids=lambda path: path.stem)
def test_where_a_text_is_cut_while_its_marks_are_resolved_makes_no_difference(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = walk(path.read_bytes(), path.name, LAWS)
    monkeypatch.setattr(marks, "_STRETCH", 1)
    assert walk(path.read_bytes(), path.name, LAWS) == whole


def test_white_space_between_marks_is_no_place_to_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = ["a\u00a0 ", LINE, "\u00a0 b \u00a0", PARAGRAPH, " c", STOP, " d"]
    for stretch in range(1, 12):
        monkeypatch.setattr(marks, "_STRETCH", stretch)
        assert resolve(pieces) == Resolved("a\nb\n\nc. d", 1, 0)


def test_words_broken_at_the_end_of_a_line_are_mended_before_small_letters() -> None:
    assert mended(["Recommenda-", LINE, BLOCK, " tions", LINE]) == (["Recommendations" + LINE], 1)
    for pieces in (["Post-", LINE, BLOCK, "Roads"], ["well- ", "kept"], ["1-", LINE, "a"]):
        assert mended(pieces) == (["".join(pieces)], 0)


def test_a_full_stop_is_supplied_only_between_words_of_one_line() -> None:
    assert resolve(["In general", STOP, SPACE, "Text"]) == Resolved("In general. Text", 1, 0)
    assert resolve(["Why?", STOP, SPACE, "Text"]).text == "Why? Text"
    assert resolve(["In general", STOP, LINE, "Text"]).text == "In general\nText"
    assert resolve([OPENING[0], "In general", CLOSING[0], STOP, " Text"]).text == "“In general”. Text"
    assert resolve([OPENING[0], " ", CLOSING[0], "x"]).supplied == 0
