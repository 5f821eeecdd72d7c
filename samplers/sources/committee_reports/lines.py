"""A committee report as lines, each with what it is: a heading, a table, a paragraph with or without a label."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from samplers.formats.printed.layout import WIDTH, n_marks, with_headings
from samplers.formats.printed.paragraphs import Paragraph, paragraphs
from samplers.formats.printed.text import END_MARK, RULE, removed, typographic, without_page_marks
from samplers.sources.committee_reports.tables import Table, Tables

_RUNNING = 4
"""The column where a paragraph begins."""

_HELD, _COVER, _TABLE = _MARKS = ("\x1d", "\x1e", "\x1f")
"""Begin a line that is a heading, a centred line of the cover or the number of a table; no text holds them."""

_JACKET = re.compile(r"\n *\d{2}-\d{3}(?: (?:PDF|O|cc))?(?=\n)")
_FRONT = 6_000
"""Characters in which a number that the printing office gave stands, if any."""

_FOOTNOTES = re.compile(r"\n-{75}\n((?:(?!-{40})[^\n]*\n){1,60}?)-{75}\n+((?![ \n])(?:[^\n]+\n(?! ))*[^\n]+\n|)")
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


class Line(NamedTuple):
    """`kind` is "heading", "margin" (a heading at the margin), "table" or "paragraph".

    `label` is a table's title or a paragraph's own heading; `is_close` puts a line right under the one before.
    """

    kind: str
    text: str
    label: str = ""
    is_close: bool = False
    rows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the contents may list: a heading, or the title of a table without its unit; "" for the rest."""
        if self.kind == "heading":
            return self.text
        return self.label.partition(" [")[0] if self.kind == "table" else ""


def lines_of(text: str, left_out: dict[str, int]) -> list[Line]:
    """The lines of a report without its cover and contents; what is no word is counted in `left_out`."""
    text = removed(END_MARK, text, left_out, "end mark")
    text = removed(_JACKET, text[:_FRONT], left_out, "jacket number") + text[_FRONT:]
    text = removed(_FOOTNOTES, without_page_marks(text, left_out), left_out, "rules", _after_paragraph)
    text, found = _without_tables(text, left_out)
    text = removed(RULE, text, left_out, "rules", "\n")
    text = _HANGING.sub(f"\n{' ' * 10}", _NOTE.sub("\n\n", text))
    front = text.find("\n", max(text.find(_MEASURE), 0))
    text = with_headings(text[:front], _COVER, takes_notes=True) + with_headings(text[front:], _HELD, takes_notes=False)
    text = typographic(text, left_out)
    running = paragraphs(text, _RUNNING)
    if lost := n_marks(text) - n_marks("\n".join(paragraph.text for paragraph in running)):
        left_out["leaders and hyphens at line ends"] = lost
    return list(_lines(running, found))


def _after_paragraph(match: re.Match[str]) -> str:
    """A footnote behind the paragraph that it interrupts."""
    notes, rest = match[1], match[2]
    return f"\n{rest}\n{notes}\n" if rest else f"\n\n{notes}\n"


def _without_tables(text: str, left_out: dict[str, int]) -> tuple[str, list[Table]]:
    """The text with a line in place of each table, and the tables, which those lines number."""
    found = Tables(text)
    for reason, n in (("rules", found.n_rules), ("leaders", found.n_leaders)):
        if n:
            left_out[reason] = left_out.get(reason, 0) + n
    pieces: list[str] = []
    position = 0
    for number, table in enumerate(found.found):
        pieces += (text[position : table.start], f"\n\n{_TABLE}{number}\n\n")
        position = table.end
    cells = typographic(_HELD.join("\n".join(table.rows) for table in found.found), left_out).split(_HELD)
    tables = [
        Table(table.start, table.end, rows[0] if table.title else "", rows)
        for table, rows in ((table, tuple(part.split("\n"))) for table, part in zip(found.found, cells, strict=False))
    ]
    return "".join((*pieces, text[position:])), tables


def _lines(found: Sequence[Paragraph], held: Sequence[Table]) -> Iterator[Line]:
    index = 0
    while index < len(found):
        if rows := tuple(_figures(found, index, held)):
            yield Line("table", "", rows=rows)
            index += 2 * len(rows)
        else:
            yield _line(found, index, held)
            index += 1


def _line(found: Sequence[Paragraph], index: int, held: Sequence[Table]) -> Line:
    indent, is_apart, text = found[index]
    mark, rest = text[0], text[1:]
    if mark == _HELD:
        return Line("heading", rest)
    if mark == _COVER:
        return Line("paragraph", rest, is_close=True)
    if mark == _TABLE:
        return Line("table", "", held[int(rest)].title, rows=held[int(rest)].rows)
    if indent == 0 and is_apart and _heads(text, found[index + 1] if index + 1 < len(found) else None):
        return Line("margin", text)
    is_close = not is_apart and indent != _RUNNING and index > 0 and indent == found[index - 1].indent
    return Line("paragraph", text, _own_heading(text) if indent == _RUNNING else "", is_close)


def _figures(found: Sequence[Paragraph], index: int, held: Sequence[Table]) -> Iterator[str]:
    """Rows of a table that lost its leaders: labels at the margin, each with its figure on a line of its own."""
    while index + 1 < len(found) and found[index].indent == 0 and found[index].text[0] not in _MARKS:
        figure = _figure(found[index + 1], held)
        if figure is None:
            return
        yield f"{found[index].text}\t{figure}".rstrip("\t")
        index += 2


def _figure(paragraph: Paragraph, held: Sequence[Table]) -> str | None:
    """The figure, "" if only a leader stands in its place; None for anything else."""
    if paragraph.text[0] == _TABLE:
        return None if any(held[int(paragraph.text[1:])].rows) else ""
    return paragraph.text if paragraph.indent > WIDTH // 2 and _FIGURE.fullmatch(paragraph.text) else None


def _heads(text: str, following: Paragraph | None) -> bool:
    """Whether a paragraph at the margin, with its own blank lines, is a heading."""
    if _SECTION_OF_LAW.match(text):
        return True
    is_alone = following is None or (following.is_apart and not following.text.startswith(_TABLE))
    return (
        is_alone and len(text) < 2 * WIDTH and text[0].isupper() and not text.endswith(_OPEN_ENDED) and "\t" not in text
    )


def _own_heading(text: str) -> str:
    """The words before ".—" that name a paragraph, "" if there are none."""
    found = _ITEM.match(text)
    return found[1] if found and not _SENTENCE.search(found[1]) and not _DAY.fullmatch(found[1]) else ""
