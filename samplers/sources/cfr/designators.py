"""The designators that a paragraph of the Code of Federal Regulations begins with, read from its text.

The Code marks its hierarchy in words alone: "(a) Term. (1) …" is a paragraph of two levels with an italic heading.
Text is given on one line, with italic runs between ITALIC and ROMAN, since the fifth and sixth levels differ from the
second and third by their type only.
"""

import re
from functools import lru_cache
from typing import NamedTuple

ITALIC, ROMAN = "\x01", "\x02"
"""Marks around an italic run: characters that XML does not allow, so that no file holds them."""

MOST = 6
"""Designators of one paragraph that are read, as many as the Code has levels."""


class Reading(NamedTuple):
    """What a designator can be: "(i)" is place 1 of the style "roman" or 9 of "letter", "(b)–(d)" letters 2 to 4."""

    style: str
    place: float
    last: float


class Designator(NamedTuple):
    """One designator as it is printed, "(a)", "(b)–(d)" or "1.", and all that it can be; () for a word."""

    label: str
    readings: tuple[Reading, ...]


class Lead(NamedTuple):
    """How a paragraph begins: its designators, outermost first, and the italic run after each, "" for none.

    A paragraph that begins with an italic run, as definitions do, has that run as `term`.
    """

    designators: tuple[Designator, ...] = ()
    headings: tuple[str, ...] = ()
    term: str = ""


NO_LEAD = Lead()
_WORD = r"[a-z]{1,6}(?:-\d{1,2})?|[A-Z]{1,6}(?:-\d{1,2})?|\d{1,3}(?:-\d{1,2})?"
_ONE = rf"(?:\( ?(\x01?) ?({_WORD}) ?\x02? ?\)|(\x01)\(({_WORD})\)\x02)"
_IN_PARENTHESES = re.compile(rf" ?(?:(?:—|–|-) ?)?{_ONE}(?: ?(?:-|–|—|through|to|and|,) ?{_ONE}(?= ?\[))?")
_WITH_FULL_STOP = re.compile(r" ?(\x01?)(\d{1,3}|[A-Za-z]|[ivx]{2,6}|[IVX]{2,6})\.(\x02?)(?=[\s\x01])")
_LONE = re.compile(r"\(([a-z]{1,6}|[A-Z]{1,6}|\d{1,3})\) (?=[A-Z])")
"""The beginning of most paragraphs: a sentence follows the only designator."""

_ANOTHER = ("(", " (", "—", "–", "-")
_RUN = re.compile(r" ?\x01([^\x01\x02]{1,300})\x02")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_TENS = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx")
_NUMERALS = {tens + ones: 10 * t + n for t, tens in enumerate(_TENS) for n, ones in enumerate(_ONES) if t or n}


def lead(marked: str, full_stops: bool) -> Lead:
    """What a paragraph begins with; `full_stops` admits "1." and "iv." as well, as appendices have them."""
    if (lone := _LONE.match(marked)) and (read := _lone(lone[1])).designators:
        return read
    found = _next(marked, 0, full_stops)
    run = None if found else _RUN.match(marked)
    term = ""
    if run:
        if not marked[run.end() :].strip():
            return NO_LEAD
        term, found = _plain(run[1]), _next(marked, run.end(), full_stops)
    if not found:
        return Lead(term=term) if term else NO_LEAD
    designators: list[Designator] = []
    headings: list[str] = []
    while found and len(designators) < MOST:
        designator, position = found
        if run and all(reading.place != 1 for reading in designator.readings):
            break
        run = _RUN.match(marked, position)
        designators.append(designator)
        headings.append(_plain(run[1]) if run else "")
        if not run and not marked.startswith(_ANOTHER, position):
            break
        found = _next(marked, run.end() if run else position, full_stops and run is not None)
    return Lead(tuple(designators), tuple(headings), term)


def _next(marked: str, position: int, full_stops: bool) -> tuple[Designator, int] | None:
    """The designator at a position and where it ends; None if there is none."""
    if not full_stops and "(" not in marked[position : position + 4]:
        return None
    found = _IN_PARENTHESES.match(marked, position)
    if found:
        italic, token, italic_too, token_too, last_italic, last, last_italic_too, last_too = found.groups()
        designator = _in_parentheses(
            token or token_too, bool(italic or italic_too), last or last_too, bool(last_italic or last_italic_too)
        )
        if designator.readings:
            return designator, found.end()
    found = _WITH_FULL_STOP.match(marked, position) if full_stops else None
    return (_with_full_stop(found[2], bool(found[1] and found[3])), found.end()) if found else None


@lru_cache(maxsize=4096)
def _lone(token: str) -> Lead:
    """What a paragraph begins with that has one designator; nothing if the token is none."""
    designator = _in_parentheses(token, is_italic=False, last=None, is_last_italic=False)
    return Lead((designator,), ("",)) if designator.readings else NO_LEAD


@lru_cache(maxsize=4096)
def _in_parentheses(token: str, is_italic: bool, last: str | None, is_last_italic: bool) -> Designator:
    """The designator of one token, or of several from `token` to `last`."""
    ends = dict(_places(last, is_last_italic)) if last else {}
    readings = (Reading(style, place, max(place, ends.get(style, place))) for style, place in _places(token, is_italic))
    return Designator(f"({token})" + (f"–({last})" if last else ""), tuple(readings))


@lru_cache(maxsize=4096)
def _with_full_stop(token: str, is_italic: bool) -> Designator:
    readings = (Reading(f"{style}.", place, place) for style, place in _places(token, is_italic))
    return Designator(f"{token}.", tuple(readings))


def _places(token: str, is_italic: bool) -> list[tuple[str, float]]:
    """The styles that a token can have, with its place in each. Letters run a to z, aa, bb; numerals end at 89."""
    body, _, part = token.partition("-")
    step = int(part) / 100 if part else 0.0
    if body.isdigit():
        return [("italic digit" if is_italic else "digit", int(body) + step)]
    found: list[tuple[str, float]] = []
    small = body.lower()
    case = "italic " if is_italic else "" if body.islower() else "upper "
    if small in _NUMERALS:
        found.append((f"{case}roman", _NUMERALS[small] + step))
    if small == small[0] * len(small):
        found.append((f"{case}letter", ord(small[0]) - 96 + 26 * (len(small) - 1) + step))
    return found


def _plain(run: str) -> str:
    return " ".join(run.split())
