"""govinfo's API, with a key of api.data.gov: packages by the date of their issue, and the granules in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.draw import drawn, files_wanted
from samplers.feeds.govinfo_content import granule_item, print_item
from samplers.feeds.request import Draw, FetchRequest, Item, Say

_API = "https://api.govinfo.gov"
PAGE_SIZE = 1000
_DAY = re.compile(r"CREC-\d{4}-\d\d-\d\d")
FIRST_DAY = date(1993, 1, 1)
"""Older packages have no text, but for a few."""

MAX_PAGES = 2_000
SHARE_LISTED = 0.99
"""Of the stated count; a listing that is short of more has lost a page, one of fewer was updated meanwhile."""

GRANULES_PER_DAY = 10
"""Granules drawn from each day drawn: few, since speeches of one day are alike, but more than a request a granule."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages that are documents themselves: hearings and committee reports."""

    collection: str

    def draw(self, client: Client, request: FetchRequest, say: Say) -> Draw:
        """A draw from all packages issued in the time asked for."""
        items = [print_item(package) for package in published(client, self.collection, request, say)]
        return drawn([item for item in items if item], files_wanted(request), request.seed)


HEARINGS = Packages("CHRG")
REPORTS = Packages("CRPT")


def draw_granules(client: Client, request: FetchRequest, say: Say) -> Draw:
    """A draw in two stages: days of the Record by year, then granules of those days by section."""
    count = files_wanted(request)
    packages = published(client, "CREC", request, say)
    days = [Item(package, "", "json", package[5:9]) for package in packages if _DAY.fullmatch(package)]
    chosen = drawn(days, -(-count // GRANULES_PER_DAY), request.seed).items
    granules = []
    for number, day in enumerate(chosen, start=1):
        url = f"{_API}/packages/{day.path}/granules?{urlencode({'offsetMark': '*', 'pageSize': PAGE_SIZE})}"
        granules += [granule_item(name) for name in pages(client, url, "granules", "granuleId")]
        if number % 20 == 0 or number == len(chosen):
            say(f"listed {number} of {len(chosen)} days drawn from {len(days):,}")
    return drawn([item for item in granules if item], count, request.seed)


def published(client: Client, collection: str, request: FetchRequest, say: Say) -> list[str]:
    """Ids of the packages that were issued in the time asked for."""
    since, until = request.since or FIRST_DAY, request.until or client.clock.utc().date()
    found = []
    for congress in request.congresses or (0,):
        query = {"collection": collection, "offsetMark": "*", "pageSize": PAGE_SIZE}
        query |= {"congress": congress} if congress else {}
        url = f"{_API}/published/{since}/{until}?{urlencode(query)}"
        found += list(pages(client, url, "packages", "packageId"))
    say(f"listed {len(found):,} packages of {collection}, issued {since} to {until}")
    if not found:
        raise BackendError(f"govinfo has no package of {collection} for these flags. Widen them.")
    return found


def pages(client: Client, url: str, rows: str, field: str) -> Iterator[str]:
    """One field of every row of a listing, page by page; BackendError for a listing that is short or never ends."""
    seen: set[str] = set()
    total = n_found = 0
    while url:
        if url in seen or len(seen) >= MAX_PAGES:
            raise BackendError(f"{url.partition('?')[0]}: the listing leads back to a page that was read.")
        seen.add(url)
        page = client.json(url)
        values = _values(page, rows, field, url)
        total = max(total, page["count"] if isinstance(page.get("count"), int) else 0)
        n_found += len(values)
        yield from values
        following = page.get("nextPage")
        url = client.endpoints.followed(url, following) if isinstance(following, str) and following else ""
    if n_found < SHARE_LISTED * total:
        raise BackendError(
            f"{next(iter(seen)).partition('?')[0]} states {total:,} {rows} and lists {n_found:,}. Run it again."
        )


def _values(page: JSON, rows: str, field: str, url: str) -> list[str]:
    found = page.get(rows) if isinstance(page, dict) else None
    if not isinstance(found, list) or not all(
        isinstance(row, dict) and isinstance(row.get(field), str) for row in found
    ):
        raise BackendError(f"{url.partition('?')[0]} is no listing: it has no list of {rows}.")
    return [row[field] for row in found]
