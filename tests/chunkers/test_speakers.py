"""Claims about the chunkers that follow speakers."""

import unicodedata
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunkers.contexts import PATH_TOKENS
from chunkers.contract import chunk_fault
from chunkers.cutter import LARGEST
from chunkers.registry import chunker
from chunkers.speakers import LARGEST_TURN, speaker_turn
from chunkers.tokens import count_tokens
from runner.base.canonical import sha256
from runner.base.records import Chunk, Document
from runner.embed.chunk_corpus import chunks_to_rows
from tests.support.written_document import Speech

SAYING = "The keeper shall mend the quay and paint it. "


def hearing(*turns: tuple[str, str]) -> Document:
    speech = Speech().part(1, "front matter", "", "HEARING ON QUAYS").part(1, "oral", "")
    for speaker, words in turns:
        speech.part(2, "turn", speaker, f"{speaker}. {words}")
    return speech.document()


def check(document: Document, chunks: list[Chunk], limit: int = LARGEST_TURN) -> None:
    assert not chunk_fault(document, chunks, limit)
    assert max(count_tokens(chunk.context) for chunk in chunks) <= PATH_TOKENS
    assert all(before.span.end <= after.span.start for before, after in pairwise(chunks))


def test_each_turn_is_one_chunk_under_title_and_speaker() -> None:
    document = hearing(("Mr. Pike", "Yes."), ("Ms. Fenn", (SAYING * 30).strip()), ("Mr. Pike", "No."))
    chunks = speaker_turn(document)
    check(document, chunks)
    assert [chunk.context for chunk in chunks] == [
        *("Hearing: Quays", "Hearing: Quays > Mr. Pike", "Hearing: Quays > Ms. Fenn", "Hearing: Quays > Mr. Pike"),
    ]
    turns = [section.span for section in document.sections if section.kind == "turn"]
    assert [chunk.span for chunk in chunks[1:]] == turns


def test_a_turn_is_split_only_above_its_limit() -> None:
    words = (SAYING * 9).strip()
    fits, too_long = "\n".join([words] * 20), "\n".join([words] * 24)
    chunks = speaker_turn(hearing(("Mr. Pike", fits), ("Ms. Fenn", too_long)))
    sizes = [chunk.n_tokens for chunk in chunks if chunk.context.endswith("Mr. Pike")]
    assert len(sizes) == 1
    assert sizes[0] > 1700
    parts = [chunk for chunk in chunks if chunk.context.endswith("Ms. Fenn")]
    assert len(parts) == 2
    assert parts[0].n_tokens > LARGEST_TURN - 200


def test_text_outside_turns_is_cut_by_its_sections() -> None:
    speech = Speech().part(1, "oral", "").part(2, "turn", "Mr. Pike", "Mr. Pike. Yes.")
    speech.part(1, "material", "Additional material")
    speech.part(2, "prepared statement", "Statement of A", SAYING * 70).part(2, "material", "Letter of B", "We ask.")
    speech.part(2, "questions for the record", "Questions of C")
    for n in (1, 2, 3):
        speech.part(3, "question", f"Question {n}", SAYING * 9).part(3, "answer", f"Answer {n}", SAYING * 9)
    document = speech.document()
    chunks = speaker_turn(document)
    check(document, chunks)
    assert all(chunk.n_tokens <= LARGEST for chunk in chunks)
    material = "Hearing: Quays > Additional material"
    assert [chunk.context for chunk in chunks[1:]] == [
        f"{material} > Statement of A",
        f"{material} > Statement of A",
        f"{material} > Letter of B",
        f"{material} > Questions of C > Question 1 – Answer 2",
        f"{material} > Questions of C > Question 3 – Answer 3",
    ]


def test_a_bill_in_a_long_turn_is_cut_at_its_sections_and_what_is_said_around_it_is_not() -> None:
    speech = Speech().part(1, "heading", "LAMPS", "LAMPS").part(2, "turn", "Mr. PIKE", f"Mr. PIKE. {SAYING * 9}")
    speech.part(3, "inserted text", "S. 1", "S. 1")
    for n in range(1, 7):
        speech.part(4, "section", f"SEC. {n}. LAMP", f"SEC. {n}. LAMP.\n\n{SAYING * 30}")
    speech.part(3, "heading", "thanks", f"thanks\n\n{SAYING * 9}").part(3, "inserted text", "", SAYING * 3)
    document = speech.document("Record")
    chunks = speaker_turn(document)
    check(document, chunks)
    turn = "Record > LAMPS > Mr. PIKE"
    assert [chunk.context for chunk in chunks] == [
        "Record > Mr. PIKE",
        turn,
        *(f"{turn} > S. 1" for _ in range(5)),
        turn,
    ]
    words = [document.text[chunk.span.start : chunk.span.end] for chunk in chunks]
    assert words[0].startswith("LAMPS\n\nMr. PIKE.")
    assert words[1].startswith("S. 1\n\nSEC. 1.")
    assert [text[:6] for text in words[2:7]] == [f"SEC. {n}" for n in range(2, 7)]
    assert words[7].startswith("thanks")
    long = Speech().part(1, "turn", "Mr. PIKE", "Mr. PIKE.").part(2, "section", "SEC. 1. LAMP", SAYING * 300).document()
    assert {chunk.context for chunk in speaker_turn(long)[1:]} == {"Hearing: Quays > Mr. PIKE > SEC. 1. LAMP"}


