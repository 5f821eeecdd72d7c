"""What stands before the transcript of a hearing: cover, notice of sale, roster, contents."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from samplers.formats.printed.paragraphs import Paragraph, in_capitals

RUNNING = 4
"""The column where a paragraph of running text begins; headings and tables begin elsewhere."""

HEADING_LENGTH = 600
"""Characters that no heading has."""

CENTRED_LENGTH = 52
"""Characters from which a line that is centred may begin at the column RUNNING: pages are 64 columns wide."""

CONTENTS_LENGTH = 160
"""Characters of the longest paragraph of the contents; a longer one is text, which a table may follow."""

N_HEADERS = 3
"""Paragraphs among which the page says what it is and who published it."""

STATEMENT = re.compile(
    r"(?:(?:OPENING|PREPARED|CLOSING|JOINT|FURTHER|ADDITIONAL) ){0,3}"
    r"(?:STATEMENTS?|TESTIMONY|REMARKS|COMMENTS|PRESENTATION) (?:OF|BY|FROM) (?P<whom>[^,\d\\]{3,60})"
)
CONVENED = re.compile(r"The [\w ,]{3,80} (?:met|convened|reconvened)\b", re.I)

_CONTENTS = re.compile(r"(?:TABLE OF )?CONTENTS", re.I)
_ENDS_IN_PAGE = re.compile(r"\t *(?:\d{1,4}|[ivxl]{1,6})$")
_SALE = re.compile(
    r"(?=[GWFSBMDI\d])(?:"
    r"\bGOVERNMENT (?:PRINTING|PUBLISHING) OFFICE\b|WASHINGTON ?: ?\d{4}|For sale by|Superintendent of Documents"
    r"|bookstore\.gpo|Fax: |Mail: Stop|gpo@|GPO Customer|DC 20402|^\d{2,3}-\d{3}\b|\bISBN )",
    re.I,
)
_HEADER = re.compile(r"\[(?:House|Senate|Joint)\b[^\[\]]{1,80}\](?: \[From the .*)?$|\[From the U\.S\. Government P")
_PAGE_NUMBER = re.compile(r"\((?:[ivxl]{1,6}|[IVXL]{1,6}|\d{1,6})\)|\?")
"""A page number stands in brackets; "?" is what became of a page's end."""
_NAME = re.compile(r"[A-Z][\w'’-]+")


class Front(NamedTuple):
    """Where the roster, the contents and the transcript begin, and what is left out by paragraph."""

    roster: int
    contents: int
    start: int
    left_out: Mapping[int, str]


def is_heading(paragraph: Paragraph) -> bool:
    """Return whether a paragraph is centred or in capitals, and no row of a table.

    One that begins where running text does stands apart, in capitals, and is as long as a centred line there is.
    """
    indent, is_apart, text = paragraph
    if (indent == RUNNING and not is_apart) or "\t" in text or len(text) >= HEADING_LENGTH:
        return False
    if indent == RUNNING:
        return len(text) >= CENTRED_LENGTH and in_capitals(text)
    return indent > RUNNING or in_capitals(text)


def contents_at(page: Sequence[Paragraph]) -> int:
    """Return the heading over the contents; -1 for none."""
    places = (i for i, (indent, _, text) in enumerate(page) if indent > RUNNING and _CONTENTS.fullmatch(text))
    return next(places, -1)


def announced(page: Sequence[Paragraph]) -> set[str]:
    """Return first and last names, in small letters, from the headings over statements."""
    headings = (p for p in page if p.indent != RUNNING or (p.is_apart and is_heading(p)))
    matches = filter(None, (STATEMENT.match(heading.text) for heading in headings))
    return {word.lower() for match in matches for word in _NAME.findall(match["whom"])}


def front(page: Sequence[Paragraph], contents: int, first_turn: int) -> Front:
    """Return the front matter of a hearing whose first turn opens paragraph `first_turn`, len(page) without one.

    The contents repeat the headings of a transcript, and are left out; if nobody speaks they say what was filed.
    """
    start = _start(page, contents, first_turn)
    end = contents if contents >= 0 else start
    # The roster begins behind the last line of the notice of sale.
    headers = [i for i in range(min(N_HEADERS, end)) if _HEADER.match(page[i].text)]
    sales = [i for i in range(end) if i not in headers and _SALE.search(page[i].text)]
    roster = sales[-1] + 1 if sales else end
    left_out = dict.fromkeys(range(contents, start), "contents") if contents >= 0 and first_turn < len(page) else {}
    left_out |= dict.fromkeys(sales, "notice of sale") | dict.fromkeys(headers, "header")
    left_out |= {i: "page numbers" for i, (_, _, text) in enumerate(page) if _PAGE_NUMBER.fullmatch(text)}
    return Front(roster, end, start, left_out)


def _start(page: Sequence[Paragraph], contents: int, first_turn: int) -> int:
    """Return the first paragraph of the transcript: after the contents, or with the title repeated from the cover."""
    # The contents end with their last page number, before the first words of running text.
    if contents >= 0:
        last = contents
        for i in range(contents, len(page)):
            if page[i].indent == RUNNING and (len(page[i].text) > CONTENTS_LENGTH or CONVENED.match(page[i].text)):
                break
            if _ENDS_IN_PAGE.search(page[i].text):
                last = i
        return last + 1
    # Without contents the headings before "The Committee met" are the transcript's, from the title on.
    opening = (i for i in range(first_turn) if page[i].indent == RUNNING and CONVENED.match(page[i].text))
    first = next(opening, first_turn)
    headings = range(before_headings(page, first, 0), first)
    cover = {paragraph.text for paragraph in page[: headings.start]}
    return max((i for i in headings if page[i].text in cover), default=headings.start)


def before_headings(page: Sequence[Paragraph], first: int, floor: int) -> int:
    """Return the first of the headings directly before a paragraph, at least `floor`."""
    while first > floor and is_heading(page[first - 1]):
        first -= 1
    return first
