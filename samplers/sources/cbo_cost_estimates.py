"""Cost estimates of the Congressional Budget Office (PDF or plain text) as documents: one estimate each."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from runner.base.canonical import slug
from runner.base.errors import DocumentError
from runner.base.records import Document, Section
from samplers.formats.headings import cut, is_title
from samplers.formats.pdf.lines import MAX_BYTES
from samplers.formats.pdf.text import PageText, Paragraph, read_pdf, read_typed
from samplers.formats.stated import DATE, MEASURE_TYPE, bucket, congress_of, day_of
from samplers.formats.text_writer import Part, TextWriter, visible
from samplers.source_format import FileContent, SourceFormat

LETTERHEAD = "letterhead"
FURNITURE = "page furniture"
LEADERS = "leaders and rules"
INVISIBLE = "soft hyphens and zero-width characters"
LONGEST_HEADING = 120
HEAD_RANK = 3
"""Of the paragraphs above the first heading: any heading ends them."""
HEAD_PARAGRAPHS = 16
"""Among which an estimate says what it is about; a letter to a committee's chair stands before it at times."""

HEADINGS = frozenset(
    (
        *("at a glance", "summary", "bill summary", "legislation summary", "background", "federal costs"),
        *("estimated federal cost", "estimated cost to the federal government", "estimated budgetary effects"),
        *("basis of estimate", "uncertainty", "pay-as-you-go considerations", "statutory pay-as-you-go considerations"),
        *("increase in long-term net direct spending and deficits", "increase in long-term deficits", "mandates"),
        *("increase in long-term direct spending and deficits", "intergovernmental and private-sector impact"),
        *("intergovernmental and private-sector mandates", "estimated impact on state, local, and tribal governments"),
        *("estimated impact on the private sector", "effects on the federal budget", "additional information"),
        *("previous cbo estimate", "previous cbo estimates", "related cbo estimate", "related cbo estimates"),
        *("comparison with other estimates", "estimate prepared by", "estimate reviewed by", "estimate approved by"),
    )
)
"""The headings of first rank that CBO has used since the 1990s, in lower case without a colon at the end."""

_MEASURE = re.compile(rf"(?P<type>{MEASURE_TYPE}) ?(?P<number>[0-9]{{1,5}})\b,?\s*(?P<title>.*)")
_SENTENCE = re.compile(r" (?:would|is|are|was) ")
_DATE = re.compile(DATE)
_REPORTED = re.compile(r"\bAs (?:ordered reported|reported|introduced|passed|posted|provided|cleared|amended)\b")
_CHAMBER = re.compile(r"\b(House|Senate)\b")
_PUBLICATION = re.compile(r"\bPublication(?: (?:No\.|Number))?:? ([0-9]{4,6})\b")
_LETTERHEAD = re.compile(
    r"(?:CONGRESSIONAL BUDGET OFFICE|U\.S\. CONGRESS|COST ESTIMATE|WASHINGTON, D\.?C\.?(?: 20515)?|\s|\|)+", re.I
)
_FURNITURE = re.compile(r"See also CBO[’']s |Detailed estimate begins on |www\.cbo\.gov/publication/\d+\s*$", re.I)
_LEADERS = re.compile(r"(?:\. ?){4,}|_{3,}|-{4,}|={3,}")
_OFFICE = re.compile(r"Congressional Budget Office|\bCBO\b", re.I)


@dataclass(frozen=True, slots=True)
class Facts:
    """What an estimate states above its first heading; parts that it leaves open are ""."""

    measure: str
    """As printed, such as "H.R. 1234"."""
    title: str
    chamber: str
    day: date | None
    publication: str


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    pages = read_pdf(data, name) if b"%PDF-" in data[:1024] else read_typed(_decoded(data, name), name)
    left_out = Counter(pages.left_out)
    paragraphs = list(_body(pages, left_out))
    if not any(_OFFICE.search(paragraph.text) for paragraph in pages.paragraphs):
        raise DocumentError(name, "names the Congressional Budget Office nowhere, so it is no cost estimate of it")
    n_head = next((place for place, _ in enumerate(paragraphs) if _rank(paragraphs, place)), 0)
    text, sections, n_invisible = _written(paragraphs, n_head)
    if not text:
        raise DocumentError(name, "has no text below its letterhead")
    left_out.update({INVISIBLE: n_invisible} if n_invisible else {})
    facts = _facts(paragraphs[:HEAD_PARAGRAPHS])
    return FileContent((_document(facts, text, sections, name),), left_out)


def _decoded(data: bytes, name: str) -> str:
    if b"\0" in data:
        raise DocumentError(name, "binary data, neither a PDF nor text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start + 1})") from error
    if re.match(r"\s*<[!?a-zA-Z]", text):
        raise DocumentError(name, "a page of HTML or XML; this source's files are PDF or plain text")
    return text


def _body(pages: PageText, left_out: Counter[str]) -> Iterator[Paragraph]:
    """The paragraphs without letterhead, references to CBO's explanations, dot leaders and ruled lines."""
    for paragraph in pages.paragraphs:
        text = paragraph.text
        for reason, without in _LEFT_OUT.items():
            shorter = without(text)
            if dropped := visible(text) - visible(shorter):
                left_out[reason] += dropped
            text = shorter
        if text:
            yield replace(paragraph, text=text)


