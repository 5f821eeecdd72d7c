"""The eCFR's versioner, no key: titles with the day they are current to, their structure, and parts as XML."""

import re
from collections.abc import Iterable, Iterator

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import Client
from samplers.feeds.draw import drawn, files_wanted
from samplers.feeds.request import Draw, FetchRequest, Item, Located, Say, located

_API = "https://www.ecfr.gov/api/versioner/v1"
_PART = re.compile(r"[0-9]{1,5}[0-9A-Za-z-]{0,12}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UNITS = (
    re.compile(r"^(\d{1,5}[A-Za-z]{0,3}(?:-\d{1,5}[A-Za-z]{0,3})?)\.\d"),
    re.compile(r"\bpart-(\d{1,5}[a-z]{0,3})\b"),
    re.compile(r"^(\d{1,5}[a-z]{0,3})-"),
)
"""A section of part 60-1, an appendix to a part, a unit whose slug begins with its part."""

SECTIONS_PER_PART = 5
"""Sections counted on from a part. Title 1 has ten a part, but a sample should come from more parts than it needs."""


def draw_parts(client: Client, request: FetchRequest, say: Say) -> Draw:
    """A draw of parts by title, each as of the day to which its title is current, or of an earlier `until`."""
    frame: list[Item] = []
    for number, day in _titles(client, request):
        structure = client.json(f"{_API}/structure/{day}/title-{number}.json")
        frame += [_item(number, part, day) for part in _parts(structure)]
        say(f"listed title {number} as of {day}: {len(frame):,} parts so far")
    return drawn(frame, files_wanted(request, SECTIONS_PER_PART), request.seed)


def locate_parts(doc_ids: Iterable[str]) -> Located:
    """Parts as XML by the ids of their sections, "cfr:12-1009.1@2026-11-20"."""
    return located((doc_id, _found(doc_id)) for doc_id in doc_ids)


def _found(doc_id: str) -> Item | str:
    named = re.fullmatch(r"cfr:(\d{1,2})-(.{1,120})@(\d{4}-\d\d-\d\d)", doc_id)
    part = part_of(named[2]) if named else ""
    return (
        _item(int(named[1]), part, named[3]) if named and part else "its id does not say which part of the CFR it is in"
    )


def part_of(unit: str) -> str:
    """The part that a section's number ("60-1.4") or an appendix's slug ("51-appendix-a") names; "" for none."""
    found = next(filter(None, (pattern.search(unit) for pattern in _UNITS)), None)
    return found[1] if found else ""


def _titles(client: Client, request: FetchRequest) -> Iterator[tuple[int, str]]:
    """Number and day of each title that is not reserved."""
    listing = client.json(f"{_API}/titles.json")
    rows = listing.get("titles") if isinstance(listing, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BackendError(f"{_API}/titles.json is no listing: it has no list of titles.")
    for row in rows:
        if row.get("reserved"):
            continue
        number, current = row.get("number"), str(row.get("up_to_date_as_of"))
        if not isinstance(number, int) or not _DAY.fullmatch(current):
            raise BackendError(f"{_API}/titles.json does not say to which day each title is current.")
        day = min(str(request.until), current) if request.until else current
        if day < "2017-01-03":
            raise InputError("The eCFR goes back to 2017-01-03; give a later --until, or --feed annual.")
        yield number, day


def _parts(structure: JSON) -> Iterator[str]:
    """Identifiers of the parts below a node that are not reserved, in its order."""
    nodes = [structure]
    while nodes:
        node = nodes.pop()
        if not isinstance(node, dict):
            raise BackendError(f"{_API}/structure is no tree of the CFR.")
        if node.get("type") != "part":
            children = node.get("children") or []
            nodes += reversed(children if isinstance(children, list) else [None])
        elif not node.get("reserved") and _PART.fullmatch(str(node.get("identifier"))):
            yield str(node["identifier"])


def _item(title: int, part: str, day: str) -> Item:
    url = f"{_API}/full/{day}/title-{title}.xml?part={part}"
    return Item(f"ECFR-{day}-title{title}-part{part}.xml", url, "xml", f"title-{title}")
