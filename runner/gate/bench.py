"""A bench as numbers: grades of (query, document) pairs as columns, so that any ranking is scored under any judgments.

Single gold is a bench with one document of grade 1 per query.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints, Qrels, Run
from runner.score.flips import counted
from runner.score.score import DISCOUNTS, ideal_gains, units

Floats = NDArray[np.float64]

_SCORES_AT_ONCE = 1 << 17
"""A megabyte, which stays in the processor's cache."""


@dataclass(frozen=True)
class Bench:
    """The judgments of an eval set, a row for each pair of document and query with a grade above 0.

    `numbers` counts every document, of the corpus or judged, up from 0 in ascending order of doc_id. Rows are sorted
    by document, those of document d begin at `starts[d]`; `rows_of[q]` are the rows of query q. `by_rank` (depth,) is
    what a grade counts at each rank, `ideal` (queries,) the greatest sum of that. `groups` are the positions of the
    queries that exchange their judgments. `lengths` (documents,) are in characters, 0 for a document that is judged and
    not in the corpus; `corpus` are the numbers of those that are in it. Queries stand in the order of `query_ids`.
    `topics` (queries,) numbers the topics: wordings of one have the same judgments, and exchange them together.
    `weights` (queries,) are what each counts.
    """

    query_ids: tuple[str, ...]
    numbers: dict[str, int]
    documents: Ints
    queries: Ints
    grades: Ints
    starts: Ints
    rows_of: tuple[Ints, ...]
    by_rank: Floats
    ideal: Floats
    groups: tuple[Ints, ...]
    lengths: Ints
    corpus: Ints
    topics: Ints
    weights: Ints

    def total(self, scores: Floats) -> int:
        """Return the weighted sum of scores by query (queries,), in units."""
        return int((units(scores) * self.weights).sum())

    @property
    def whole(self) -> int:
        """That sum if every query scores 1."""
        return int(self.weights.sum()) * SCORE_UNIT

    @property
    def depth(self) -> int:
        """How far down a ranking is looked."""
        return len(self.by_rank)

    def rankings(self, run: Run) -> Ints:
        """Return the numbers of each query's first documents (queries, depth), -1 past a list's end.

        KeyError if the run misses a query, ValueError if it retrieves a document that nobody numbered.
        """
        rankings = np.full((len(self.query_ids), self.depth), -1, np.int64)
        for row, query_id in enumerate(self.query_ids):
            for rank, hit in enumerate(run.hits[query_id][: self.depth]):
                if hit.doc_id not in self.numbers:
                    raise ValueError(f"{run.cell}: query {query_id} retrieves {hit.doc_id!r}, not in the corpus")
                rankings[row, rank] = self.numbers[hit.doc_id]
        return rankings

    def perfect(self) -> Ints:
        """Return the rankings of an engine that knows the judgments: graded documents by grade, then doc_id."""
        best = (rows[np.argsort(-self.grades[rows], kind="stable")][: self.depth] for rows in self.rows_of)
        return self.lists([self.documents[rows] for rows in best])

    def lists(self, lists: Sequence[Ints]) -> Ints:
        """Return lists of documents as rankings (queries, depth), -1 past a list's end."""
        rankings = np.full((len(lists), self.depth), -1, np.int64)
        for row, documents in enumerate(lists):
            rankings[row, : len(documents)] = documents
        return rankings

    def scores(self, rankings: Ints) -> Floats:
        """Return the score of every ranking under every query's judgments (rankings, queries)."""
        row, rank, pair = self._pairs(rankings)
        n_queries = len(self.query_ids)
        # All (ranking, query) cells at once: each pair adds its discounted grade to one of them.
        gains = np.bincount(
            row * n_queries + self.queries[pair],
            weights=self.grades[pair] * self.by_rank[rank],
            minlength=len(rankings) * n_queries,
        )
        return normalised(gains.reshape(len(rankings), n_queries).astype(np.float64, copy=False), self.ideal)

    def own_scores(self, rankings: Ints) -> Floats:
        """Return the score of each query's ranking (queries, depth) under its own judgments (queries,)."""
        return normalised(self.discounted(self.own_grades(rankings)), self.ideal)

    def own_grades(self, rankings: Ints) -> Ints:
        """Return the grades of each query's ranking for that query; 0 for a document without one and for -1."""
        row, rank, pair = self._pairs(rankings)
        own = self.queries[pair] == row
        grades = np.zeros(rankings.shape, np.int64)
        grades[row[own], rank[own]] = self.grades[pair[own]]
        return grades

    def exchanged(
        self, rankings: Ints, assigned: NDArray[np.int32], among: Sequence[Ints] | None = None
    ) -> tuple[Ints, Floats | None]:
        """Return sums over the queries (draws,), in units, of scores under the judgments of the queries assigned.

        `assigned` is (queries, draws). With `among`, by group the queries from which its are drawn evenly, comes
        the expected score of each query (queries,), exactly.
        """
        totals = np.zeros(assigned.shape[1], np.int64)
        expected = np.zeros(len(rankings))
        at_once = max(1, _SCORES_AT_ONCE // len(rankings))
        # Without `among`, groups have no part in it, and all queries are one.
        for number, group in enumerate(self.groups if among is not None else [np.arange(len(rankings))]):
            for start in range(0, len(group), at_once):
                queries = group[start : start + at_once]
                scores = self.scores(rankings[queries])
                # Whichever is fewer is rounded: the scores that are drawn or those that there are.
                if len(totals) < len(rankings):
                    drawn = units(np.take_along_axis(scores, assigned[queries], axis=1))
                else:
                    drawn = np.take_along_axis(units(scores), assigned[queries], axis=1)
                totals += self.weights[queries] @ drawn
                if among is not None:
                    expected[queries] = scores[:, among[number]].mean(axis=1)
        return totals, expected if among is not None else None

    def random_lists(self, draws: int, generator: np.random.Generator) -> tuple[Ints, Floats]:
        """Return the same of lists drawn from the corpus, if each query has one right answer.

        Its rank in such a list, were it as long as the corpus, is uniform on 1 to the corpus' size: one number a list.
        """
        # Below the depth a gold counts nothing.
        gains = np.append(normalised(self.by_rank, self.by_rank[0]), 0.0)
        totals = np.zeros(draws, np.int64)
        for _ in range(int((self.ideal > 0).sum())):
            ranks = generator.integers(len(self.corpus), size=draws)
            totals += units(gains)[np.minimum(ranks, self.depth)]
        return totals, np.where(self.ideal > 0, gains.sum() / len(self.corpus), 0.0)

    def scores_for(self, query: int, lists: Ints) -> Floats:
        """Return the scores of lists of documents (lists, depth) under one query's judgments (lists,)."""
        rows = self.rows_of[query]
        grades = np.zeros(len(self.numbers) + 1, np.int64)
        grades[self.documents[rows]] = self.grades[rows]
        return normalised(self.discounted(grades[lists]), self.ideal[query])

    def discounted(self, grades: Ints) -> Floats:
        """Return the discounted gains of grades down a ranking (..., ranks), summed from the first rank on."""
        gains = np.zeros(grades.shape[:-1])
        for rank in range(grades.shape[-1]):
            gains += grades[..., rank] * self.by_rank[rank]
        return gains

    def summed(self, values: Ints) -> Ints:
        """Return values of pairs added up by document (documents,)."""
        totals = np.zeros(len(self.numbers), np.int64)
        np.add.at(totals, self.documents, values)
        return totals

    def column(self, values: Mapping[str, int]) -> Ints:
        """Return each document's value (documents,), 0 where there is none; ValueError for an unknown document."""
        column = np.zeros(len(self.numbers), np.int64)
        for doc_id, value in values.items():
            if doc_id not in self.numbers:
                raise ValueError(f"{doc_id!r} is not in the corpus")
            column[self.numbers[doc_id]] = value
        return column

    def _pairs(self, rankings: Ints) -> tuple[Ints, Ints, Ints]:
        """Return, by ranking and rank, the rows of the bench that are of the document there: ranking, rank, row."""
        ranking, rank = np.nonzero(rankings >= 0)
        document = rankings[ranking, rank]
        # How many queries judged each document: so many pairs a place stands for.
        n_pairs = self.starts[document + 1] - self.starts[document]
        hit = np.repeat(np.arange(len(document)), n_pairs)
        pair = np.arange(len(hit)) + np.repeat(self.starts[document] - np.cumsum(n_pairs) + n_pairs, n_pairs)
        return ranking[hit], rank[hit], pair


def bench_of(
    query_ids: Sequence[str],
    qrels: Qrels,
    lengths: Mapping[str, int],
    groups: Iterable[Ints],
    by_rank: Floats = DISCOUNTS,
    topics: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
) -> Bench:
    """Return the bench of the queries' judgments over the corpus, whose documents are the keys of `lengths`.

    A judged document need not be in the corpus. Every query is a topic of its own, and all count alike, if nothing is
    said. ValueError without queries.
    """
    if not query_ids:
        raise ValueError("a null gate needs queries, got 0 queries")
    pairs = [
        (doc_id, query, grade)
        for query, query_id in enumerate(query_ids)
        for doc_id, grade in qrels.get(query_id, {}).items()
        if grade > 0
    ]
    # Documents are numbered by id, so that renaming them in order moves nothing.
    numbers = {doc_id: i for i, doc_id in enumerate(sorted({*lengths, *(doc_id for doc_id, _, _ in pairs)}))}
    rows = sorted((numbers[doc_id], query, grade) for doc_id, query, grade in pairs)
    documents, queries, grades = np.array(rows, np.int64).reshape(-1, 3).T
    # Rows are sorted by document; each query's are found again by a second order.
    by_query = np.argsort(queries, kind="stable")
    ends = np.searchsorted(queries[by_query], np.arange(1, len(query_ids)))
    return Bench(
        query_ids=tuple(query_ids),
        numbers=numbers,
        documents=documents,
        queries=queries,
        grades=grades,
        starts=np.searchsorted(documents, np.arange(len(numbers) + 1)),
        rows_of=tuple(np.split(by_query, ends)),
        by_rank=by_rank,
        ideal=ideal_gains(query_ids, qrels, by_rank),
        groups=tuple(groups),
        lengths=np.array([lengths.get(doc_id, 0) for doc_id in numbers], np.int64),
        corpus=np.array([number for doc_id, number in numbers.items() if doc_id in lengths], np.int64),
        topics=np.arange(len(query_ids)) if topics is None else np.array(topics),
        weights=counted(weights, len(query_ids)),
    )


def stratum_groups(strata: Sequence[str]) -> list[Ints]:
    """Return the positions of the queries of each stratum, strata in order of name."""
    names = np.array(list(strata))
    return [np.flatnonzero(names == name) for name in sorted(set(strata))]


def permutation_groups(strata: Sequence[str]) -> list[Ints]:
    """Return the positions of the queries that exchange their judgments: by stratum, strata in order of name.

    A stratum of one query has nobody to exchange with: all such queries form one group more, and a single one joins
    the largest stratum (of equal ones the first by name).
    """
    by_name = stratum_groups(strata)
    groups = [positions for positions in by_name if len(positions) > 1]
    alone = np.array(sorted(int(positions[0]) for positions in by_name if len(positions) == 1), np.int64)
    if len(alone) == 1 and groups:
        largest = max(range(len(groups)), key=lambda number: len(groups[number]))
        groups[largest] = np.sort(np.concatenate((groups[largest], alone)))
    elif len(alone):
        groups.append(alone)
    return groups


def normalised(gains: Floats, ideal: Floats | np.float64) -> Floats:
    """Return gains by the ideal; 0 if the ideal is 0."""
    return np.divide(gains, ideal, out=np.zeros_like(gains), where=np.asarray(ideal) > 0)
