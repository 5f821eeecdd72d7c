"""The parts of a hearing from its opening on: turns, insertions, prepared statements, questions for the record.

Questions and their answers are printed in four styles. A question (level 3) holds its answers (level 4) and is
labelled with its first words; headings belong to the question below them. An answer opens with "Answer.", "A.2." or
with the name of who answers, and needs a question before it. Under "QUESTIONS SUBMITTED BY MRS. HEATH" her name opens
each question, and under "RESPONSES TO QUESTIONS SUBMITTED BY MRS. HEATH" stand answers alone (level 3).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from samplers.formats.headings import cut, shortened
from samplers.formats.printed.paragraphs import Paragraph, in_capitals
from samplers.sources.hearings.front import CONVENED, RUNNING, STATEMENT, before_headings, is_heading

PARTING = "\x1e"
"""A paragraph that stands for a short rule between two items of the appendix."""

LABEL_LENGTH = 160

HEADING_LINES = 4
"""Lines of a heading that its label may have."""

QUESTION_LENGTH = 120
"""Characters of a question's label: its number or who asks, and its first words, for an answer to be found by."""

RESUMED = 2
"""Paragraphs from a closing bracket to the next turn within which the hearing only paused."""

_CLOSING = re.compile(r"\[Whereupon\b", re.I)
_FOLLOWS = re.compile(r"\[(?P<what>.{3,300}?)(?:,? (?:is as |are as )?follows?[.:]*|:)\]$", re.I)
_APPENDIX = re.compile(r"APPENDI(?:X|CES)\b|(?:ADDITIONAL )?MATERIALS? SUBMITTED|SUBMISSIONS? FOR THE", re.I)
_APPENDIX_ALONE = re.compile(
    r"APPENDI(?:X|CES)(?: [A-Z\d]{1,3})?"
    r"|(?:ADDITIONAL |SUPPLEMENTAL )?MATERIALS?(?: SUBMITTED FOR THE (?:HEARING )?RECORD)?",
    re.I,
)
_DAY = re.compile(r"[A-Z][a-z]{2,8} \d{1,2}, \d{4}")
_STATEMENT_ITEM = re.compile(
    r"(?:(?:OPENING|PREPARED|WRITTEN|ADDITIONAL|SUPPLEMENTAL|JOINT) ){0,3}(?:STATEMENTS?|TESTIMONY) "
    r"(?:OF|BY|FROM|FOR|SUBM)",
    re.I,
)
_QUESTIONS_ITEM = re.compile(
    r"(?:(?:ADDITIONAL|WRITTEN|SUPPLEMENTAL) )?RESPONSES? (?:OF|TO|FROM|BY)"
    r"|(?:(?:FOLLOW-?UP|POST-?HEARING|WRITTEN|ADDITIONAL|PREHEARING) ){0,3}QUESTIONS? (?:AND|FOR|SUBM|OF|FROM|TO|WITH)",
    re.I,
)
_OTHER_ITEM = re.compile(r"(?:LETTERS?|EXHIBIT|ATTACHMENT|ARTICLE|MEMORANDUM|PRESS RELEASE|RESOLUTION)\b", re.I)

_QUESTION = re.compile(
    r"(?:(?:Question|QUESTION)S?(?: (?:No\. ?)?#?[\dA-Za-z]{1,3}(?:\([a-z0-9]\))?)?|Q\.? ?\d{0,3}(?:\.?[a-z])?)"
    r"[.:)](?=\s)"
)
_ANSWER = re.compile(
    r"((?:[A-Z]{2,6} (?:and [A-Z]{2,6} )?)?(?:Answer|ANSWER|Response|RESPONSE|Reply)(?: \d{1,3})?"
    r"|A\.? ?\d{0,3}(?:\.?[a-z])?)[.:)](?=\s)"
)
_ASKED_BY = re.compile(
    r"(?:(?P<answers>RESPONSES? TO)|.{0,40})\s*QUESTIONS? SUBMITTED BY (?:[^,]{0,60} )?(?P<name>[\w'’-]+)", re.I
)
_NUMBERED = re.compile(r"(?P<number>\d{1,3}[a-z]?)\. (?P<asker>(?:Senator|Mr\.|Ms\.|Mrs\.|Chairman) [A-Z][\w'’-]+)\. ")

_SAID = frozenset(("opening", "turn", "closing"))
_FOR_THE_RECORD = "questions for the record"


class Part(NamedTuple):
    """Paragraphs `first` (included) to `end` (excluded) that make one section."""

    first: int
    end: int
    level: int
    kind: str
    label: str


