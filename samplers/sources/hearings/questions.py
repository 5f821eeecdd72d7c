"""Questions for the record and their answers, which are printed in four styles."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from samplers.formats.headings import cut
from samplers.formats.printed.paragraphs import Paragraph
from samplers.sources.hearings.front import before_headings

QUESTION_LENGTH = 120
"""Characters of a question's label: its number or who asks, and its first words, for an answer to be found by."""

_QUESTION = re.compile(
    r"(?P<label>(?:Question|QUESTION)S?(?: (?:No\. ?)?#?[\dA-Za-z]{1,3}(?:\([a-z0-9]\))?)?|Q\.? ?\d{0,3}(?:\.?[a-z])?)"
    r"[.:)](?=\s)"
)
_ANSWER = re.compile(
    r"(?P<label>(?:[A-Z]{2,6} (?:and [A-Z]{2,6} )?)?(?:Answer|ANSWER|Response|RESPONSE|Reply)(?: \d{1,3})?"
    r"|A\.? ?\d{0,3}(?:\.?[a-z])?)[.:)](?=\s)"
)
_ASKED_BY = re.compile(
    r"(?:(?P<answers>RESPONSES? TO)|.{0,40})\s*QUESTIONS? SUBMITTED BY (?:[^,]{0,60} )?(?P<name>[\w'’-]+)", re.I
)
_NUMBERED = re.compile(r"(?P<number>\d{1,3}[a-z]?)\. (?P<asker>(?:Senator|Mr\.|Ms\.|Mrs\.|Chairman) [A-Z][\w'’-]+)\. ")


def questions(
    found: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]
) -> Iterator[tuple[int, int, int, str, str]]:
    """Questions and answers between two paragraphs: first, end, level, kind, label.

    A question (level 3) holds its answers (level 4) and is labelled with its first words; headings belong to the
    question below them. An answer opens with "Answer.", "A.2." or with the name of who answers, and needs a question
    before it. Under "QUESTIONS SUBMITTED BY MRS. HEATH" her name opens each question, and under "RESPONSES TO
    QUESTIONS SUBMITTED BY MRS. HEATH" stand answers alone (level 3).
    """
    opened: list[tuple[int, str, str]] = []
    asker, is_answered = "", False
    for i in range(first, end):
        text = found[i].text
        if submitted := _ASKED_BY.fullmatch(text):
            asker, is_answered = submitted["name"].casefold(), bool(submitted["answers"])
        if following := _opening(text, turns.get(i, ""), is_answered or bool(opened), asker):
            begin = before_headings(found, i, opened[-1][0] + 1 if opened else first)
            opened.append((begin, *following))
    asked = [begin for begin, kind, _ in opened if kind == "question"]
    ends = [begin for begin, _, _ in opened][1:] + [end] * bool(opened)
    for (begin, kind, label), until in zip(opened, ends, strict=True):
        if kind == "question":
            after = bisect_right(asked, begin)
            yield begin, asked[after] if after < len(asked) else end, 3, kind, label
        else:
            yield begin, until, 4 if asked and asked[0] < begin else 3, kind, label


def _opening(text: str, speaker: str, is_asked: bool, asker: str) -> tuple[str, str] | None:
    if match := _NUMBERED.match(text):
        return "question", cut(f"Question {match['number']} ({match['asker']}). {text[match.end() :]}", QUESTION_LENGTH)
    if _QUESTION.match(text) or (asker and speaker.rpartition(" ")[2].casefold() == asker):
        return "question", cut(text, QUESTION_LENGTH)
    if is_asked and speaker:
        return "answer", speaker
    if is_asked and (match := _ANSWER.match(text)):
        return "answer", match["label"]
    return None
