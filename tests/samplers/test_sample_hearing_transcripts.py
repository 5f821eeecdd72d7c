"""Claims about the reader of hearings: turns, statements, questions for the record, and what is left out."""

from functools import cache
from pathlib import Path

import pytest

from runner.base.records import Document, Section
from samplers.formats.printed.paragraphs import Paragraph
from samplers.source_format import FileContent
from samplers.sources.hearings.people import affiliated, recased, speakers, word_finder
from samplers.sources.hearings.reader import FORMAT

FIXTURES = Path(__file__).parents[1] / "data" / "hearing_transcripts"


def read(data: bytes, name: str = "x.htm") -> FileContent:
    return FORMAT.read(data, name, frozenset())


@cache
def words(document: Document, section: Section) -> str:
    return document.text[section.span.start : section.span.end]


def of_kind(document: Document, *kinds: str) -> list[tuple[str, str]]:
    return [(one.label, words(document, one)) for one in document.sections if one.kind in kinds]


def hearing(*lines: str, header: str = "[House Hearing, 110 Congress]") -> bytes:
    front = (header, "", " " * 32 + "HEARING", "", " " * 20 + "COMMITTEE ON LAMPS", "")
    body = "\n".join((*front, *lines))
    return f"<html><title> - LAMPS</title><body><pre>\n{body}\n</pre></body></html>".encode()


def spoken(*paragraphs: str) -> list[str]:
    document = read(hearing(*(f"    {one}" for one in paragraphs))).documents[0]
    return [label for label, _ in of_kind(document, "turn")]


def test_the_file_name_is_a_fallback_only() -> None:
    data = (FIXTURES / "CHRG-110hhrg90001.htm").read_bytes()
    assert read(data, "some/folder/CHRG-111shrg1.htm").documents[0].doc_id == "CHRG-110hhrg90001"
    assert read(data, "CHRG-110hhrg90001p2.htm").documents[0].doc_id == "CHRG-110hhrg90001p2"
    without = data.replace(b"90-001", b"      ")
    assert read(without, "a/CHRG-110hhrg12345.htm").documents[0].doc_id == "CHRG-110hhrg12345"
    unnamed = read(without, "a/Hearings, May 1.htm").documents[0]
    assert (unnamed.doc_id, unnamed.url) == ("Hearings-May-1", "")


def test_a_title_in_capitals_is_written_as_its_text_writes_the_words() -> None:
    text = word_finder("The keeper spoke of lamps, of NOAA, of a plan and of the U.S. Navy.")
    assert (
        recased("THE KEEPER'S LAMPS AND A NOAA PLAN: U.S. NAVY", text)
        == "The Keeper's Lamps and a NOAA Plan: U.S. Navy"
    )
    assert recased("Of Lamps", text) == "Of Lamps"
    assert recased("LAMPS and HARBORS IN THE 21ST CENTURY", text) == "Lamps and Harbors in the 21st Century"


def test_capitals_that_somebody_says_are_no_heading() -> None:
    said = ["Mr. Fenn. Read it.", "", "    FIRE AND SMOKE.", "", "    Mr. Pike. I did."]
    turns = of_kind(read(hearing("    The Chairman. Yes.", f"    {said[0]}", *said[1:])).documents[0], "turn")
    assert turns[1:] == [("Mr. Fenn", "Mr. Fenn. Read it.\n\nFIRE AND SMOKE."), ("Mr. Pike", "Mr. Pike. I did.")]


@pytest.mark.parametrize(
    "words",
    [
        "Thank you. I see that the chief is here.",
        "So Mr. Fenn. That is a good deal.",
        "General Comments. We keep a list.",
        "Senator Marsh.",
        "Mr. Fenn, you may begin. We are ready.",
        "Mr. Fenn's pier. It is long.",
        "No. I do not.",
        "Okay. Fine. Go on.",
        "The Chairman pro tem asked for silence.",
        "Mr. Fenn is next. He waits.",
        "U.S. Steel. It is a firm.",
    ],
)
def test_a_sentence_that_begins_like_a_speaker_opens_no_turn(words: str) -> None:
    assert spoken("The Chairman. Come to order.", "Mr. Fenn. I am here.", words) == ["The Chairman", "Mr. Fenn"]


