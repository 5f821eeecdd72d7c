"""The sections of a hearing: turns, what was inserted between them, and what follows the adjournment."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from samplers.formats.printed.paragraphs import Paragraph, in_capitals
from samplers.sources.hearings.front import CONVENED, RUNNING, STATEMENT, before_headings, is_heading
from samplers.sources.hearings.questions import questions

PARTING = "\x1e"
"""A paragraph that stands for a short rule between two items of the appendix."""

LABEL_LENGTH = 160

HEADING_LINES = 4
"""Lines of a heading that its label may have."""

RESUMED = 2
"""Paragraphs from a closing bracket to the next turn within which the hearing only paused."""

N_OPENING = 12
"""Paragraphs from "The Committee met" to the first turn of that day."""

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
_CHAIR = re.compile(r"(?:Mr|Madam|Ms)\. (?:Vice )?Chair")

_SAID = frozenset(("opening", "turn", "closing"))
_OUTSIDE = frozenset(("opening", "questions for the record"))
"""Parts inside which a heading inserts nothing: the contents may go on in the one, the other has headings."""


def titles_at_end(found: Sequence[Paragraph], floor: int) -> int:
    """The first of the paragraphs after `floor` that only announce an appendix; len(found) for none.

    It is all that is left of an appendix whose pages were scanned.
    """
    first = len(found)
    for i in range(len(found) - 1, floor, -1):
        text = found[i].text
        if _APPENDIX_ALONE.fullmatch(text) or (text[0] == "[" and _FOLLOWS.match(text)):
            first = i
        elif text != PARTING and not _DAY.fullmatch(text):
            break
    return first


class Part(NamedTuple):
    """Paragraphs `first` (included) to `end` (excluded) that make one section."""

    first: int
    end: int
    level: int
    kind: str
    label: str


def parts(found: Sequence[Paragraph], start: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """The sections from paragraph `start` on, in text order; `turns` has the speaker of each that opens a turn."""
    for kind, first, end in _stretches(found, start, sorted(turns)):
        if kind == "oral":
            yield Part(first, end, 1, "oral", "")
            yield from _oral(found, first, end, turns)
        else:
            yield Part(first, end, 1, "material", "Additional material")
            yield from _material(found, first, end, turns)


def _stretches(found: Sequence[Paragraph], start: int, turns: list[int]) -> Iterator[tuple[str, int, int]]:
    """What was said and what was added, in turn: a closing bracket ends the one, a new day the other."""
    closings = [i for i in range(start, len(found)) if found[i].text[0] == "[" and _CLOSING.match(found[i].text)]
    while turns and start < len(found):
        end = _end_of_day(found, start, closings, turns)
        yield "oral", start, end
        resumed = _next_day(found, end, turns)
        if end < resumed:
            yield "material", end, resumed
        start = resumed
    if start < len(found):
        yield "material", start, len(found)


def _end_of_day(found: Sequence[Paragraph], start: int, closings: list[int], turns: list[int]) -> int:
    """The end of what was said: after the bracket that no turn follows at once, or before the appendix."""
    for closing in closings[bisect_left(closings, start) :]:
        following = bisect_left(turns, closing)
        if following == len(turns) or turns[following] - closing > RESUMED:
            return closing + 1
    after = range(max(start, turns[-1]), len(found))
    return next((i for i in after if is_heading(found[i]) and _APPENDIX.match(found[i].text)), len(found))


def _next_day(found: Sequence[Paragraph], start: int, turns: list[int]) -> int:
    """Where the next sitting begins, with its headings; len(found) for none."""
    for i in range(start, turns[-1] if turns else 0):
        if found[i].indent == RUNNING and CONVENED.match(found[i].text):
            following = bisect_left(turns, i)
            if turns[following] - i <= N_OPENING:
                return before_headings(found, i, start)
    return len(found)


def _oral(found: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """Turns and what stands between them; a bracket that announces an insertion is the end of its turn."""
    part = Part(first, first, 2, "opening", "")
    heading: Part | None = None
    for i in range(first, end):
        text = found[i].text
        announced = _FOLLOWS.match(text) if text[0] == "[" else None
        if i in turns and _opens_turn(part, turns[i]):
            begin = _begin(found, i, part)
            yield from _closed(found, part, begin, heading, turns)
            part = Part(begin, begin, 2, "turn", turns[i])
            heading = Part(begin, i, 3, "heading", _label(found[begin].text)) if begin < i else None
        elif (text[0] == "[" and _CLOSING.match(text)) or (announced and i + 1 < end and i + 1 not in turns):
            begin = i + 1 if announced else i
            yield from _closed(found, part, begin, heading, turns)
            part = _inserted(found, begin, announced["what"]) if announced else Part(i, i, 2, "closing", "")
            heading = None
        elif found[i].is_apart and i > part.first and part.kind not in _OUTSIDE and (kind := _inserted_kind(found[i])):
            yield from _closed(found, part, i, heading, turns)
            part, heading = Part(i, i, 2, kind, _heading_label(found, i)), None
    yield from _closed(found, part, end, heading, turns)


def _opens_turn(part: Part, speaker: str) -> bool:
    """Whether a name ends the part before it: not in answers for the record, nor as an address in a statement."""
    return part.kind in _SAID or (part.kind != "questions for the record" and not _CHAIR.match(speaker))


def _begin(found: Sequence[Paragraph], turn: int, before: Part) -> int:
    """The first heading over a turn; after an insertion only one that announces a statement."""
    first, is_said = turn, before.kind in _SAID
    floor = before.first + 1 if is_said else before.first
    while first > floor and is_heading(found[first - 1]) and in_capitals(found[first - 1].text):
        first -= 1
    if is_said:
        return first
    return next((i for i in range(first, turn) if STATEMENT.match(found[i].text)), turn)


def _inserted_kind(paragraph: Paragraph) -> str:
    """The kind of what a heading that stands apart inserts between turns without a bracket; "" for what is none."""
    kind = _item_kind(paragraph)
    if kind == "questions for the record":
        return "material"
    return kind if kind == "prepared statement" and paragraph.text[:8].upper() == "PREPARED" else ""


def _inserted(found: Sequence[Paragraph], first: int, what: str) -> Part:
    words = what.removeprefix("The ").removeprefix("the ")
    label = _label(words[0].upper() + words[1:])
    if re.search("question|response", words, re.I):
        return Part(first, first, 2, "questions for the record", label)
    if re.search("statement|testimony", words, re.I):
        own = _heading_label(found, first) if _STATEMENT_ITEM.match(found[first].text) else ""
        return Part(first, first, 2, "prepared statement", own or label)
    return Part(first, first, 2, "material", label)


def _closed(
    found: Sequence[Paragraph], part: Part, end: int, heading: Part | None, turns: Mapping[int, str]
) -> Iterator[Part]:
    if part.first == end:
        return
    asked = [Part(*one) for one in questions(found, part.first, end, turns)] if part.kind not in _SAID else []
    if part.kind == "material" and any(one.kind == "answer" for one in asked):
        part = part._replace(kind="questions for the record")
    yield Part(part.first, end, part.level, part.kind, part.label)
    if heading:
        yield heading
    if part.kind == "questions for the record":
        yield from asked


def _material(found: Sequence[Paragraph], first: int, end: int, turns: Mapping[int, str]) -> Iterator[Part]:
    """The items after the adjournment, parted by short rules and by headings that name their kind.

    The lines of one heading begin one item, and so do the words "APPENDIX" and "Material submitted" over its first.
    """
    part = Part(first, first, 2, "material", _heading_label(found, first))
    in_heading, is_title = False, _is_appendix(found[first])
    for i in range(first, end):
        is_parted = i > first and found[i - 1].text == PARTING
        kind = _item_kind(found[i]) if is_parted or not in_heading or is_title else ""
        if kind and is_title:
            part = Part(part.first, part.first, 2, kind, _heading_label(found, i))
        elif kind or is_parted or (_is_appendix(found[i]) and not is_title):
            yield from _closed(found, part, i, None, turns)
            part = Part(i, i, 2, kind or "material", _heading_label(found, i))
        in_heading = is_heading(found[i]) and (in_heading or bool(kind) or part.first == i)
        is_title = (is_title and found[i].text == PARTING) or (_is_appendix(found[i]) and (is_title or part.first == i))
    yield from _closed(found, part, end, None, turns)


def _is_appendix(paragraph: Paragraph) -> bool:
    return is_heading(paragraph) and _APPENDIX.match(paragraph.text) is not None


def _item_kind(paragraph: Paragraph) -> str:
    """The kind of the item that a paragraph opens, "" for one inside an item.

    A heading that fills its line is not centred; it stands apart and says what it is.
    """
    heading = paragraph.text
    if is_heading(paragraph) or (paragraph.is_apart and len(heading) < LABEL_LENGTH and heading[-1] != "."):
        if _STATEMENT_ITEM.match(heading):
            return "prepared statement"
        if _QUESTIONS_ITEM.match(heading):
            return "questions for the record"
    return "material" if is_heading(paragraph) and _OTHER_ITEM.match(heading) else ""


def _heading_label(found: Sequence[Paragraph], first: int) -> str:
    """The heading that begins at a paragraph, with the lines in like letters that no blank line parts from it."""
    if not is_heading(found[first]) and not _item_kind(found[first]):
        return ""
    end, is_large = first + 1, in_capitals(found[first].text)
    while end < min(len(found), first + HEADING_LINES) and is_heading(found[end]) and not found[end].is_apart:
        if in_capitals(found[end].text) != is_large:
            break
        end += 1
    return _label(" ".join(paragraph.text for paragraph in found[first:end]))


def _label(text: str) -> str:
    if len(text) <= LABEL_LENGTH:
        return text
    return text[:LABEL_LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"
