"""Text collected with marks between its words, which are resolved in one pass at the end.

A walk appends strings to a list: text as it stands in the file, and the marks below where a separator, a supplied
character or a part begins or ends. Marks are control characters, which no XML file can hold. White space is collapsed;
of the separators between two words the strongest wins, so no part begins or ends with white space. What stands
between two words is one of some hundred combinations, and each is worked out once: with a writer that decided from
word to word, reading 123 bills took 1.8 times as long.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from samplers.formats.text_writer import INVISIBLE, Part, in_nfc

PART_START = "\x01\x02"
"""A part begins with the next text."""
PART_END = "\x01\x03"
"""The innermost open part ends after the last text; one in which nothing was written has no span."""
SPACE = " "
TAB = "\x01\x04"
LINE = "\x01\x05"
PARAGRAPH = "\x01\x06"
GLUE = "\x01\x07"
"""The separators before this mark are withdrawn."""
JOIN = "\x01\x0e"
"""The next text belongs to the last word; white space before it does not count either."""
STOP = "\x01\x0f"
"""A full stop is supplied if text follows on the same line and the last character closes nothing."""
LEAD = "\x01\x10"
"""A number or heading ends here."""
BLOCK = "\x01\x11"
"""A block begins: on the line of a LEAD that no text follows, on a line of its own elsewhere."""
OPENING = ("\x01\x12", "\x01\x13")
"""A “ or ‘ is supplied before the next text."""
CLOSING = ("\x01\x14", "\x01\x15")
"""The ” or ’ is supplied after the last text; a pair with nothing inside is not written."""

_BROKEN = re.compile(r"(?<=[a-z])-\s*\x01\x05(?:\s|\x01[\x05\x11])*(?=[a-z])")
_STRETCH = 16_384
_BREAK = re.compile(r"(?<=[^\x00-\x20\s])\s(?=[^\s\x01])")
"""White space between two words without marks."""
_MAX_KNOWN = 64
"""Longer runs of marks are worked out each time, so that a hostile file cannot fill the memory with them."""
_EDGE = "\x01\x1b"
_GAP = re.compile("\x01[\x01-\x15\x1b ]*")
_SEPARATORS = {" ": " ", TAB[1]: "\t", LINE[1]: "\n", PARAGRAPH[1]: "\n\n"}
_STRENGTH = {"": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4}
_CLOSES = frozenset(".:;,?!—–-")
_OPENED = {OPENING[0][1]: "\x16", OPENING[1][1]: "\x17"}
_CLOSING = {CLOSING[0][1]: "\x18", CLOSING[1][1]: "\x19"}
_FULL_STOP = "\x1a"
_SUPPLIED = dict(zip("\x16\x17\x18\x19\x1a", "“‘”’.", strict=True))
"""Stand-ins for supplied characters, so that they can be counted."""
_STARTED, _ENDED, _EMPTY = PART_START, PART_END, "\x01\x08"
_START, _END = _STARTED[1], _ENDED[1]
_INVISIBLE = tuple(map(chr, INVISIBLE))
_BLANK = "".join(map(chr, range(0x21))) + "\x85\xa0" + "".join(_INVISIBLE)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text in NFC; `supplied` counts characters that stand in no file, `n_invisible` those that were left out."""

    text: str
    supplied: int
    n_invisible: int


def resolve(pieces: Iterable[str], parts: Sequence[Part] = ()) -> Resolved:
    """The text of pieces and marks; sets the spans of `parts`, which stand in the order of their starts."""
    text = "".join(pieces)
    n_written = len(text)
    for character in _INVISIBLE:
        if character in text:
            text = text.replace(character, "")
    n_invisible = n_written - len(text)
    stretches = list(_stretches(text))
    del text  # a copy of a text with dashes takes one and a half times the bytes of its file
    supplied = sum(stretch.count(stand_in) for stretch in stretches for stand_in in _SUPPLIED)
    text = _placed(stretches, parts) if parts else _without_places(" ".join(stretches))
    return Resolved(in_nfc(text, parts), supplied, n_invisible)


def _stretches(text: str) -> Iterator[str]:
    """The text filled in, cut between words: a list of all words takes ten times the memory of the text."""
    start, begins = 0, _EDGE
    while begins or start < len(text):
        found = _BREAK.search(text, start + _STRETCH)
        end = found.start() if found else len(text)
        # White space before a run of marks is moved into it.
        words = " ".join(text[start:end].split()).replace(" \x01", "\x01 ")
        yield _filled(begins + words + ("" if found else _EDGE))
        start, begins = end, ""


def plain(text: str) -> str:
    """A few words on one line, such as a heading; marks among them are resolved."""
    if "\x01" in text or not text.isascii():
        return resolve((text,)).text
    # Nearly every number and heading is ASCII without marks: 20,000 of them in 7 MB of bills.
    return " ".join(text.split())


