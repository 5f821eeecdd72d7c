"""A check of queries as a person reads it: a table on the terminal, and a page to eyeball."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import JSON, write_atomic
from runner.base.given_files import printable
from runner.queries.check_schemas import CheckedQuery, QueryReport
from runner.queries.kinds import whole_shares
from runner.queries.query_file import counted, shown
from runner.report.page_frame import inert, rendered

_TEXT = 60
"""Characters of a query in the table; the page has all of it."""

_HEAD = ("id", "origin", "kind", "overlap", "distinctive", "bm25", "encoder", "query", "look at")


def review_page(report: QueryReport) -> bytes:
    """UTF-8 HTML without script or network: every query beside the title of its document, and what was found."""
    return rendered("query_review.html.j2", styles=("_review.css.j2",), report=inert(_values(report)))


def write_review(report: QueryReport, folder: Path) -> Path:
    """The page, written to a folder."""
    path = folder / "review.html"
    write_atomic(path, review_page(report))
    return path


def summary(report: QueryReport) -> str:
    """The table of queries, how they are spread, and every finding, errors first."""
    lines = _columns([_HEAD, *(_row(query) for query in report.queries)]) if report.queries else []
    lines += ["", *_counts(report)]
    for severity in ("error", "warning"):
        lines += [f"{severity}: {_shown(one.message)}" for one in report.findings if one.severity == severity]
    if report.skipped:
        lines.append(f"not checked: {_shown(report.skipped)}")
    return "\n".join(lines).strip("\n")


def _values(report: QueryReport) -> JSON:
    values = report.model_dump()
    known = ("http://", "https://")  # a document's address is a stranger's text
    for query in values["queries"]:
        query["url"] = query["url"] if query["url"].startswith(known) else ""
    return values


def _counts(report: QueryReport) -> list[str]:
    lines = [f"{counted(len(report.queries), 'query', 'queries')} of {report.source} v{report.version}"]
    for means in report.origins:
        shares = f"{_share(means.overlap)} of their words are in their documents"
        freely = f"{_share(means.overlap_asked_freely)} without citations, quotes and attributions"
        lines.append(f"  {means.origin}: {means.queries}; {shares} ({freely})")
    shares_of_kinds = whole_shares(report.source, len(report.queries))
    kinds = [_kind(count.kind, count.queries, shares_of_kinds.get(count.kind)) for count in report.kinds]
    return [*lines, f"  kinds, in brackets the source's share: {', '.join(kinds)}"] if kinds else lines


def _kind(kind: str, queries: int, expected: int | None) -> str:
    return f"{_shown(kind)} {queries}" + ("" if expected is None else f" ({expected})")


def _row(query: CheckedQuery) -> tuple[str, ...]:
    return (
        query.id,
        query.origin,
        _shown(query.kind),
        _share(query.overlap),
        _share(query.distinctive),
        "no word" if query.no_word else _rank(query.bm25_rank),
        _rank(query.encoder_rank),
        shown(query.text, _TEXT),
        ", ".join(query.flags),
    )


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank) if rank else ">100"


def _shown(text: str) -> str:
    return printable(text, 500)
