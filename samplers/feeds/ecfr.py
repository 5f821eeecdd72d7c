"""CFR: parts by the eCFR's versioner, no key, and where sections of any edition can be had again."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import Client, Listing, listing
from samplers.feeds.endpoints import Refused
from samplers.feeds.govinfo import entries_of
from samplers.feeds.names import TITLE, VOLUME
from samplers.feeds.request import FetchRequest, Item, Located, Say

_API = "https://www.ecfr.gov/api/versioner/v1"
_PART = re.compile(r"[0-9]{1,5}[0-9A-Za-z-]{0,12}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
FIRST_DAY = "2017-01-03"

_UNITS = (
    re.compile(r"^(\d{1,5}[A-Za-z]{0,3}(?:-\d{1,5}[A-Za-z]{0,3})?)\.\d"),
    re.compile(r"\bpart-(\d{1,5}[a-z]{0,3})\b"),
    re.compile(r"^(\d{1,5}[a-z]{0,3})-"),
)
"""A section of part 60-1, an appendix to a part, a unit whose slug begins with its part."""

_OF_A_DAY = re.compile(r"cfr:(\d{1,2})-(.{1,120})@(\d{4}-\d\d-\d\d)")
_OF_AN_EDITION = re.compile(r"cfr:(\d{1,2})-.+@(\d{4}|ecfr)")
"""An id of the annual edition, or of a title that says no more than that it is the eCFR."""


class _Title(Listing):
    number: int
    up_to_date_as_of: str | None = None
    reserved: bool = False


class _Titles(Listing):
    titles: list[_Title]


def parts(client: Client, request: FetchRequest, say: Say) -> list[Item]:
    """Return all parts, each as of the day to which its title is current, or of an earlier `until`."""
    items: list[Item] = []
    for title in listing(client, f"{_API}/titles.json", _Titles).titles:
        if title.reserved:
            continue
        day = title.up_to_date_as_of or ""
        if not _DAY.fullmatch(day):
            raise BackendError(f"{_API}/titles.json does not say to which day each title is current.")
        day = min(str(request.until), day) if request.until else day
        if day < FIRST_DAY:
            raise InputError(f"The eCFR goes back to {FIRST_DAY}; give a later --until, or --feed annual.")
        structure = client.json(f"{_API}/structure/{day}/title-{title.number}.json")
        items += [_item(title.number, part, day) for part in _parts(structure)]
        say(f"listed title {title.number} as of {day}: {len(items):,} parts so far")
    return items


def locate_sections(client: Client, doc_ids: Iterable[str]) -> Located:
    """Return files by the ids of sections and appendices: parts by day, volumes of the annual edition by year.

    An id names no volume, so each volume of a title may hold every id of that title, in the order of the volumes. Of
    the eCFR without a day the present text is had, whatever it was then.
    """
    editions: dict[tuple[str, str], list[str]] = defaultdict(list)
    for doc_id in doc_ids:
        if edition := _OF_AN_EDITION.fullmatch(doc_id):
            editions[edition[2], edition[1]].append(doc_id)
        else:
            yield doc_id, _part(doc_id)
    # Each volume is listed once for all ids of its title and year.
    for (year, title), wanted in sorted(editions.items()):
        try:
            volumes: list[Item | str] = [*_volumes(client, year, title)]
        except Refused as error:
            volumes = [str(error)]
        for volume in volumes or [f"govinfo has no volume of title {title} for {year}"]:
            yield from ((doc_id, volume) for doc_id in wanted)


def part_of(unit: str) -> str:
    """Return the part that a section's number ("60-1.4") or an appendix's slug ("51-appendix-a") names, "" for none."""
    match = next(filter(None, (pattern.search(unit) for pattern in _UNITS)), None)
    return match[1] if match else ""


def _part(doc_id: str) -> Item | str:
    match = _OF_A_DAY.fullmatch(doc_id)
    part = part_of(match[2]) if match else ""
    return (
        _item(int(match[1]), part, match[3]) if match and part else "its id does not say which part of the CFR it is in"
    )


def _volumes(client: Client, year: str, title: str) -> list[Item]:
    """Return the files of a title by number of volume; the whole title where the year is "ecfr"."""
    if year == "ecfr":
        whole = TITLE.item(f"ECFR-title{title}")
        return [whole] if whole else []
    names = [entry.name.removesuffix(".xml") for entry in entries_of(client, f"CFR/{year}/title-{title}")]
    volumes = [item for name in names if (item := VOLUME.item(name))]
    return sorted(volumes, key=lambda item: int(item.path.rpartition("vol")[2].removesuffix(".xml")))


def _parts(structure: JSON) -> Iterator[str]:
    """Return the identifiers of the parts below a node that are not reserved, in its order."""
    nodes = [structure]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            raise BackendError(f"{_API}/structure is not a tree of the CFR.")
        if node.get("type") != "part":
            children = node.get("children") or []
            nodes += reversed(children if isinstance(children, list) else [None])
        elif not node.get("reserved") and _PART.fullmatch(str(node.get("identifier"))):
            yield str(node["identifier"])


def _item(title: int, part: str, day: str) -> Item:
    url = f"{_API}/full/{day}/title-{title}.xml?part={part}"
    return Item(f"ECFR-{day}-title{title}-part{part}.xml", url, "xml", f"title-{title}")
