"""The structure of a committee report: headings and their ranks, items, tables, existing law, cost estimates."""

import re
from dataclasses import dataclass, field

from runner.base.records import Section, Span
from samplers.formats.text_writer import visible

_DEEPEST = 100
_CAPITALS, _SMALL = 2, 3
_UNLISTED_CAPITALS, _UNLISTED_SMALL, _OF_ACCOUNT, _IN_ESTIMATE, _MARGIN, _ITEM, _TABLE = range(_DEEPEST, _DEEPEST + 7)
"""Ranks: a heading holds those of greater rank after it. The contents give ranks from 1 on."""

_MOST_OPEN = 12
"""Sections open at once among which a heading without words still holds the next one."""

_TITLE = re.compile(r"(?:SUB)?TITLE [IVXLC\d]{1,7}\b|DIVISION [A-Z]{1,2}\b")
_NUMBER = re.compile(r"(?:[IVX]{1,5}|[A-Z]|\d{1,2})\. +")
_FIXED = re.compile(
    r"(?:general |brief |statement of )?(?:purposes?|background|need|summary|section-by-section|explanation)\b"
    r"|(?:changes (?:in|to)|compliance with|budgetary impact|legislative history|regulatory impact|evaluation of"
    r"|estimates? of|estimated costs?|new budget authority|congressional budget office|advisory (?:committee|on)"
    r"|applica(?:tion|bility)|(?:un)?funded mandate|federal mandates|constitutional|duplicati(?:on|ve)|disclosure of"
    r"|performance goals|(?:congressional )?earmark|comparative|joint explanatory|exchange of letters|appendix)\b"
    r"|(?:committee|cbo) (?:cost|votes?|consideration|oversight|correspondence|action|hearings|views|estimate)\b"
    r"|hearings?$|cost estimate"
    r"|(?:dissenting|minority|additional|supplemental|separate|majority|concurring)(?: and \w{1,15})? views\b",
    re.I,
)
"""Headings that reports of every committee have, whatever their typography."""

_LAW = re.compile(r"changes (?:in|to) existing law|paragraph 12,? (?:of )?rule xxvi|^comparative print", re.I)
_ALSO_IN_LAW = re.compile(r"appendix\b", re.I)
"""Heads a part of a law as well, so that it ends a reprinted one only if the contents list it."""

_COST = re.compile(r"cost estimate|estimated costs?\b|^congressional budget office", re.I)
_COMPARISON = re.compile(r"COMPARATIVE STATEMENT OF")
"""The table that closes every appropriations report, under another name than in the contents."""

_PART_OF_ACCOUNT = re.compile(r"(?:[^\n]{1,60}—)?(?:COMMITTEE RECOMMENDATIONS?|PROGRAM DESCRIPTION)$", re.I)
"""Headings inside each account. How often a heading repeats does not tell: accounts have one name in many agencies."""

_SMALL_LETTERS = re.compile(r"[a-z]{3}")
_COST_ENDS = re.compile(r"estimate (?:was |is |were )?(?:approved|reviewed) by", re.I)


@dataclass(slots=True)
class _Part:
    kind: str
    rank: int
    label: str
    start: int


