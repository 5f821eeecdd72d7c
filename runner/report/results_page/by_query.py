"""What a sceptic opens, query by query: nDCG@10 in every cell, documents, what judges said of them, and all ranks."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from runner.base.figures import figure, per_query, places, shade, signed
from runner.base.records import SCORE_UNIT
from runner.decide.passages.asked_words import Terms, marked, query_terms
from runner.eval_set.shapes.lists import ListedDocument, PairShown, QueryLists, RankedLists
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import Results
from runner.report.results_page.challenger import challenger

SECTIONS = frozenset((
    "differences", "ranking", "queries", "tests", "recall", "passages", "cost", "gate", "judges", "pool", "slices",
    "scale", "previous", "corpus", "chunks", "cells", "limits", "reproduce", "receipt", "lists", "help", "top", "hatch",
))  # fmt: skip
"""The page's own anchors; further ones have a hyphen after one of these words, or are captions."""

MEASURE = "ndcg@10"

MOST_QUERIES = 200
"""Queries that the page has: with 2,786 of them it took 8.6 MB. The export has them all."""

UNRANKED = "-"
"""One byte, where a dash has three: most places of a rank column hold it."""

_LINK = re.compile(r"https?://[^\s⟨⟩]+", re.IGNORECASE)


def anchor(query_id: str) -> str:
    """The query's id, with a word before it if it could be an anchor of the page's own.

    >>> anchor("q12"), anchor("cost"), anchor("12"), anchor("gate-caption"), anchor("query-1")
    ('q12', 'query-cost', '12', 'query-gate-caption', 'query-query-1')
    """
    first = query_id.partition("-")[0]
    return f"query-{query_id}" if first in SECTIONS or first == "query" or query_id.endswith("-caption") else query_id


def fragment(query_id: str) -> str:
    """The same as a link names it: as the page's script encodes it, too.

    >>> fragment("q12"), fragment("a/b(1)%")
    ('q12', 'a%2Fb(1)%25')
    """
    return quote(anchor(query_id), safe="!'()*")


def queries_shown(results: Results) -> list[int]:
    """The places of the queries on which cells part most, MOST_QUERIES at most: widest spread first, then by id."""
    values = [row.scores[MEASURE].per_query for row in results.cells]
    spreads = [max(each) - min(each) for each in zip(*values, strict=True)]
    order = sorted(range(len(spreads)), key=lambda place: (-spreads[place], results.queries[place].id))
    return order[:MOST_QUERIES]


def contenders(results: Results) -> tuple[int, int] | None:
    """Where the baseline and the cell that the verdict is about stand in the ranking; None if one is missing."""
    told, rows = challenger(results), results.cells
    baseline = next((place for place, row in enumerate(rows) if row.role == "baseline"), None)
    if told is None or baseline is None:
        return None
    return baseline, next(place for place, row in enumerate(rows) if row.cell == told.cell)


class Value(NamedTuple):
    """A figure as text; a sort compares `value`, in units of 1e-9. `shade` is the step of the tint behind a score."""

    value: int
    text: str
    shade: int = 0


class HeatRow(NamedTuple):
    """A query with its score in every cell, the highest less the lowest, and the gain of the cell of the verdict."""

    query: QueryRow
    scores: Sequence[Value]
    spread: Value
    gain: Value | None


class HeatMap(NamedTuple):
    """Rows by spread, widest first, then by id; `shown` are their queries' ids, and `others` counts those left out.

    `challenger` is the number of the cell that the verdict is about, None if there is none; rows then have no gain.
    `kinds` and `origins` are what a filter offers; `strata` says whether any query has one.
    """

    challenger: int | None
    rows: Sequence[HeatRow]
    shown: frozenset[str]
    others: int
    kinds: Sequence[str]
    origins: Sequence[str]
    strata: bool


def heat_map(results: Results) -> HeatMap:
    """nDCG@10 of every query in every cell, the queries on which cells part most first."""
    pair = contenders(results)
    rows = [_heat_row(place, results.queries[place], results, pair) for place in queries_shown(results)]
    return HeatMap(
        challenger=pair[1] + 1 if pair else None,
        rows=rows,
        shown=frozenset(row.query.id for row in rows),
        others=len(results.queries) - len(rows),
        kinds=sorted({query.kind for query in results.queries}),
        origins=sorted({query.origin for query in results.queries}),
        strata=any(query.stratum for query in results.queries),
    )


