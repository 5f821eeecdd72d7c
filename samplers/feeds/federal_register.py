"""Documents of the Federal Register by its API, no key: listed in slices of time, since results are capped."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from urllib.parse import urlencode

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.draw import drawn, files_wanted
from samplers.feeds.endpoints import Refused
from samplers.feeds.request import Draw, FetchRequest, Item, Located, Say, located

_SITE = "https://www.federalregister.gov"
_FIELDS = ("document_number", "type", "publication_date", "full_text_xml_url")
_TYPES = {"Rule": "rule", "Proposed Rule": "proposed", "Presidential Document": "presidential", "Notice": "notice"}
_NUMBER = re.compile(r"[A-Z]?[0-9][0-9A-Z-]{0,20}|[A-Z]\d{0,2}-[0-9-]{1,20}")

WINDOW = 2_000
"""Results of a query that are surely all there. The API caps results, and the count with them, at 2,000 to 10,000."""

PAGE_SIZE = 1000
FIRST_DAY = date(2000, 1, 3)
"""Full texts in XML begin here."""

SLICE = timedelta(days=90)


def draw_documents(client: Client, request: FetchRequest, say: Say) -> Draw:
    """A draw from all rules, proposed rules and presidential documents, and notices if the options ask for them."""
    types = ["RULE", "PRORULE", "PRESDOCU", *(["NOTICE"] if "notices" in request.options else [])]
    since, until = request.since or FIRST_DAY, request.until or client.clock.utc().date()
    frame: list[Item] = []
    n_without = 0
    while since <= until:
        last = min(since + SLICE, until)
        rows = list(_slice(client, types, since, last))
        items = [_item(row) for row in rows]
        frame += [item for item in items if item]
        n_without += items.count(None)
        since = last + timedelta(days=1)
    say(f"listed {len(frame):,} documents; {n_without:,} without a text in XML")
    if not frame:
        raise BackendError("The Federal Register has no document for these dates. Widen them.")
    return drawn(frame, files_wanted(request), request.seed)


def locate_documents(client: Client, doc_ids: Iterable[str]) -> Located:
    """Files of documents by their ids, "FR-2013-27337"; the API is asked for each one's date."""
    return located((doc_id, _found(client, doc_id)) for doc_id in doc_ids)


def _found(client: Client, doc_id: str) -> Item | str:
    number = doc_id.removeprefix("FR-")
    if not _NUMBER.fullmatch(number) or number == doc_id:
        return "its id is no document number"
    query = urlencode([("fields[]", name) for name in _FIELDS])
    try:
        row = client.json(f"{_SITE}/api/v1/documents/{number}.json?{query}")
    except Refused as error:
        return str(error)
    return _item(row) or "the Federal Register has no text of it in XML"


def _slice(client: Client, types: list[str], first: date, last: date) -> Iterator[JSON]:
    """Rows of every document published from `first` to `last`, in halves if a query would be capped."""
    page = _page(client, types, first, last, 1)
    count = page.get("count")
    if not isinstance(count, int):
        raise BackendError(f"{_SITE}/api/v1/documents.json is no listing: it has no count.")
    if count >= WINDOW:
        if first == last:
            raise BackendError(
                f"The Federal Register lists {count:,} documents of {first}, more than a query can show."
            )
        middle = first + (last - first) // 2
        yield from _slice(client, types, first, middle)
        yield from _slice(client, types, middle + timedelta(days=1), last)
        return
    rows = _rows(page)
    for number in range(2, -(-count // PAGE_SIZE) + 1):
        rows += _rows(_page(client, types, first, last, number))
    if len(rows) != count:
        raise BackendError(
            f"The Federal Register states {count:,} documents of {first} to {last} and lists {len(rows):,}."
        )
    yield from rows


def _page(client: Client, types: list[str], first: date, last: date, number: int) -> dict[str, JSON]:
    query = [
        ("per_page", str(PAGE_SIZE)),
        ("page", str(number)),
        ("order", "oldest"),
        *(("conditions[type][]", name) for name in types),
        ("conditions[publication_date][gte]", str(first)),
        ("conditions[publication_date][lte]", str(last)),
        *(("fields[]", name) for name in _FIELDS),
    ]
    page = client.json(f"{_SITE}/api/v1/documents.json?{urlencode(query)}")
    if not isinstance(page, dict):
        raise BackendError(f"{_SITE}/api/v1/documents.json is no listing.")
    return page


def _rows(page: dict[str, JSON]) -> list[JSON]:
    # A query without a result has a count of 0 and no list at all.
    rows = page.get("results", [])
    if not isinstance(rows, list):
        raise BackendError(f"{_SITE}/api/v1/documents.json is no listing: its results are no list.")
    return list(rows)


def _item(row: JSON) -> Item | None:
    """The file of a listed document; None for one without XML."""
    if not isinstance(row, dict):
        raise BackendError(f"{_SITE}/api/v1/documents.json lists something that is no document.")
    number, day = str(row.get("document_number")), str(row.get("publication_date"))
    if not _NUMBER.fullmatch(number) or not re.fullmatch(r"\d{4}-\d\d-\d\d", day):
        raise BackendError(f"{_SITE}/api/v1/documents.json lists a document without number or date.")
    if not row.get("full_text_xml_url"):
        return None
    kind = _TYPES.get(str(row.get("type")), "other")
    url = f"{_SITE}/documents/full_text/xml/{day.replace('-', '/')}/{number}.xml"
    return Item(f"{number}.xml", url, "xml", f"{kind}/{day[:4]}")
