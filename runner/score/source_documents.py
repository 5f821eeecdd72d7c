"""The documents that queries were written from: how cells rank them, and which of them the judge missed.

A query's own source document most likely serves it, and no judge is needed to see where a cell ranks it. So cells have
a second order, which no judge can bend; it is of one document a topic, and says nothing of the others that serve it. If
the judge says that a source document does not serve, the judge is likelier to err than the author; and if it errs so
more often where one of two lists ranks that document higher, its errors follow that list.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from runner.eval_set.batches import Pair
from runner.eval_set.shapes.judges import Estimate, MissedByList, SourceDocuments, SourceFound
from runner.eval_set.shapes.paired import Difference, MeasureResult
from runner.eval_set.shapes.queries import QueryRow
from runner.score.comparison import Comparison


def source_documents(comparison: Comparison, again: Mapping[Pair, Sequence[int]]) -> SourceDocuments | None:
    """Return what is known of the source documents; None if no query names one.

    `again` are the grades of those who read a pair after its first judge.
    """
    sources = _alone(comparison)
    if sources is None:
        return None
    ranking = sorted(comparison.runs, key=lambda cell: (-comparison.means[cell]["ndcg@10"].mean, cell))
    # The mean reciprocal rank and not the share in the first ten, by which most cells are level.
    by_source, by_grades = (
        [means[cell][measure].mean for cell in ranking]
        for means, measure in ((sources.means, "mrr"), (comparison.means, "ndcg@10"))
    )
    judged = comparison.qrels.items()
    grades = {(query_id, doc_id): grade for query_id, rows in judged for doc_id, grade in rows.items()}
    missed = missed_sources(sources.queries, grades, comparison.plan.relevant_grade)
    by_list = {cell: _by_list(sources, grades, missed, cell) for cell in comparison.challengers}
    return SourceDocuments(
        cells={cell: _found(sources, cell) for cell in ranking},
        tau=kendall_tau(by_source, by_grades),
        missed={pair[0]: [*again.get(pair, ())] for pair in missed},
        by_list={cell: row for cell, row in by_list.items() if row},
    )


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two scores of the same cells (Kendall 1945); None if either has all of them level.

    >>> kendall_tau([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    # Of every two cells: which one is ahead, -1, 0 or 1.
    signs = [[(one > other) - (one < other) for one, other in combinations(scores, 2)] for scores in (first, second)]
    untied = math.prod(sum(map(abs, each)) for each in signs)
    alike = sum(one * other for one, other in zip(*signs, strict=True))
    return alike / math.sqrt(untied) if untied else None


def _alone(comparison: Comparison) -> Comparison | None:
    """Return the comparison with each topic's source document as the only one that serves it."""
    queries = [query for query in comparison.queries if query.source_document]
    if not queries:
        return None
    # Recall@10 of a single document is success@10.
    plan = comparison.plan.model_copy(update={"relevant_grade": 1})
    return replace(
        comparison, plan=plan, queries=queries, qrels={query.id: {query.source_document: 1} for query in queries}
    )


def missed_sources(queries: Iterable[QueryRow], grades: Mapping[Pair, int], relevant_grade: int) -> dict[Pair, int]:
    """Return the grades of source documents that got less than `relevant_grade`, in the order of the queries."""
    sources = [(query.id, query.source_document) for query in queries]
    return {pair: grades[pair] for pair in sources if grades.get(pair, relevant_grade) < relevant_grade}


def _by_list(
    sources: Comparison, grades: Mapping[Pair, int], missed: Mapping[Pair, int], cell: str
) -> MissedByList | None:
    """Return how many source documents the judge missed by which list ranks them higher; None if none is told apart."""
    judged, lost = [0, 0], [0, 0]
    ranks = (sources.means[name]["mrr"].per_query for name in (cell, sources.plan.baseline))
    for query, own, other in zip(sources.queries, *ranks, strict=True):
        pair = (query.id, query.source_document)
        if own == other or pair not in grades:
            continue
        side = int(other > own)
        judged[side] += 1
        lost[side] += pair in missed
    if not any(judged):
        return None
    return MissedByList(
        cell_judged=judged[0],
        cell_missed=lost[0],
        baseline_judged=judged[1],
        baseline_missed=lost[1],
    )


def _found(sources: Comparison, cell: str) -> SourceFound:
    """Return how well a cell finds the source documents."""

    def ends(of: MeasureResult | Difference) -> Estimate:
        return Estimate(value=of.mean, low=of.low, high=of.high)

    return SourceFound(
        first_ten=ends(sources.means[cell]["recall@10"]),
        mrr=ends(sources.means[cell]["mrr"]),
        difference=None if cell == sources.plan.baseline else ends(sources.differences[cell]["mrr"]),
    )
