"""A page of the Congressional Record as text with its sections: topics, turns, what was printed inside them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from runner.base.records import Section, Span
from samplers.sources.congressional_record.lines import BULLET, Line

_TOPIC, _TURN, _INSERT = 1, 2, 3
_DIVISIONS = {"DIVISION": 4, "TITLE": 5, "SUBTITLE": 6, "CHAPTER": 7, "PART": 7, "SECTION": 8}
"""Levels of a bill's parts; a part that stands in quotation marks is set into the section that amends."""
_QUOTED = 10
_LABEL_LENGTH = 200
"""Characters of a label from which further headings right below are no part of it."""

_PARAGRAPHS = frozenset((2, 7))
"""Columns at which each line is a paragraph of its own; lines of a list follow one another closely."""


_DIVISION = re.compile(
    r"(?P<mark>“?)(?P<kind>DIVISION|(?:SUB)?TITLE|CHAPTER|PART|Subtitle|Chapter|Part) "
    r"(?:[IVXLC]{1,8}|[A-Z]{1,2}|\d{1,3})(?=—|$)"
)
_SECTION = re.compile(
    r"(?P<mark>“?)(?P<number>(?:SEC\.|SECTION|Sec\.|Section) ?\d{1,5}[A-Z]{0,2})\. (?:(?P<heading>[^a-z]{3,180})\.?$)?"
)
_AMENDMENT = re.compile(
    r"SA\.? (?P<number>\d{1,5})\. (?P<member>M[a-z]{1,3}\. [A-Z][\w' -]{1,40}?)(?= \(| submitted| proposed)"
)
_PERMISSION = re.compile(r"\(M[a-z]{1,3}\. [^()]{3,80} asked and was given permission ")
_QUOTE_LENGTH = 14
"""Characters in which a quotation's end stands: its mark, and up to three of what may follow."""

_QUOTE_ENDS = re.compile(r"”(?:[.;,]| and| or){0,3}$")


@dataclass(slots=True)
class _Part:
    kind: str
    level: int
    label: str
    start: int
    end: int = 0


