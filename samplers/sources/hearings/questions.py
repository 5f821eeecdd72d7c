"""Questions for the record and their answers, which are printed in four styles."""

import re
from collections.abc import Iterator, Mapping, Sequence

from samplers.formats.printed.paragraphs import Paragraph
from samplers.sources.hearings.front import before_headings

_QUESTION = re.compile(
    r"(?P<label>(?:Question|QUESTION)S?(?: (?:No\. ?)?#?[\dA-Za-z]{1,3}(?:\([a-z0-9]\))?)?|Q\.? ?\d{0,3}(?:\.?[a-z])?)"
    r"[.:)](?=\s)"
)
_ANSWER = re.compile(
    r"(?P<label>(?:Answer|ANSWER|Response|RESPONSE|Reply)(?: \d{1,3})?|A\.? ?\d{0,3}(?:\.?[a-z])?)[.:)](?=\s)"
)
_ASKED_BY = re.compile(
    r"(?:(?P<answers>RESPONSES? TO)|.{0,40})\s*QUESTIONS? SUBMITTED BY (?:[^,]{0,60} )?(?P<name>[\w'’-]+)", re.I
)
_NUMBERED = re.compile(r"(?P<number>\d{1,3}[a-z]?)\. (?P<asker>(?:Senator|Mr\.|Ms\.|Mrs\.|Chairman) [A-Z][\w'’-]+)\. ")


def questions(
    found: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]
) -> Iterator[tuple[int, int, int, str, str]]:
    """Questions and answers between two paragraphs: first, end, level 3, kind, label.

    Headings belong to the question below them. An answer needs a question before it; it opens with "Answer.", "A.2."
    or with the name of who answers. Under "QUESTIONS SUBMITTED BY MRS. HEATH" her name opens each question, and
    under "RESPONSES TO QUESTIONS SUBMITTED BY MRS. HEATH" stand answers alone.
    """
    opened: tuple[int, str, str] | None = None
    asker, is_answered = "", False
    for i in range(first, end):
        if submitted := _ASKED_BY.fullmatch(found[i].text):
            asker, is_answered = submitted["name"].casefold(), bool(submitted["answers"])
        following = _opening(found[i].text, turns.get(i, ""), is_answered or opened is not None, asker)
        if following:
            begin = before_headings(found, i, opened[0] + 1 if opened else first)
            if opened:
                yield opened[0], begin, 3, opened[1], opened[2]
            opened = begin, *following
    if opened:
        yield opened[0], end, 3, opened[1], opened[2]


def _opening(text: str, speaker: str, is_asked: bool, asker: str) -> tuple[str, str] | None:
    if match := _NUMBERED.match(text):
        return "question", f"Question {match['number']} ({match['asker']})"
    if match := _QUESTION.match(text):
        return "question", match["label"]
    if asker and speaker.rpartition(" ")[2].casefold() == asker:
        return "question", speaker
    if is_asked and speaker:
        return "answer", speaker
    if is_asked and (match := _ANSWER.match(text)):
        return "answer", match["label"]
    return None
