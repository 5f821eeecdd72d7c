"""The feeds of each source, and where to look for the sources that have none."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from runner.base.errors import InputError
from samplers.feeds import (
    annual_cfr,
    congress_gov,
    ecfr,
    federal_register,
    govinfo_api,
    govinfo_bulk,
    govinfo_content,
    olrc,
)
from samplers.feeds.client import Client
from samplers.feeds.request import Draw, FetchRequest, Located, Say


@dataclass(frozen=True, slots=True)
class Feed:
    """How a feed draws; `takes` are the flags that narrow it, of since, until and congress."""

    draw: Callable[[Client, FetchRequest, Say], Draw]
    takes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceFeeds:
    """A source's feeds by name, the first one the default, and how its documents are found again."""

    feeds: Mapping[str, Feed]
    locate: Callable[[Client, Iterable[str]], Located]


_DATES = frozenset(("since", "until"))
_CONGRESS = frozenset(("congress",))

FEEDS: Mapping[str, SourceFeeds] = {
    "bills": SourceFeeds({"bulk": Feed(govinfo_bulk.BILLS.draw, _CONGRESS)}, govinfo_content.locate_bills),
    "public_laws": SourceFeeds({"bulk": Feed(govinfo_bulk.LAWS.draw, _CONGRESS)}, govinfo_content.locate_laws),
    "us_code": SourceFeeds({"release-point": Feed(olrc.draw_titles)}, olrc.locate_titles),
    "federal_register": SourceFeeds(
        {"documents": Feed(federal_register.draw_documents, _DATES), "issues": Feed(govinfo_bulk.ISSUES.draw, _DATES)},
        federal_register.locate_documents,
    ),
    "ecfr_and_cfr": SourceFeeds(
        {
            "parts": Feed(ecfr.draw_parts, frozenset(("until",))),
            "annual": Feed(govinfo_bulk.draw_volumes, _DATES),
            "titles": Feed(govinfo_bulk.TITLES.draw),
        },
        annual_cfr.locate_sections,
    ),
    "hearing_transcripts": SourceFeeds(
        {"api": Feed(govinfo_api.Packages("CHRG").draw, _DATES | _CONGRESS)}, govinfo_content.locate_prints
    ),
    "committee_reports": SourceFeeds(
        {"api": Feed(govinfo_api.Packages("CRPT").draw, _DATES | _CONGRESS)}, govinfo_content.locate_prints
    ),
    "congressional_record": SourceFeeds(
        {"api": Feed(govinfo_api.draw_granules, _DATES | _CONGRESS)}, govinfo_content.locate_granules
    ),
    "crs_reports": SourceFeeds({"api": Feed(congress_gov.draw_reports, _DATES)}, congress_gov.locate_reports),
}

WITHOUT_FEED: Mapping[str, str] = {
    "gao_reports": "gao.gov turns programs away. Take product records from https://www.gao.gov/products by hand",
    "cbo_cost_estimates": "cbo.gov publishes no listing for programs. Look under https://www.cbo.gov/cost-estimates",
    "statements_of_administration_policy": "whitehouse.gov removes them with each administration. Take the PDFs and "
    "their index from https://github.com/unitedstates/statements-of-administration-policy",
    "demo": "its corpus is in the repository, under eval-sets/demo/corpus",
    "beir": "collections are published as archives; docs/collections.md says where",
}


def source_feeds(source: str) -> SourceFeeds:
    """The feeds of a source; an InputError says where to look for one that has none, or what a name may mean."""
    if source in FEEDS:
        return FEEDS[source]
    raise InputError(f"{source} has no feed: {WITHOUT_FEED[source]}. Give --corpus-path the folder.")


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
