"""Typeset lines as paragraphs: wrapped lines joined, broken words mended, rows of a table kept apart."""

import re
from collections import Counter
from functools import cached_property
from typing import NamedTuple

FULL = 60
"""A line broke because it was full if its next word would have ended beyond this column.

Running text is set to 63 columns in hearings and reports, to 71 in statements and the Record, ragged right; marks
that became one character shorten a line by a few.
"""

HEADING_INDENT = 5
"""Lines in capitals from this column on are one heading with the lines in capitals before them.

A heading may begin at the column of a paragraph, where its first line fills the page: after a blank line, and with a
first line that broke because it was full.
"""

HANGING = 4
"""Most columns by which a paragraph's first line is indented."""

TITLE_LENGTH = 50
"""A line at the margin after a full one that ended a sentence is a heading if it is shorter and ends no sentence."""

_LEADER = re.compile(r" ?(?:\.{5,}|(?: \.){5,})[ .]*")
_GAP = re.compile(r"   +")
_CAPITALS = re.compile(r"[A-Z]{2}")
_SMALL = re.compile(r"[a-z]{3}")
_STOPS = frozenset(".?!:;)]'\"”")
_ENDS = _STOPS | frozenset(",—-")
_SUSPENDED = re.compile(r"(?:and|or|to|nor|versus)\b(?!-)")
_FIRST_LETTERS = re.compile(r"[a-z]{1,40}")
_LAST_LETTERS = re.compile(r"[A-Za-z]{1,40}(?=-\Z)")
_WORD_BYTES = bytes(b if (chr(b).isalpha() and b < 128) or b == 45 else 32 for b in range(256)).lower()


class Paragraph(NamedTuple):
    """A paragraph, heading or row on one line; the cells of a row are separated by a tab.

    `indent` is the column where it begins, `is_apart` whether a blank line precedes it.
    """

    indent: int
    is_apart: bool
    text: str


def paragraphs(text: str, indent: int, left_out: Counter[str]) -> list[Paragraph]:
    """Return the paragraphs of a text whose own begin at column `indent`, in order, without blank ones.

    A line goes on with the one before if its column does (0 after `indent`, 5 after 7, but not `indent` after itself)
    and the line before was full. A word broken at a hyphen is mended where the whole word stands elsewhere in the text
    and the hyphenated one does not; else the hyphen stays. A line with a leader or a gap of three spaces is a row.
    Leaders and hyphens that are lost are counted in `left_out`.
    """
    unwrapping = _Unwrapping(text, indent)
    for line in text.split("\n"):
        unwrapping.add(line)
    unwrapping.flush()
    before, after = (sum(map(part.count, "-.")) for part in (text, "\n".join(each.text for each in unwrapping.done)))
    left_out["leaders and hyphens at line ends"] += before - after
    return unwrapping.done


