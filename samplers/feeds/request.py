"""Records of a fetch: what is asked for, drawn from a listing, and brought."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple

from runner.base.canonical import sha256
from samplers.corpus.sampling import allotment

OVERSAMPLING = 1.2
"""Files drawn for each one wanted: what cannot be read, says nothing or resembles another falls out later."""

Say = Callable[[str], None]
"""Takes one line of progress."""

Kind = Literal["xml", "htm", "html", "zip", "json"]
"""What an answer has to be: XML, text of govinfo in a <pre>, a page, a ZIP with one XML file, JSON."""


class PackageFile(NamedTuple):
    """A document's file at its publisher: the package, its edition, the official address."""

    package: str
    edition: str
    url: str


@dataclass(frozen=True)
class FetchRequest:
    """An order to fetch; `documents` (id -> SHA-256, as a manifest has them) asks for exactly those again.

    `max_mb` bounds what the folder may hold.
    """

    size: int = 750
    seed: int = 2026
    since: date | None = None
    until: date | None = None
    congresses: tuple[int, ...] = ()
    options: frozenset[str] = frozenset()
    documents: Mapping[str, str] = field(default_factory=dict)
    max_mb: int = 500

    def files_wanted(self, documents_per_file: int = 1) -> int:
        """Return how many files are needed if a file holds so many documents, rounded up."""
        return math.ceil(self.size * OVERSAMPLING / documents_per_file)


class Item(NamedTuple):
    """One file of a feed: its name in the folder, its official address, and what the listing says of it."""

    path: str
    url: str
    kind: Kind
    stratum: str = ""
    family: str = ""


class Draw(NamedTuple):
    """Files drawn from a feed's frame, sorted by path, and how many files the frame has."""

    items: tuple[Item, ...]
    n_listed: int


def drawn(frame: Iterable[Item], count: int, seed: int) -> Draw:
    """Return at most `count` items, one of each family, allotted over strata in proportion to the families listed.

    Hash order (SHA-256 of seed and path) decides which, so neither the listing's order nor its repeats matter.
    """
    # Of each family the first in hash order stands for it, and strata get seats by their families.
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


@dataclass
class FetchReport:
    """Account of a fetch so far. `failed` names files, `changed` and `missing` documents, each with a reason.

    `n_kept` files were in the folder already, as recorded; `same` documents of the manifest are in it, as the manifest
    has them.
    """

    n_listed: int = 0
    n_files: int = 0
    n_fetched: int = 0
    n_kept: int = 0
    n_bytes: int = 0
    same: set[str] = field(default_factory=set)
    failed: list[tuple[str, str]] = field(default_factory=list)
    changed: list[tuple[str, str]] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
