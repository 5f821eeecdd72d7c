"""Statements of Administration Policy (PDF) as documents: one statement each."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from runner.base.errors import DocumentError
from runner.base.records import Document, Section
from samplers.formats.headings import cut, is_title
from samplers.formats.pdf.lines import MAX_BYTES
from samplers.formats.pdf.text import Paragraph, read_pdf
from samplers.formats.stated import congress_of, day_of
from samplers.formats.text_writer import TextWriter, visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.statements.head import NAME, Head, head_length, head_lines, measure_of, read_head
from samplers.sources.statements.index import Entry, Key, read_index

LETTERHEAD = "letterhead"
INVISIBLE = "soft hyphens and zero-width characters"
ERROR_PAGE = "error page in place of a statement"
PAGE_BYTES = 1_000_000
"""Of a web page, unpacked, that are looked at; the archive's error pages have 29 kB."""

ADMINISTRATIONS = (
    (date(2025, 1, 20), "trump-2"),
    (date(2021, 1, 20), "biden"),
    (date(2017, 1, 20), "trump-1"),
    (date(2009, 1, 20), "obama"),
    (date(2001, 1, 20), "bush-2"),
    (date(1993, 1, 20), "clinton"),
    (date(1989, 1, 20), "bush-1"),
    (date(1981, 1, 20), "reagan"),
)
"""First days in office, latest first. Statements have been issued in this form since the 1980s."""


def _kerned(words: str) -> str:
    """An expression for words between whose letters blanks may stand or be missing: kerning moves them."""
    return r"\s*".join(map(re.escape, "".join(words.split())))


_FORM = re.compile(_kerned("STATEMENT OF ADMINISTRATION POLICY"))
_HEADS = ("EXECUTIVE OFFICE OF THE PRESIDENT", "OFFICE OF MANAGEMENT AND BUDGET", "WASHINGTON, D.C. 20503")
_LETTERHEAD = re.compile("|".join((*map(_kerned, _HEADS), _FORM.pattern)))
_OFFICIAL = re.compile(r"https://(?:www\.whitehouse\.gov|[a-z-]*whitehouse\d?\.archives\.gov)/\S+")
"""Where statements are published, and where those of former administrations are kept."""
_END_MARK = re.compile(r"[* ]+")
_VETO = re.compile(r"\bveto\b")
_STANCE = re.compile(
    r"\bAdministration (?:also |therefore |fully )?(?P<strongly>strongly )?(?P<verb>supports|opposes) "
)
_OF_MEASURE = re.compile(
    r"(?:\w+ ){0,3}(?:passage|adoption|enactment|[HS]\. ?[A-Z\d]|the (?:bill|resolution|Act)\b|this )"
)


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    if b"%PDF-" not in data[:1024]:
        return _no_statement(data, name)
    pdf = read_pdf(data, name)
    left_out = Counter(pdf.left_out)
    paragraphs = list(_without_letterhead(pdf.paragraphs, left_out))
    n_head = head_length([paragraph.text for paragraph in paragraphs])
    head = read_head([paragraph.text for paragraph in paragraphs[:n_head]])
    if not head.measures and not _FORM.search(" ".join(paragraph.text for paragraph in pdf.paragraphs)):
        raise DocumentError(name, "a PDF, but no Statement of Administration Policy: it names no measure and no form")
    text, sections, n_invisible = _written(paragraphs, n_head)
    if not text:
        raise DocumentError(name, "has no text below its letterhead")
    left_out.update({INVISIBLE: n_invisible} if n_invisible else {})
    document, contradictions = _document(head, text, sections, name)
    return FileContent((document,), left_out, contradictions=contradictions)


def _no_statement(data: bytes, name: str) -> FileContent:
    """No document, for an error page that an archive holds in place of a statement; DocumentError for other data.

    Such a page is no damaged statement, and nobody can repair it: it is counted and not quarantined.
    """
    is_packed = data.startswith(b"\x1f\x8b")
    try:
        page = zlib.decompressobj(31).decompress(data, PAGE_BYTES) if is_packed else data[:PAGE_BYTES]
    except zlib.error:
        page = b""
    title = re.search(rb"<title>([^<]{1,80})", page, re.I)
    if title and re.search(rb"404|not\s+found", title[1], re.I):
        return FileContent((), {ERROR_PAGE: visible(page.decode(errors="replace"))}, {ERROR_PAGE: 1})
    if title:
        raise DocumentError(name, f"a web page, not a PDF: {' '.join(title[1].decode(errors='replace').split())}")
    reason = "data packed with gzip, not a PDF" if is_packed else "no PDF" if data else "the file is empty"
    raise DocumentError(name, reason)


def _without_letterhead(paragraphs: Sequence[Paragraph], left_out: Counter[str]) -> Iterator[Paragraph]:
    """The paragraphs without letterhead, form and the row of asterisks at the end."""
    for paragraph in paragraphs:
        text = paragraph.text
        if _END_MARK.fullmatch(text):
            text = ""
        elif text.upper() == text or _FORM.search(text):
            text = "\n".join(filter(None, (" ".join(line.split()) for line in _LETTERHEAD.sub("\n", text).split("\n"))))
        if dropped := visible(paragraph.text) - visible(text):
            left_out[LETTERHEAD] += dropped
        if text:
            yield replace(paragraph, text=text)


