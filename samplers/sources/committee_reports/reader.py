"""Committee reports (House, Senate, executive) as govinfo serves their text: one document a report."""

import re
import unicodedata

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.headings import TITLE_LENGTH, cut
from samplers.formats.printed.text import read_page
from samplers.formats.stated import bucket
from samplers.formats.text_writer import visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.committee_reports.contents import find_contents, listed_ranks
from samplers.sources.committee_reports.cover import Cover, read_cover
from samplers.sources.committee_reports.lines import Line, lines_of
from samplers.sources.committee_reports.outline import Outline

EXISTING_LAW = "existing-law"

LENGTH_BUCKETS = ((20_000, "short"), (100_000, "medium"), (400_000, "long"))

SHORT = 600
"""Characters below which no query should be written from a report."""


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    page = read_page(data, name)
    cover = read_cover(page.text)
    if not cover:
        beginning = " ".join(page.text[:200].split())[:40]
        raise DocumentError(name, f"no line '[Senate Report 118-1]' or the like at its top; it begins {beginning!r}")
    left_out = page.left_out
    left_out["cover"] = visible(page.text[: cover.end])
    body = page.text[cover.end :]
    contents = find_contents(body)
    if contents.end:
        left_out["contents"] = visible(body[contents.start : contents.end])
        body = f"{body[: contents.start]}\n\n{body[contents.end :]}"
    outline = Outline(bool(contents.entries), EXISTING_LAW in options)
    lines = lines_of(body, left_out)
    _write(outline, lines, listed_ranks(contents, [line.name for line in lines]))
    if outline.n_law:
        left_out["existing law"] = outline.n_law
    return FileContent((_document(outline, cover, name),), left_out)


FORMAT = SourceFormat(
    _read,
    suffixes=(".htm", ".html"),
    options={EXISTING_LAW: "keep the law that a report reprints with its changes (left out otherwise)"},
)


def _write(outline: Outline, lines: list[Line], ranks: list[int]) -> None:
    outline.begin("introduction")
    for line, listed in zip(lines, ranks, strict=True):
        if line.kind == "heading":
            outline.heading(line.text, listed)
        elif line.kind == "margin":
            outline.margin_heading(line.text)
        elif line.kind == "table":
            outline.table(line.label, line.rows, listed)
        else:
            outline.paragraph(line.text, line.label, line.is_close)


def _document(outline: Outline, cover: Cover, name: str) -> Document:
    text = outline.text
    if not text:
        raise DocumentError(name, "no text after the cover")
    stem = re.sub(r"\s+", "-", name.rpartition("/")[2].rpartition(".")[0])
    doc_id = stem if stem.startswith(f"{cover.package}-") else cover.package
    return Document(
        doc_id=doc_id,
        text=text,
        title=_title(cover),
        stratum="/".join(
            (cover.chamber, _committee(cover) or "unknown", _kind(cover), bucket(len(text), LENGTH_BUCKETS))
        ),
        family=doc_id,
        url=f"https://www.govinfo.gov/app/details/{doc_id}",
        sections=outline.sections(),
        status="short" if len(text) < SHORT else "",
    )


def _committee(cover: Cover) -> str:
    """The committee's name as part of a stratum: "armed-services", "conference"."""
    name = re.sub(r"committee (?:on|of) (?:the )?", "", cover.committee.lower())
    return "-".join(re.findall(r"[a-z]+", name.partition(",")[0] if name.count(",") > 2 else name))


def _kind(cover: Cover) -> str:
    """What sort of report: "conference", "rule", "executive" or "report"."""
    if cover.kind == "erpt":
        return "executive"
    if cover.committee.lower() == "committee of conference":
        return "conference"
    return "rule" if cover.title.upper().startswith("PROVIDING FOR CONSIDERATION") else "report"


def _title(cover: Cover) -> str:
    """The citation, the committee and the measure, then the title."""
    committee = re.sub(r"^[Cc]ommittee on (?:the )?", "", cover.committee)
    details = ", ".join(filter(None, (committee, cover.accompanies and f"on {cover.accompanies}")))
    head = f"{cover.citation} ({details})" if details else cover.citation
    words = cut(cover.title, TITLE_LENGTH - len(head) - 2)
    return unicodedata.normalize("NFC", f"{head}: {words}" if words else head)
