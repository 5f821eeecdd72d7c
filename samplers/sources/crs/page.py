"""A CRS product as a browser extension saves it from Congress.gov: facts, body and what is the page's own."""

import re
from collections import Counter
from dataclasses import dataclass

from samplers.formats.markdown_text import plain
from samplers.formats.stated import ordinal
from samplers.formats.text_writer import on_one_line, visible

FURNITURE = "page furniture"
CONTENTS = "contents lists"
CHARTS = "labels of interactive charts"

_KEY_LINE = re.compile(r"\*\*(?P<key>[A-Z][\w .()]{2,30}):\*\*\s*(?P<value>.*)")
_OVERVIEW_ROW = re.compile(r"\|\s*\*\*(?P<key>[A-Z][\w .()]{2,30}):\*\*\s*\|\s*(?P<value>.*)")
_KEYS = {
    "Product Type": "type",
    "CRS Product Type": "type",
    "Report No.": "number",
    "CRS Product Number": "number",
    "Version": "version",
    "Topics": "topics",
}
_NUMBER = re.compile(r"(?:[A-Z]{1,4}[0-9]{4,6}|[0-9]{2}-[0-9]{2,4}[A-Z]{0,2})")
_VERSION = re.compile(r"[0-9]{1,3}")
_PDF = re.compile(r"crs_external_products/[^()\s]{1,60}?\.(?P<version>[0-9]{1,3})\.pdf")
_NAMED = re.compile(rf"(?P<number>{_NUMBER.pattern})(?:v(?P<version>[0-9]{{1,3}}))?(?=[-_.]|$)")
_DATED = re.compile(r"[A-Z][a-z]{2,8} \d{1,2}, \d{4}\s*\(([^()\s]{3,12})\)\s*$")
_LISTS = re.compile(r"#\s+(Contents|Figures|Tables|Appendix(?:es)?)\s*")
_LINKS = (
    *("[Jump to Main Text", "[Citation", "[Download PDF", "[PDF Version", "[Listen"),
    *("[Hide Overview", "[Show Overview"),
)
_AUTHORS = ("Author Information", "Author Contact Information")
_NUMBERED = r"(?:Congress|[Cc]entury|[Aa]nniversary|[Ss]ession|Amendment|Circuit)\b(?!\.gov)"
_SECOND = r"(-| and | or | to | through )(\d{1,3})(?= (?:Congresses|[Cc]enturies)\b)"
_ORDINAL = re.compile(
    r"\d(?=\d{0,2}[ -])(?:(?<![\w$§.,/%#-]\d)(?<!Section \d)(?<!Article \d)(?<!Title \d)(?<!Part \d)(?<!Rule \d)"
    r"(?!(?<=1) (?!Congress))"
    rf"(\d{{0,2}})(?:(?= {_NUMBERED})|{_SECOND})|{_SECOND})"
)
"""A number that was an ordinal, or the second of two: what counts one Congress or century is in the plural, or 1.

It begins with a digit, which is searched for ten times as fast as what stands before it.
"""
_COUNTED = re.compile(r" (?<=\d )(?:[Cc]entur|Congress|[Aa]nnivers|[Ss]ess|Amend|Circ)")
"""What stands in every line that has such a number, and in few others: one in 130 lines."""

_CHART = re.compile(r"Created with Highcharts \d")
_CHART_NOTE = "Figure is interactive in the HTML version"
_AFTER_CHART = re.compile(r"[-\s]*|End of interactive chart\.?\s*")
"""The buttons of a chart, which are empty items, and its end as a screen reader announces it."""
_DISCLAIMER = "Disclaimer:"

HEAD_LINES = 200
"""Lines among which the page's own head ends; the longest real one, with 53 versions, has 79."""


@dataclass(frozen=True)
class Page:
    """A product's page, taken apart; facts that it does not state are ""."""

    number: str
    version: str
    kind: str
    topics: tuple[str, ...]
    title: str
    lines: list[str]
    """The body: what stands between the page's head and the disclaimer, contents lists left out."""
    entries: tuple[str, ...]
    """The headings that the table of contents and the list of appendixes name, in their order."""
    left_out: Counter[str]


