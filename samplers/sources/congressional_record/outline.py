"""A page of the Congressional Record as text with its sections: topics, turns, what was printed inside them.

A heading opens a topic if a turn follows or nobody is speaking; inside a turn it belongs to the speech, or names what
was printed there. A bill that was printed keeps its titles, subtitles and sections, and of printed amendments each is a
section. The page's own title opens nothing, nor do the lines below it that say who speaks and that permission was
given; it is in the section after it unless that is a turn.
"""

import re
from collections import Counter
from collections.abc import Sequence

from samplers.formats.text_writer import Outline
from samplers.sources.congressional_record.lines import BULLET, Line, introduces

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


def outline(lines: Sequence[Line], title: int, left_out: Counter[str]) -> Outline:
    """Return the lines as text with sections; `title` says which line is the page's title, -1 for none."""
    page = _Page(left_out)
    # For each line the kind of the next one that is neither a heading nor a rule.
    following = [""] * (len(lines) + 1)
    for index in range(len(lines) - 1, -1, -1):
        kind = lines[index].kind
        following[index] = following[index + 1] if kind in ("heading", "rule") else kind
    for index, line in enumerate(lines):
        if line.kind == "rule":
            # A rule ends what was printed inside a turn, and a topic in which nobody speaks.
            page.outline.close(_INSERT if page.speaks else _TOPIC)
            page.last = None
        elif line.kind == "heading":
            page.heading(line, following[index + 1], index == title)
        else:
            page.other(line)
    return page.outline


class _Page:
    """A page on its way: `last` is the line before, None after a rule and after the title.

    `title_start` is where the title begins while nothing stands after it, -1 otherwise.
    """

    def __init__(self, left_out: Counter[str]) -> None:
        self.outline = Outline()
        self.left_out = left_out
        self.last: Line | None = None
        self.title_start = -1

    @property
    def speaks(self) -> bool:
        """Whether somebody is speaking."""
        return any(part.level == _TURN and part.heading for part in self.outline.open)

    def heading(self, line: Line, follows: str, is_title: bool) -> None:
        """Add a heading; `follows` is the kind of the first line after it and the headings next to it."""
        opened, text = self.outline.open, line.text
        amends = any(part.kind == "amendment" for part in opened)
        is_inside = (self.speaks or amends) and follows != "turn"
        level = _level_of(text) if is_inside else 0
        if is_title:
            self.outline.close(_TOPIC)
            self.title_start = self.outline.write(text, self._separator(line))
            self.last = None
            return
        if self.last and self.last.kind == "heading" and opened and not level:
            # Headings right below one another are one label; one in parentheses only introduces the next.
            label = opened[-1].heading
            if label.startswith("("):
                opened[-1].heading = text
            elif len(label) < _LABEL_LENGTH:
                opened[-1].heading += f" – {text}"
        elif is_inside:
            self._begin("heading" if follows == "spoken" else "inserted text", level or _INSERT, text, line)
        else:
            self._begin("heading", _TOPIC, text, line)
        self._write(line, text)

    def other(self, line: Line) -> None:
        """Add a turn's beginning or a paragraph; bullets open and close a statement that nobody made on the floor."""
        text = line.text.removeprefix(BULLET)
        is_statement = text != line.text
        is_over = text.endswith(BULLET)
        text = text.removesuffix(BULLET)
        if is_statement or is_over:
            self.left_out["bullets"] += is_statement + is_over
        text = text.strip()
        if self.speaks and introduces(text):
            self.outline.close(_TURN)
        if text and line.kind == "turn":
            self._begin("inserted statement" if is_statement else "turn", _TURN, line.speaker, line)
            self._write(line, text)
        elif text:
            self._paragraph(line, text)
        if is_over:
            self.outline.close(_TURN)

    def _paragraph(self, line: Line, text: str) -> None:
        opened = self.outline.open
        if text.endswith(":") and not self.speaks and (amendment := _AMENDMENT.match(text)):
            self._begin("amendment", _TOPIC, f"SA {amendment['number']} ({amendment['member']})", line)
        elif not opened:
            # Who speaks, where and when, below a title, opens nothing.
            if line.kind != "member" and not _PERMISSION.match(text):
                self._begin("procedure", _TURN, "", line)
        elif line.kind == "spoken" and opened[-1].kind in ("inserted text", "section"):
            self.outline.close(_INSERT)
        elif line.kind == "printed" and self.speaks and opened[-1].level == _TURN:
            self._begin("inserted text", _INSERT, "", line)
        if line.kind == "printed" and (section := _SECTION.match(text)):
            level = _DIVISIONS["SECTION"] + (_QUOTED if section["mark"] else 0)
            heading = (section["heading"] or "").rstrip(".")
            self._begin("section", level, ". ".join(filter(None, (section["number"], heading))), line)
        self._write(line, text)
        if "”" in text[-_QUOTE_LENGTH:] and _QUOTE_ENDS.search(text):
            self.outline.close(_QUOTED)

    def _begin(self, kind: str, level: int, label: str, line: Line) -> None:
        """Open a section with the line that is written next, or with the title right before it."""
        self.outline.close(level)
        start = self.outline.length + len(self._separator(line))
        self.outline.begin(kind, level, label, start if kind == "turn" or self.title_start < 0 else self.title_start)
        self.title_start = -1

    def _write(self, line: Line, text: str) -> None:
        self.outline.write(text, self._separator(line))
        self.last = line

    def _separator(self, line: Line) -> str:
        """Return what parts a line from the one before: lines of a list and headings follow one another closely."""
        last = self.last
        if not self.outline.length:
            return ""
        is_close = last and not line.is_apart and line.indent == last.indent and line.indent not in _PARAGRAPHS
        return "\n" if is_close or (last and last.kind == line.kind == "heading") else "\n\n"


def _level_of(heading: str) -> int:
    """Return the level of a bill's title, subtitle, ...; 0 for any other heading."""
    division = _DIVISION.match(heading)
    return _DIVISIONS[division["kind"].upper()] + (_QUOTED if division["mark"] else 0) if division else 0