def mended(pieces: Iterable[str]) -> tuple[list[str], int]:
    """The pieces as one in which words broken by a hyphen at the end of a line are whole, and how many there were."""
    text, n_hyphens = _BROKEN.subn("", "".join(pieces))
    return [text], n_hyphens


def has_text(pieces: Iterable[str]) -> bool:
    """Whether there is anything but marks and white space."""
    return any(piece.strip(_BLANK).strip() for piece in pieces)


def _filled(text: str) -> str:
    """The text with every run of marks replaced by what it stands for."""

    def fill(match: re.Match[str]) -> str:
        marks = match[0]
        filled, stopped = _known_gap(marks) if len(marks) < _MAX_KNOWN else _Gap(marks).filled()
        return filled if filled is stopped or text[match.start() - 1] in _CLOSES else stopped

    return _GAP.sub(fill, text)


@lru_cache(maxsize=4096)
def _known_gap(marks: str) -> tuple[str, str]:
    return _Gap(marks).filled()


class _Gap:
    """The marks between two words, read one after the other."""

    def __init__(self, marks: str) -> None:
        self.separator = ""
        self.is_joined = self.stops = self.follows_lead = False
        self.after: list[str] = []
        """What belongs to the last word: ends of parts and closing marks."""
        self.waiting: list[str] = []
        """Parts that begin with the next word."""
        self.still_open: list[int] = []
        self.opening: list[str] = []
        for mark in marks.replace("\x01", ""):
            self._read(mark)
        self.begins, self.ends = marks.startswith(_EDGE), len(marks) > len(_EDGE) and marks.endswith(_EDGE)

    def _read(self, mark: str) -> None:
        if mark in _SEPARATORS or mark == BLOCK[1]:
            self._separate(mark)
        elif mark in (PART_START[1], PART_END[1]):
            self._part(mark)
        elif mark in _OPENED:
            self.opening.append(_OPENED[mark])
        elif mark in _CLOSING:
            self._close(mark)
        elif mark in (GLUE[1], JOIN[1]):
            self.separator, self.is_joined = "", mark == JOIN[1]
        elif mark == STOP[1]:
            self.stops = True
        elif mark == LEAD[1]:
            self.follows_lead = True

    def _separate(self, mark: str) -> None:
        if mark == SPACE and self.is_joined:
            return
        wanted = _SEPARATORS.get(mark, " " if self.follows_lead else "\n")
        self.separator = max(self.separator, wanted, key=_STRENGTH.__getitem__)

    def _part(self, mark: str) -> None:
        if mark == PART_START[1]:
            self.still_open.append(len(self.waiting))
            self.waiting.append(_STARTED)
        elif self.still_open:
            self.waiting[self.still_open.pop()] = _EMPTY
        else:
            self.after.append(_ENDED)

    def _close(self, mark: str) -> None:
        if self.opening:
            self.opening.pop()
        else:
            self.after.append(_CLOSING[mark])
            self.follows_lead = False

    def filled(self) -> tuple[str, str]:
        """What the marks stand for after a character that closes something, and after any other."""
        after = "".join(self.after)
        if self.ends:
            return (text := after + _EMPTY * len(self.waiting)), text
        before = "".join((*self.waiting, *self.opening))
        if self.begins:
            return (text := after + before), text
        plain = after + self.separator + before
        if not self.stops or self.separator not in ("", " "):
            return plain, plain
        stopped = after + _FULL_STOP + self.separator + before
        return (stopped if self.after and after[-1] in _SUPPLIED else plain), stopped


def _placed(stretches: Iterable[str], parts: Sequence[Part]) -> str:
    """The text without the places of its parts, which they are told."""
    position = index = 0
    still_open: list[Part] = []
    placed = []
    for stretch in stretches:
        pieces = stretch.split("\x01")
        position += len(pieces[0])
        for n in range(1, len(pieces)):
            place = pieces[n][0]
            if place == _END:
                still_open.pop().end = position
            else:
                if place == _START:
                    part = parts[index]
                    part.start = position
                    still_open.append(part)
                index += 1
            pieces[n] = words = pieces[n][1:]
            position += len(words)
        placed.append(_with_supplied("".join(pieces)))
        position += 1  # the space between two stretches
    return " ".join(placed)


def _with_supplied(text: str) -> str:
    for stand_in, character in _SUPPLIED.items():
        if stand_in in text:
            text = text.replace(stand_in, character)
    return text


def _without_places(text: str) -> str:
    """The text of a heading in which a damaged file has levels: their parts are the whole text's."""
    for place in (_STARTED, _ENDED, _EMPTY):
        text = text.replace(place, "")
    return _with_supplied(text)