def titles_at_end(page: Sequence[Paragraph], floor: int) -> int:
    """Return the first of the paragraphs after `floor` that only announce an appendix; len(page) for none.

    It is all that is left of an appendix whose pages were scanned.
    """
    first = len(page)
    for i in range(len(page) - 1, floor, -1):
        text = page[i].text
        if _APPENDIX_ALONE.fullmatch(text) or (text[0] == "[" and _FOLLOWS.match(text)):
            first = i
        elif text != PARTING and not _DAY.fullmatch(text):
            break
    return first


def parts(page: Sequence[Paragraph], start: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """Yield the sections from paragraph `start` on, in text order; `turns` has the speaker of each that opens a turn.

    A closing bracket ends what was said, a new sitting what was added.
    """
    places = sorted(turns)
    closings = [i for i in range(start, len(page)) if page[i].text[0] == "[" and _CLOSING.match(page[i].text)]
    while places and start < len(page):
        end = _end_of_day(page, start, closings, places)
        yield Part(start, end, 1, "oral", "")
        yield from _oral(page, start, end, turns)
        start = _next_day(page, end, places)
        yield from _material(page, end, start, turns)
    yield from _material(page, start, len(page), turns)


def _end_of_day(page: Sequence[Paragraph], start: int, closings: list[int], turns: list[int]) -> int:
    """Return the end of what was said: after the bracket that no turn follows at once, or before the appendix."""
    for closing in closings[bisect_left(closings, start) :]:
        following = bisect_left(turns, closing)
        if following == len(turns) or turns[following] - closing > RESUMED:
            return closing + 1
    after = range(max(start, turns[-1]), len(page))
    return next((i for i in after if _is_appendix(page[i])), len(page))


def _next_day(page: Sequence[Paragraph], start: int, turns: list[int]) -> int:
    """Return where the next sitting begins, with its headings; len(page) for none."""
    for i in range(start, turns[-1]):
        if page[i].indent == RUNNING and CONVENED.match(page[i].text):
            return before_headings(page, i, start)
    return len(page)


def _oral(page: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """Yield turns and what stands between them; a bracket that announces an insertion is the end of its turn."""
    part = Part(first, first, 2, "opening", "")
    heading: Part | None = None
    for i in range(first, end):
        text = page[i].text
        announced = _FOLLOWS.match(text) if text[0] == "[" else None
        # No name ends answers for the record, which have names of their own.
        if i in turns and part.kind != _FOR_THE_RECORD:
            begin = _begin(page, i, part)
            yield from _closed(page, part, begin, turns, heading)
            part = Part(begin, begin, 2, "turn", turns[i])
            heading = Part(begin, i, 3, "heading", shortened(page[begin].text, LABEL_LENGTH)) if begin < i else None
        elif (text[0] == "[" and _CLOSING.match(text)) or (announced and i + 1 < end and i + 1 not in turns):
            begin = i + 1 if announced else i
            yield from _closed(page, part, begin, turns, heading)
            part = _inserted(page, begin, announced["what"]) if announced else Part(i, i, 2, "closing", "")
            heading = None
        # A heading that stands apart inserts without a bracket; the contents may go on in the opening.
        elif (
            page[i].is_apart
            and i > part.first
            and part.kind not in ("opening", _FOR_THE_RECORD)
            and (kind := _item_kind(page[i]))
            and (kind == _FOR_THE_RECORD or (kind == "prepared statement" and text[:8].upper() == "PREPARED"))
        ):
            yield from _closed(page, part, i, turns, heading)
            kind = "material" if kind == _FOR_THE_RECORD else kind
            part, heading = Part(i, i, 2, kind, _heading_label(page, i)), None
    yield from _closed(page, part, end, turns, heading)


def _begin(page: Sequence[Paragraph], turn: int, before: Part) -> int:
    """Return the first heading over a turn; after an insertion only one that announces a statement."""
    first, is_said = turn, before.kind in _SAID
    # At least one paragraph stays with what was said before.
    floor = before.first + 1 if is_said else before.first
    while first > floor and is_heading(page[first - 1]) and in_capitals(page[first - 1].text):
        first -= 1
    if is_said:
        return first
    return next((i for i in range(first, turn) if STATEMENT.match(page[i].text)), turn)


def _inserted(page: Sequence[Paragraph], first: int, what: str) -> Part:
    """Return the part that a bracket announces."""
    words = what.removeprefix("The ").removeprefix("the ")
    label = shortened(words[0].upper() + words[1:], LABEL_LENGTH)
    if re.search("question|response", words, re.I):
        return Part(first, first, 2, _FOR_THE_RECORD, label)
    if re.search("statement|testimony", words, re.I):
        own = _heading_label(page, first) if _STATEMENT_ITEM.match(page[first].text) else ""
        return Part(first, first, 2, "prepared statement", own or label)
    return Part(first, first, 2, "material", label)


def _material(page: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """Yield the items after the adjournment, parted by short rules and by headings that name their kind.

    The lines of one heading begin one item, and so do the words "APPENDIX" and "Material submitted" over its first.
    """
    if first == end:
        return
    yield Part(first, end, 1, "material", "Additional material")
    part = Part(first, first, 2, "material", _heading_label(page, first))
    in_heading, is_title = False, _is_appendix(page[first])
    for i in range(first, end):
        # A short rule begins an item, and a heading that names its kind, unless a heading goes on.
        is_parted = i > first and page[i - 1].text == PARTING
        kind = _item_kind(page[i]) if is_parted or not in_heading or is_title else ""
        if kind and is_title:
            part = Part(part.first, part.first, 2, kind, _heading_label(page, i))
        elif kind or is_parted or (_is_appendix(page[i]) and not is_title):
            yield from _closed(page, part, i, turns)
            part = Part(i, i, 2, kind or "material", _heading_label(page, i))
        in_heading = is_heading(page[i]) and (in_heading or bool(kind) or part.first == i)
        is_title = (is_title and page[i].text == PARTING) or (_is_appendix(page[i]) and (is_title or part.first == i))
    yield from _closed(page, part, end, turns)


def _closed(
    page: Sequence[Paragraph], part: Part, end: int, turns: Mapping[int, str], heading: Part | None = None
) -> Iterator[Part]:
    """Yield a part that ends there, with its heading and its questions."""
    if part.first == end:
        return
    asked = list(_questions(page, part.first, end, turns)) if part.kind not in _SAID else []
    if part.kind == "material" and any(each.kind == "answer" for each in asked):
        part = part._replace(kind=_FOR_THE_RECORD)
    yield part._replace(end=end)
    if heading:
        yield heading
    if part.kind == _FOR_THE_RECORD:
        yield from asked


def _questions(page: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """Yield the questions and answers between two paragraphs."""
    opened: list[tuple[int, str, str]] = []
    asker, is_answered = "", False
    for i in range(first, end):
        text, speaker = page[i].text, turns.get(i, "")
        # A heading says who asks from here on, and whether answers alone follow.
        if submitted := _ASKED_BY.fullmatch(text):
            asker, is_answered = submitted["name"].casefold(), bool(submitted["answers"])
        kind, label = "answer", ""
        if numbered := _NUMBERED.match(text):
            words = f"Question {numbered['number']} ({numbered['asker']}). {text[numbered.end() :]}"
            kind, label = "question", cut(words, QUESTION_LENGTH)
        elif _QUESTION.match(text) or (asker and speaker.rpartition(" ")[2].casefold() == asker):
            kind, label = "question", cut(text, QUESTION_LENGTH)
        elif is_answered or opened:
            label = speaker or (answer[1] if (answer := _ANSWER.match(text)) else "")
        if label:
            opened.append((before_headings(page, i, opened[-1][0] + 1 if opened else first), kind, label))
    asked = [begin for begin, kind, _ in opened if kind == "question"]
    for n, (begin, kind, label) in enumerate(opened):
        after = bisect_right(asked, begin)
        if kind == "question":
            yield Part(begin, asked[after] if after < len(asked) else end, 3, kind, label)
        else:
            yield Part(begin, opened[n + 1][0] if n + 1 < len(opened) else end, 4 if after else 3, kind, label)


def _is_appendix(paragraph: Paragraph) -> bool:
    return is_heading(paragraph) and _APPENDIX.match(paragraph.text) is not None


def _item_kind(paragraph: Paragraph) -> str:
    """Return the kind of the item that a paragraph opens, "" for one inside an item.

    A heading that fills its line is not centred; it stands apart and says what it is.
    """
    heading = paragraph.text
    if is_heading(paragraph) or (paragraph.is_apart and len(heading) < LABEL_LENGTH and heading[-1] != "."):
        if _STATEMENT_ITEM.match(heading):
            return "prepared statement"
        if _QUESTIONS_ITEM.match(heading):
            return _FOR_THE_RECORD
    return "material" if is_heading(paragraph) and _OTHER_ITEM.match(heading) else ""


def _heading_label(page: Sequence[Paragraph], first: int) -> str:
    """Return the heading that begins at a paragraph, with the lines in like letters right below it."""
    if not is_heading(page[first]) and not _item_kind(page[first]):
        return ""
    end, is_large = first + 1, in_capitals(page[first].text)
    while end < min(len(page), first + HEADING_LINES) and is_heading(page[end]) and not page[end].is_apart:
        if in_capitals(page[end].text) != is_large:
            break
        end += 1
    return shortened(" ".join(paragraph.text for paragraph in page[first:end]), LABEL_LENGTH)
