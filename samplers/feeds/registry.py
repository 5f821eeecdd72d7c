"""The feeds that a source's row names, imported."""

from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from runner.base.errors import InputError
from samplers.feeds.client import Client
from samplers.feeds.request import Draw, FetchRequest, Located, PackageFile, Say
from samplers.registry import SOURCES


class Feed(NamedTuple):
    """How a feed draws; `takes` are the flags that narrow it, of since, until and congress."""

    draw: Callable[[Client, FetchRequest, Say], Draw]
    takes: frozenset[str]


class SourceFeeds(NamedTuple):
    """A source's feeds by name, the first one the default, and how its documents are found again."""

    feeds: Mapping[str, Feed]
    locate: Callable[[Client, Iterable[str]], Located]


def source_feeds(source: str) -> SourceFeeds:
    """The feeds of a source; an InputError says where to look for one that has none, or what a name may mean."""
    rows = SOURCES[source].feeds
    if isinstance(rows, str):
        raise InputError(f"{source} has no feed: {rows}. Give --corpus-path the folder.")
    return SourceFeeds(
        {name: Feed(_named(row.draw), frozenset(row.takes)) for name, row in rows.feeds.items()}, _named(rows.locate)
    )


def feed_of(source: str, request: FetchRequest) -> tuple[str, Feed]:
    """Name and row of the feed that a request asks for; an InputError for one that is not there, or flags it lacks."""
    feeds = source_feeds(source).feeds
    name = request.feed or next(iter(feeds))
    if name not in feeds:
        raise InputError(f"{source} has no feed {name!r}. Its feeds: {', '.join(feeds)}.")
    given = {"since": request.since, "until": request.until, "congress": request.congresses}
    if unused := [flag for flag, value in given.items() if value and flag not in feeds[name].takes]:
        taken = ", ".join(f"--{flag}" for flag in sorted(feeds[name].takes)) or "no such flag"
        raise InputError(f"The feed {name} of {source} cannot be narrowed by --{unused[0]}; it takes {taken}.")
    return name, feeds[name]


def package_file(source: str, doc_id: str) -> PackageFile | None:
    """Which file of the publisher holds this document and no other, None if nothing says so."""
    rows = SOURCES[source].feeds
    found: PackageFile | None = None if isinstance(rows, str) or not rows.file else _named(rows.file)(doc_id)
    return found


def _named(name: str) -> Any:  # noqa: ANN401  # what the row names
    return resolve_name(f"samplers.feeds.{name}")
