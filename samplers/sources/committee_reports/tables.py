"""Tables of committee reports: typeset columns and leaders as rows of cells, a tab between two cells."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from samplers.formats.text_writer import visible

NOTE_RULE = 75
"""Rules of this length part footnotes from the text; every other rule at the margin is a table's."""

_RULE = re.compile(r"\n(-{40,200})(?=\n)")
_PARTIAL = re.compile(r"[-=_][-=_ ]*")
_HEAD_RULE = re.compile(r"-{5,}")
_HEAD_CELL = re.compile(r"\S+(?: {1,2}\S+)*")
_LEADER = "....."
_SHORT_LEADER = re.compile(r"\.{2,} +\$?\d[\d,]*$")
_GAP = re.compile(r" {2,}| ?\.{4,} *|\.{2,}(?: +|$)", re.M)
_EMPTY = re.compile(r"(?<=  )\.{3,}(?= |$)", re.M)
_EMPTY_CELL = "\0"
"""Stands for a cell that holds only a leader: without it the cells after it would move to the left."""

_CELL = re.compile(r"\S+(?: \S+)*")
_RULES = ("", "-", "=", "_")
_DEEP = 8
"""A line that begins so many columns after a row goes on with a cell of it; parts of a sum are indented less."""

_HEAD_LINES = 12
"""Most lines between a table's first two rules; the longest of 210 measured has 5."""

_TITLE_LINES = 6


class Table(NamedTuple):
    """Where a table stands in a text, its title on one line, and its rows, title and heads included."""

    start: int
    end: int
    title: str
    rows: tuple[str, ...]


class Tables:
    """The tables of a text in order: those between rules, and the runs of lines with leaders outside them.

    `n_rules` and `n_leaders` count the characters in them that are no words.
    """

    def __init__(self, text: str) -> None:
        self.n_rules = 0
        self.n_leaders = 0
        self.found: list[Table] = []
        position = 0
        for start, end, heads, body in _ruled(text):
            self._add_runs(text, position, start)
            self._add_ruled(text, start, end, heads, body)
            position = end
        self._add_runs(text, position, len(text))

    def _add_ruled(self, text: str, start: int, end: int, heads: int, body: int) -> None:
        title = " ".join(text[start:heads].split())
        top, *head_lines, under = text[heads:body].split("\n")
        rows = [title] if title else []
        rows += self._heads(head_lines)
        rows += self._rows(text[body:end].split("\n"))
        self.n_rules += len(top) + len(under)
        self._add(text, Table(start, end, title, tuple(rows)))

    def _add_runs(self, text: str, position: int, end: int) -> None:
        """Blocks between two blank lines that hold a leader: from the label before its first one to its last one."""
        while (found := text.find(_LEADER, position, end)) >= 0:
            blank = text.rfind("\n\n", position, found)
            start = blank + 2 if blank >= 0 else position
            stop = text.find("\n\n", found, end)
            stop = end if stop < 0 else stop
            lines = text[start:stop].split("\n")
            with_leader = [index for index, line in enumerate(lines) if _has_leader(line)]
            first, last = with_leader[0], with_leader[-1] + 1
            while first and lines[first - 1].endswith(("--", ":")):
                first -= 1
            start += sum(len(line) + 1 for line in lines[:first])
            lines = lines[first:last]
            end_of_run = start + sum(len(line) + 1 for line in lines) - 1
            self._add(text, Table(start, end_of_run, "", tuple(self._rows(lines))))
            position = stop

    def _add(self, text: str, table: Table) -> None:
        self.n_leaders += text.count(".", table.start, table.end) - sum(row.count(".") for row in table.rows)
        self.found.append(table)

    def _rows(self, lines: Sequence[str]) -> list[str]:
        """One row for each entry: a label that goes on for several lines is joined, as is each cell of text."""
        entries: list[list[str]] = []
        base = 0
        is_open = False
        for line in lines:
            body = line.lstrip(" ")
            indent = len(line) - len(body)
            if body[:1] in _RULES and (not body or _PARTIAL.fullmatch(body)):
                self.n_rules += visible(body)
                is_open = False
            elif is_open and (indent == base + 1 or (indent >= base + _DEEP and _goes_on(entries[-1][0], indent))):
                entries[-1].append(line)
            else:
                entries.append([line])
                base, is_open = indent, True
        single = iter(_split("\n".join(entry[0].strip(" ") for entry in entries if len(entry) == 1)))
        return [next(single) if len(entry) == 1 else _joined(entry) for entry in entries]

    def _heads(self, lines: Sequence[str]) -> Iterator[str]:
        """The heads of columns: what spans several of them first, then one row with a cell for each."""
        found: list[list[re.Match[str]]] = []
        for line in lines:
            bare = _HEAD_RULE.sub(lambda rule: " " * len(rule[0]), line)
            if bare != line:
                self.n_rules += visible(line) - visible(bare)
                yield from map(_head_row, found)
                found = []
            if cells := list(_HEAD_CELL.finditer(bare)):
                found.append(cells)
        if not found:
            return
        base = max(reversed(found), key=len)
        columns: list[list[str]] = [[] for _ in base]
        for cells in found:
            over = [_columns_under(cell, base) for cell in cells]
            if spanning := [cell for cell, under in zip(cells, over, strict=True) if len(under) != 1]:
                yield _head_row(spanning)
            for cell, under in zip(cells, over, strict=True):
                if len(under) == 1:
                    columns[under[0]] += cell[0].split()
        yield "\t".join(" ".join(words) for words in columns)