def _heat_row(place: int, query: QueryRow, results: Results, pair: tuple[int, int] | None) -> HeatRow:
    values = [row.scores[MEASURE].per_query[place] for row in results.cells]
    spread = max(values) - min(values)
    gain = values[pair[1]] - values[pair[0]] if pair else 0
    return HeatRow(
        query=query,
        scores=[Value(value, per_query(value), shade(value)) for value in values],
        spread=Value(spread, places(spread / SCORE_UNIT, 2)),
        gain=Value(gain, signed(gain / SCORE_UNIT, 2)) if pair else None,
    )


class DocumentRow(NamedTuple):
    """A document of a query's table; an address that is none of the web's is "", and so is the judge of most grades.

    `passages` say where they stand, and have their texts in parts: which of them are words of the query.
    """

    document: ListedDocument
    url: str
    pair: PairShown
    judge: str
    spans: str
    ranks: str
    passages: Sequence[tuple[str, Sequence[tuple[str, bool]]]]


class QueryTable(NamedTuple):
    """A query with its documents.

    `hits` are what the page's script reads: for every cell, apart by semicolons, the place of each document in the
    table and the two ends of its evidence, apart by spaces.
    """

    query: QueryRow
    anchor: str
    relevant: int
    hits: str
    documents: Sequence[DocumentRow]


class DrillDown(NamedTuple):
    """The queries of the heat map, in their own order, with their documents.

    `left` and `right` are the cells that are shown side by side at first, by their places in the ranking. `judge` gave
    most of the grades: rows name the others alone. A rank takes `width` places; `marks` says whether any document has
    marked passages.
    """

    left: int
    right: int
    depth: int
    texts: bool
    marks: bool
    judge: str
    width: int
    queries: Sequence[QueryTable]


def drill_down(results: Results) -> DrillDown:
    """Every list and every judgment, from results whose texts are inert."""
    lists = results.lists
    names = [row.cell for row in results.cells]
    left, right = contenders(results) or (0, min(1, len(names) - 1))
    judges = Counter(row.judge for query in lists.queries for row in query.documents if row.judge)
    tables = _Tables(lists, names, max(judges, key=lambda name: (judges[name], name), default=""))
    by_id = {query.id: query for query in lists.queries}
    shown = [results.queries[place] for place in sorted(queries_shown(results))]
    return DrillDown(
        left=left + 1,
        right=right + 1,
        depth=lists.depth,
        texts=lists.texts,
        marks=any(row.spans for query in lists.queries for row in query.documents),
        judge=tables.judge,
        width=tables.width,
        queries=[tables.query(query, by_id[query.id]) for query in shown if query.id in by_id],
    )


class _Tables:
    """What all queries share: documents, the names of cells in their order, the judge whom no row names."""

    def __init__(self, lists: RankedLists, cells: Sequence[str], judge: str) -> None:
        self.documents = lists.documents
        self.cells = cells
        self.judge = judge
        self.texts = lists.texts
        self.width = max(len(str(lists.depth)), len(str(len(cells)))) + 1

    def query(self, query: QueryRow, lists: QueryLists) -> QueryTable:
        """One query with its table's rows."""
        hits = [lists.hits.get(cell, []) for cell in self.cells]
        ranks = [{row: rank for rank, (row, _, _) in enumerate(found, start=1)} for found in hits]
        terms = query_terms(query.text) if self.texts else frozenset()
        return QueryTable(
            query=query,
            anchor=anchor(query.id),
            relevant=lists.relevant,
            hits=";".join(" ".join(f"{row} {start} {end}" for row, start, end in found) for found in hits),
            documents=[
                self.row(pair, [rank.get(place) for rank in ranks], terms) for place, pair in enumerate(lists.documents)
            ],
        )

    def row(self, pair: PairShown, ranks: Sequence[int | None], terms: Terms) -> DocumentRow:
        """One document of a query's table."""
        document = self.documents[pair.document]
        return DocumentRow(
            document=document,
            url=document.url if _LINK.fullmatch(document.url) else "",
            pair=pair,
            judge="" if pair.judge == self.judge else pair.judge,
            spans=", ".join(_span(start, end) for start, end in pair.spans),
            ranks="".join((UNRANKED if rank is None else str(rank)).rjust(self.width) for rank in ranks),
            passages=[(_span(passage.start, passage.end), marked(passage.text, terms)) for passage in pair.passages],
        )


def _span(start: int, end: int) -> str:
    return f"{figure(start)}–{figure(end)}"