def _written(paragraphs: Sequence[Paragraph], n_head: int) -> tuple[str, tuple[Section, ...], int]:
    """Text, sections and number of invisible characters: the head, then headings with what stands below them."""
    writer = TextWriter()
    if n_head:
        head = writer.open("head", 1)
        for line in head_lines([paragraph.text for paragraph in paragraphs[:n_head]]):
            writer.separate("\n")
            writer.write(line)
        writer.close(head)
    heading = None
    for place in range(n_head, len(paragraphs)):
        writer.separate("\n\n")
        if _is_heading(paragraphs, place):
            if heading:
                writer.close(heading)
            heading = writer.open("heading", 1)
            heading.heading = " ".join(paragraphs[place].text.split())
            writer.write(paragraphs[place].text)
        else:
            part = writer.open("paragraph", 2 if heading else 1)
            for line in paragraphs[place].text.split("\n"):
                writer.separate("\n")
                writer.write(line)
            writer.close(part)
    if heading:
        writer.close(heading)
    return *writer.finish(), writer.n_invisible


def _is_heading(paragraphs: Sequence[Paragraph], place: int) -> bool:
    """Whether a paragraph is set as a title, without an end, above a longer one."""
    text = paragraphs[place].text
    below = paragraphs[place + 1].text if place + 1 < len(paragraphs) else ""
    is_apart = len(text) <= 120 and len(text) < len(below) and "\t" not in text
    return is_apart and text[-1] not in ".!?:;,”" and is_title(text)


def _document(head: Head, text: str, sections: tuple[Section, ...], name: str) -> tuple[Document, tuple[str, ...]]:
    """The document, and what says that it is another statement.

    The date in a file's name, which is the archive's, wins over a misprinted one if the name is of this statement, that
    is unless the text names other measures alone.
    """
    stem = re.sub(r"\s+", "-", name.rpartition("/")[2].rpartition(".")[0]) or "unnamed"
    named = NAME.search(stem)
    named_day = day_of(named["date"], "%Y-%m-%d") if named else None
    named_measure = measure_of(named) if named else ""
    is_own_name = not head.measures or named_measure in head.measures
    day = (named_day if is_own_name else None) or head.day or named_day
    first = next(iter(head.measures), "")
    measure = named_measure if is_own_name else first
    subject = head.measures.get(measure) or measure or stem
    prefix = f"SAP-{congress_of(day)}-{day.isoformat()}" if day else ""
    administration = next((who for since, who in ADMINISTRATIONS if day and day >= since), "unknown")
    doc_id = f"{prefix}-{measure}" if day and measure else f"SAP-{stem}"
    document = Document(
        doc_id=doc_id,
        text=text,
        title=cut(unicodedata.normalize("NFC", f"Statement of Administration Policy ({day or 'undated'}): {subject}")),
        stratum=f"{administration}/{_position(text)}",
        family=f"{prefix}-{first}" if day and first else doc_id,
        url="",
        sections=sections,
    )
    said = (("text", head.day, day), ("file name", named_day, day), ("file name", named_measure, measure))
    return document, tuple(
        f"read as {doc_id}, but its {who} says {other}" for who, other, taken in said if other and other != taken
    )


def _position(text: str) -> str:
    """Where the Administration stands: a threatened veto outweighs what it supports or opposes in the same statement.

    Of several stances the first counts that is about the measure itself, and the first of all if none says so.
    """
    if _VETO.search(text):
        return "veto"
    stances = list(_STANCE.finditer(text))
    first = next((found for found in stances if _OF_MEASURE.match(text, found.end())), next(iter(stances), None))
    return first["verb"] if first else "other"


def _enrich(documents: Sequence[Document], files: Mapping[str, bytes]) -> list[Document]:
    """The documents with the official address from the archive's index, and status "rescinded" if it says so."""
    entries: dict[Key, Entry] = {}
    for name in sorted(files):
        entries = {**read_index(files[name], name), **entries}
    return [_enriched(document, entries) for document in documents]


def _enriched(document: Document, entries: Mapping[Key, Entry]) -> Document:
    found = re.fullmatch(r"SAP-(\d+)-(\d{4}-\d\d-\d\d)-(\w+)", document.doc_id)
    entry = entries.get((found[1], found[2], found[3])) if found else None
    if entry is None:
        return document
    url = entry.url if _OFFICIAL.fullmatch(entry.url) else ""
    status = "rescinded" if entry.rescinded else document.status
    return replace(document, url=url, status=status)


FORMAT = SourceFormat(
    _read, suffixes=(".pdf",), sidecar=r"(?:^|/)(?:index|\d\d)-[^/]*\.ya?ml$", enrich=_enrich, max_bytes=MAX_BYTES
)
"""The archive has an index for each president, such as "46-Biden.yaml"; its "presidents.yaml" is none."""