def _ruled(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Start with the title, end, start of the heads and start of the rows of each table between three rules."""
    rules = [match.span(1) for match in _RULE.finditer(text) if len(match[1]) != NOTE_RULE]
    index = position = 0
    while index + 2 < len(rules):
        top, under, bottom = rules[index : index + 3]
        if text.count("\n", top[1], under[0]) <= _HEAD_LINES:
            index += 3
            while index < len(rules) and _is_row(text, bottom, rules[index]):
                bottom = rules[index]
                index += 1
            yield _title_start(text, position, *top), bottom[1], top[0], under[1]
            position = bottom[1]
        else:
            index += 1


def _is_row(text: str, rule: tuple[int, int], following: tuple[int, int]) -> bool:
    """Whether a row stands between two rules: a table may have one under each of its rows."""
    return following[1] - following[0] == rule[1] - rule[0] and text.find("\n\n", rule[1], following[0]) < 0


def _title_start(text: str, position: int, start: int, end: int) -> int:
    """Where the lines centred above a table's first rule begin; the rule itself if there are none."""
    width = end - start
    for _ in range(_TITLE_LINES):
        before = text.rfind("\n", position, max(start - 1, position)) + 1
        line = text[before : start - 1] if before > position else ""
        body = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if not body or abs(indent - (width - len(body)) / 2) > 3:
            break
        start = before
    return start


def _has_leader(line: str) -> bool:
    return ".." in line and (_LEADER in line or _SHORT_LEADER.search(line.rstrip(" ")) is not None)


def _split(lines: str) -> list[str]:
    """Rows that take one line each, with tabs."""
    if " ..." in lines:
        lines = _EMPTY.sub(_EMPTY_CELL, lines)
    return [row.replace(_EMPTY_CELL, "").rstrip("\t") for row in _GAP.sub("\t", lines).split("\n")]


def _joined(lines: Sequence[str]) -> str:
    """One row of the lines of an entry: what stands under a cell, one column to the right, goes on with it."""
    starts: list[int] = []
    cells: list[str] = []
    for number, line in enumerate(lines):
        for start, text in _cells(line):
            own = bisect_left(starts, start) - 1 if number else -1
            if own < 0 or (len(starts) == 1 and start > starts[0] + 1):
                starts.append(start)
                cells.append(text)
            elif text:
                cells[own] += f"{'' if cells[own].endswith(('-', '/')) else ' '}{text}"
    return "\t".join(cells).rstrip("\t")


def _goes_on(line: str, indent: int) -> bool:
    """Whether a cell of the line begins one column before."""
    return line[indent - 3 : indent - 1] in ("  ", ". ") and line[indent - 1 : indent] not in ("", " ", ".")


def _cells(line: str) -> Iterator[tuple[int, str]]:
    """The cells of a line, each with its column; leaders are left out, and a cell that is only a leader is empty."""
    for found in _CELL.finditer(line):
        start, text = found.start(), found[0]
        if _LEADER in text:
            label, _, figure = text.partition(_LEADER)
            figure = figure.lstrip(".")
            if figure or label.endswith(" "):
                yield start, label.rstrip(" ")
                yield found.end() - len(figure), figure
                continue
        yield start, text.rstrip(".") if text.endswith("..") else text


def _head_row(cells: Sequence[re.Match[str]]) -> str:
    return "\t".join(" ".join(cell[0].split()) for cell in cells)


def _columns_under(cell: re.Match[str], base: Sequence[re.Match[str]]) -> list[int]:
    """The columns with which a cell of the heads shares a place."""
    return [index for index, column in enumerate(base) if column.start() < cell.end() and cell.start() < column.end()]
