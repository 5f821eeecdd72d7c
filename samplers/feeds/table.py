"""Feeds: for each source what its publisher lists, what narrows that, and how a document is found again."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from runner.base.errors import InputError
from samplers.feeds import ecfr, federal_register, olrc
from samplers.feeds.client import Client
from samplers.feeds.govinfo import bulk, granules, prints
from samplers.feeds.names import BILL, GRANULE, LAWS, PRINT, first_item
from samplers.feeds.request import FetchRequest, Item, Say
from samplers.registry import DOCUMENTS, SOURCES

_DATES = ("since", "until")
_ALL = (*_DATES, "congress")


class Feed(NamedTuple):
    """A way to list files, and which of since, until and congress narrow it.

    `file_of` is the file that a document's id leads to, None for none; a feed whose addresses say more than ids do
    asks the publisher, by `found`. `per_file` is the documents counted on from a file, a number set low.
    """

    listed: Callable[[Client, FetchRequest, Say], Iterable[Item]]
    file_of: Callable[[str], Item | None]
    takes: tuple[str, ...] = ()
    per_file: int = 1
    found: Callable[[Client, str], Item | None] | None = None


FEEDS: Mapping[str, Feed] = {
    "bills": Feed(partial(bulk, "BILLS", (BILL,)), BILL.item, ("congress",)),
    "public_laws": Feed(partial(bulk, "PLAW", LAWS), partial(first_item, LAWS), ("congress",), per_file=4),
    # Titles of the Code have some 900 sections, but a sample from three titles would not be of the Code.
    "us_code": Feed(olrc.titles, olrc.title_with, per_file=30),
    "federal_register": Feed(federal_register.documents, lambda _: None, _DATES, found=federal_register.document_of),
    # A part of title 1 has ten sections, but a sample should come from more parts than it needs.
    "ecfr_and_cfr": Feed(ecfr.parts, ecfr.part_with, ("until",), per_file=5),
    "hearing_transcripts": Feed(partial(prints, "CHRG"), PRINT.item, _ALL),
    "committee_reports": Feed(partial(prints, "CRPT"), PRINT.item, _ALL),
    "congressional_record": Feed(granules, GRANULE.item, _ALL),
}


def feed_of(source: str, request: FetchRequest) -> Feed:
    """Return the feed of a source; raise an InputError for a source without one, and for flags that it does not take.

    The error of a source without a feed says where to look.
    """
    if source not in FEEDS:
        raise InputError(
            f"{source} has no feed: {SOURCES.get(source, DOCUMENTS).elsewhere}. Give --corpus-path the folder."
        )
    feed = FEEDS[source]
    given = {"since": request.since, "until": request.until, "congress": request.congresses}
    if unused := [flag for flag, value in given.items() if value and flag not in feed.takes]:
        taken = ", ".join(f"--{flag}" for flag in sorted(feed.takes)) or "no such flag"
        raise InputError(f"The feed of {source} cannot be narrowed by --{unused[0]}; it takes {taken}.")
    return feed
