"""govinfo's bulk data, no key: folders listed as JSON, files at addresses made of the same names."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.draw import drawn, files_wanted
from samplers.feeds.govinfo_content import bill_item, law_item
from samplers.feeds.request import Draw, FetchRequest, Item, Say

_LISTING = "https://www.govinfo.gov/bulkdata/json"
_FILES = "https://www.govinfo.gov/bulkdata"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")

MAX_LISTINGS = 5_000
"""Folders visited in one walk; thirty years of the CFR have some 1,500."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """One collection: which folders a request enters, and what a file name says; None for files left aside."""

    name: str
    enters: Callable[[Path, FetchRequest], bool]
    item: Callable[[str, str], Item | None]
    documents_per_file: int = 1

    def draw(self, client: Client, request: FetchRequest, say: Say) -> Draw:
        """A draw from all files of the folders entered; BackendError if they hold none."""
        frame = list(self.frame(client, request, say))
        if not frame:
            raise BackendError(f"{_FILES}/{self.name} lists no file for these flags. Widen them.")
        return drawn(frame, files_wanted(request, self.documents_per_file), request.seed)

    def frame(self, client: Client, request: FetchRequest, say: Say) -> Iterator[Item]:
        """Every file of the folders entered, as listed."""
        folders: list[Path] = [()]
        visited = 0
        while folders:
            path = folders.pop()
            visited += 1
            if visited > MAX_LISTINGS:
                raise BackendError(f"{_FILES}/{self.name} has more than {MAX_LISTINGS:,} folders, which it never had.")
            inside, files = listed(client, "/".join((self.name, *path)))
            folders += [(*path, name) for name in reversed(inside) if self.enters((*path, name), request)]
            items = [self.item(name, "/".join((_FILES, self.name, *path, name))) for name in files]
            found = [item for item in items if item is not None]
            if found:
                say(f"listed {'/'.join((self.name, *path))}: {len(found)} files")
            yield from found


def listed(client: Client, place: str) -> tuple[list[str], list[str]]:
    """Names of folders and of files in a listing, both in its order."""
    url = f"{_LISTING}/{place}"
    listing = client.json(url)
    rows = listing.get("files") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise BackendError(f"{url} is no listing: it has no list of files.")
    folders: list[str] = []
    files: list[str] = []
    for row in rows:
        name = _name(row, url)
        (folders if row.get("folder") is True else files).append(name)
    return folders, files


def _name(row: JSON, url: str) -> str:
    name = row.get("justFileName") or row.get("name") if isinstance(row, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BackendError(f"{url} lists something whose name is none ({type(name).__name__}).")
    return name


def _by_congress(path: Path, request: FetchRequest) -> bool:
    # Beside the Congresses lies a folder "resources" with schemas.
    if len(path) == 1:
        return path[0].isdigit() and (not request.congresses or int(path[0]) in request.congresses)
    return len(path) <= 3


def _by_month(path: Path, request: FetchRequest) -> bool:
    if not all(name.isdigit() for name in path) or len(path) > 2:
        return False
    first, last = "-".join(path), "-".join((*path, "99", "99")[:3])
    return (not request.since or last >= str(request.since)) and (not request.until or first <= str(request.until))


def _by_year(path: Path, request: FetchRequest) -> bool:
    if len(path) == 1:
        first, last = (request.since or date.min).year, (request.until or date.max).year
        return path[0].isdigit() and first <= int(path[0]) <= last
    return len(path) == 2 and path[1].startswith("title-")


def _every_title(path: Path, _: FetchRequest) -> bool:
    return len(path) == 1 and path[0].startswith("title-")


def _named(pattern: str) -> Callable[[str, str], Item | None]:
    """Items for the names that match; their group `stratum` is the stratum."""
    compiled = re.compile(pattern)

    def item(name: str, url: str) -> Item | None:
        found = compiled.fullmatch(name)
        return Item(name, url, "xml", found["stratum"]) if found else None

    return item


BILLS = Collection("BILLS", _by_congress, bill_item)
LAWS = Collection("PLAW", _by_congress, law_item, documents_per_file=4)
ISSUES = Collection("FR", _by_month, _named(r"FR-(?P<stratum>\d{4})-\d\d-\d\d\.xml"), documents_per_file=10)
VOLUMES = Collection("CFR", _by_year, _named(r"CFR-\d{4}-(?P<stratum>title\d+)-vol\d+\.xml"), documents_per_file=50)
TITLES = Collection("ECFR", _every_title, _named(r"ECFR-(?P<stratum>title)\d+\.xml"), documents_per_file=50)


def draw_volumes(client: Client, request: FetchRequest, say: Say) -> Draw:
    """A draw of volumes of the annual edition, of last year's if no dates are given."""
    if not (request.since or request.until):
        year = client.clock.utc().year - 1
        request = replace(request, since=date(year, 1, 1), until=date(year, 12, 31))
    return VOLUMES.draw(client, request, say)


def status_item(bill: Item) -> Item:
    """The status file that goes with a bill's."""
    congress, kind, number = bill.family.split("-")
    name = f"BILLSTATUS-{congress}{kind}{number}.xml"
    return Item(name, f"{_FILES}/BILLSTATUS/{congress}/{kind}/{name}", "xml")
