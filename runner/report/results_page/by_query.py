"""What a sceptic opens, query by query: nDCG@10 in every cell, and what the baseline and its rival return."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from runner.base.figures import figure, per_query, signed
from runner.base.records import SCORE_UNIT
from runner.decide.passages.asked_words import Terms, marked, query_terms
from runner.eval_set.shapes.lists import ListedDocument, PairShown, QueryLists, RankedLists, ShownPassage
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import Results
from runner.report.results_page.challenger import challenger

SECTIONS = frozenset((
    "doubts", "why", "queries", "trust", "cost", "record", "top", "everything", "passages", "quality", "gate", "judges",
    "slices", "previous", "corpus", "chunks", "cells", "limits", "reproduce", "receipt",
))  # fmt: skip
"""The page's own anchors; further ones have a hyphen after one of these words, or are captions."""

MEASURE = "ndcg@10"

TOP = 10
"""Hits of a list that are shown: those that nDCG@10 counts."""

AT_FIRST = 20
"""Rows that stand there before a reader asks for all."""

MOST_QUERIES = 100
"""Queries that the page has: with 2,786 of them it took 8.6 MB. The export has them all."""

TINTS = 4

ASKING = frozenset(
    ("what", "which", "who", "when", "where", "why", "how", "doe", "can", "could", "would", "should", "must", "ani")
)
"""Stems of a question's own words, which tell nothing in a passage."""

_LINK = re.compile(r"https?://[^\s⟨⟩]+", re.IGNORECASE)


def anchor(query_id: str) -> str:
    """The query's id, with a word before it if it could be an anchor of the page's own.

    >>> anchor("q12"), anchor("cost"), anchor("12"), anchor("gate-caption"), anchor("query-1")
    ('q12', 'query-cost', '12', 'query-gate-caption', 'query-query-1')
    """
    first = query_id.partition("-")[0]
    return f"query-{query_id}" if first in SECTIONS or first == "query" or query_id.endswith("-caption") else query_id


def fragment(query_id: str) -> str:
    """The same as a link names it.

    >>> fragment("q12"), fragment("a/b(1)%")
    ('q12', 'a%2Fb(1)%25')
    """
    return quote(anchor(query_id), safe="!'()*")


def contenders(results: Results) -> tuple[int, int] | None:
    """Where the baseline and the cell that the verdict is about stand in the ranking; None if one is missing."""
    told, rows = challenger(results), results.cells
    baseline = next((place for place, row in enumerate(rows) if row.role == "baseline"), None)
    if told is None or baseline is None:
        return None
    return baseline, next(place for place, row in enumerate(rows) if row.cell == told.cell)


Part = tuple[str, bool]
"""Words of a passage, and whether the query has them."""

Span = tuple[int, int]
"""First character of a chunk, and the one after its last."""


class Difference(NamedTuple):
    """A cell less the baseline in one query, in units of 1e-9; `tint` runs from -TINTS to TINTS."""

    cell: str
    score: str
    value: int
    tint: int


class Hit(NamedTuple):
    """A document in a list; an address that is none of the web's is "", and so is the judge of most grades.

    `span` is the chunk that ranked it, `chunk` its words, or what was kept of them, and `marks` what the judge marked,
    in parts: which of them are telling words of the query. `elsewhere` is its rank in the other list, 0 if it is not
    in it; `score` is "" where it was not kept.
    """

    rank: int
    elsewhere: int
    score: str
    document: ListedDocument
    url: str
    pair: PairShown
    judge: str
    span: str
    chunk: Sequence[Part]
    marks: Sequence[tuple[str, Sequence[Part]]]


class SideList(NamedTuple):
    """The first TOP hits of one cell; of `hits` and of nDCG@10 there may be none."""

    cell: str
    ndcg: str
    hits: Sequence[Hit]


