"""Committee reports: headings by layout, tables by their rules and leaders, the law and the letters they reprint."""

import pytest

from runner.base.records import Document, Section
from samplers.source_format import FileContent
from samplers.sources.committee_reports.contents import Contents, listed_ranks
from samplers.sources.committee_reports.parts import LONGEST
from samplers.sources.committee_reports.reader import FORMAT
from samplers.sources.committee_reports.tables import tables

COVER = (
    "[House Report 116-7]\n\n" + "=" * 70 + "\n\n" + " " * 30 + "A TITLE\n" + " " * 32 + "_______\n\n"
    "  Mr. Larch, from the Committee on Rules, submitted the following\n\n" + " " * 26 + "[To accompany H.R. 9]\n\n"
)


def page(body: str, cover: str = COVER) -> bytes:
    return f"<html><title>T</title><body><pre>\n{cover}{body}\n</pre></body></html>".encode()


def content(body: str) -> FileContent:
    return FORMAT.read(page(body), "CRPT-116hrpt7.htm", frozenset())


def document(body: str) -> Document:
    return content(body).documents[0]


def centred(text: str) -> str:
    return text.center(72).rstrip()


def part(read: Document, label: str) -> Section:
    return next(section for section in read.sections if section.label == label)


def words(read: Document, section: Section) -> str:
    return read.text[section.span.start : section.span.end]


def test_a_part_of_a_report_has_its_own_id() -> None:
    for printed, expected in (
        (", Part 2", "CRPT-116hrpt7-pt2"),
        (" Part IV", "CRPT-116hrpt7-pt4"),
        ("", "CRPT-116hrpt7"),
    ):
        source = page("    Words.", COVER.replace("116-7]", f"116-7{printed}]"))
        assert FORMAT.read(source, "x.htm", frozenset()).documents[0].doc_id == expected


def test_without_contents_titles_hold_capitals_and_those_small_letters() -> None:
    headings = ["TITLE I", "DEPARTMENT OF BRIDGES", "Office of the Surveyor", "COMMITTEE RECOMMENDATION"]
    headings.append("Bureau of Paint")
    read = document("".join(f"{centred(heading)}\n\n    Words.\n\n" for heading in headings))
    assert [part(read, heading).level for heading in headings] == [1, 2, 3, 4, 3]


def test_a_heading_printed_before_its_place_in_the_contents_hides_none_between() -> None:
    headings = ["Tolls", "Ropes", "Anchors", "Tolls", "Ropes", "Sails"]
    entries = [(1, "ropes"), (9, "anchors"), (1, "tolls"), (9, "sails")]
    assert listed_ranks(Contents(0, 9, tuple(entries)), headings) == [0, 1, 9, 1, 0, 9]


@pytest.mark.parametrize(
    ("printed", "is_listed"),
    [
        ("Office of Lantern Technology", True),
        ("Office of the Lantern Techology", True),
        ("Office of Lantern Techonolgy", False),
        ("Office of Lantern Techology Operations", False),
    ],
)
def test_a_heading_that_lacks_a_few_letters_of_its_entry_is_listed(printed: str, is_listed: bool) -> None:
    entries = ((1, "ropes"), (9, "officeoflanterntechology"), (1, "tolls"))
    ranks = listed_ranks(Contents(0, 9, entries), ["Ropes", printed, "Tolls", printed])
    assert ranks == [1, 9 if is_listed else 0, 1, 0]


def test_a_listed_table_ends_reprinted_law() -> None:
    rule = "-" * 60
    read = document(
        f"{centred('CONTENTS')}\n\nChanges in Existing Law..... 1\nFerries..... 2\n\n"
        f"{centred('Changes in Existing Law')}\n\n    It is shown in roman.\n\n    Sec. 1. Law.\n\n"
        f"{centred('FERRIES')[6:]}\n{rule}\n{'Amount':>40}\n{rule}\nFerry.......  12\n{rule}\n"
    )
    assert "Sec. 1." not in read.text
    assert "Ferry\t12" in words(read, part(read, "FERRIES"))


def test_many_headings_without_words_are_nested_a_little() -> None:
    read = document(f"{centred('HEADING')}\n\n" * 500 + "    Words.")
    assert 2 < max(section.level for section in read.sections) < 15
    assert len(read.sections) == 501


@pytest.mark.parametrize(
    "line", ["[In thousands of dollars]", "(INCLUDING TRANSFER OF FUNDS)", "$44,665,720,000", "* * *"]
)
def test_notes_and_figures_in_the_middle_are_no_headings(line: str) -> None:
    assert [section.kind for section in document(f"{centred(line)}\n\n    Words.").sections] == ["introduction"]