@pytest.mark.parametrize(
    ("opening", "label"),
    [
        ("Senator Quill [presiding]. Good.", "Senator Quill"),
        ("Mr. Pike [continuing]. If so.", "Mr. Pike"),
        ("Mr. Pike (continuing). If so.", "Mr. Pike"),
        ("Mr. Bell.--without it.", "Mr. Bell"),
        ("Ms. Vale-Hartmann. Aye.", "Ms. Vale-Hartmann"),
        ("Mr. Pike of North Carolina. Aye.", "Mr. Pike of North Carolina"),
        ("Mrs. McLane Rudd. Aye.", "Mrs. McLane Rudd"),
        ("Dr. von Ebenfels. Aye.", "Dr. von Ebenfels"),
        ("Vice Chairman Holm. Aye.", "Vice Chairman Holm"),
        ("Deputy Secretary Marl. Aye.", "Deputy Secretary Marl"),
        ("Mr. J.C. Voss. Aye.", "Mr. J.C. Voss"),
        ("The Acting Chairman. Aye.", "The Acting Chairman"),
        ("Voice. Aye.", "Voice"),
        ("A Participant. Aye.", "A Participant"),
    ],
)
def test_a_speaker_is_known_by_title_and_name(opening: str, label: str) -> None:
    assert speakers({0: opening}, set()) == {0: label}


def test_a_doubtful_title_needs_evidence() -> None:
    assert speakers({0: "Chief Barrow. Yes."}, set()) == {}
    assert speakers({0: "Chief Barrow. Yes."}, {"barrow"}) == {0: "Chief Barrow"}
    assert speakers({0: "Chief Barrow. Yes.", 1: "Mr. Barrow. No."}, set()) == {0: "Chief Barrow", 1: "Mr. Barrow"}
    assert speakers(dict.fromkeys(range(3), "Chief Barrow. Yes."), set()) == dict.fromkeys(range(3), "Chief Barrow")
    assert speakers({0: "Chief Barrow. Yes.", 1: "I ask Chief Barrow."}, set()) == {0: "Chief Barrow"}


def test_a_bare_name_opens_a_turn_only_if_it_is_announced_and_does_so_twice() -> None:
    assert speakers({0: "Maribel. Yes.", 1: "Maribel. No."}, {"maribel"}) == {0: "Maribel", 1: "Maribel"}
    assert speakers({0: "Maribel. Yes."}, {"maribel"}) == {}
    assert speakers({0: "Okay. Yes.", 1: "Okay. No."}, {"okay"}) == {}
    assert speakers({0: "Training. Yes.", 1: "Training. No."}, set()) == {}


@pytest.mark.parametrize(
    ("headings", "named"),
    [
        (["STATEMENT OF ANN HEATH, PH.D., KEEPER OF LAMPS;", "ACCOMPANIED BY B. FENN"], "Ms. Heath, Keeper of Lamps"),
        (["STATEMENTS OF B. FENN, MILLER, VILLAGE OF KENT; AND ANN HEATH, ACTING KEEPER"], "Ms. Heath, Acting Keeper"),
        (["TESTIMONY OF ANN HEATH,", "KEEPER OF LAMPS"], "Ms. Heath, Keeper of Lamps"),
        (["STATEMENT OF ANN HEATH"], "Ms. Heath"),
        (["STATEMENT OF ANN HEATH, KEEPER OF LAMPS", "STATEMENT OF JOHN HEATH, MILLER OF KENT"], "Ms. Heath"),
    ],
)
def test_a_speaker_has_the_affiliation_that_a_heading_states(headings: list[str], named: str) -> None:
    found = [Paragraph(10, True, heading) for heading in headings]
    text = word_finder("the keeper of lamps, acting miller of kent")
    assert affiliated(found, {"Ms. Heath"}, text).get("Ms. Heath", "Ms. Heath") == named
    assert not affiliated(found, {"Ms. Heath of Maine", "Mr. Fenn and Ms. Heath"}, text)


def test_what_a_bracket_announces_stands_below_it_with_its_questions_and_answers() -> None:
    page = hearing(
        "    Mr. Fenn. I ask for it.",
        "    Ms. Heath. Here it is.",
        "    [The information requested during the hearing follows:]",
        "Response to a Request that Arose in the Hearing by Hon. Ida Burr to the",
        "                           Office of Lamps",
        "    Question 1. Who keeps the lamps?",
        "    DOL Response. The keeper.",
    )
    document = read(page).documents[0]
    assert of_kind(document, "question", "answer") == [
        (
            "Question 1. Who keeps the lamps?",
            "Office of Lamps\nQuestion 1. Who keeps the lamps?\n\nDOL Response. The keeper.",
        ),
        ("DOL Response", "DOL Response. The keeper."),
    ]