class MatrixRow(NamedTuple):
    """A query: `first` are the baseline and, if there is one, its rival, `others` all other cells.

    `sides` are the lists of the first, `missed` the first TOP relevant documents in neither, with the best
    rank of any cell, "" without one, and `further` counts the others; `absent` counts those that the collection lacks.
    `lower` are ids and grades of documents in neither list that nDCG counts though they are not relevant.
    """

    query: QueryRow
    anchor: str
    first: Sequence[Difference]
    gain: str
    others: Sequence[Difference]
    relevant: int
    sides: Sequence[SideList]
    missed: Sequence[tuple[Hit, str]]
    further: int
    absent: int
    lower: Sequence[tuple[str, int]]


class Matrix(NamedTuple):
    """Rows by the size of the rival's gain, greatest first, then by id; `left_out` counts queries that are not there.

    `cells` name the columns: the baseline, its rival, the others in the ranking's order. `judge` gave most grades.
    """

    cells: Sequence[str]
    rows: Sequence[MatrixRow]
    left_out: int
    judge: str


def matrix(results: Results, lists: RankedLists) -> Matrix:
    """Return the table of #queries with its panels, from results and lists whose texts are inert."""
    pair = contenders(results)
    first = list(pair) if pair else [0]
    others = [place for place in range(len(results.cells)) if place not in first]
    judges = Counter(row.judge for query in lists.queries for row in query.documents if row.judge)
    judge = max(judges, key=lambda name: (judges[name], name), default="")
    by_id = {query.id: query for query in lists.queries}
    scores = [row.scores[MEASURE].per_query for row in results.cells]
    gains = [scores[first[-1]][place] - scores[first[0]][place] for place in range(len(results.queries))]
    order = sorted(range(len(gains)), key=lambda place: (-abs(gains[place]), results.queries[place].id))
    names = [results.cells[place].cell for place in (*first, *others)]

    def row(place: int) -> MatrixRow:
        query = results.queries[place]
        of_cells = [
            _difference(results.cells[cell].cell, scores[cell][place], scores[first[0]][place])
            for cell in (*first, *others)
        ]
        panel = _Panel(by_id.get(query.id), lists, query, judge)
        sides, missed, further = panel.sides(of_cells[: len(first)], results.plan.relevant_grade)
        return MatrixRow(
            query=query,
            anchor=anchor(query.id),
            first=of_cells[: len(first)],
            gain=signed(gains[place] / SCORE_UNIT, 2),
            others=of_cells[len(first) :],
            relevant=panel.relevant,
            sides=sides,
            missed=missed,
            further=further,
            absent=panel.relevant - panel.known(results.plan.relevant_grade),
            lower=panel.lower(results.plan.relevant_grade, [one.cell for one in of_cells[: len(first)]]),
        )

    shown = order[:MOST_QUERIES]
    return Matrix(names, [row(place) for place in shown], len(order) - len(shown), judge)


