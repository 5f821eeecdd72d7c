"""The page query by query: nDCG@10 in every cell, and what the baseline and its rival return."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, get_args
from urllib.parse import quote

from runner.base.figures import figure
from runner.base.records import SCORE_UNIT
from runner.decide.passages import Terms, marked, query_terms
from runner.decide.tiers import beside_baseline
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.shapes.lists import (
    Cause,
    FurtherReading,
    ListedDocument,
    PairShown,
    QueryLists,
    RankedLists,
    ShownPassage,
)
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import Results

SECTIONS = frozenset((
    "doubts", "why", "queries", "trust", "cost", "record", "top", "everything", "passages", "quality", "gate", "judges",
    "slices", "previous", "corpus", "chunks", "cells", "limits", "reproduce", "receipt", "doc",
))  # fmt: skip
"""The page's own anchors; further ones have a hyphen after one of these words, or are captions."""

TOP = 10
"""Hits of a list that are shown: those that nDCG@10 counts."""

AT_FIRST = 20
"""Rows that stand there before a reader asks for all."""

MOST_QUERIES = 100
"""Queries that the page has: with 2,786 of them it took 8.6 MB. The export has them all."""

TINTS = 4

_LINK = re.compile(r"https?://[^\s⟨⟩]+", re.IGNORECASE)


def anchor(query_id: str) -> str:
    """Return the query's id, with a word before it if it could be an anchor of the page's own.

    >>> anchor("q12"), anchor("cost"), anchor("12"), anchor("gate-caption"), anchor("query-1")
    ('q12', 'query-cost', '12', 'query-gate-caption', 'query-query-1')
    """
    first = query_id.partition("-")[0]
    return f"query-{query_id}" if first in SECTIONS or first == "query" or query_id.endswith("-caption") else query_id


def fragment(query_id: str) -> str:
    """Return the anchor as a link names it.

    >>> fragment("q12"), fragment("a/b(1)%")
    ('q12', 'a%2Fb(1)%25')
    """
    return quote(anchor(query_id), safe="!'()*")