@dataclass
class Outline:
    """The text of a report with its sections.

    If the contents list a heading, they give its rank, and what they do not list stands below it. In a report
    without contents titles hold headings in capitals, and those hold the ones in small letters. An account holds its
    description and recommendation, and a heading without words the one after it. Unless `keeps_law`, existing law
    that is only reprinted is left out and counted.
    """

    has_contents: bool
    keeps_law: bool
    n_law: int = 0
    """Visible characters of law that were left out."""
    _pieces: list[str] = field(default_factory=list)
    _length: int = 0
    _sections: list[Section] = field(default_factory=list)
    _open: list[_Part] = field(default_factory=list)
    _is_law: bool = False
    """Whether what follows is the text of a law, up to the next heading that is the report's own."""

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(self._pieces)

    def sections(self) -> tuple[Section, ...]:
        """All sections in text order, after the open ones were closed."""
        self._close(0)
        return tuple(sorted(self._sections, key=lambda part: (part.span.start, -part.span.end, part.level)))

    def begin(self, kind: str) -> None:
        """Open a section without a heading, which the next heading ends."""
        self._push(_Part(kind, _CAPITALS, "", self._length))

    def heading(self, text: str, listed: int) -> None:
        """Add a centred heading; `listed` is its rank by the contents, 0 if they do not list it."""
        name = _NUMBER.sub("", text, count=1)
        is_own = bool(listed or _FIXED.match(name))
        if self._is_law and (not is_own or (not listed and _ALSO_IN_LAW.match(name))):
            self._reprint(text)
            return
        self._is_law = False
        rank = self._rank(text, listed, is_own)
        if is_own or _TITLE.match(text) or not self._is_bare():
            self._close(rank)
        else:
            rank = max(rank, self._open[-1].rank)
        kind = "existing law" if _LAW.search(name) else "cost estimate" if is_own and _COST.search(name) else "heading"
        self._head("title" if _TITLE.match(text) else kind, rank, text)

    def margin_heading(self, text: str) -> None:
        """Add a heading that begins at the margin, which stands below every centred one."""
        if self._is_law:
            self._reprint(text)
        else:
            self._close(_MARGIN)
            self._head("heading", _MARGIN, text)

    def paragraph(self, text: str, label: str, is_close: bool) -> None:
        """Add a paragraph, which opens an item if it has a label; `is_close` puts it right under the one before."""
        if self._is_law:
            self._reprint(text)
            return
        separator = "\n" if is_close else "\n\n"
        if label:
            self._close(_ITEM)
            self._push(_Part("item", _ITEM, label, self._length), separator)
        self._write(text, separator)
        if "in roman" in text and any(part.kind == "existing law" for part in self._open):
            self._is_law = True
        elif "stimate" in text and _COST_ENDS.search(text):
            self._end_estimate()

    def table(self, title: str, rows: tuple[str, ...], listed: int) -> None:
        """Add a table, one row per line; if the contents list it, its title is a heading as well."""
        if listed or _COMPARISON.match(title):
            self._is_law = False
            rank = min(listed, _DEEPEST) or 1
            self._close(rank)
            self._push(_Part("heading", rank, title.partition(" [")[0], self._length))
        elif self._is_law:
            self._reprint("\n".join(rows))
            return
        if any(rows):
            self._push(_Part("table", _TABLE, title, self._length))
            self._write("\n".join(rows), "\n\n")
            self._close(_TABLE)

    def _is_bare(self) -> bool:
        """Whether the heading written last has no words yet and may hold the next one."""
        if not 0 < len(self._open) < _MOST_OPEN:
            return False
        last = self._open[-1]
        return last.rank != _OF_ACCOUNT and bool(last.label) and last.start + len(last.label) == self._length

    def _rank(self, text: str, listed: int, is_own: bool) -> int:
        is_small = _SMALL_LETTERS.search(text) is not None
        if any(part.kind == "cost estimate" for part in self._open) and not is_own:
            return _IN_ESTIMATE
        if _TITLE.match(text):
            return int(not text.startswith("DIVISION"))
        if listed:
            return min(listed, _DEEPEST)
        if _PART_OF_ACCOUNT.match(text):
            return _OF_ACCOUNT
        if self.has_contents and not is_own:
            return _UNLISTED_SMALL if is_small else _UNLISTED_CAPITALS
        return _SMALL if is_small and not is_own else _CAPITALS

    def _head(self, kind: str, rank: int, text: str) -> None:
        self._push(_Part(kind, rank, text, self._length))
        self._write(text, "\n\n")

    def _reprint(self, text: str) -> None:
        if self.keeps_law:
            self._write(text, "\n\n")
        else:
            self.n_law += visible(text)

    def _end_estimate(self) -> None:
        for part in self._open:
            if part.kind == "cost estimate":
                self._close(part.rank)
                return

    def _push(self, part: _Part, separator: str = "\n\n") -> None:
        part.start = self._length + (len(separator) if self._length else 0)
        self._open.append(part)

    def _close(self, rank: int) -> None:
        while self._open and self._open[-1].rank >= rank:
            part = self._open.pop()
            if part.start < self._length:
                level = len(self._open) + 1
                self._sections.append(Section(Span(part.start, self._length), level, part.kind, part.label))

    def _write(self, text: str, separator: str) -> None:
        if self._length:
            self._pieces.append(separator)
            self._length += len(separator)
        self._pieces.append(text)
        self._length += len(text)