def _difference(cell: str, score: int, baseline: int) -> Difference:
    value = score - baseline
    size = min(-(-abs(value) * TINTS * 2 // SCORE_UNIT), TINTS)
    return Difference(cell, per_query(score), value, size if value > 0 else -size)


class _Panel:
    """What one query's lists hold, ready to be shown side by side."""

    def __init__(self, lists: QueryLists | None, ranked: RankedLists, query: QueryRow, judge: str) -> None:
        self.pairs = lists.documents if lists else []
        self.hits = lists.hits if lists else {}
        self.scores = lists.scores if lists else {}
        self.unlisted = lists.unlisted if lists else {}
        self.relevant = lists.relevant if lists else 0
        self.documents = ranked.documents
        self.judge = judge
        self.asked = query_terms(query.text) - ASKING if ranked.texts else frozenset[str]()
        self.terms = self.asked

    def known(self, least: int) -> int:
        """How many documents of the collection have this grade or a higher one."""
        return sum(pair.grade is not None and pair.grade >= least for pair in self.pairs)

    def lower(self, least: int, cells: Sequence[str]) -> list[tuple[str, int]]:
        """Documents graded above 0 and below `least` that none of these cells has among its first TOP, by id."""
        seen = {hit[0] for cell in cells for hit in self.hits.get(cell, [])[:TOP]}
        found = [
            (self.documents[pair.document].doc_id, pair.grade)
            for row, pair in enumerate(self.pairs)
            if row not in seen and pair.grade is not None and 0 < pair.grade < least
        ]
        return sorted([*found, *((doc_id, grade) for doc_id, grade in self.unlisted.items() if grade < least)])

    def sides(
        self, first: Sequence[Difference], relevant_grade: int
    ) -> tuple[list[SideList], list[tuple[Hit, str]], int]:
        """The lists of these cells, the first TOP relevant documents that none of them has, and how many more."""
        lists = {one.cell: self.hits.get(one.cell, [])[:TOP] for one in first}
        ranks = {cell: {row: rank for rank, (row, _, _) in enumerate(hits, 1)} for cell, hits in lists.items()}
        left = [
            row
            for row, pair in enumerate(self.pairs)
            if pair.grade is not None and pair.grade >= relevant_grade and not any(row in of for of in ranks.values())
        ]
        spans = [(row, (start, end)) for hits in lists.values() for row, start, end in hits]
        self.terms = self.telling([*spans, *((row, None) for row in left[:TOP])])
        sides = []
        for one in first:
            other = next((ranks[cell] for cell in lists if cell != one.cell), {})
            scores = [*(f"{score:.3g}" for score in self.scores.get(one.cell, [])), *[""] * TOP]
            found = [
                self.hit(rank, other.get(row, 0), score, row, (start, end))
                for rank, ((row, start, end), score) in enumerate(zip(lists[one.cell], scores, strict=False), 1)
            ]
            sides.append(SideList(one.cell, one.score, found))
        return sides, [(self.hit(0, 0, "", row, None), self.best(row)) for row in left[:TOP]], len(left[TOP:])

    def telling(self, shown: Iterable[tuple[int, Span | None]]) -> Terms:
        """The terms that at most half of the passages shown have: a word that all have tells nothing."""
        texts = {each.text for row, span in shown for part in self.passages(row, span) for each in part}
        having = Counter(term for text in texts for term in self.asked & query_terms(text))
        return frozenset(term for term in self.asked if 2 * having[term] <= len(texts))

    def passages(self, row: int, span: Span | None) -> tuple[list[ShownPassage], list[ShownPassage]]:
        """At most one passage in the chunk that ranked a document, and at most one apart from it that is marked."""
        pair = self.pairs[row]
        chunk = [each for each in pair.passages if span and span[0] <= each.start and each.end <= span[1]][:1]
        near = [(each.start, each.end) for each in chunk]
        return chunk, [each for each in _meets(pair.passages, pair.spans) if not _meets([each], near)][:1]

    def best(self, row: int) -> str:
        """The best rank that any cell gives a document, with the cell."""
        ranks = [(rank, cell) for cell, hits in self.hits.items() for rank, hit in enumerate(hits, 1) if hit[0] == row]
        return "{} in {}".format(*min(ranks)) if ranks else ""

    def hit(self, rank: int, elsewhere: int, score: str, row: int, span: Span | None) -> Hit:
        """A document with the chunk that ranked it, then what the judge marked."""
        pair = self.pairs[row]
        document = self.documents[pair.document]
        chunk, marks = self.passages(row, span)
        return Hit(
            rank=rank,
            elsewhere=elsewhere,
            score=score,
            document=document,
            url=document.url if _LINK.fullmatch(document.url) else "",
            pair=pair,
            judge="" if pair.judge == self.judge else pair.judge,
            span=_span(*span) if span else "",
            chunk=_cut(marked(chunk[0].text, self.terms), chunk[0], span) if chunk and span else [],
            marks=[(_span(each.start, each.end), marked(each.text, self.terms)) for each in marks],
        )


def _meets(passages: Iterable[ShownPassage], spans: Sequence[Sequence[int]]) -> list[ShownPassage]:
    """The passages that overlap one of the spans."""
    return [each for each in passages if any(each.start < end and start < each.end for start, end in spans)]


def _cut(parts: Sequence[Part], passage: ShownPassage, chunk: tuple[int, int]) -> list[Part]:
    """A passage's parts, with dots where the chunk goes on before or after it."""
    before, after = passage.start > chunk[0], passage.end < chunk[1]
    return [*[("… ", False)][:before], *parts, *[(" …", False)][:after]]


def _span(start: int, end: int) -> str:
    return f"{figure(start)}–{figure(end)}"