def _without_furniture(text: str) -> str:
    return "" if _FURNITURE.match(text) else text


def _without_letterhead(text: str) -> str:
    lines = (
        "\t".join(cell for cell in line.split("\t") if not _LETTERHEAD.fullmatch(cell)) for line in text.split("\n")
    )
    return "\n".join(filter(None, lines))


def _without_leaders(text: str) -> str:
    return "\n".join(filter(None, (_LEADERS.sub("\t", line).strip() for line in text.split("\n"))))


_LEFT_OUT = {FURNITURE: _without_furniture, LETTERHEAD: _without_letterhead, LEADERS: _without_leaders}


def _rank(paragraphs: Sequence[Paragraph], place: int) -> int:
    """The rank of a heading, 0 for other paragraphs.

    1 for CBO's own headings and lines in capitals; 2 for lines that are bold or set as titles above a paragraph.
    """
    paragraph = paragraphs[place]
    text = paragraph.text.rstrip(": ")
    if len(text) > LONGEST_HEADING or "\t" in text or not text or paragraph.n_lines > 2:
        return 0
    if text.lower() in HEADINGS:
        return 1
    is_title_block = _MEASURE.match(text) or _DATE.match(text) or _REPORTED.match(text)
    is_text = text[-1] in ".,;?!" or text.startswith(("*", "•", "(", "Dear ", "Honorable "))
    below = paragraphs[place + 1].text if place + 1 < len(paragraphs) else ""
    if is_title_block or is_text or "\t" in below or not below:
        return 0
    if text.isupper() and len(text) > 4:
        return 1
    is_above_text = len(below) > 2 * len(text) and below.rstrip()[-1] in ".:;"
    return 2 if is_above_text and (paragraph.bold or (paragraph.n_lines == 1 and is_title(text))) else 0


def _written(paragraphs: Sequence[Paragraph], n_head: int) -> tuple[str, tuple[Section, ...], int]:
    """Text, sections and number of invisible characters: the head, then headings of two ranks."""
    writer = TextWriter()
    open_parts: list[tuple[int, Part]] = [(HEAD_RANK, writer.open("head", 1))] if n_head else []
    above = ""
    for place, paragraph in enumerate(paragraphs):
        rank = _rank(paragraphs, place)
        while rank and open_parts and open_parts[-1][0] >= rank:
            writer.close(open_parts.pop()[1])
        is_row_below_row = "\t" in paragraph.text and "\t" in above
        writer.separate("\n" if place < n_head or is_row_below_row else "\n\n")
        if rank:
            part = writer.open("heading", len(open_parts) + 1)
            part.heading = " ".join(paragraph.text.rstrip(": ").split())
            open_parts.append((rank, part))
        for n_line, line in enumerate(paragraph.text.split("\n")):
            writer.separate("\n" if n_line else "")
            for n_cell, cell in enumerate(line.split("\t")):
                writer.separate("\t" if n_cell else "")
                writer.write(cell)
        above = paragraph.text
    for _, part in reversed(open_parts):
        writer.close(part)
    return *writer.finish(), writer.n_invisible


def _facts(head: Sequence[Paragraph]) -> Facts:
    lines = [cell for paragraph in head for cell in re.split(r"[\t\n]", paragraph.text)]
    places = [place for place, line in enumerate(lines) if _MEASURE.match(line) and not _SENTENCE.search(line)]
    measure = _MEASURE.match(lines[places[0]]) if places else None
    reported = next((line[found.start() :] for line in lines for found in [_REPORTED.search(line)] if found), "")
    chamber = _CHAMBER.search(reported)
    dates = [found[0] for line in lines for found in _DATE.finditer(line.removesuffix(reported))]
    publications = (found[1] for found in map(_PUBLICATION.search, lines) if found)
    title = measure["title"] if measure else ""
    if measure and not title and places[0] + 1 < len(lines):
        title = lines[places[0] + 1]
    title = "" if _DATE.match(title) else _REPORTED.split(title)[0]
    return Facts(
        measure=f"{measure['type']} {measure['number']}" if measure else "",
        title=title.strip(" ,"),
        chamber=chamber[1].lower() if chamber else "",
        day=day_of(dates[0]) if dates else None,
        publication=next(publications, ""),
    )


def _document(facts: Facts, text: str, sections: tuple[Section, ...], name: str) -> Document:
    stem = name.rpartition("/")[2].rpartition(".")[0]
    doc_id = f"CBO-{facts.publication or slug(stem) or 'unnamed'}"
    congress = str(congress_of(facts.day)) if facts.day else ""
    measure = re.sub(r"[^a-z0-9]", "", facts.measure.lower())
    on = " ".join(filter(None, (facts.measure or stem, f"({facts.day})" if facts.day else "")))
    title = unicodedata.normalize("NFC", f"CBO cost estimate: {', '.join(filter(None, (on, facts.title)))}")
    return Document(
        doc_id=doc_id,
        text=text,
        title=cut(title, ends=""),
        stratum="/".join((congress or "unknown", facts.chamber or "unknown", bucket(len(text)))),
        family=f"CBO-{congress}-{measure}" if congress and measure else doc_id,
        url=f"https://www.cbo.gov/publication/{facts.publication}" if facts.publication else "",
        sections=sections,
    )


FORMAT = SourceFormat(_read, suffixes=(".pdf", ".txt"), max_bytes=MAX_BYTES)
