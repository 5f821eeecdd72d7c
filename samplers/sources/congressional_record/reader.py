"""Pages ("granules") of the daily Congressional Record as govinfo serves them: one document each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.headings import TITLE_LENGTH, cut
from samplers.formats.printed.text import read_page
from samplers.formats.stated import bucket, day_of, stem_of
from samplers.formats.text_writer import visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.congressional_record.lines import Line, lines_of
from samplers.sources.congressional_record.outline import outline

DIGEST = "Daily Digest"

SECTIONS: Mapping[str, str] = {
    "House": "house",
    "Senate": "senate",
    "Extensions of Remarks": "extensions",
    DIGEST: "digest",
}
"""The Record's sections as its pages name them and as a stratum does."""

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
_STEM = re.compile(r"CREC-(?P<date>\d{4}-\d\d-\d\d)-pt\d{1,2}-Pg(?P<page>[A-Z]{0,2}\d{1,6}(?![\w.]))?[\w.-]{0,40}")
_DATE = re.compile(r"(?:[A-Z][a-z]{5,8}, )?[A-Z][a-z]{2,8} \d{1,2}, \d{4}")


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    page = read_page(data, name)
    header = _HEADER.match(page.text)
    if not header:
        beginning = " ".join(page.text[:200].split())[:40]
        raise DocumentError(name, f"no line '[Congressional Record Volume ...]' at its top; it begins {beginning!r}")
    left_out = page.left_out
    left_out["header"] += visible(header[0])
    rest, volume, day = header["rest"], header["volume"], header["day"] or ""
    section, first_page = (match[1] if (match := printed.search(rest)) else "" for printed in (_SECTION, _PAGES))
    body = page.text[header.end() - 1 :]
    del page, header  # Else the page's text stays beside each later one.
    lines = lines_of(body, section == DIGEST, left_out)
    title = _title_line(lines, section == DIGEST)
    written = outline(lines, title, left_out)
    if not written.length:
        raise DocumentError(name, "no text after the header")
    # The name gives id and date unless the header states another day.
    doc_id, date = stem_of(name), str(day_of(day) or "")
    named = _STEM.fullmatch(doc_id)
    its_name = named["date"] if named else ""
    if named and date in ("", its_name):
        date = its_name
    elif date and first_page:
        doc_id = f"CREC-{date}-pt1-Pg{first_page}"
    stated = _STEM.fullmatch(doc_id)
    is_official = stated and stated["date"] == date
    where = ", ".join(filter(None, (section, day)))
    citation = " ".join(filter(None, (volume, "Cong. Rec.", first_page, where and f"({where})")))
    heading = " ".join(lines[title].text[: 2 * TITLE_LENGTH].split()) if title >= 0 else ""
    length = bucket(written.length, LENGTH_BUCKETS)
    document = Document(
        doc_id=doc_id,
        text=written.text,
        title=f"{citation}: {cut(heading, TITLE_LENGTH - len(citation) - 2)}" if heading else citation,
        stratum="/".join((SECTIONS.get(section, "unknown"), date[:4] or "unknown", length)),
        family=doc_id,
        url=f"https://www.govinfo.gov/app/details/CREC-{date}/{doc_id}" if is_official else "",
        sections=written.sections(by_rank=True),
        status="short" if written.length < SHORT else "",
    )
    return FileContent((document,), left_out)


FORMAT = SourceFormat(_read, suffixes=(".htm", ".html"))


def _title_line(lines: Sequence[Line], is_digest: bool) -> int:
    """Return the first heading that is more than a date, -1 without one; in the Digest it is the first line."""
    undated: Iterator[int] = (i for i, line in enumerate(lines) if not _DATE.fullmatch(line.text))
    if is_digest:
        undated = islice(undated, 1)
    return next((i for i in undated if lines[i].kind == "heading"), -1)