@dataclass
class Outline:
    """The text of a page and its sections.

    A heading opens a topic if a turn follows or nobody is speaking; inside a turn it belongs to the speech, or names
    what was printed there. A bill that was printed keeps its titles, subtitles and sections, and of printed
    amendments each is a section. The page's own title opens nothing, nor do the lines below it that say who speaks and
    that permission was given; it is in the section after it unless that is a turn.
    """

    n_bullets: int = 0
    _pieces: list[str] = field(default_factory=list)
    _length: int = 0
    _parts: list[_Part] = field(default_factory=list)
    _open: list[_Part] = field(default_factory=list)
    _last: Line | None = None
    """The line before, None after a rule and after the title."""
    _title_start: int = -1
    """Where the title begins while nothing stands after it, -1 otherwise."""

    @property
    def text(self) -> str:
        """All lines in order."""
        return "".join(self._pieces)

    @property
    def sections(self) -> tuple[Section, ...]:
        """In text order, levels from 1."""
        parts = sorted(self._parts, key=lambda part: (part.start, -part.end, part.level))
        levels = sorted({part.level for part in parts})
        return tuple(
            Section(Span(part.start, part.end), levels.index(part.level) + 1, part.kind, part.label) for part in parts
        )

    def heading(self, line: Line, follows: str, is_title: bool) -> None:
        """Add a heading; `follows` is the kind of the first line after it and the headings next to it."""
        is_inside = (self._speaks or self._amends) and follows != "turn"
        level = _level_of(line.text) if is_inside else 0
        if is_title:
            self.close(_TOPIC)
            self._write(line, line.text)
            self._last = None
            self._title_start = self._length - len(line.text)
        elif self._last and self._last.kind == "heading" and self._open and not level:
            label = self._open[-1].label
            if label.startswith("("):
                self._open[-1].label = line.text
            elif len(label) < _LABEL_LENGTH:
                self._open[-1].label += f" – {line.text}"
            self._write(line, line.text)
        elif is_inside:
            kind = "heading" if follows == "spoken" else "inserted text"
            self._begin(kind, level or _INSERT, line.text, line, line.text)
        else:
            self._begin("heading", _TOPIC, line.text, line, line.text)

    def other(self, line: Line) -> None:
        """Add a turn's beginning or a paragraph."""
        text, is_statement, is_over = line.text, False, False
        if BULLET in text:
            text = text.removeprefix(BULLET)
            is_statement, is_over = text != line.text, text.endswith(BULLET)
            text = text.removesuffix(BULLET)
            self.n_bullets += is_statement + is_over
        text = text.strip()
        if not text:
            pass
        elif line.kind == "turn":
            self._begin("inserted statement" if is_statement else "turn", _TURN, line.speaker, line, text)
        else:
            self._paragraph(line, text)
        if is_over:
            self.close(_TURN)

    def rule(self) -> None:
        """Add a rule: it ends what was printed inside a turn, and a topic in which nobody speaks."""
        self.close(_INSERT if self._speaks else _TOPIC)
        self._last = None

    def close(self, level: int) -> None:
        """End the open sections of this level and of those inside."""
        while self._open and self._open[-1].level >= level:
            part = self._open.pop()
            part.end = self._length
            if part.start < part.end:
                self._parts.append(part)

    @property
    def _speaks(self) -> bool:
        return any(part.level == _TURN and part.label for part in self._open)

    @property
    def _amends(self) -> bool:
        return any(part.kind == "amendment" for part in self._open)

    def _paragraph(self, line: Line, text: str) -> None:
        if text.endswith(":") and not self._speaks and (amendment := _AMENDMENT.match(text)):
            label = f"SA {amendment['number']} ({amendment['member']})"
            self._begin("amendment", _TOPIC, label, line, "")
        elif not self._open and (line.kind == "member" or _PERMISSION.match(text)):
            pass
        elif not self._open:
            self._begin("procedure", _TURN, "", line, "")
        elif line.kind == "spoken" and self._open[-1].kind in ("inserted text", "section"):
            self.close(_INSERT)
        elif line.kind == "printed" and self._speaks and self._open[-1].level == _TURN:
            self._begin("inserted text", _INSERT, "", line, "")
        if line.kind == "printed" and (section := _SECTION.match(text)):
            level = _DIVISIONS["SECTION"] + (_QUOTED if section["mark"] else 0)
            heading = (section["heading"] or "").rstrip(".")
            self._begin("section", level, ". ".join(filter(None, (section["number"], heading))), line, "")
        self._write(line, text)
        if "”" in text[-_QUOTE_LENGTH:] and _QUOTE_ENDS.search(text):
            self.close(_QUOTED)

    def _begin(self, kind: str, level: int, label: str, line: Line, text: str) -> None:
        self.close(level)
        self._separate(line)
        start = self._length if kind == "turn" or self._title_start < 0 else self._title_start
        self._open.append(_Part(kind, level, label, start))
        self._title_start = -1
        if text:
            self._write(line, text)

    def _write(self, line: Line, text: str) -> None:
        if not text:
            return
        self._separate(line)
        self._append(text)
        self._last = line

    def _separate(self, line: Line) -> None:
        if not self._length or self._pieces[-1].endswith("\n"):
            return
        last = self._last
        is_close = last and not line.is_apart and line.indent == last.indent and line.indent not in _PARAGRAPHS
        self._append("\n" if is_close or (last and last.kind == line.kind == "heading") else "\n\n")

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)


def outline(lines: Sequence[Line], title: int) -> Outline:
    """The lines as text with sections; `title` says which line is the page's title, -1 for none."""
    result = Outline()
    for index, (line, follows) in enumerate(zip(lines, _following(lines), strict=True)):
        if line.kind == "rule":
            result.rule()
        elif line.kind == "heading":
            result.heading(line, follows, index == title)
        else:
            result.other(line)
    result.close(_TOPIC)
    return result


def _level_of(heading: str) -> int:
    """The level of a bill's title, subtitle, ...; 0 for any other heading."""
    division = _DIVISION.match(heading)
    return _DIVISIONS[division["kind"].upper()] + (_QUOTED if division["mark"] else 0) if division else 0


def _following(lines: Sequence[Line]) -> list[str]:
    """For each line the kind of the next one that is neither a heading nor a rule, "" for none."""
    kinds: list[str] = []
    kind = ""
    for line in reversed(lines):
        kinds.append(kind)
        if line.kind not in ("heading", "rule"):
            kind = line.kind
    return kinds[::-1]
