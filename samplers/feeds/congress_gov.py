"""Reports of the Congressional Research Service by Congress.gov's API, with a key of api.data.gov."""

import re
from urllib.parse import urlsplit

from pydantic import AliasPath, Field

from samplers.feeds.client import Client, Listing, listing
from samplers.feeds.govinfo import rows_of
from samplers.feeds.request import FetchRequest, Item, Say

_API = "https://api.congress.gov/v3/crsreport"
_ID = r"[A-Z]{1,4}[0-9][0-9-]{0,10}|[0-9]{2}-[0-9]{1,5}"
PAGE_SIZE = 250


class _Format(Listing):
    format: str = ""
    url: str = ""


class _Report(Listing):
    version: int = Field(validation_alias=AliasPath("CRSReport", "version"))
    formats: list[_Format] = Field(validation_alias=AliasPath("CRSReport", "formats"))


def reports(client: Client, request: FetchRequest, say: Say) -> list[Item]:
    """Return all reports published in the time asked for, by series; their addresses are not listed."""
    rows = list(rows_of(client, f"{_API}?format=json&limit={PAGE_SIZE}"))
    since, until = str(request.since or ""), str(request.until or "9999")
    names = [row.name for row in rows if since <= (row.published or "")[:10] <= until]
    say(f"listed {len(rows):,} reports, {len(names):,} of them published in the time asked for")
    return [Item(name, "", "html", re.sub(r"[^A-Z]", "", name) or "old") for name in names]


def page_of(client: Client, report: Item) -> Item | None:
    """Return the page of a report's newest version, None if it has no HTML."""
    answer = listing(client, f"{_API}/{report.path}?format=json", _Report)
    # The address comes from the answer, so it must be one of the publisher's own.
    for row in answer.formats:
        official = client.endpoints.official(row.url) if row.format == "HTML" else ""
        if urlsplit(official).netloc == "www.congress.gov":
            return report._replace(path=f"{report.path}v{answer.version}.html", url=official)
    return None


def report_of(client: Client, doc_id: str) -> Item | str:
    """Return the page of a report by its id, "R47324v18", or why there is none; only the newest version is served."""
    report = doc_id.rpartition("v")[0]
    item = page_of(client, Item(report, "", "html")) if re.fullmatch(_ID, report) else None
    if item is None:
        return "no HTML of it is served"
    return item if item.path == f"{doc_id}.html" else f"served is {item.path.removesuffix('.html')}"
