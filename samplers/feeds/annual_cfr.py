"""Where sections of the CFR can be had again: parts of the eCFR by day, volumes of the annual edition by year."""

import re
from collections import defaultdict
from collections.abc import Iterable

from samplers.feeds.client import Client
from samplers.feeds.ecfr import locate_parts
from samplers.feeds.endpoints import Refused
from samplers.feeds.govinfo_bulk import listed
from samplers.feeds.request import Item, Located

_EDITION = re.compile(r"cfr:(\d{1,2})-.+@(\d{4}|ecfr)")
"""An id of the annual edition, or of a title that says no more than that it is the eCFR."""
_FILES = "https://www.govinfo.gov/bulkdata"


def locate_sections(client: Client, doc_ids: Iterable[str]) -> Located:
    """Files by the ids of sections and appendices.

    An id names no volume, so each volume of a title may hold every id of that title, in the order of the volumes. Of
    the eCFR without a day the present text is had, whatever it was then.
    """
    editions: dict[tuple[str, str], set[str]] = defaultdict(set)
    current = []
    for doc_id in doc_ids:
        if edition := _EDITION.fullmatch(doc_id):
            editions[edition[2], edition[1]].add(doc_id)
        else:
            current.append(doc_id)
    parts = locate_parts(current)
    items, missing = list(parts.items), dict(parts.missing)
    for (year, title), wanted in sorted(editions.items()):
        try:
            volumes = _volumes(client, year, title)
        except Refused as error:
            missing |= dict.fromkeys(wanted, str(error))
            continue
        items += [(volume, frozenset(wanted)) for volume in volumes]
        if not volumes:
            missing |= dict.fromkeys(wanted, f"govinfo has no volume of title {title} for {year}")
    return Located(tuple(items), missing)


def _volumes(client: Client, year: str, title: str) -> list[Item]:
    if year == "ecfr":
        name = f"ECFR-title{title}.xml"
        return [Item(name, f"{_FILES}/ECFR/title-{title}/{name}", "xml")]
    place = f"CFR/{year}/title-{title}"
    names = [name for name in listed(client, place)[1] if re.fullmatch(r"CFR-\d{4}-title\d+-vol\d+\.xml", name)]
    ordered = sorted(names, key=lambda name: int(name.rpartition("vol")[2].removesuffix(".xml")))
    return [Item(name, f"{_FILES}/{place}/{name}", "xml") for name in ordered]