def tint(difference: int) -> int:
    """Return how dark a difference of 1e-9 is drawn, from -TINTS to TINTS."""
    size = min(-(-abs(difference) * TINTS * 2 // SCORE_UNIT), TINTS)
    return size if difference > 0 else -size


Part = tuple[str, bool]
"""Words of a passage, and whether the query has them."""

Span = tuple[int, int]
"""First character of a chunk, and the one after its last."""


class Hit(NamedTuple):
    """A document in a list, or one that no list has.

    `elsewhere` is its rank in the other list, 0 if it is not in it; `causes` say why it is not among the first ten of
    the lists that lack it, if it is relevant, by cell; `score` is "" if it was not kept, and `halves` what
    words and meaning contributed to a sum. `url` is "" for an address
    that is none of the web's, `judge` for the one of most grades. `span` is the chunk that ranked it, `chunk` its
    words, or what was kept of them, and `marks` what the judge marked.
    """

    pair: PairShown
    document: ListedDocument
    url: str
    judge: str
    elsewhere: int
    causes: Mapping[str, Cause]
    score: str
    halves: Sequence[float]
    span: str
    chunk: Sequence[Part]
    marks: Sequence[tuple[str, Sequence[Part]]]


class MatrixRow(NamedTuple):
    """What was asked, of a query, with its score in each of the matrix's cells, in units of 1e-9.

    `sides` are the lists of the baseline and, if there is one, of its rival; `missed` the first TOP relevant documents
    in neither, with the best rank of any cell, and `further` counts the others. `absent` counts relevant documents that
    the collection lacks.
    """

    asked: AskedWording
    query: QueryRow
    scores: Sequence[int]
    sides: Sequence[Sequence[Hit]]
    missed: Sequence[tuple[Hit, str]]
    further: int
    relevant: int
    absent: int


class Misses(NamedTuple):
    """How many relevant documents a cell has not among its first ten, over all queries, and why."""

    cell: str
    total: int
    causes: Mapping[Cause, int]


class Matrix(NamedTuple):
    """Rows by the size of the rival's gain, greatest first, then by id; `left_out` counts queries that are not there.

    `cells` name the columns: the baseline, its rival (none if `rival` is ""), the others in the ranking's order.
    `again` is the reader of most second readings, "" if there is none. `linked` are the documents that have an address,
    each by the first hit that shows it, in the order of their places.
    `misses` are a row a cell, in the same order, of `relevant` documents; none if no cause was recorded.
    """

    cells: Sequence[str]
    rival: str
    rows: Sequence[MatrixRow]
    left_out: int
    again: str
    linked: Sequence[Hit]
    misses: Sequence[Misses]
    relevant: int


CAUSES: tuple[Cause, ...] = get_args(Cause)


def matrix(results: Results, lists: RankedLists) -> Matrix:
    """Return the table of #queries with its panels, from results and lists whose texts are inert."""
    shown = beside_baseline(results.cells, results.plan)
    cells = [*shown, *(row.cell for row in results.cells if row.cell not in shown)]
    per_query = {row.cell: row.by_wording.get("ndcg@10") or row.scores["ndcg@10"].per_query for row in results.cells}
    scores = list(zip(*(per_query[cell] for cell in cells), strict=True))
    # What tells the two apart comes first, whichever of them it favours.
    parted = [abs(each[len(shown) - 1] - each[0]) for each in scores]
    wordings, topics = asked(results.queries), {query.id: query for query in results.queries}
    order = sorted(range(len(scores)), key=lambda number: (-parted[number], wordings[number].id))
    # The judge of most grades goes without saying.
    judges = Counter(pair.judge for query in lists.queries for pair in query.documents if pair.judge)
    judge = _most(judges)
    listed, least = {query.id: query for query in lists.queries}, results.plan.relevant_grade
    rows = []
    for number in order[:MOST_QUERIES]:
        one = wordings[number]
        panel = _Panel(listed.get(one.id), lists, (one, topics[one.topic]), judge, shown, least)
        rows.append(panel.row(scores[number]))
    misses = [_misses(cell, lists) for cell in cells] if any(query.missed for query in lists.queries) else []
    pairs = [pair for query in lists.queries for pair in query.documents]
    readers = Counter(reader(reading) for pair in pairs for reading in pair.readings)
    return Matrix(
        cells=cells,
        rival=shown[1] if len(shown) > 1 else "",
        rows=rows,
        left_out=len(order) - len(rows),
        again=_most(readers),
        linked=_linked(rows),
        misses=misses,
        relevant=sum((pair.grade or 0) >= least for pair in pairs),
    )


def reader(reading: FurtherReading) -> str:
    """Return who read a pair again, and in which round."""
    model = f" ({reading.model})" if reading.model and reading.model != reading.judge else ""
    return f"{reading.judge}{model}, round {reading.round}"


def _most(counts: Counter[str]) -> str:
    return max(counts, key=lambda name: (counts[name], name), default="")


def _linked(rows: Iterable[MatrixRow]) -> list[Hit]:
    found: dict[int, Hit] = {}
    for row in rows:
        for hit in (*chain(*row.sides), *(hit for hit, _ in row.missed)):
            if hit.url:
                found.setdefault(hit.pair.document, hit)
    return [found[place] for place in sorted(found)]


def _misses(cell: str, lists: RankedLists) -> Misses:
    by_cause = [query.missed.get(cell, {}) for query in lists.queries]
    counts: dict[Cause, int] = {why: sum(len(each.get(why, ())) for each in by_cause) for why in CAUSES}
    return Misses(cell, sum(counts.values()), counts)


class _Panel:
    """One query's lists, ready to be shown side by side."""

    def __init__(
        self,
        lists: QueryLists | None,
        ranked: RankedLists,
        query: tuple[AskedWording, QueryRow],
        judge: str,
        cells: Sequence[str],
        least: int,
    ) -> None:
        self.one, self.query = query
        self.judge, self.least, self.documents = judge, least, ranked.documents
        self.lists = lists or QueryLists(id=self.one.id, relevant=0, documents=[], hits={})
        self.hits = {cell: self.lists.hits.get(cell, [])[:TOP] for cell in cells}
        # Where each list has a document, by its place among the query's pairs.
        self.ranks = [{hit[0]: rank for rank, hit in enumerate(hits, 1)} for hits in self.hits.values()]
        self.terms: Terms = query_terms(self.one.text) if ranked.texts else frozenset()

    def row(self, scores: Sequence[int]) -> MatrixRow:
        """Return the query's row with its panel."""
        known = [place for place, pair in enumerate(self.lists.documents) if (pair.grade or 0) >= self.least]
        left = [place for place in known if not any(place in ranks for ranks in self.ranks)]
        others_of = [self.ranks[:number] + self.ranks[number + 1 :] for number in range(len(self.ranks))]
        return MatrixRow(
            asked=self.one,
            query=self.query,
            scores=scores,
            # Beside each list stands the other one, if there is one.
            sides=[self._side(cell, dict(*others)) for cell, others in zip(self.hits, others_of, strict=True)],
            missed=[(self._hit(place), self._best(place)) for place in left[:TOP]],
            further=len(left[TOP:]),
            relevant=self.lists.relevant,
            absent=self.lists.relevant - len(known),
        )

    def _side(self, cell: str, other: dict[int, int]) -> list[Hit]:
        scores = [*(f"{score:.3g}" for score in self.lists.scores.get(cell, [])), *[""] * TOP]
        halves: list[Sequence[float]] = [*self.lists.halves.get(cell, []), *[()] * TOP]
        return [
            self._hit(place, (start, end), elsewhere=other.get(place, 0), score=score, halves=both)
            for (place, start, end), score, both in zip(self.hits[cell], scores, halves, strict=False)
        ]

    def _passages(self, place: int, span: Span | None) -> tuple[list[ShownPassage], list[ShownPassage]]:
        """Return at most one passage in the chunk that ranked a document, and at most one other that is marked."""
        pair = self.lists.documents[place]
        chunk = [each for each in pair.passages if span and span[0] <= each.start and each.end <= span[1]][:1]
        near = [(each.start, each.end) for each in chunk]
        return chunk, [each for each in _meets(pair.passages, pair.spans) if not _meets([each], near)][:1]

    def _best(self, place: int) -> str:
        """Return the best rank that any cell gives a document, with the cell; "" without one."""
        ranks = [
            (rank, cell)
            for cell, hits in self.lists.hits.items()
            for rank, hit in enumerate(hits, 1)
            if hit[0] == place
        ]
        return "{} in {}".format(*min(ranks)) if ranks else ""

    def _hit(
        self,
        place: int,
        span: Span | None = None,
        *,
        elsewhere: int = 0,
        score: str = "",
        halves: Sequence[float] = (),
    ) -> Hit:
        pair = self.lists.documents[place]
        document = self.documents[pair.document]
        chunk, marks = self._passages(place, span)
        causes = {
            cell: why
            for cell in self.hits
            for why, places in self.lists.missed.get(cell, {}).items()
            if place in places
        }
        return Hit(
            pair=pair,
            document=document,
            url=document.url if _LINK.fullmatch(document.url) else "",
            judge="" if pair.judge == self.judge else pair.judge,
            elsewhere=elsewhere,
            causes=causes,
            score=score,
            halves=halves,
            span=_span(*span) if span else "",
            chunk=_cut(marked(chunk[0].text, self.terms), chunk[0], span) if chunk and span else [],
            marks=[(_span(each.start, each.end), marked(each.text, self.terms)) for each in marks],
        )


def _meets(passages: Iterable[ShownPassage], spans: Sequence[Sequence[int]]) -> list[ShownPassage]:
    """Return the passages that overlap one of the spans."""
    return [each for each in passages if any(each.start < end and start < each.end for start, end in spans)]


def _cut(parts: Sequence[Part], passage: ShownPassage, chunk: Span) -> list[Part]:
    """Return a passage's parts, with dots where the chunk goes on before or after it."""
    before, after = passage.start > chunk[0], passage.end < chunk[1]
    return [*[("… ", False)][:before], *parts, *[(" …", False)][:after]]


def _span(start: int, end: int) -> str:
    return f"{figure(start)}–{figure(end)}"
