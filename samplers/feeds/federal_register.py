"""Documents of the Federal Register by its API, no key: listed in slices of time, since results are capped."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from urllib.parse import urlencode

from pydantic import Field

from runner.base.errors import BackendError
from samplers.feeds.client import Client, Listing, listing
from samplers.feeds.request import FetchRequest, Item, Say

_SITE = "https://www.federalregister.gov"
_API = f"{_SITE}/api/v1/documents"
_KINDS = {"Rule": "rule", "Proposed Rule": "proposed", "Presidential Document": "presidential", "Notice": "notice"}
_NUMBER = r"[A-Z]?[0-9][0-9A-Z-]{0,20}|[A-Z][0-9]{0,2}-[0-9-]{1,20}"

WINDOW = 2_000
"""Results of a query that are surely all there. The API caps results, and the count with them, at 2,000 to 10,000."""

PAGE_SIZE = 1000
FIRST_DAY = date(2000, 1, 3)
"""Full texts in XML begin here."""

SLICE = timedelta(days=90)
_ONE_DAY = timedelta(days=1)


class _Document(Listing):
    document_number: str = Field(pattern=f"^(?:{_NUMBER})$")
    type: str = ""
    publication_date: str = Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    full_text_xml_url: str | None = None

    @property
    def item(self) -> Item | None:
        """File of the document, None if it has no XML."""
        number, day = self.document_number, self.publication_date
        url = f"{_SITE}/documents/full_text/xml/{day.replace('-', '/')}/{number}.xml"
        stratum = f"{_KINDS.get(self.type, 'other')}/{day[:4]}"
        return Item(f"{number}.xml", url, "xml", stratum) if self.full_text_xml_url else None


_FIELDS = [("fields[]", name) for name in _Document.model_fields]


class _Page(Listing):
    count: int
    results: list[_Document] = Field(default_factory=list)
    """Absent where nothing is found."""


def documents(client: Client, request: FetchRequest, say: Say) -> list[Item]:
    """Return all rules, proposed rules and presidential documents, and notices if the options ask for them."""
    types = ["RULE", "PRORULE", "PRESDOCU", *(["NOTICE"] if "notices" in request.options else [])]
    since, until = request.since or FIRST_DAY, request.until or client.clock.utc().date()
    listed: list[Item | None] = []
    # In slices, so that few of them come near the cap and are halved.
    while since <= until:
        last = min(since + SLICE, until)
        listed += [row.item for row in _published(client, types, since, last)]
        since = last + _ONE_DAY
    items = [item for item in listed if item]
    say(f"listed {len(items):,} documents; {len(listed) - len(items):,} without a text in XML")
    return items


def document_of(client: Client, doc_id: str) -> Item | None:
    """Return the file of a document by its id, "FR-2013-27337"; the API is asked for the day that its address has."""
    number = re.fullmatch(f"FR-({_NUMBER})", doc_id)
    return listing(client, f"{_API}/{number[1]}.json?{urlencode(_FIELDS)}", _Document).item if number else None


def _published(client: Client, types: list[str], first: date, last: date) -> Iterator[_Document]:
    """Return every document published from `first` to `last`, in halves if a query would be capped."""
    page = _page(client, types, first, last, 1)
    if page.count >= WINDOW and first == last:
        raise BackendError(
            f"The Federal Register lists {page.count:,} documents of {first}, more than a query can show."
        )
    # The count is capped as the results are, so that a full window may hide any number.
    if page.count >= WINDOW:
        middle = first + (last - first) // 2
        yield from _published(client, types, first, middle)
        yield from _published(client, types, middle + _ONE_DAY, last)
        return
    rows = list(page.results)
    for number in range(2, -(-page.count // PAGE_SIZE) + 1):
        rows += _page(client, types, first, last, number).results
    if len(rows) != page.count:
        raise BackendError(
            f"The Federal Register states {page.count:,} documents of {first} to {last} and lists {len(rows):,}."
        )
    yield from rows


def _page(client: Client, types: list[str], first: date, last: date, number: int) -> _Page:
    query = [
        ("per_page", str(PAGE_SIZE)),
        ("page", str(number)),
        ("order", "oldest"),
        *(("conditions[type][]", name) for name in types),
        ("conditions[publication_date][gte]", str(first)),
        ("conditions[publication_date][lte]", str(last)),
        *_FIELDS,
    ]
    return listing(client, f"{_API}.json?{urlencode(query)}", _Page)
