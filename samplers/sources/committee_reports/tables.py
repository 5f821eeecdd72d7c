"""Tables of committee reports: typeset columns and leaders as rows of cells, a tab between two cells."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

NOTE_RULE = 75
"""Rules of this length part footnotes from the text; every other rule at the margin is a table's."""

_RULE = re.compile(r"\n(-{40,200})(?=\n)")
_PARTIAL_RULE = re.compile(r"[-=_][-=_ ]*|")
_HEAD_RULE = re.compile(r"-{5,}")
_HEAD_CELL = re.compile(r"\S+(?: {1,2}\S+)*")
_LEADER = "....."
_WHOLE_LEADER = re.compile(r"\.{5}[. ]*")
_SHORT_LEADER = re.compile(r"\.{2,} +\$?\d[\d,]*$")
_CELL = re.compile(r"\S+(?: \S+)*")
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
    rows: list[str]


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a text in order: those between rules, and the runs of lines with leaders outside them."""
    position = 0
    for start, end, heads, body in _ruled(text):
        yield from _runs(text, position, start)
        title = " ".join(text[start:heads].split())
        # The first line is the rest of the upper rule, the last one the rule under the heads.
        head_lines = text[heads:body].split("\n")[1:-1]
        rows = [*([title] if title else []), *_heads(head_lines), *_rows(text[body:end].split("\n"))]
        yield Table(start, end, title, rows)
        position = end
    yield from _runs(text, position, len(text))


def _ruled(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield start with the title, end, start of the heads and start of the rows of each table between three rules."""
    rules = [match.span(1) for match in _RULE.finditer(text) if len(match[1]) != NOTE_RULE]
    index = position = 0
    while index + 2 < len(rules):
        top, under, bottom = rules[index : index + 3]
        if text.count("\n", top[1], under[0]) > _HEAD_LINES:
            index += 1
            continue
        index += 3
        # A table may have a rule of the same length under each of its rows.
        while index < len(rules) and len({end - start for start, end in (bottom, rules[index])}) == 1:
            if text.find("\n\n", bottom[1], rules[index][0]) >= 0:
                break
            bottom = rules[index]
            index += 1
        yield _title_start(text, position, *top), bottom[1], top[0], under[1]
        position = bottom[1]


def _title_start(text: str, position: int, start: int, end: int) -> int:
    """Return where the lines centred above a table's first rule begin; the rule itself if there are none."""
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


def _runs(text: str, position: int, end: int) -> Iterator[Table]:
    """Yield blocks between two blank lines that hold a leader: from the label before its first one to its last one."""
    while (leader := text.find(_LEADER, position, end)) >= 0:
        blank = text.rfind("\n\n", position, leader)
        start = blank + 2 if blank >= 0 else position
        stop = text.find("\n\n", leader, end)
        position = end if stop < 0 else stop
        lines = text[start:position].split("\n")
        with_leader = [index for index, line in enumerate(lines) if _has_leader(line)]
        first, last = with_leader[0], with_leader[-1] + 1
        while first and lines[first - 1].endswith(("--", ":")):
            first -= 1
        start += sum(len(line) + 1 for line in lines[:first])
        lines = lines[first:last]
        yield Table(start, start + sum(len(line) + 1 for line in lines) - 1, "", _rows(lines))


def _has_leader(line: str) -> bool:
    return ".." in line and (_LEADER in line or _SHORT_LEADER.search(line.rstrip(" ")) is not None)


def _rows(lines: Sequence[str]) -> list[str]:
    """Return one row for each entry: a label that goes on for several lines is joined, as is each cell of text."""
    entries: list[list[str]] = []
    base = 0
    is_open = False
    for line in lines:
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if _PARTIAL_RULE.fullmatch(body):
            is_open = False
        elif is_open and (indent == base + 1 or (indent >= base + _DEEP and _goes_on(entries[-1][0], indent))):
            entries[-1].append(line)
        else:
            entries.append([line])
            base, is_open = indent, True
    return list(map(_joined, entries))


def _goes_on(line: str, indent: int) -> bool:
    """Return whether a cell of the line begins one column before."""
    return line[indent - 3 : indent - 1] in ("  ", ". ") and line[indent - 1 : indent] not in ("", " ", ".")


def _joined(lines: Sequence[str]) -> str:
    """Return one row of the lines of an entry: what stands under a cell, one column to the right, goes on with it."""
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


def _cells(line: str) -> Iterator[tuple[int, str]]:
    """Yield the cells of a line, each with its column; a leader is left out, and a cell of nothing else is empty."""
    for cell in _CELL.finditer(line):
        start = cell.start()
        for leader in _WHOLE_LEADER.finditer(line, *cell.span()):
            label = line[start : leader.start()]
            if leader.end() < cell.end() or label.endswith(" "):
                yield start, label.rstrip(" ")
                start = leader.end()
        text = line[start : cell.end()]
        yield start, text.rstrip(".") if text.endswith("..") else text


def _heads(lines: Sequence[str]) -> Iterator[str]:
    """Yield the heads of columns: what spans several of them first, then one row with a cell for each."""
    ranks: list[list[re.Match[str]]] = []
    for line in lines:
        bare = _HEAD_RULE.sub(lambda rule: " " * len(rule[0]), line)
        # A rule among the heads ends those that span the columns below it.
        if bare != line:
            yield from map(_head_row, ranks)
            ranks = []
        if cells := list(_HEAD_CELL.finditer(bare)):
            ranks.append(cells)
    base = max(reversed(ranks), key=len, default=[])
    columns: list[list[str]] = [[] for _ in base]
    for cells in ranks:
        over = [[n for n, c in enumerate(base) if c.start() < cell.end() and cell.start() < c.end()] for cell in cells]
        if spanning := [cell for cell, under in zip(cells, over, strict=True) if len(under) != 1]:
            yield _head_row(spanning)
        for cell, under in zip(cells, over, strict=True):
            if len(under) == 1:
                columns[under[0]] += cell[0].split()
    if base:
        yield "\t".join(" ".join(words) for words in columns)


def _head_row(cells: Sequence[re.Match[str]]) -> str:
    return "\t".join(" ".join(cell[0].split()) for cell in cells)
