"""A seeded draw of files from what a feed lists."""

import math
from collections import defaultdict
from collections.abc import Iterable

from runner.base.canonical import sha256
from samplers.corpus.sampling import allotment
from samplers.feeds.request import Draw, FetchRequest, Item

OVERSAMPLING = 1.2
"""Files drawn for each one wanted: what cannot be read, says nothing or resembles another falls out later."""


def files_wanted(request: FetchRequest, documents_per_file: int = 1) -> int:
    """Return how many files a request needs if a file holds so many documents, rounded up."""
    return math.ceil(request.size * OVERSAMPLING / documents_per_file)


def drawn(frame: Iterable[Item], count: int, seed: int) -> Draw:
    """Return at most `count` items, one of each family, allotted over strata in proportion to the families listed.

    Hash order (SHA-256 of seed and path) decides which, so neither the listing's order nor its repeats matter.
    """
    items = {item.path: item for item in frame}
    first: dict[str, Item] = {}
    for item in sorted(items.values(), key=lambda item: sha256(f"{seed}\n{item.path}")):
        first.setdefault(item.family or item.path, item)
    strata: dict[str, list[Item]] = defaultdict(list)
    for item in first.values():
        strata[item.stratum].append(item)
    seats = allotment({stratum: len(members) for stratum, members in strata.items()}, count, seed)
    chosen = [item for stratum, members in strata.items() for item in members[: seats[stratum]]]
    return Draw(tuple(sorted(chosen, key=lambda item: item.path)), len(items))