class _Unwrapping:
    """A text on its way into paragraphs, line by line; `pieces` is the paragraph being joined."""

    def __init__(self, source: str, indent: int) -> None:
        self.source = source
        self.indent = indent
        self.done: list[Paragraph] = []
        self.pieces: list[str] = []
        self.first = 0
        self.rest = -1
        self.last_length = 0
        self.is_apart = True
        self.is_row = False
        self.is_heading = False

    def add(self, line: str) -> None:
        body = line.lstrip(" ")
        if not body:
            self.flush()
            self.is_apart = True
            return
        column, length = len(line) - len(body), len(line)
        is_row = "   " in body or "....." in body
        # A line goes on with the paragraph that is open, or begins one; a row of a table stands alone.
        is_flowing = bool(self.pieces) and self.flows(line)
        if is_flowing or (self.pieces and not is_row and self.goes_on(column, body)):
            self.join(body)
            self.rest = max(self.rest, 0) if is_flowing else column
            self.is_heading = self.is_heading and in_capitals(body)
            self.is_row = self.is_row or is_row
        else:
            self.flush()
            self.pieces.append(body)
            self.first, self.rest, self.is_row = column, -1, is_row
            self.is_heading = (column != self.indent or self.is_apart) and in_capitals(body)
        self.last_length = length

    def flush(self) -> None:
        if not self.pieces:
            return
        text = "".join(self.pieces)
        # Leaders and gaps part the cells of a row; nothing else has more than one space.
        if self.is_row:
            if "....." in text or " . . . . ." in text:
                text = _LEADER.sub("\t", text)
            text = _GAP.sub("\t", text).strip("\t")
        if text := text.replace("  ", " "):
            self.done.append(Paragraph(self.first, self.is_apart, text))
            self.is_apart = False
        self.pieces = []

    def flows(self, line: str) -> bool:
        """Return whether a line begins in small letters at the margin, right after one that was full."""
        is_small = "a" <= line[0] <= "z" and "   " not in line
        return is_small and self.last_length >= FULL and self.pieces[-1][-1] not in "-/—"

    def goes_on(self, column: int, body: str) -> bool:
        """Return whether a line continues the paragraph; a second line of it begins at the same column."""
        if self.is_row or not (self.is_heading or self.rest in (column, -1)):
            return False
        # Lines in capitals are one heading, whatever their length, if they stand below one another.
        if self.is_heading and (self.first != self.indent or in_capitals(body)):
            is_below = column >= HEADING_INDENT and self.first != self.indent
            return (is_below or self.is_full(body)) and in_capitals(body)
        if self.rest < 0 and not self.may_be_rest(column):
            return False
        last = self.pieces[-1]
        if last.endswith(":]"):  # "[The letter follows:]" announces what stands below it
            return False
        # A short line ends a paragraph, unless it breaks at a hyphen or its next word would not have fitted.
        if self.last_length < FULL - 1 and last[-1] not in "-—" and not self.is_full(body):
            return False
        return not (column == 0 and is_title(last, body))

    def may_be_rest(self, column: int) -> bool:
        """Return whether a second line may begin here: to HANGING before the first, or below it in a flush paragraph.

        After a line that was set in by one column too many, a line at `indent` is the next paragraph.
        """
        if column == self.indent == self.first - 1:
            return False
        return 0 < self.first - column <= HANGING or column == self.first != self.indent

    def is_full(self, body: str) -> bool:
        word = body.find(" ")
        return self.last_length + 1 + (len(body) if word < 0 else word) > FULL

    def join(self, body: str) -> None:
        last = self.pieces[-1]
        if last[-1] not in "-—/":
            self.pieces += (" ", body)
        elif last[-1] != "-" or last.endswith("--"):
            self.pieces.append(body)
        elif _SUSPENDED.match(body):
            self.pieces += (" ", body)
        else:
            if words := _broken(last, body):
                self.pieces[-1:] = last[:-1], self.hyphen(*words)
            self.pieces.append(body)

    def hyphen(self, whole: bytes, parts: bytes) -> str:
        """Return the hyphen of a broken word, "" if it was the line's: the whole word is known, this one is not."""
        return "" if whole in self.words and parts not in self.words else "-"

    @cached_property
    def words(self) -> set[bytes]:
        """Words of the text in small letters, with their hyphens; other characters than ASCII end a word."""
        return set(self.source.encode("ascii", "replace").translate(_WORD_BYTES).split())


def _broken(last: str, body: str) -> tuple[bytes, bytes] | None:
    """Return the word that breaks at a hyphen between two lines, whole and with the hyphen, in small letters."""
    before, after = _LAST_LETTERS.search(last, max(0, len(last) - 41)), _FIRST_LETTERS.match(body)
    if not before or not after:
        return None
    start, end = before[0].lower().encode(), after[0].encode()
    return start + end, b"%b-%b" % (start, end)


def is_title(last: str, body: str) -> bool:
    """Return whether a line at the margin is a heading although the line before was full."""
    return last[-1] in _STOPS and len(body) < TITLE_LENGTH and body[-1] not in _ENDS and not body[0].islower()


def in_capitals(text: str) -> bool:
    """Return whether a text is set in capitals, names such as McCAIN included."""
    return _SMALL.search(text) is None and _CAPITALS.search(text) is not None
