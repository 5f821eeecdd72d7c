"""govinfo's listings: folders of its bulk data, and its API of packages with a key of api.data.gov."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from urllib.parse import urlencode

from pydantic import AliasChoices, Field

from runner.base.errors import BackendError
from samplers.feeds.client import Client, Listing, listing
from samplers.feeds.endpoints import followed, without_key
from samplers.feeds.names import BULK, GRANULE, PRINT, Name, first_item
from samplers.feeds.request import FetchRequest, Item, Say, drawn

_API = "https://api.govinfo.gov"

MAX_FOLDERS = 5_000
"""Folders visited in one walk; ten Congresses of bills have some 200."""

PAGE_SIZE = 1000
MAX_PAGES = 2_000
SHARE_LISTED = 0.99
"""Of the stated count; a listing that is short of more has lost a page, one of fewer was updated meanwhile."""

FIRST_DAY = date(1993, 1, 1)
"""Older packages have no text, but for a few."""

GRANULES_PER_DAY = 10
"""Granules drawn from each day drawn: few, since speeches of one day are alike, but more than a request a granule."""

_DAY = re.compile(r"CREC-\d{4}-\d\d-\d\d")


class _Entry(Listing):
    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$", validation_alias=AliasChoices("justFileName", "name")
    )
    folder: bool = False


class _Folder(Listing):
    files: list[_Entry]


class Row(Listing):
    """A row of a paged listing: what names it."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,80}$", validation_alias=AliasChoices("packageId", "granuleId")
    )


class _Page(Listing):
    rows: list[Row] = Field(validation_alias=AliasChoices("packages", "granules"))
    count: int = 0
    following: str | None = Field(None, alias="nextPage")


def bulk(collection: str, names: tuple[Name, ...], client: Client, request: FetchRequest, say: Say) -> Iterator[Item]:
    """Return every file of a collection of the bulk data whose name is one of these kinds, as listed."""
    folders, n_visited = [""], 0
    while folders:
        path = folders.pop()
        n_visited += 1
        if n_visited > MAX_FOLDERS:
            raise BackendError(f"{BULK}/{collection} has more than {MAX_FOLDERS:,} folders: it never had.")
        # Depth first, folders in the order listed; of the Congresses none that was not asked for is entered.
        entries = listing(client, f"{BULK}/json/{collection}{path}", _Folder).files
        inside = [f"{path}/{entry.name}" for entry in entries if entry.folder]
        folders += [folder for folder in reversed(inside) if _enters(folder[1:], request.congresses)]
        files = [entry.name for entry in entries if not entry.folder]
        named = [(name, first_item(names, name.removesuffix(".xml"))) for name in files]
        items = [
            item._replace(url=f"{BULK}/{collection}{path}/{name}") for name, item in named if item and item.path == name
        ]
        if items:
            say(f"listed {collection}{path}: {len(items)} files")
        yield from items


def _enters(path: str, congresses: Sequence[int]) -> bool:
    """Return whether a folder of the Congresses asked for can be below this path."""
    is_folder = re.fullmatch(r"\d+(/[^/]+){0,2}", path) is not None
    return is_folder and (not congresses or int(path.partition("/")[0]) in congresses)


def prints(collection: str, client: Client, request: FetchRequest, say: Say) -> Iterator[Item]:
    """Return the files of all packages of hearings or committee reports that were issued in the time asked for."""
    return (item for package in published(client, collection, request, say) if (item := PRINT.item(package)))


def granules(client: Client, request: FetchRequest, say: Say) -> Iterator[Item]:
    """Return the granules of a draw of days of the Record, by year."""
    days = [
        Item(package, "", "json", package[5:9])
        for package in published(client, "CREC", request, say)
        if _DAY.fullmatch(package)
    ]
    chosen = drawn(days, request.files_wanted(GRANULES_PER_DAY), request.seed).items
    for number, day in enumerate(chosen, start=1):
        url = f"{_API}/packages/{day.path}/granules?{urlencode({'offsetMark': '*', 'pageSize': PAGE_SIZE})}"
        yield from (item for row in rows_of(client, url) if (item := GRANULE.item(row.name)))
        if number % 20 == 0 or number == len(chosen):
            say(f"listed {number} of {len(chosen)} days drawn from {len(days):,}")


def published(client: Client, collection: str, request: FetchRequest, say: Say) -> list[str]:
    """Return the ids of the packages that were issued in the time asked for."""
    since, until = request.since or FIRST_DAY, request.until or client.clock.utc().date()
    packages = []
    for congress in request.congresses or (0,):
        query = {"collection": collection, "offsetMark": "*", "pageSize": PAGE_SIZE}
        query |= {"congress": congress} if congress else {}
        packages += [row.name for row in rows_of(client, f"{_API}/published/{since}/{until}?{urlencode(query)}")]
    say(f"listed {len(packages):,} packages of {collection}, issued {since} to {until}")
    return packages


def rows_of(client: Client, url: str) -> Iterator[Row]:
    """Give every row of a listing, page by page; raise a BackendError if it is short or never ends."""
    address, seen, n_stated, n_found = without_key(url), set[str](), 0, 0
    while url:
        # A listing that leads in circles would never end.
        if url in seen or len(seen) >= MAX_PAGES:
            raise BackendError(f"{address}: the listing leads back to a page that was read.")
        seen.add(url)
        page = listing(client, url, _Page)
        n_stated = max(n_stated, page.count)
        n_found += len(page.rows)
        yield from page.rows
        url = followed(url, page.following) if page.following else ""
    # The count may grow while pages are read, so the largest that was stated is held against.
    if n_found < SHARE_LISTED * n_stated:
        raise BackendError(f"{address} states {n_stated:,} rows and lists {n_found:,}. Run it again.")
