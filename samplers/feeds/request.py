"""What a fetch is asked for, what a feed draws, and what comes back."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

Say = Callable[[str], None]
"""Takes one line of progress."""

Kind = Literal["xml", "htm", "html", "zip", "json"]
"""What an answer has to be: XML, text of govinfo in a <pre>, a page, a ZIP with one XML file, JSON."""


class PackageFile(NamedTuple):
    """A document's file at its publisher: the package, its edition, the official address."""

    package: str
    edition: str
    url: str


class ListedFile(NamedTuple):
    """A document's file as a manifest has it: the official address and the SHA-256 of its bytes."""

    url: str
    sha256: str


@dataclass(frozen=True)
class FetchRequest:
    """What to fetch and how; `documents` (id -> SHA-256, as a manifest has them) asks for exactly those again.

    `listed` are the files of those of them that the manifest gives one, by id.
    `feed` is one of the source's feeds, "" for its first. `max_mb` bounds what the folder may hold, `endpoints`
    replaces official addresses by mirrors, `cache` is the folder of caches.
    """

    size: int = 750
    seed: int = 2026
    since: date | None = None
    until: date | None = None
    congresses: tuple[int, ...] = ()
    feed: str = ""
    options: frozenset[str] = frozenset()
    documents: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    listed: Mapping[str, ListedFile] = field(default_factory=lambda: MappingProxyType({}))
    max_mb: int = 500
    endpoints: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cache: Path = Path(".cache")


class Item(NamedTuple):
    """One file of a feed: its name in the folder, its official address, and what the listing says of it."""

    path: str
    url: str
    kind: Kind
    stratum: str = ""
    family: str = ""


class Draw(NamedTuple):
    """The files drawn from a feed's frame, sorted by path, and how many files the frame has."""

    items: tuple[Item, ...]
    n_listed: int


Located = Iterable[tuple[str, Item | str]]
"""Ids of documents, each with a file that may hold it, or with why there is none; one may come with several files."""


@dataclass
class FetchReport:
    """What a fetch did so far. `failed` names files, `changed` and `missing` documents, each with a reason.

    `n_kept` files were in the folder already, as recorded; `n_same` documents of the manifest are in it, as the
    manifest has them. `notes` are sentences for the person who asked.
    """

    n_listed: int = 0
    n_files: int = 0
    n_fetched: int = 0
    n_kept: int = 0
    n_bytes: int = 0
    n_same: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    changed: list[tuple[str, str]] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
