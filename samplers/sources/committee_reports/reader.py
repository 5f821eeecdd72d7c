"""Committee reports (House, Senate, executive) as govinfo serves their text, a long one by its parts."""

import re
from collections.abc import Iterator

from runner.base.errors import DocumentError
from runner.base.records import Document, Span
from samplers.formats.headings import TITLE_LENGTH, cut
from samplers.formats.printed.text import read_page
from samplers.formats.stated import bucket, stem_of
from samplers.formats.text_writer import Outline, visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.committee_reports.contents import find_contents
from samplers.sources.committee_reports.parts import LONGEST, pieces, within
from samplers.sources.committee_reports.text import written

LENGTH_BUCKETS = ((2_000, "short"), (10_000, "medium"), (LONGEST, "long"))

SHORT = 600
"""Characters below which no query should be written from a report or a part of one."""

COVER_LENGTH = 6_000
"""Characters in which a cover ends; the longest of 10 measured ends at 858."""

_NUMBER = re.compile(
    r"\n*\[(?P<chamber>House|Senate) (?P<executive>Executive )?Report (?P<congress>\d{1,3})-(?P<number>\d{1,4})"
    r"(?:,? Part (?P<part>\d{1,2}|[IVX]{1,5}))?\]\n"
)
_FIRST_RULE = re.compile(r"^={40,}$", re.M)
_SMALL_RULE = re.compile(r"^ {4,}_{4,}$", re.M)
_MEASURE = re.compile(r"\[To accompany ([^\]]{1,120})\]")
_COMMITTEE = re.compile(r"from\s+the\s+([Cc]ommittee\s+(?:on|of)\s+[^\n]{1,80}(?:\n[^\n]{1,80})?),\s+submitted")
_ROMAN = ("0", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
_BARE = re.compile(r"TITLE [IVXLC\d]{1,7}")
_ON_THE = re.compile(r"^[Cc]ommittee on (?:the )?")
_SERIES = {"srpt": "S. Rept.", "hrpt": "H. Rept.", "erpt": "S. Exec. Rept."}


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    page = read_page(data, name)
    number = _NUMBER.match(page.text)
    if not number:
        beginning = " ".join(page.text[:200].split())[:40]
        raise DocumentError(name, f"no line '[Senate Report 118-1]' or the like at its top; it begins {beginning!r}")
    # The cover: what says which report it is, up to a rule, and behind it the title.
    head = page.text[:COVER_LENGTH]
    rule = _FIRST_RULE.search(head)
    end = rule.end() if rule else number.end()
    left_out = page.left_out
    left_out["cover"] += visible(page.text[:end])
    body = page.text[end:]
    contents = find_contents(body)
    if contents.end:
        left_out["contents"] += visible(body[contents.start : contents.end])
        body = f"{body[: contents.start]}\n\n{body[contents.end :]}"
    outline = written(body, contents, left_out)
    if not outline.length:
        raise DocumentError(name, "no text after the cover")
    return FileContent(tuple(_documents(number, head, end, outline, name)), left_out)


FORMAT = SourceFormat(_read, suffixes=(".htm", ".html"))


def _documents(number: re.Match[str], cover: str, end: int, outline: Outline, name: str) -> Iterator[Document]:
    """Yield the documents of a report whose cover says its number and ends, before the title, at `end`."""
    committee, measure = (
        " ".join(stated[1].split()) if (stated := pattern.search(cover)) else "" for pattern in (_COMMITTEE, _MEASURE)
    )
    stop = _SMALL_RULE.search(cover, end)
    title = " ".join(cover[end : stop.start()].split()) if stop else ""
    series = "erpt" if number["executive"] else f"{number['chamber'][0].lower()}rpt"
    part = str(_ROMAN.index(number["part"])) if number["part"] in _ROMAN else number["part"] or ""
    package = f"CRPT-{number['congress']}{series}{number['number']}" + (f"-pt{part}" if part else "")
    doc_id = stem if (stem := stem_of(name)).startswith(f"{package}-") else package
    # Chunks carry the report as people cite it, the committee and the measure, then the title.
    citation = f"{_SERIES[series]} {number['congress']}-{number['number']}" + (f", Part {part}" if part else "")
    details = ", ".join(filter(None, (_ON_THE.sub("", committee), measure and f"on {measure}")))
    head = f"{citation} ({details})" if details else citation
    # A stratum names the committee, of "A, B, and C" the first word alone, and what sort of report it is.
    named = re.sub(r"committee (?:on|of) (?:the )?", "", committee.lower())
    by = "-".join(re.findall(r"[a-z]+", named.partition(",")[0] if named.count(",") > 2 else named))
    sort = "executive" if series == "erpt" else "conference" if by == "conference" else "report"
    if sort == "report" and title.upper().startswith("PROVIDING FOR CONSIDERATION"):
        sort = "rule"
    # A part is titled by its headings, without numbers of titles; ids count the parts.
    report, sections = outline.text, outline.sections()
    found = pieces(report, sections)
    for n, (span, path) in enumerate(found, 1):
        text = report[span.start : span.end].rstrip()
        parts = within(sections, Span(span.start, span.start + len(text)))
        headings = [label for label in path if label and not _BARE.fullmatch(label)]
        if path and not headings:
            # Under the number of a title stands its name, as a heading that holds all the rest.
            headings = [part.label for part in parts[1:2] if part.span.end == len(text)] or list(path)
        words = cut(" > ".join(headings) or title, TITLE_LENGTH - len(head) - 2)
        part_id = doc_id if len(found) == 1 else f"{doc_id}.{n:03}"
        yield Document(
            doc_id=part_id,
            text=text,
            title=f"{head}: {words}" if words else head,
            stratum="/".join((number["chamber"].lower(), by or "unknown", sort, bucket(len(text), LENGTH_BUCKETS))),
            family=part_id,
            url=f"https://www.govinfo.gov/app/details/{doc_id}",
            sections=parts,
            status="short" if len(text) < SHORT else "",
        )