def test_an_answer_without_its_question_has_it_in_the_context() -> None:
    speech = Speech().part(1, "questions for the record", "Questions of A")
    for n in (1, 2):
        speech.part(2, "question", f"Question {n}. Why {n}?", f"Question {n}. Why {n}?")
        speech.part(3, "answer", "Answer", "Answer. " + SAYING * 80)
    contexts = [chunk.context for chunk in speaker_turn(speech.document("H"))]
    assert contexts == [
        "H > Questions of A",
        "H > Questions of A > Question 1. Why 1? > Answer",
        "H > Questions of A",
        "H > Questions of A > Question 2. Why 2? > Answer",
    ]


def test_a_heading_is_no_chunk_by_itself_where_its_section_goes_on() -> None:
    speech = Speech().part(1, "material", "LETTER OF A", "LETTER OF A").part(1, "turn", "Mr. Pike", "Mr. Pike. Yes.")
    speech.part(1, "prepared statement", "STATEMENT OF B", f"STATEMENT OF B\n\n{SAYING * 50}\n\n{SAYING}")
    document = speech.document("H")
    chunks = speaker_turn(document)
    check(document, chunks)
    words = [document.text[chunk.span.start : chunk.span.end] for chunk in chunks]
    assert [text for text in words if text in ("LETTER OF A", "STATEMENT OF B")] == ["LETTER OF A"]


def recorded() -> Document:
    """Turns of every length, a statement and questions: the fixtures of test_chunkers.py have no turns."""
    speech = Speech().part(1, "front matter", "", "HEARING ON QUAYS").part(1, "oral", "")
    for n in range(1, 40):
        speaker = f"{('Mr. Pike', 'Ms. Fenn', 'The Chairman')[n % 3]}"
        speech.part(2, "turn", speaker, f"{speaker}. {SAYING * (n * n % 23)}{'Lamp. ' * (900 * (n == 17))}Yes.")
    speech.part(2, "prepared statement", "Statement of Mr. Pike", SAYING * 90)
    speech.part(1, "material", "Additional material").part(2, "questions for the record", "Questions")
    for n in range(9):
        speech.part(3, "question", f"Question {n}", SAYING * 5).part(3, "answer", "Mr. Pike", SAYING * n)
    return speech.document()


def test_output_by_name_never_changes() -> None:
    chunks = chunker("speaker_turn_v1")(recorded())
    check(recorded(), chunks)
    assert sha256(chunks_to_rows(chunks)) == "0373c99f03309652eb21d6062923e4f200d46cdfe4b5511f09b3d573c08214a5"


WORDS = st.sampled_from(["Yes. ", SAYING, "漢字", "é ", "\n", "\n\n", "x" * 50])
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from([1, 3, 40, 300])), min_size=1, max_size=3).map(
    lambda runs: unicodedata.normalize("NFC", "".join(word * times for word, times in runs)) + "z"
)
PARTS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["turn", "turn", "oral", "answer"]),
        st.sampled_from(["", "Mr. Pike", "Ms. Fenn"]),
        TEXTS,
    ),
    min_size=1,
    max_size=7,
)


@given(parts=PARTS, separator=st.sampled_from(["\n\n", "\n", ""]))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_invariants_hold_for_any_nesting_of_turns(parts: list[tuple[int, str, str, str]], separator: str) -> None:
    speech = Speech()
    for level, kind, label, words in parts:
        speech.part(level, kind, label, words, separator)
    document = speech.document()
    chunks = speaker_turn(document)
    check(document, chunks)
    spans = [section.span for section in document.sections if section.kind == "turn"]
    for one in chunks:
        inside = [span for span in spans if span.start <= one.span.start and one.span.end <= span.end]
        outside = [span for span in spans if span.start < one.span.end and one.span.start < span.end]
        assert inside or not outside or one.span.end <= outside[-1].end
