"""Text written front to back with the spans of the sections in it."""

import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from runner.base.records import Section, Span

_STRENGTH = {"": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4}
INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u2060\ufeff")
"""Soft hyphens and zero-width characters: typesetting that would split a word in two for a tokenizer."""


def visible(text: str) -> int:
    """Return how many characters of a text in NFC are not white space: every count of an account is one of NFC."""
    return sum(map(len, unicodedata.normalize("NFC", text).split()))


def seen(text: str) -> str:
    """Return a text without soft hyphens and zero-width characters."""
    # Translating takes as long as all the rest, and few texts hold such a character.
    return text if text.isascii() or text.isprintable() else text.translate(INVISIBLE)


def on_one_line(text: str) -> str:
    """Return the words of a text with one space between them."""
    return " ".join(text.split())


@dataclass(slots=True)
class Part:
    """A section while it is being written; `start` is -1 until its first character."""

    kind: str
    level: int
    num: str = ""
    heading: str = ""
    start: int = -1
    end: int = -1


class TextWriter:
    """Collects words and separators; white space is collapsed and the stronger of two separators wins.

    Separators are a space, a tab between cells, a newline between blocks and two between sections. One is written
    only before further text, so no part begins or ends with white space.
    """

    def __init__(self) -> None:
        self.length = 0
        """Characters written so far, a waiting separator not included."""
        self.supplied = 0
        """How many of them stand in no file, as its reader counts them."""
        self.n_invisible = 0
        """How many soft hyphens and zero-width characters were left out."""
        self.parts: list[Part] = []
        self._pieces: list[str] = []
        self._separator = ""
        self._waiting: list[Part] = []

    def write(self, raw: str) -> None:
        """Append text; white space at its ends separates it from its neighbours."""
        visible = seen(raw)
        self.n_invisible += len(raw) - len(visible)
        words = on_one_line(visible)
        # White space alone separates its neighbours.
        if not words:
            if visible:
                self.separate(" ")
            return
        if visible[0].isspace():
            self.separate(" ")
        # The waiting separator and parts come before the words.
        self._flush()
        self._append(words)
        if visible[-1].isspace():
            self.separate(" ")

    def separate(self, separator: str) -> None:
        """Ask for at least this separator before the next text."""
        if _STRENGTH[separator] > _STRENGTH[self._separator]:
            self._separator = separator

    def glue(self) -> None:
        """Withdraw the waiting separator: the next text belongs to the last word."""
        self._separator = ""

    def open(self, kind: str, level: int) -> Part:
        """Return a part that begins with the next text."""
        part = Part(kind, level)
        self.parts.append(part)
        self._waiting.append(part)
        return part

    def close(self, part: Part) -> None:
        """End a part after the last text; one in which nothing was written keeps start -1."""
        part.end = self.length
        if part.start < 0:
            self._waiting.remove(part)

    def finish(self) -> tuple[str, tuple[Section, ...]]:
        """Return the text in NFC and the parts that hold any of it as sections, in text order."""
        parts = [part for part in self.parts if part.start >= 0]
        text = in_nfc("".join(self._pieces), parts)
        return text, tuple(Section(Span(p.start, p.end), p.level, p.kind, p.heading) for p in parts)

    def _flush(self) -> None:
        if self.length and self._separator:
            self._append(self._separator)
        self._separator = ""
        for part in self._waiting:
            part.start = self.length
        self._waiting.clear()

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)


class Outline:
    """Text written block by block, with its sections: each ends where the next of its rank or a smaller rank begins.

    Ranks are the writer's own, smaller for what is larger. A section in which nothing was written is none.
    """

    def __init__(self) -> None:
        self.length = 0
        self.open: list[Part] = []
        self._pieces: list[str] = []
        self._parts: list[Part] = []

    @property
    def text(self) -> str:
        """All blocks so far."""
        return "".join(self._pieces)

    def write(self, text: str, separator: str = "\n\n") -> int:
        """Append a block, behind a separator unless it is the first, and return where it starts."""
        if self.length:
            self._pieces.append(separator)
            self.length += len(separator)
        self._pieces.append(text)
        self.length += len(text)
        return self.length - len(text)

    def begin(self, kind: str, rank: int, label: str, start: int) -> None:
        """Open a section that begins at `start`, which may lie behind the text so far."""
        self.open.append(Part(kind, rank, heading=label, start=start))
        self._parts.append(self.open[-1])

    def close(self, rank: int) -> None:
        """End the open sections of this rank and of greater ranks."""
        while self.open and self.open[-1].level >= rank:
            self.open.pop().end = self.length

    def sections(self, *, by_rank: bool = False) -> tuple[Section, ...]:
        """Return the sections in text order, after ending them all.

        Each is one level inside the one around it, or all of one rank have one level.
        """
        self.close(min((part.level for part in self.open), default=0))
        parts = [part for part in self._parts if part.start < part.end]
        # Sections are nested or disjoint: those whose end is still ahead are around the next one.
        ranks = sorted({part.level for part in parts})
        sections, ends = [], list[int]()
        for part in parts:
            ends = [end for end in ends if end > part.start]
            level = ranks.index(part.level) if by_rank else len(ends)
            sections.append(Section(Span(part.start, part.end), level + 1, part.kind, part.heading))
            ends.append(part.end)
        return tuple(sections)


def in_nfc(text: str, parts: Sequence[Part]) -> str:
    """Return the text in NFC; the offsets of the parts that hold any of it are moved to it.

    Every offset lies beside white space or a supplied mark, with which nothing composes, so normalising between
    the offsets gives the same characters as normalising the whole.
    """
    if unicodedata.is_normalized("NFC", text):
        return text
    written = [part for part in parts if part.start >= 0]
    cuts = sorted({0, len(text), *(offset for part in written for offset in (part.start, part.end))})
    pieces = [unicodedata.normalize("NFC", text[start:end]) for start, end in pairwise(cuts)]
    moved = [0, *accumulate(map(len, pieces))]
    for part in written:
        part.start, part.end = moved[bisect_left(cuts, part.start)], moved[bisect_left(cuts, part.end)]
    return "".join(pieces)
