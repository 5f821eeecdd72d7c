"""Feeds: for each source what its publisher lists, what narrows that, and how documents are found again."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from runner.base.errors import InputError
from samplers.feeds import congress_gov, ecfr, federal_register, olrc
from samplers.feeds.client import Client
from samplers.feeds.endpoints import Refused
from samplers.feeds.govinfo import Bulk, granules, prints
from samplers.feeds.names import BILL, GRANULE, ISSUE, LAWS, PRINT, TITLE, VOLUME, Name, first_item
from samplers.feeds.request import Draw, FetchRequest, Item, Located, Say, drawn
from samplers.registry import DOCUMENTS, SOURCES

_DATES = ("since", "until")
_ALL = (*_DATES, "congress")


class Feed(NamedTuple):
    """A way to list files, and which of since, until and congress narrow it.

    `per_file` is the documents counted on from a file, a number set low. A feed whose listing has no addresses asks
    `address_of` for that of each file drawn, None for one that has none.
    """

    listed: Callable[[Client, FetchRequest, Say], Iterable[Item]]
    takes: tuple[str, ...] = ()
    per_file: int = 1
    address_of: Callable[[Client, Item], Item | None] | None = None

    def draw(self, client: Client, request: FetchRequest, say: Say) -> Draw:
        """Return a draw from all that is listed."""
        draw = drawn(self.listed(client, request, say), request.files_wanted(self.per_file), request.seed)
        if self.address_of is None:
            return draw
        located = tuple(item for listed in draw.items if (item := self.address_of(client, listed)))
        say(f"{len(draw.items) - len(located)} of {len(draw.items)} files drawn have no address and are left out")
        return Draw(located, draw.n_listed)


class SourceFeeds(NamedTuple):
    """A source's feeds by name, the first one the default, and how its documents are found again."""

    feeds: Mapping[str, Feed]
    locate: Callable[[Client, Iterable[str]], Located]


def _one_by_one(find: Callable[[Client, str], Item | str]) -> Callable[[Client, Iterable[str]], Located]:
    def locate(client: Client, doc_ids: Iterable[str]) -> Iterator[tuple[str, Item | str]]:
        for doc_id in doc_ids:
            try:
                yield doc_id, find(client, doc_id)
            except Refused as error:
                yield doc_id, str(error)

    return locate


def _by_name(*names: Name) -> Callable[[Client, Iterable[str]], Located]:
    return _one_by_one(lambda _, name: first_item(names, name) or "its id is none of govinfo's")


_REPORTS = Feed(congress_gov.reports, _DATES, address_of=congress_gov.page_of)
_BILLS = Feed(Bulk("BILLS", r"\d+(/[^/]+){0,2}", (BILL,)).listed, ("congress",))
_LAWS = Feed(Bulk("PLAW", r"\d+(/[^/]+){0,2}", LAWS).listed, ("congress",), per_file=4)
_DOCUMENTS = Feed(federal_register.documents, _DATES)
_ISSUES = Feed(Bulk("FR", r"\d+(/\d+)?", (ISSUE,)).listed, _DATES, per_file=10)
_VOLUMES = Feed(Bulk("CFR", r"\d+(/title-[^/]*)?", (VOLUME,), is_yearly=True).listed, _DATES, per_file=50)
_TITLES = Feed(Bulk("ECFR", "title-[^/]*", (TITLE,)).listed, per_file=50)
# Titles of the Code have some 900 sections, but a sample from three titles would not be of the Code. A part of title 1
# of the CFR has ten sections, but a sample should come from more parts than it needs.
_CODE = Feed(olrc.titles, per_file=30)
_PARTS = Feed(ecfr.parts, ("until",), per_file=5)

FEEDS: Mapping[str, SourceFeeds] = {
    "bills": SourceFeeds({"bulk": _BILLS}, _by_name(BILL)),
    "public_laws": SourceFeeds({"bulk": _LAWS}, _by_name(*LAWS)),
    "us_code": SourceFeeds({"release-point": _CODE}, olrc.locate_titles),
    "federal_register": SourceFeeds(
        {"documents": _DOCUMENTS, "issues": _ISSUES}, _one_by_one(federal_register.document_of)
    ),
    "ecfr_and_cfr": SourceFeeds({"parts": _PARTS, "annual": _VOLUMES, "titles": _TITLES}, ecfr.locate_sections),
    "hearing_transcripts": SourceFeeds({"api": Feed(partial(prints, "CHRG"), _ALL)}, _by_name(PRINT)),
    "committee_reports": SourceFeeds({"api": Feed(partial(prints, "CRPT"), _ALL)}, _by_name(PRINT)),
    "congressional_record": SourceFeeds({"api": Feed(granules, _ALL)}, _by_name(GRANULE)),
    "crs_reports": SourceFeeds({"api": _REPORTS}, _one_by_one(congress_gov.report_of)),
}


def source_feeds(source: str) -> SourceFeeds:
    """Return the feeds of a source; raise an InputError that says where to look for one that has none."""
    if source not in FEEDS:
        raise InputError(
            f"{source} has no feed: {SOURCES.get(source, DOCUMENTS).elsewhere}. Give --corpus-path the folder."
        )
    return FEEDS[source]


def feed_of(source: str, request: FetchRequest) -> tuple[str, Feed]:
    """Return name and row of the feed asked for; raise an InputError unless there is one that takes the flags given."""
    feeds = source_feeds(source).feeds
    name = request.feed or next(iter(feeds))
    if name not in feeds:
        raise InputError(f"{source} has no feed {name!r}. Its feeds: {', '.join(feeds)}.")
    given = {"since": request.since, "until": request.until, "congress": request.congresses}
    if unused := [flag for flag, value in given.items() if value and flag not in feeds[name].takes]:
        taken = ", ".join(f"--{flag}" for flag in sorted(feeds[name].takes)) or "no such flag"
        raise InputError(f"The feed {name} of {source} cannot be narrowed by --{unused[0]}; it takes {taken}.")
    return name, feeds[name]
