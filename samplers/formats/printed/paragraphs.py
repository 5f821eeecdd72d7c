"""Typeset lines as paragraphs: wrapped lines joined, broken words mended, rows of a table kept apart."""

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from samplers.formats.printed.text import stretches

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

SEARCHES = 24
"""Words for which a text is searched; for more of them it takes longer than to take it apart."""

MOST_BROKEN = 10_000
"""Broken words that are remembered until the whole text is known; the most in one of 494 files is 138."""

TITLE_LENGTH = 50
"""A line at the margin after a full one that ended a sentence is a heading if it is shorter and ends no sentence."""

_FLOWING = re.compile(rf"\n(?=[a-z])(?<=[^\n]{{{FULL}}}\n)(?<![-/]\n)(?<!—\n)(?![^\n]*   )")
"""The break after a full line before a small letter at the margin: half of all breaks, joined at once for speed."""

_WAS_BREAK = "\x02"
"""Stands for such a break until the line's place is known; no page that was read holds the character."""

_BLOCK = re.compile(r"\n(?=[ \n])")
"""The break before a line that is blank or set in; what it parts is such a line with those at the margin after it."""

_WRAPPED = r"(?<![-—/ ])(?<!:\])\n"
_RUNNING = re.compile(
    rf"(?= {{0,{HANGING}}}[^ \n])(?=[^\n]{{0,40}}?[a-z]{{3}})"
    rf"(?:[^\n]{{59,}}+{_WRAPPED}|[^\n]{{55,58}}+{_WRAPPED}(?=[^ \n]{{5}})|[^\n]{{51,54}}+{_WRAPPED}(?=[^ \n]{{9}}))++"
    r"[^\n]++(?<!-)\Z"
)
"""Such lines that begin in small letters; all but the last break because they are FULL, and at no hyphen."""

_HYPHEN = "\x03"
"""Stands for the hyphen of a broken word until the whole text is known; no page that was read holds it either."""

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


def paragraphs(text: str, indent: int) -> list[Paragraph]:
    """Return the paragraphs of a text whose own begin at column `indent`, in order, without blank ones.

    A line goes on with the one before if its column does (0 after `indent`, 5 after 7, but not `indent` after itself)
    and the line before was full. A word broken at a hyphen is mended where the whole word stands elsewhere in the text
    and the hyphenated one does not; else the hyphen stays. A line with a leader or a gap of three spaces is a row.
    """
    unwrapping = _Unwrapping(text, indent)
    for stretch in stretches(text):
        for block in _BLOCK.split(stretch):
            unwrapping.add_block(block)
    unwrapping.flush()
    unwrapping.mend()
    return unwrapping.done


class _Unwrapping:
    """A text on its way into paragraphs, line by line; `pieces` is the paragraph being joined."""

    def __init__(self, source: str, indent: int) -> None:
        self.source = source
        self.indent = indent
        self.broken: list[tuple[int, bytes, bytes]] = []
        self.done: list[Paragraph] = []
        self.pieces: list[str] = []
        self.first = 0
        self.rest = -1
        self.last_length = 0
        self.is_apart = True
        self.is_row = False
        self.is_heading = False

    def add_block(self, block: str) -> None:
        """Add a line and the lines at the margin after it."""
        if block[:1] == "\n":
            self.add("")
            block = block[1:]
        if "\n" not in block:
            self.add(block)
        elif not (_RUNNING.match(block) and self.add_running(block, block.lstrip(" "))):
            for line in _FLOWING.sub(_WAS_BREAK, block).split("\n"):
                self.add(line)

    def add_running(self, block: str, body: str) -> bool:
        """Add a block that is one whole paragraph in small letters; return False for any other."""
        column = len(block) - len(body)
        if "   " in body or "....." in body or not self.indent:
            return False
        if self.pieces and self.may_join(column, body[: body.find("\n")]):
            return False
        if body[-1] not in _ENDS and is_title(*body.rsplit("\n", 2)[-2:]):
            return False
        self.flush()
        self.pieces.append(body.replace("\n", " "))
        self.first, self.rest, self.last_length = column, 0, len(block) - block.rfind("\n") - 1
        self.is_row = self.is_heading = False
        return True

    def add(self, line: str) -> None:
        body = line.lstrip(" ")
        if not body:
            self.flush()
            self.is_apart = True
            return
        column, length = len(line) - len(body), len(line)
        if is_joined := _WAS_BREAK in body:
            length -= line.rfind(_WAS_BREAK) + 1
            body = body.replace(_WAS_BREAK, " ")
        is_row = "   " in body or "....." in body
        # A line goes on with the paragraph that is open, or begins one; a row of a table stands alone.
        if self.pieces and not is_row and self.may_join(column, body):
            self.join(body)
            self.rest = column
            self.is_heading = self.is_heading and in_capitals(body)
        else:
            self.flush()
            self.pieces.append(body)
            self.first, self.rest, self.is_row = column, 0 if is_joined else -1, is_row
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

    def may_join(self, column: int, body: str) -> bool:
        return (self.is_heading or self.rest == column or self.rest < 0) and self.goes_on(column, body)

    def goes_on(self, column: int, body: str) -> bool:
        """Return whether a line continues the paragraph; a second line of it begins at the same column."""
        if self.is_row:
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
        """Return a mark that `mend` replaces; after MOST_BROKEN of them, to spare memory, its replacement."""
        if len(self.broken) < MOST_BROKEN:
            self.broken.append((len(self.done), whole, parts))
            return _HYPHEN
        return "" if whole in self.words and parts not in self.words else "-"

    @cached_property
    def words(self) -> set[bytes]:
        """Words of the text in small letters, with their hyphens; other characters than ASCII end a word."""
        return set(chain.from_iterable(map(bytes.split, self.lowered())))

    def lowered(self) -> Iterator[bytes]:
        """Return the text in small letters, part by part, with a blank for all but letters and hyphens."""
        return (stretch.encode("ascii", "replace").translate(_WORD_BYTES) for stretch in stretches(self.source))

    def mend(self) -> None:
        """Put a hyphen, or nothing, where a line broke inside a word."""
        # The whole word stands elsewhere and the hyphenated one does not: then the hyphen was the line's.
        wholes = self.known({whole for _, whole, _ in self.broken})
        known = self.known({parts for _, whole, parts in self.broken if whole in wholes})
        hyphens = iter(["" if whole in wholes and parts not in known else "-" for _, whole, parts in self.broken])
        for index in dict.fromkeys(index for index, *_ in self.broken):
            indent, is_apart, text = self.done[index]
            self.done[index] = Paragraph(indent, is_apart, re.sub(_HYPHEN, lambda _: next(hyphens), text))

    def known(self, words: set[bytes]) -> set[bytes]:
        """Return those of some words that stand in the text."""
        if len(words) > SEARCHES:
            return {word for part in self.lowered() for word in words.intersection(part.split())}
        text = b" ".join((b"", *self.lowered(), b"")) if words else b""
        # A search for what ends in a blank takes a third longer.
        return {word for word in words if b" " + word in text and b" %b " % word in text}


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
