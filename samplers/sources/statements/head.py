"""What a Statement of Administration Policy says of itself before its first sentence."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import chain
from typing import NamedTuple

from samplers.formats.stated import DATE, MEASURE_TYPE, day_of

_MEASURES: Mapping[str, str] = {
    **{kind: kind for kind in ("hr", "s", "hres", "sres", "hjres", "sjres", "hconres", "sconres")},
    "hjr": "hjres",
    "sjr": "sjres",
    "hcr": "hconres",
    "scr": "sconres",
}
"""Types of measures as statements (without stops and spaces) and file names write them -> as govinfo does."""

_MEASURE = re.compile(rf"\b(?P<type>{MEASURE_TYPE}) ?(?P<number>[0-9]{{1,5}})\b")
_HEADING = re.compile(rf"(?:[A-Z][\w ]{{0,60}} to )?(?:{MEASURE_TYPE}) ?\d{{1,5}} ?[-–—]")
_NAMED = r"(?P<type>[a-z]{1,7}?)(?P<number>[0-9]{1,5})"
LISTED = re.compile(_NAMED)
"""A measure in an index of the archive: "hr1734", "hjr88" for hjres88, "hr636sa" for an amendment to hr636."""
NAME = re.compile(rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})_{_NAMED}")
"""The date and measure in the name of a file of the archive."""

_DATE = re.compile(DATE)
_SPONSOR = re.compile(r"\((?:Reps?|Sens?|Del|Delegate|Representatives?|Senators?)\b")
_NEXT_LINE = re.compile(rf" (?={_SPONSOR.pattern})|(?<=\)) (?={_HEADING.pattern})")

_HEAD_PARAGRAPHS = 16
"""A head has at most so many: letterhead, date, and a heading and a sponsor for each of up to six measures."""


class Head(NamedTuple):
    """What a statement says of itself before its first sentence."""

    day: date | None
    measures: Mapping[str, str]
    """Measures as govinfo writes them, such as "hr115" -> number and title as printed, in the statement's order."""


def head_length(paragraphs: Sequence[str]) -> int:
    """How many paragraphs stand before the first sentence."""
    found = [
        place
        for place, text in enumerate(paragraphs[:_HEAD_PARAGRAPHS], start=1)
        if _SPONSOR.match(text) or _HEADING.match(text) or _DATE.match(text)
    ]
    return max(found, default=0)


def read_head(paragraphs: Sequence[str]) -> Head:
    """The facts in the paragraphs of a head."""
    days = (day_of(found[0]) for found in map(_DATE.search, paragraphs) if found)
    measures: dict[str, str] = {}
    for line in head_lines(paragraphs):
        if _HEADING.match(line) and (found := _MEASURE.search(line)) and (measure := measure_of(found)):
            measures.setdefault(measure, line)
    return Head(next(filter(None, days), None), measures)


def head_lines(paragraphs: Sequence[str]) -> list[str]:
    """The lines of a head: measures and sponsors on lines of their own, and each measure's title on one line."""
    joined: list[str] = []
    for line in chain.from_iterable(_NEXT_LINE.split(line) for text in paragraphs for line in text.split("\n")):
        is_open = joined and (_HEADING.match(joined[-1]) or (_SPONSOR.match(joined[-1]) and joined[-1][-1] != ")"))
        if is_open and not (_SPONSOR.match(line) or _HEADING.match(line)):
            joined[-1] += " " + line
        else:
            joined.append(line)
    return joined


def measure_of(found: re.Match[str]) -> str:
    """The measure of a match with groups `type` and `number`, as govinfo writes it; "" for another type."""
    kind = _MEASURES.get(re.sub(r"[^a-z]", "", found["type"].lower()), "")
    return f"{kind}{int(found['number'])}" if kind else ""
