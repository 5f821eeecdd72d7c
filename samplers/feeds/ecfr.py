"""CFR: parts by the eCFR's versioner, no key."""

import re
from collections.abc import Iterator

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import Client, Listing, listing
from samplers.feeds.request import FetchRequest, Item, Say

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
            raise InputError(f"The eCFR goes back to {FIRST_DAY}; give a later --until.")
        structure = client.json(f"{_API}/structure/{day}/title-{title.number}.json")
        items += [_item(title.number, part, day) for part in _parts(structure)]
        say(f"listed title {title.number} as of {day}: {len(items):,} parts so far")
    return items


def part_with(doc_id: str) -> Item | None:
    """Return the part with a section or appendix, by an id that names its day; None for another edition's."""
    match = _OF_A_DAY.fullmatch(doc_id)
    part = part_of(match[2]) if match else ""
    return _item(int(match[1]), part, match[3]) if match and part else None


def part_of(unit: str) -> str:
    """Return the part that a section's number ("60-1.4") or an appendix's slug ("51-appendix-a") names, "" for none."""
    match = next(filter(None, (pattern.search(unit) for pattern in _UNITS)), None)
    return match[1] if match else ""


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
