"""The Congressional Record: what is a turn, what only interrupts the text, and what each page says of itself."""

import pytest

from chunkers.registry import chunker
from runner.base.records import Document
from samplers.source_format import FileContent
from samplers.sources.congressional_record.lines import speaker
from samplers.sources.congressional_record.reader import FORMAT

HEADER = (
    "[Congressional Record Volume 165, Number 46 (Thursday, March 14, 2019)]\n[House]\n[Page H1]\n"
    "From the Congressional Record Online\n"
)


def page(body: str, header: str = HEADER) -> bytes:
    return f"<html><head><title>T</title></head><body><pre>\n{header}\n{body}\n</pre></body></html>".encode()


def content(body: str, name: str = "CREC-2019-03-14-pt1-PgH1.htm") -> FileContent:
    return FORMAT.read(page(body), name, frozenset())


def document(body: str) -> Document:
    return content(body).documents[0]


def turns(read: Document) -> list[str]:
    return [part.label for part in read.sections if part.kind == "turn"]


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("Mr. McCAIN. Mr. President, I rise.", "Mr. McCAIN"),
        ("Mr. BROWN of Ohio. Mr. Speaker, I rise.", "Mr. BROWN of Ohio"),
        ("Ms. MILLENDER-McDONALD. I rise.", "Ms. MILLENDER-McDONALD"),
        ("Ms. ROS-LEHTINEN. I rise.", "Ms. ROS-LEHTINEN"),
        ("Ms. EDDIE BERNICE JOHNSON of Texas. I rise.", "Ms. EDDIE BERNICE JOHNSON of Texas"),
        ("Mr. de la GARZA. I rise.", "Mr. de la GARZA"),
        ("Mr. DeFAZIO (during the reading). I rise.", "Mr. DeFAZIO"),
        ("Mr. Manager ROWAN. I rise.", "Mr. Manager ROWAN"),
        ("Ms. VELÁZQUEZ. I rise.", "Ms. VELÁZQUEZ"),
        ("The PRESIDING OFFICER. Without objection.", "The PRESIDING OFFICER"),
        ("The PRESIDING OFFICER (Mr. Rowan). Without objection.", "The PRESIDING OFFICER (Mr. Rowan)"),
        ("The PRESIDING OFFICER [Mr. Rowan]. Without objection.", "The PRESIDING OFFICER [Mr. Rowan]"),
        ("Mr. CONYERS, Mr. Speaker, I rise.", "Mr. CONYERS"),
        ("Mr. HALE of Ohio Madam Chairman, I rise.", "Mr. HALE of Ohio"),
        ("Mr. HALE, Mr. ROWAN, and Ms. BIRCH changed their vote.", ""),
        ("The SPEAKER pro tempore (Ms. Birch). Order.", "The SPEAKER pro tempore (Ms. Birch)"),
        ("The Acting CHAIR. Order.", "The Acting CHAIR"),
        ("Mr. Lewis of Kentucky asked and was given permission.", ""),
        ("Mr. Hale. And so on.", ""),
        ("Mr. PUTNAM, from the Committee on Rules, submitted a report.", ""),
        ("Mr. ROWAN (at the request of Ms. BIRCH) for today.", ""),
        ("Mr. ROWAN addressed the Chair.", ""),
        ("The OECD. That is where it comes from.", ""),
        ("The PRESIDENT pro tempore led the Pledge of Allegiance, as follows:", ""),
        ("Mr. Speaker, I yield back.", ""),
        ("MR. HALE. I rise.", "MR. HALE"),
        ("MS. VOE of Ohio. I rise.", "MS. VOE of Ohio"),
        ("Prime Minister DOEDA. Mr. Speaker, I thank you.", "Prime Minister DOEDA"),
        ("President ROESKYY. Thank you.", "President ROESKYY"),
        ("President Roeskyy. Thank you.", ""),
        ("President. Guess what.", ""),
        ("The Acting Chairman. Order.", "The Acting Chairman"),
        ("THE PRESIDING OFFICER (Mr. Rowan). Order.", "THE PRESIDING OFFICER (Mr. Rowan)"),
        ("The Clerk. Amendment No. 4.", "The Clerk"),
        ("The Clerk.", ""),
        ("The Clerk read as follows:", ""),
        ("The President, Mr. Speaker, has spoken.", ""),
    ],
)
def test_a_turn_begins_with_a_name_in_capitals(paragraph: str, expected: str) -> None:
    assert speaker(paragraph) == expected


@pytest.mark.parametrize(
    "opening", ["By Mr. PIKE:", "By Ms. de la GARZA of Ohio (for herself and Mr. Hale):", "By Mr. HALE (by request):"]
)
def test_who_brings_in_a_bill_ends_the_speech_before_it(opening: str) -> None:
    body = f"  Mr. ROWAN. One.\n      {opening}\n  S. 12. A bill to light lamps.\n  Mr. PIKE. Two."
    read = document(body)
    assert [read.text[part.span.start : part.span.end] for part in read.sections if part.kind == "turn"] == [
        *("Mr. ROWAN. One.", "Mr. PIKE. Two.")
    ]
    assert document(body.replace(opening, "By Mr. Pike's account:")).sections != read.sections


def test_a_mark_before_any_text_goes_too() -> None:
    assert (
        document("\n[[Page H1]]\n\n-----\n\n" + " " * 32 + "Senate\n\n  The Senate met.").text
        == "Senate\n\nThe Senate met."
    )


