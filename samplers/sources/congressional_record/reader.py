"""Pages ("granules") of the daily Congressional Record as govinfo serves them: one document each."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.headings import TITLE_LENGTH, cut
from samplers.formats.printed.text import read_page
from samplers.formats.stated import bucket, day_of
from samplers.formats.text_writer import visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.congressional_record.lines import Line, lines_of
from samplers.sources.congressional_record.outline import outline

SECTIONS: Mapping[str, str] = {"House": "house", "Senate": "senate", "Extensions of Remarks": "extensions"}
"""The Record's sections as its pages name them and as a stratum does; the Daily Digest is "digest"."""

DIGEST = "Daily Digest"

SHORT = 600
"""Characters below which a page is a procedural notice that no query should be written from."""

LENGTH_BUCKETS = ((2_000, "short"), (10_000, "medium"), (50_000, "long"))

_LINES = r"(?:(?:\[[^\]\n]{1,80}\]|From the Congressional Record [^\n]{0,120}|\[From [^\n]{0,80}\])\n){0,6}"
_HEADER = re.compile(
    r"\n*\[Congressional Record (?:\(Bound Edition\), )?Volume (?P<volume>\d{1,4})(?: \(\d{4}\))?, "
    r"(?:Number|Part) \d{1,4}(?: \([A-Z][a-z]{5,8}, (?P<day>[A-Z][a-z]{2,8} \d{1,2}, \d{4})\))?\]\n"
    rf"(?P<rest>{_LINES}(?:\n+\[Congressional Record: [^\]\n]{{1,60}}\]\n{_LINES})?)"
)
"""A page of the 1990s may have the header of GPO Access below the one that it was given later."""
_SECTION = re.compile(r"\[(House|Senate|Extensions of Remarks|Daily Digest)\]")
_PAGES = re.compile(r"\[Pages? ([A-Z]{0,2}\d{1,6})")
_STEM = re.compile(r"CREC-(?P<date>\d{4}-\d\d-\d\d)-pt\d{1,2}-Pg[\w.-]{1,40}")
_DATE = re.compile(r"(?:[A-Z][a-z]{5,8}, )?[A-Z][a-z]{2,8} \d{1,2}, \d{4}")


class Facts(NamedTuple):
    """What a page's header says; "" for what it leaves out."""

    volume: str
    day: str
    section: str
    page: str

    @property
    def date(self) -> str:
        """Year, month and day with hyphens, "" for a day that is none."""
        return str(day_of(self.day) or "")


def facts(text: str) -> Facts | None:
    """The facts of the header that a page begins with, None if there is none."""
    found = _HEADER.match(text)
    if not found:
        return None
    section, page = _SECTION.search(found["rest"]), _PAGES.search(found["rest"])
    return Facts(found["volume"], found["day"] or "", section[1] if section else "", page[1] if page else "")


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    page = read_page(data, name)
    header = _HEADER.match(page.text)
    stated = facts(page.text)
    if not header or not stated:
        beginning = " ".join(page.text[:200].split())[:40]
        raise DocumentError(name, f"no line '[Congressional Record Volume ...]' at its top; it begins {beginning!r}")
    left_out = page.left_out
    left_out["header"] = visible(header[0])
    body = page.text[header.end() - 1 :]
    del page, header  # Else the page's text stays beside each later one.
    lines = lines_of(body, stated.section == DIGEST, left_out)
    document, n_bullets = _document(lines, stated, name)
    if n_bullets:
        left_out["bullets"] = n_bullets
    return FileContent((document,), left_out)


FORMAT = SourceFormat(_read, suffixes=(".htm", ".html"))


def _document(lines: Sequence[Line], stated: Facts, name: str) -> tuple[Document, int]:
    title = _title_line(lines, stated.section == DIGEST)
    written = outline(lines, title)
    if not written.text:
        raise DocumentError(name, "no text after the header")
    doc_id, date = _identity(stated, name)
    length = len(written.text)
    section = "digest" if stated.section == DIGEST else SECTIONS.get(stated.section, "unknown")
    document = Document(
        doc_id=doc_id,
        text=written.text,
        title=_title(stated, lines[title].text if title >= 0 else ""),
        stratum="/".join((section, date[:4] or "unknown", bucket(length, LENGTH_BUCKETS))),
        family=doc_id,
        url=f"https://www.govinfo.gov/app/details/CREC-{date}/{doc_id}" if date and _STEM.fullmatch(doc_id) else "",
        sections=written.sections,
        status="short" if length < SHORT else "",
    )
    return document, written.n_bullets


def _identity(stated: Facts, name: str) -> tuple[str, str]:
    """The id and the date: of the file's name unless the header states another day."""
    stem = name.rpartition("/")[2].rpartition(".")[0]
    named = _STEM.fullmatch(stem)
    if named and stated.date in ("", named["date"]):
        return stem, named["date"]
    if stated.date and stated.page:
        return f"CREC-{stated.date}-pt1-Pg{stated.page}", stated.date
    return re.sub(r"\s+", "-", stem) or "unnamed", stated.date


def _title_line(lines: Sequence[Line], is_digest: bool) -> int:
    """The first heading that is more than a date, -1 without one; in the Digest nothing but a date stands before it."""
    undated = (i for i, line in enumerate(lines) if not _DATE.fullmatch(line.text))
    if is_digest:
        first = next(undated, -1)
        return first if first >= 0 and lines[first].kind == "heading" else -1
    return next((i for i in undated if lines[i].kind == "heading"), -1)


def _title(stated: Facts, heading: str) -> str:
    """The citation, the section and the day, then the heading if there is one."""
    words = " ".join(heading[: 2 * TITLE_LENGTH].split())
    where = ", ".join(filter(None, (stated.section, stated.day)))
    title = " ".join(filter(None, (stated.volume, "Cong. Rec.", stated.page, f"({where})" if where else "")))
    if not words:
        return title
    return unicodedata.normalize("NFC", f"{title}: {cut(words, TITLE_LENGTH - len(title) - 2)}")
