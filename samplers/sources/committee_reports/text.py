"""The text of a committee report with its structure: headings and their ranks, items, tables, existing law.

If the contents list a heading, they give its rank, and what they do not list stands below it. In a report without
contents titles hold headings in capitals, and those hold the ones in small letters. An account holds its description
and recommendation, and a heading without words the one after it. Existing law that is only reprinted is left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from samplers.formats.printed.layout import WIDTH, with_headings
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import END_MARK, RULE, removed, typographic, without_page_marks
from samplers.formats.text_writer import Outline, Part, visible
from samplers.sources.committee_reports.contents import Contents, listed_ranks
from samplers.sources.committee_reports.tables import Table, tables

_RUNNING = 4
"""The column where a paragraph begins."""

_HELD, _COVER, _TABLE = _MARKS = ("\x1d", "\x1e", "\x1f")
"""Begin a line that is a heading, a centred line of the cover or the number of a table; no text holds them."""

_JACKET = re.compile(r"\n *\d{2}-\d{3}(?: (?:PDF|O|cc))?(?=\n)")
_FRONT = 6_000
"""Characters in which a number that the printing office gave stands, if any."""

_NOTE = re.compile(r"\n(?= {0,4}\\(?:\d{1,3}|\*)\\)")
_HANGING = re.compile(r"\n {2,7}(?=(?:\(|--|\d{1,2}\. )[^\n]*\n {8}(?! ))")
"""A line of a list whose rest stands further right, which `paragraphs` takes for another paragraph."""

_MEASURE = "[To accompany "
"""Opens the last line of the cover, whose lines are centred as headings are."""

_ITEM = re.compile(r"([A-Z“][^—\n]{2,118}?)\.—")
_DAY = re.compile(r"[A-Z][a-z]{2,8} \d{1,2}, \d{4}")
_SENTENCE = re.compile(r"[a-z\]]{3}[.;:] ")
_SECTION_OF_LAW = re.compile(r"“?(?:SEC(?:TION|\.)|Sec\.) \d")
_FIGURE = re.compile(r"[$+(-]{0,3}\d[\d,.]{0,30}\)?")
"""A figure that stands on a line of its own, under its label, where leaders were lost."""

_OPEN_ENDED = (".", ";", ",", ":", "—", "-")

_DEEPEST = 100
_CAPITALS, _SMALL = 2, 3
_UNLISTED_CAPITALS, _UNLISTED_SMALL, _OF_ACCOUNT, _MARGIN, _ITEM_RANK, _TABLE_RANK = range(_DEEPEST, _DEEPEST + 6)
"""Ranks: a heading holds those of greater rank after it. The contents give ranks from 1 on."""

_MOST_OPEN = 12
"""Sections open at once among which a heading without words still holds the next one."""

_TITLE = re.compile(r"(?:SUB)?TITLE [IVXLC\d]{1,7}\b|DIVISION [A-Z]{1,2}\b")
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


class Line(NamedTuple):
    """`kind` is "heading", "margin" (a heading at the margin), "table" or "paragraph".

    `label` is a table's title or a paragraph's own heading; `is_close` puts a line right under the one before.
    """

    kind: str
    text: str
    label: str = ""
    is_close: bool = False

    @property
    def name(self) -> str:
        """Name that the contents may list: a heading, or the title of a table without its unit; "" for the rest."""
        return self.text if self.kind == "heading" else self.label.partition(" [")[0] if self.kind == "table" else ""


def written(text: str, contents: Contents, left_out: Counter[str]) -> Outline:
    """Return a report without its cover and contents as an outline; what is no word of it is counted."""
    report = _Report(bool(contents.entries))
    lines = list(_lines(text, left_out))
    report.outline.begin("introduction", _CAPITALS, "", 0)
    for line, listed in zip(lines, listed_ranks(contents, [line.name for line in lines]), strict=True):
        report.add(line, listed)
    left_out["existing law"] += report.n_law
    return report.outline


def _lines(text: str, left_out: Counter[str]) -> Iterator[Line]:
    """Yield the lines of a report: headings by layout, tables by their rules and leaders, paragraphs."""
    text = removed(END_MARK, text, left_out, "end mark")
    text = removed(_JACKET, text[:_FRONT], left_out, "jacket number") + text[_FRONT:]
    text = without_page_marks(text, left_out)
    # A line in place of each table, which numbers it: what follows knows paragraphs only.
    pieces: list[str] = []
    held: list[Table] = []
    position = 0
    for table in tables(text):
        rows = "\n".join(table.rows)
        left_out["rules and leaders"] += visible(text[table.start : table.end]) - visible(rows)
        pieces += (text[position : table.start], f"\n\n{_TABLE}{len(held)}\n\n")
        held.append(table._replace(rows=typographic(rows, left_out).split("\n")))
        position = table.end
    text = removed(RULE, "".join((*pieces, text[position:])), left_out, "rules and leaders", "\n")
    # Footnotes begin lines of their own, and the lines of a list stay together.
    text = _HANGING.sub(f"\n{' ' * 10}", _NOTE.sub("\n\n", text))
    # The cover's lines are centred as headings are.
    front = text.find("\n", max(text.find(_MEASURE), 0))
    text = with_headings(text[:front], _COVER, takes_notes=True) + with_headings(text[front:], _HELD, takes_notes=False)
    text = typographic(text, left_out)
    running = paragraphs(text, _RUNNING, left_out)
    index = 0
    while index < len(running):
        figures = tuple(_figures(running, index, held))
        yield Line("table", "\n".join(figures)) if figures else _line(running, index, held)
        index += 2 * len(figures) or 1


def _figures(running: Sequence[Paragraph], index: int, held: Sequence[Table]) -> Iterator[str]:
    """Yield rows of a table that lost its leaders: labels at the margin, each with its figure on the next line."""
    while index + 1 < len(running) and running[index].indent == 0 and running[index].text[0] not in _MARKS:
        label, (indent, _, figure) = running[index].text, running[index + 1]
        # Only a leader stands in place of an empty cell.
        if figure[0] == _TABLE and not any(held[int(figure[1:])].rows):
            yield label.rstrip("\t")
        elif indent > WIDTH // 2 and _FIGURE.fullmatch(figure):
            yield f"{label}\t{figure}"
        else:
            return
        index += 2


def _line(running: Sequence[Paragraph], index: int, held: Sequence[Table]) -> Line:
    indent, is_apart, text = running[index]
    mark, rest = text[0], text[1:]
    if mark == _HELD:
        return Line("heading", rest)
    if mark == _COVER:
        return Line("paragraph", rest, is_close=True)
    if mark == _TABLE:
        rows = held[int(rest)].rows
        return Line("table", "\n".join(rows), rows[0] if held[int(rest)].title else "")
    if indent == 0 and is_apart and _heads(text, running[index + 1] if index + 1 < len(running) else None):
        return Line("margin", text)
    is_close = not is_apart and indent != _RUNNING and index > 0 and indent == running[index - 1].indent
    item = _ITEM.match(text) if indent == _RUNNING else None
    is_named = item and not _SENTENCE.search(item[1]) and not _DAY.fullmatch(item[1])
    return Line("paragraph", text, item[1] if item and is_named else "", is_close)


def _heads(text: str, following: Paragraph | None) -> bool:
    """Return whether a paragraph at the margin, with its own blank lines, is a heading."""
    if _SECTION_OF_LAW.match(text):
        return True
    is_alone = following is None or (following.is_apart and not following.text.startswith(_TABLE))
    is_short = len(text) < 2 * WIDTH and "\t" not in text
    return is_alone and is_short and text[0].isupper() and not text.endswith(_OPEN_ENDED)


class _Report:
    """A report on its way; `is_law` says that what follows is the text of a law, up to a heading of the report."""

    def __init__(self, has_contents: bool) -> None:
        self.outline = Outline()
        self.n_law = 0
        self._has_contents = has_contents
        self._is_law = False

    def add(self, line: Line, listed: int) -> None:
        """Add a line; `listed` is its rank by the contents, 0 if they do not list it."""
        outline, text = self.outline, line.text
        if line.kind == "heading":
            self._heading(text, listed)
            return
        if line.kind == "table" and (listed or _COMPARISON.match(line.label)):
            # A listed table is a heading as well, and ends reprinted law.
            self._is_law = False
            rank = min(listed, _DEEPEST) or 1
            outline.close(rank)
            outline.begin("heading", rank, line.name, self._next)
        if self._is_law:
            self.n_law += visible(text)
        elif line.kind == "margin":
            outline.close(_MARGIN)
            outline.begin("heading", _MARGIN, text, self._next)
            outline.write(text)
        elif line.kind == "table" and text:
            outline.begin("table", _TABLE_RANK, line.label, self._next)
            outline.write(text)
            outline.close(_TABLE_RANK)
        elif line.kind == "paragraph":
            if line.label:
                outline.close(_ITEM_RANK)
                outline.begin("item", _ITEM_RANK, line.label, self._next)
            outline.write(text, "\n" if line.is_close else "\n\n")
            self._is_law = "in roman" in text and any(part.kind == "existing law" for part in outline.open)

    @property
    def _next(self) -> int:
        """Where the next block begins that a blank line sets apart."""
        return self.outline.length + 2 * bool(self.outline.length)

    def _heading(self, text: str, listed: int) -> None:
        """Add a centred heading, whose rank is that of the contents, of its title or of its typography."""
        is_title, is_own = _TITLE.match(text) is not None, bool(listed or _FIXED.match(text))
        # Reprinted law has headings of its own, which are none of the report's.
        if self._is_law and (not is_own or (not listed and _ALSO_IN_LAW.match(text))):
            self.n_law += visible(text)
            return
        self._is_law = False
        is_small = _SMALL_LETTERS.search(text) is not None
        if is_title:
            rank = int(not text.startswith("DIVISION"))
        elif listed:
            rank = min(listed, _DEEPEST)
        elif _PART_OF_ACCOUNT.match(text):
            rank = _OF_ACCOUNT
        elif self._has_contents and not is_own:
            rank = _UNLISTED_SMALL if is_small else _UNLISTED_CAPITALS
        else:
            rank = _SMALL if is_small and not is_own else _CAPITALS
        opened = self.outline.open
        if opened and not is_own and not is_title and self._is_bare(opened[-1]):
            rank = max(rank, opened[-1].level)
        else:
            self.outline.close(rank)
        kind = "existing law" if _LAW.search(text) else "cost estimate" if is_own and _COST.search(text) else "heading"
        self.outline.begin("title" if is_title else kind, rank, text, self._next)
        self.outline.write(text)

    def _is_bare(self, last: Part) -> bool:
        """Return whether the heading written last has no words yet, so that it may hold the next one."""
        is_last = last.start + len(last.heading) == self.outline.length
        return bool(last.heading) and is_last and last.level != _OF_ACCOUNT and len(self.outline.open) < _MOST_OPEN