def test_clock_marks_are_dropped_and_counted() -> None:
    read = content("  Mr. ROWAN. One.\n\n" + " " * 30 + "{time}  2115\n\n  Two.")
    assert read.documents[0].text == "Mr. ROWAN. One.\n\nTwo."
    assert read.left_out["clock marks"] == len("{time}2115")


def test_a_statement_between_bullets_is_no_turn() -> None:
    read = document("<bullet> Mr. ROWAN. One.\n  Two.<bullet>\n  The CLERK. Three.")
    assert [(part.kind, part.label) for part in read.sections] == [
        ("inserted statement", "Mr. ROWAN"),
        ("turn", "The CLERK"),
    ]
    assert read.text == "Mr. ROWAN. One.\n\nTwo.\n\nThe CLERK. Three."


def test_the_name_gives_the_id_unless_the_header_denies_it() -> None:
    ids = {
        "CREC-2019-03-14-pt2-PgH1-3.htm": "CREC-2019-03-14-pt2-PgH1-3",
        "sub/CREC-2019-03-14-pt1-PgH1.htm": "CREC-2019-03-14-pt1-PgH1",
        "CREC-2018-01-01-pt1-PgS9.htm": "CREC-2019-03-14-pt1-PgH1",
        "another name.htm": "CREC-2019-03-14-pt1-PgH1",
    }
    for name, expected in ids.items():
        read = content("  Mr. ROWAN. One.", name).documents[0]
        assert read.doc_id == expected
        assert read.url == f"https://www.govinfo.gov/app/details/CREC-2019-03-14/{expected}"


def test_a_title_has_the_heading_and_never_what_was_said() -> None:
    citation = "165 Cong. Rec. H1 (House, March 14, 2019)"
    heading = " " * 22 + "IN HONOR OF ANN ROPE, PH.D.\n\n"
    assert document("  Mr. ROWAN. One.").title == citation
    assert document(f"{heading}  Mr. ROWAN. One.").title == f"{citation}: IN HONOR OF ANN ROPE, PH.D."


def centred(*lines: str) -> str:
    return "".join(f"{line.center(72).rstrip()}\n\n" for line in lines)


def printed(*lines: str) -> str:
    """Lines as bills are printed: headings of sections at column 5, paragraphs at column 7."""
    return "".join(f"{'     ' if line.lstrip('`').startswith('SEC.') else '       '}{line}\n\n" for line in lines)


BILL = (
    f"{centred('LAMPS')}  Mr. ROWAN. I ask that the bill be printed.\n\n{centred('H.R. 1')}{printed('Be it enacted,')}"
    f"{centred('TITLE I--LAMPS', 'Subtitle A--Oil')}"
    + printed(
        "SEC. 101. OIL FOR LAMPS.", "(a) The Act is amended by adding:", "``SEC. 7. WICKS.", "``Wicks are cut.''; and"
    )
    + printed("(b) by striking section 8.", "SEC. 102. REPORT.", "The keeper reports.")
    + "  Mr. ROWAN. I thank the Chair.\n"
)


def test_an_inserted_bill_keeps_its_titles_and_sections() -> None:
    read = document(BILL)
    inside = [(part.level, part.label) for part in read.sections if part.kind in ("inserted text", "section")]
    assert inside == [
        (2, "H.R. 1"),
        (3, "TITLE I—LAMPS"),
        (4, "Subtitle A—Oil"),
        (5, "SEC. 101. OIL FOR LAMPS"),
        (6, "SEC. 7. WICKS"),
        (5, "SEC. 102. REPORT"),
    ]
    quoted = next(part.span for part in read.sections if part.label == "SEC. 7. WICKS")
    assert read.text[quoted.start : quoted.end].endswith("cut.”; and")
    assert turns(read) == ["Mr. ROWAN", "Mr. ROWAN"]


def test_each_printed_amendment_is_a_section_with_its_headings_inside() -> None:
    first = "  SA 7. Mr. ROWAN (for himself) proposed an amendment, as follows:\n\n"
    second = "  SA. 8. Ms. BIRCH submitted an amendment, as follows:\n\n"
    assert document("  SA 6. Mr. ROWAN proposed an amendment, supra.").sections[0].kind == "procedure"
    inside = centred("REPORT ON OIL") + printed("Sec. 9. Oil is clean.") + centred("______")
    read = document(f"{centred('TEXT OF AMENDMENTS')}{first}{inside}{second}{printed('On page 1, strike oil.')}")
    assert [(part.level, part.kind, part.label) for part in read.sections] == [
        (1, "amendment", "SA 7 (Mr. ROWAN)"),
        (2, "inserted text", "REPORT ON OIL"),
        (3, "section", "Sec. 9"),
        (1, "amendment", "SA 8 (Ms. BIRCH)"),
    ]


def test_the_lines_that_say_who_speaks_below_a_title_belong_to_the_turn() -> None:
    lines = ("THE LAMP", "HON. IDA M. HERON", "of ohio", "in the house of representatives", "Monday, May 2, 2005")
    asked = "  (Ms. HERON asked and was given permission to address the House for 1 minute.)\n"
    read = document(f"{centred(*lines)}{asked}  Ms. HERON. Mr. Speaker, I rise.")
    assert [(part.kind, part.label) for part in read.sections] == [("turn", "Ms. HERON")]
    (chunk,) = chunker("speaker_turn_v1")(read)
    assert (chunk.span.start, chunk.span.end) == (0, len(read.text))
