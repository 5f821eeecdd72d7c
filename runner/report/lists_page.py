"""Lists side by side, of which nobody said what is right: one self-contained page to look at."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.base.records import Document, Hit, Run
from runner.decide.passages import Terms, marked, query_terms
from runner.report.page_frame import inert, rendered

SHOWN = 5
"""Documents of a list."""

LONGEST = 400
"""Characters of a chunk."""


class Found(NamedTuple):
    """A document in a list: its title or id, and the chunk that ranked it in parts, the query's words marked."""

    title: str
    doc_id: str
    parts: list[tuple[str, bool]]


class Asked(NamedTuple):
    """A query with its list by cell, and how many documents those have at their heads."""

    text: str
    lists: dict[str, list[Found]]
    n_first: int


def lists_page(runs: Mapping[str, Run], queries: Mapping[str, str], documents: Sequence[Document]) -> bytes:
    """Return UTF-8 HTML without script, network or clock; queries on which the cells differ most come first."""
    known = {document.doc_id: document for document in documents}
    rows = []
    for query_id, text in queries.items():
        terms = query_terms(text)

        def found(hit: Hit, terms: Terms = terms) -> Found:
            document = known[hit.doc_id]
            chunk = document.text[hit.span.start : hit.span.end][:LONGEST] if hit.span else ""
            return Found(document.title, hit.doc_id, marked(chunk, terms))

        hits = {cell: run.hits[query_id] for cell, run in runs.items()}
        n_first = len({own[0].doc_id for own in hits.values() if own})
        rows.append(Asked(text, {cell: [*map(found, own[:SHOWN])] for cell, own in hits.items()}, n_first))
    rows.sort(key=lambda row: -row.n_first)
    return rendered("lists.html.j2", rows=inert(rows), cells=[*runs])
