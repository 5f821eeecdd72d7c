"""Qrels as columns, so that any list of documents is scored under any query's judgments at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints, Qrels, Run
from runner.score.score import DISCOUNTS, ideal_gains, units

DEPTH = len(DISCOUNTS)
"""How far down a ranking nDCG@10 looks."""


@dataclass(frozen=True, slots=True)
class QrelsTable:
    """The qrels of an eval set as columns, a row for each pair of document and query with a grade above 0.

    `numbers` counts every document, of the corpus or judged, up from 0 in ascending order of doc_id. Rows are sorted
    by document, those of document d begin at `starts[d]`; `rows_of[q]` are the rows of query q. `ideal` (queries,) is
    the greatest discounted gain. Queries are numbered in the order of `query_ids`.
    """

    query_ids: tuple[str, ...]
    numbers: dict[str, int]
    documents: Ints
    queries: Ints
    grades: Ints
    starts: Ints
    rows_of: tuple[Ints, ...]
    ideal: NDArray[np.float64]

    def rankings(self, run: Run) -> Ints:
        """The numbers of each query's first ten documents (queries, 10), -1 past a list's end.

        KeyError if the run misses a query, ValueError if it retrieves a document that nobody numbered.
        """
        found = np.full((len(self.query_ids), DEPTH), -1, np.int64)
        for row, query_id in enumerate(self.query_ids):
            for place, hit in enumerate(run.hits[query_id][:DEPTH]):
                if hit.doc_id not in self.numbers:
                    raise ValueError(f"{run.cell}: query {query_id} retrieves {hit.doc_id!r}, not in the corpus")
                found[row, place] = self.numbers[hit.doc_id]
        return found

    def grades_for(self, query: int, documents: Ints) -> Ints:
        """The grades of documents, of any shape, for one query; 0 for a document without one and for -1."""
        rows = self.rows_of[query]
        grades = np.zeros(len(self.numbers) + 1, np.int64)
        grades[self.documents[rows]] = self.grades[rows]
        return grades[documents]

    def scores(self, rankings: Ints) -> Ints:
        """nDCG@10 of every ranking under every query's qrels (rankings, queries), in units of 1e-9."""
        row, place, pair = self._pairs(rankings)
        n_queries = len(self.query_ids)
        gains = np.bincount(
            row * n_queries + self.queries[pair],
            weights=self.grades[pair] * DISCOUNTS[place],
            minlength=len(rankings) * n_queries,
        )
        return normalised(gains.reshape(len(rankings), n_queries).astype(np.float64, copy=False), self.ideal)

    def own_scores(self, rankings: Ints) -> Ints:
        """nDCG@10 of each query's ranking (queries, 10) under its own qrels (queries,), in units of 1e-9."""
        return normalised(discounted(self.own_grades(rankings)), self.ideal)

    def own_grades(self, rankings: Ints) -> Ints:
        """The grades of each query's ranking (queries, places) for that query; 0 as for `grades_for`."""
        row, place, pair = self._pairs(rankings)
        own = self.queries[pair] == row
        grades = np.zeros(rankings.shape, np.int64)
        grades[row[own], place[own]] = self.grades[pair[own]]
        return grades

    def _pairs(self, rankings: Ints) -> tuple[Ints, Ints, Ints]:
        """By ranking and place, the rows of the table that are of the document there: ranking, place, row."""
        ranking, place = np.nonzero(rankings >= 0)
        found = rankings[ranking, place]
        n_pairs = self.starts[found + 1] - self.starts[found]
        hit = np.repeat(np.arange(len(found)), n_pairs)
        pair = np.arange(len(hit)) + np.repeat(self.starts[found] - np.cumsum(n_pairs) + n_pairs, n_pairs)
        return ranking[hit], place[hit], pair


def qrels_table(query_ids: Sequence[str], qrels: Qrels, doc_ids: Iterable[str]) -> QrelsTable:
    """The table of the queries' qrels over the corpus `doc_ids`; a judged document need not be in the corpus."""
    pairs = [
        (doc_id, query, grade)
        for query, query_id in enumerate(query_ids)
        for doc_id, grade in qrels.get(query_id, {}).items()
        if grade > 0
    ]
    numbers = {doc_id: i for i, doc_id in enumerate(sorted({*doc_ids, *(doc_id for doc_id, _, _ in pairs)}))}
    rows = sorted((numbers[doc_id], query, grade) for doc_id, query, grade in pairs)
    documents, queries, grades = np.array(rows, np.int64).reshape(-1, 3).T
    by_query = np.argsort(queries, kind="stable")
    ends = np.searchsorted(queries[by_query], np.arange(1, len(query_ids)))
    return QrelsTable(
        query_ids=tuple(query_ids),
        numbers=numbers,
        documents=documents,
        queries=queries,
        grades=grades,
        starts=np.searchsorted(documents, np.arange(len(numbers) + 1)),
        rows_of=tuple(np.split(by_query, ends)),
        ideal=ideal_gains(query_ids, qrels),
    )


def discounted(grades: Ints) -> NDArray[np.float64]:
    """Discounted gains of grades down a ranking (..., places), summed from the first place on."""
    gains = np.zeros(grades.shape[:-1])
    for place in range(grades.shape[-1]):
        gains += grades[..., place] * DISCOUNTS[place]
    return gains


def normalised(gains: NDArray[np.float64], ideal: NDArray[np.float64]) -> Ints:
    """Gains by the ideal, in units of 1e-9; 0 if the ideal is 0."""
    return units(np.divide(gains, ideal, out=np.zeros_like(gains), where=ideal > 0))


def document_column(table: QrelsTable, values: Mapping[str, int]) -> Ints:
    """The value of each document of the table, 0 if there is none; ValueError for a document it does not have."""
    column = np.zeros(len(table.numbers), np.int64)
    for doc_id, value in values.items():
        if doc_id not in table.numbers:
            raise ValueError(f"{doc_id!r} is not in the corpus")
        column[table.numbers[doc_id]] = value
    return column