def test_leaders_become_tabs() -> None:
    read = content(
        "Appropriations, 2023....................................    $625,000,000\nBudget........  ........\n"
    )
    assert read.documents[0].text.endswith("Appropriations, 2023\t$625,000,000\nBudget")
    assert read.left_out["rules and leaders"] == 36 + 16 + 7
    assert [section.kind for section in read.documents[0].sections] == ["introduction", "table"]


def test_the_heads_of_columns_that_span_others_stand_above_them() -> None:
    rule, heads = "-" * 60, "                         Authority             Outlays\n"
    heads += "                     --------------------------------------\n"
    heads += "                      Amount     Share     Amount     Share\n"
    (table,) = tables(f"\n{rule}\n{heads}{rule}\nBridges............        12         3        44         5\n{rule}\n")
    assert table.rows == ["Authority\tOutlays", "Amount\tShare\tAmount\tShare", "Bridges\t12\t3\t44\t5"]


@pytest.mark.parametrize("filling", [".", " ", ". ", " 1", "x..", "-"])
def test_one_long_line_of_contents_is_read(filling: str) -> None:
    line = filling * (100_000 // len(filling))
    assert "Words." in document(f"{centred('CONTENTS')}\n\nTitle I....... 1\n{line}\n{line}x\n\n    Words.\n").text


def test_a_long_report_is_divided_where_agencies_and_accounts_begin() -> None:
    words = f"    The Committee recommends paint.\n\n    Lanterns.—{'Oil is dear. ' * (LONGEST // 30)}\n\n"
    headings = ["TITLE I", "DEPARTMENT OF BRIDGES", "Office of the Surveyor", "Bureau of Paint"]
    body = centred(headings[0]) + "".join(f"\n\n{centred(heading)}\n\n{words}" for heading in headings[1:])
    divided = content(f"    By way of preface.\n\n{body}").documents
    assert [(each.doc_id, each.title.partition(": ")[2]) for each in divided] == [
        ("CRPT-116hrpt7.001", "A TITLE"),
        ("CRPT-116hrpt7.002", "DEPARTMENT OF BRIDGES"),
        ("CRPT-116hrpt7.003", "DEPARTMENT OF BRIDGES > Office of the Surveyor"),
        ("CRPT-116hrpt7.004", "DEPARTMENT OF BRIDGES > Bureau of Paint"),
    ]
    # A heading without words opens what follows it, and directives stay with their account.
    assert divided[1].text.startswith("TITLE I\n\nDEPARTMENT OF BRIDGES\n\nThe Committee")
    assert [(each.level, each.label, divided[1].text[each.span.start :][:9]) for each in divided[1].sections] == [
        (1, "TITLE I", "TITLE I\n\n"),
        (2, "DEPARTMENT OF BRIDGES", "DEPARTMEN"),
        (3, "Lanterns", "Lanterns."),
    ]
    assert {each.sections[-1].span.end - len(each.text) for each in divided} == {0}


def test_a_long_report_without_headings_is_one_document() -> None:
    (whole,) = content("    Words of no office at all.\n\n" * (LONGEST // 20)).documents
    assert whole.doc_id == "CRPT-116hrpt7"
    assert len(whole.text) > LONGEST


def test_dividing_loses_no_word() -> None:
    body = "".join(f"{centred(f'Office {n}')}\n\n    {'Words. ' * (n * 97 % 4_000)}\n\n" for n in range(60))
    divided = content(body).documents
    assert len(divided) > 9
    printed = " ".join(" ".join(each.text for each in divided).split())
    assert printed.endswith(" ".join(body.split()))
    assert all(len(each.text) < LONGEST for each in divided)


def test_a_heading_without_words_before_a_larger_one_ends_the_part_before() -> None:
    long = f"    {'Words. ' * (LONGEST // 12)}\n\n"
    headings = ["TITLE I", "DEPARTMENT OF BRIDGES", "Office of the Surveyor", "TITLE II"]
    body = "".join(f"{centred(heading)}\n\n{long if heading != headings[2] else ''}" for heading in headings)
    divided = content(body).documents
    assert [each.title.partition(": ")[2] for each in divided] == [
        "A TITLE",
        "TITLE I",
        "DEPARTMENT OF BRIDGES",
        "TITLE II",
    ]
    assert divided[2].text.endswith("Words.\n\nOffice of the Surveyor")
    assert divided[3].text.startswith("TITLE II")


def test_small_headings_of_the_introduction_are_titles_without_a_gap() -> None:
    body = "".join(f"{centred(f'Overview {n}')}\n\n    {'Words. ' * (LONGEST // 20)}\n\n" for n in range(4))
    assert [each.title.partition(": ")[2] for each in content(body).documents][1:] == [
        f"Overview {n}" for n in range(4)
    ]
