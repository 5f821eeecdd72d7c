"""The table of contents of a committee report: where it stands, and the rank that it gives to each heading."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADING = re.compile(r"^ *(?:C ?O ?N ?T ?E ?N ?T ?S|T ?A ?B ?L ?E +O ?F +C ?O ?N ?T ?E ?N ?T ?S) *$", re.M)
_BLOCK = re.compile(r"[^\n]+(?:\n[^\n]+)*")
_FURNITURE = re.compile(r" *(?:-{3,}|_{3,}|={3,}|Page) *$")
_NOT_A_KEY = re.compile(r"[\W_]+")
_TITLE = re.compile(r"^(Title [IVXLC\d]{1,7})--", re.I)
_COLUMNS = 4
"""How much further in each depth begins."""

_PARTS = 8
"""Ranks of one depth: "Title III: Science" holds what stands one depth further in, as does its second part."""

_LEAST_LETTERS, _SLIP = 14, 3
"""Letters of a name in which as many may be missing ("Techology"): 14 of 854 entries are misspelt."""

_MAX_BETWEEN = 8
"""Entries between two listed headings that are compared with those that are spelt otherwise."""

_MAX_SAME = 60
"""Entries of one name that are looked at; "Operations and Support" stands 15 times in the contents of a report."""


class Contents(NamedTuple):
    """`start` and `end` are the contents' place in the text, equal if there are none."""

    start: int
    end: int
    entries: tuple[tuple[int, str], ...]
    """Rank, from 1, and key of each entry in order."""


class _Link(NamedTuple):
    """A heading and its entry, behind the longest run that may stand before them."""

    heading: int
    place: int
    before: "_Link | None"


def find_contents(text: str) -> Contents:
    """Return the contents: the blocks after their heading in which lines end with a leader or a page number."""
    heading = _HEADING.search(text)
    if not heading:
        return Contents(0, 0, ())
    end = heading.end()
    entries: list[tuple[int, str]] = []
    for block in _BLOCK.finditer(text, heading.end()):
        lines = [line for line in block[0].split("\n") if not _FURNITURE.match(line)]
        if lines and not any(_words(line)[1] for line in lines):
            break
        entries += _entries(lines)
        end = block.end()
    return Contents(heading.start(), end, tuple(entries))


def _entries(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield rank and key of each entry, whose words may take several lines."""
    held: list[str] = []
    depth = 0
    for line in lines:
        if not held:
            depth = (len(line) - len(line.lstrip(" "))) // _COLUMNS
        words, is_end = _words(line)
        held.append(words)
        if is_end or words.endswith(":"):
            parts = _TITLE.sub(r"\1: ", " ".join(held).rstrip(":"), count=1).split(": ")
            yield from ((depth * _PARTS + 1 + min(n, _PARTS - 1), _key(part)) for n, part in enumerate(parts))
            held = []


def _words(line: str) -> tuple[str, bool]:
    """Return the words of a line, and whether a leader or a page number after a gap ends them."""
    before = line.rstrip("0123456789")
    body = before.rstrip(" ")
    has_page = before != line and len(before) - len(body) > 1
    is_end = body.endswith("..") or has_page
    return (body.rstrip(".") if is_end else line).strip(" "), is_end


def _key(heading: str) -> str:
    """Return what a heading and its entry have in common: letters and digits, without case."""
    return _NOT_A_KEY.sub("", heading).casefold()


def listed_ranks(contents: Contents, headings: Sequence[str]) -> list[int]:
    """Return the rank of each heading of a text, 0 for those that the contents do not list.

    The longest run of headings in the order of the contents: taken one by one, a heading that is printed twice and
    listed once would hide all entries between (72 of 92 in one report).
    """
    keys, entries = [_key(heading) for heading in headings], contents.entries
    # The places of each key, the last one first, so that a heading takes one of them.
    places: dict[str, list[int]] = defaultdict(list)
    for place, (_, entry) in enumerate(entries):
        if entry and len(places[entry]) < _MAX_SAME:
            places[entry].insert(0, place)
    # The longest increasing run: the last place of the best run of each length, and the links behind it.
    lasts: list[int] = []
    links: list[_Link] = []
    for index, name in enumerate(keys):
        for place in places.get(name, ()):
            length = bisect_left(lasts, place)
            if lasts[length : length + 1] != [place]:
                lasts[length : length + 1] = [place]
                links[length : length + 1] = [_Link(index, place, links[length - 1] if length else None)]
    # From the last link to the first; between two of them stand headings that the contents spell otherwise.
    ranks = [0] * len(keys)
    last = links[-1] if links else None
    next_heading, next_place = len(keys), len(entries)
    while next_heading >= 0:
        heading, place = (last.heading, last.place) if last else (-1, -1)
        left = list(entries[place + 1 : min(next_place, place + 1 + _MAX_BETWEEN)])
        for index in range(heading + 1, next_heading if left else 0):
            slip = next((n for n, (_, entry) in enumerate(left) if _is_slip(entry, keys[index])), -1)
            if slip >= 0:
                ranks[index] = left[slip][0]
                del left[: slip + 1]
        if last:
            ranks[heading] = entries[place][0]
        next_heading, next_place, last = heading, place, last.before if last else None
    return ranks


def _is_slip(key: str, other: str) -> bool:
    """Return whether two keys differ by a few letters in one place that one of them lacks."""
    shorter, longer = sorted((key, other), key=len)
    if len(shorter) < _LEAST_LETTERS or len(longer) - len(shorter) > _SLIP:
        return False
    n = next((n for n, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return longer.endswith(shorter[n:])
