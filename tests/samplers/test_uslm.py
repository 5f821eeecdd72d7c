from pathlib import Path

import pytest

from samplers.formats.text_writer import Part
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
    has_text_after_lead,
    mended,
    resolve,
)
from samplers.formats.uslm.walk import Walk, walk
from samplers.sources.bills import ROOTS

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


def test_text_follows_a_lead_only_if_more_than_marks_does() -> None:
    assert has_text_after_lead(["a", LINE + LEAD, " b ", LINE])
    assert not has_text_after_lead(["a", LINE + LEAD, " \u00ad", LINE])
    assert not has_text_after_lead([LINE, PART_START, ""])


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