def read_page(text: str, stem: str) -> Page | None:
    """The page in a file's text; `stem`, the file's name, fills what it leaves open. None if no product is named."""
    lines = text.split("\n")
    facts, n_facts = _facts(lines)
    named = _NAMED.match(stem)
    number = facts.get("number", "") or (named["number"] if named else "")
    if not _NUMBER.fullmatch(number):
        return None
    versions = (facts.get("version", ""), *(found["version"] for found in _PDF.finditer(text[:20_000])))
    in_name = named["version"] or "" if named and named["number"] == number else ""
    start = _body_start(lines, number, n_facts)
    left_out = Counter({FURNITURE: n_visible(lines[:start])})
    body, entries = _body(lines[start:], left_out)
    return Page(
        number=number,
        version=next((version for version in (*versions, in_name) if _VERSION.fullmatch(version)), ""),
        kind=facts.get("type", ""),
        topics=tuple(filter(None, (topic.strip() for topic in facts.get("topics", "").split(";")))),
        title=next((plain(line[2:]) for line in lines[:start] if line.startswith("# ")), ""),
        lines=body,
        entries=entries,
        left_out=left_out,
    )


def with_ordinals(text: str) -> tuple[str, int]:
    """The text with "119th Congress" where the saved page lost the raised letters, and how many it supplies."""
    lines = [_ORDINAL.sub(_as_ordinals, line) if _COUNTED.search(line) else line for line in text.split("\n")]
    whole = "\n".join(lines)
    return whole, len(whole) - len(text)


def _as_ordinals(found: re.Match[str]) -> str:
    """The second number as an ordinal, and the first if it was one."""
    rest, *seconds = found.groups("")
    first = found[0][0] if found[1] is None else ordinal(found[0][0] + rest)
    return f"{first}{seconds[0] or seconds[2]}{ordinal(seconds[1] or seconds[3])}"


def _facts(lines: list[str]) -> tuple[dict[str, str], int]:
    """What the block before the first rule and the table of the overview state, and where the block ends."""
    facts: dict[str, str] = {}
    end = 0
    for place, line in enumerate(lines[:HEAD_LINES]):
        if found := _KEY_LINE.match(line) or _OVERVIEW_ROW.match(line):
            key = _KEYS.get(found["key"], "")
            facts.setdefault(key, found["value"].strip())
            end = place + 1
    return facts, end


def _body_start(lines: list[str], number: str, after_facts: int) -> int:
    """The first line after the page's head, which ends with the date and number below the title, or earlier."""
    head = lines[:HEAD_LINES]
    for place, line in enumerate(head):
        if (found := _DATED.search(line[-80:])) and found[1] == number:
            return place + 1
    listen = [place for place, line in enumerate(head) if line.startswith("[Listen](")]
    return listen[0] + 1 if listen else after_facts


def _body(lines: list[str], left_out: Counter[str]) -> tuple[list[str], tuple[str, ...]]:
    end = next((place for place, line in enumerate(lines) if line.strip() == _DISCLAIMER), len(lines))
    left_out[FURNITURE] += n_visible(lines[end:])
    body: list[str] = []
    entries: list[str] = []
    in_list = ""
    in_chart = False
    for line in lines[:end]:
        is_chart = "Created" in line and _CHART.search(line) is not None
        in_chart = is_chart or (in_chart and _AFTER_CHART.fullmatch(line) is not None)
        if line[:1] == "#" and (found := _LISTS.fullmatch(line)):
            in_list = found[1]
            left_out[CONTENTS] += n_visible([line])
        elif in_list and line.startswith("- ["):
            if in_list not in ("Figures", "Tables"):
                entries.append(" ".join(plain(line[2:]).split()))
            left_out[CONTENTS] += n_visible([line])
        elif in_chart or line.startswith(_CHART_NOTE):
            left_out[CHARTS] += n_visible([line])
        elif line.startswith(_LINKS) or line.rstrip() in _AUTHORS:
            left_out[FURNITURE] += n_visible([line])
        else:
            in_list = "" if line.strip() else in_list
            body.append(line)
    return _unbroken(body, frozenset(entries)), tuple(entries)


def _unbroken(lines: list[str], entries: frozenset[str]) -> list[str]:
    """The lines with a heading of the contents list on one line, where the page has it on two."""
    has_rows = any("|" in entry for entry in entries)
    result: list[str] = []
    for line in lines if entries else ():
        above = result[-1] if result and line.strip() else ""
        is_near = above.strip() and len(above) + len(line) < 300 and (has_rows or line.lstrip()[0] != "|")
        if is_near and on_one_line(f"{plain(above)} {plain(line)}") in entries:
            result[-1] = f"{above.strip()} {line.strip()}"
        else:
            result.append(line)
    return result if entries else lines


def n_visible(lines: list[str]) -> int:
    """Characters of all lines that are not white space."""
    return visible("\n".join(lines))
