"""Reports of the Congressional Research Service by Congress.gov's API, with a key of api.data.gov."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.draw import drawn, files_wanted
from samplers.feeds.endpoints import Refused
from samplers.feeds.request import Draw, FetchRequest, Item, Located, Say, located

_API = "https://api.congress.gov/v3/crsreport"
_ID = re.compile(r"[A-Z]{1,4}[0-9][0-9-]{0,10}|[0-9]{2}-[0-9]{1,5}")
PAGE_SIZE = 250
MAX_PAGES = 1_000


def draw_reports(client: Client, request: FetchRequest, say: Say) -> Draw:
    """A draw from all reports published in the time asked for, by series; each one's page is asked for its address."""
    rows = _listed(client)
    frame = [Item(str(row["id"]), "", "html", re.sub(r"[^A-Z]", "", str(row["id"])) or "old") for row in rows]
    kept = [item for item, row in zip(frame, rows, strict=True) if _in_time(row, request)]
    say(f"listed {len(rows):,} reports, {len(kept):,} of them published in the time asked for")
    if not kept:
        raise BackendError("Congress.gov has no report for these dates. Widen them.")
    draw = drawn(kept, files_wanted(request), request.seed)
    items = [_item(client, item.path, item.stratum) for item in draw.items]
    found = tuple(item for item in items if item)
    say(f"{len(items) - len(found)} of {len(items)} reports drawn have no HTML and are left out")
    return Draw(found, draw.n_listed)


def locate_reports(client: Client, doc_ids: Iterable[str]) -> Located:
    """Pages of reports by their ids, "R47324v18"; only the newest version of a report is served."""
    return located((doc_id, _found(client, doc_id)) for doc_id in doc_ids)


def _found(client: Client, doc_id: str) -> Item | str:
    report = doc_id.rpartition("v")[0]
    try:
        item = _item(client, report, "") if _ID.fullmatch(report) else None
    except Refused as error:
        return str(error)
    if item is None:
        return "no HTML of it is served"
    return item if item.path == f"{doc_id}.html" else f"served is {item.path.removesuffix('.html')}"


def _listed(client: Client) -> list[dict[str, JSON]]:
    rows: list[dict[str, JSON]] = []
    for number in range(MAX_PAGES):
        page = client.json(f"{_API}?format=json&limit={PAGE_SIZE}&offset={number * PAGE_SIZE}")
        found = page.get("CRSReports") if isinstance(page, dict) else None
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise BackendError(f"{_API} is no listing: it has no list of reports.")
        if not all(_ID.fullmatch(str(row.get("id"))) for row in found):
            raise BackendError(f"{_API} lists a report without a number.")
        rows += found
        pagination = page.get("pagination")
        total = pagination.get("count") if isinstance(pagination, dict) else None
        if not found or (isinstance(total, int) and len(rows) >= total):
            break
    if isinstance(total, int) and len(rows) < total:
        raise BackendError(f"{_API} states {total:,} reports and lists {len(rows):,}. Run it again.")
    return rows


def _in_time(row: dict[str, JSON], request: FetchRequest) -> bool:
    day = str(row.get("publishDate"))[:10]
    return (not request.since or day >= str(request.since)) and (not request.until or day <= str(request.until))


def _item(client: Client, report: str, stratum: str) -> Item | None:
    """The newest version's page; None if it has no HTML."""
    answer = client.json(f"{_API}/{report}?format=json")
    row = answer.get("CRSReport") if isinstance(answer, dict) else None
    formats = row.get("formats") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(row.get("version"), int) or not isinstance(formats, list):
        raise BackendError(f"{_API}/{report} does not say which version it is and where it lies.")
    urls = [str(row.get("url")) for row in formats if isinstance(row, dict) and row.get("format") == "HTML"]
    for url in urls:
        official = client.endpoints.official(url)
        if urlsplit(official).netloc == "www.congress.gov":
            return Item(f"{report}v{row['version']}.html", official, "html", stratum)
    return None
