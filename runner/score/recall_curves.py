"""How much of what is relevant every cell reaches, by rank and by tokens read."""

from collections.abc import Mapping, Sequence

import numpy as np

from runner.base.records import READ_TOKENS, RUN_DEPTH, ChunkHit, Ints, Reading
from runner.eval_set.shapes.lists import RecallCurve, RecallPoint
from runner.score.comparison import Comparison, mean, planned_intervals
from runner.score.score import units

RANKS = (1, 2, 3, 5, 10, 20, 30, 50, RUN_DEPTH)
TOKENS = (512, 1_024, 2_048, 4_096, READ_TOKENS)

Relevant = Sequence[frozenset[str]]
"""Of each query the documents graded relevant."""


def recall_curves(comparison: Comparison, readings: Mapping[str, Reading]) -> dict[str, RecallCurve]:
    """Every cell's recall at RANKS, and at TOKENS if it has a reading list; a query without anything relevant is 0.

    Ranks count as recall@10 does. A document is met once reading goes down to its first chunk: the chunks of all
    documents are read in the order of their scores, each to its end, and contexts cost tokens like texts.
    """
    grade, judged = comparison.plan.relevant_grade, comparison.qrels
    relevant = [
        frozenset(doc_id for doc_id, given in judged.get(query_id, {}).items() if given >= grade)
        for query_id in comparison.query_ids
    ]
    by_rank = {
        cell: [{hit.doc_id: place for place, hit in enumerate(run.hits[query_id])} for query_id in comparison.query_ids]
        for cell, run in comparison.runs.items()
    }
    by_tokens = {
        cell: [_tokens_before(reading[query_id]) for query_id in comparison.query_ids]
        for cell, reading in readings.items()
    }
    ranks = _curves(comparison, by_rank, relevant, RANKS)
    tokens = _curves(comparison, by_tokens, relevant, TOKENS)
    return {cell: RecallCurve(by_rank=points, by_tokens=tokens.get(cell)) for cell, points in ranks.items()}


def _tokens_before(chunks: Sequence[ChunkHit]) -> dict[str, int]:
    found: dict[str, int] = {}
    read = 0
    for chunk in chunks:
        found.setdefault(chunk.doc_id, read)
        read += chunk.n_tokens
    return found


def _curves(
    comparison: Comparison, costs: Mapping[str, Sequence[Mapping[str, int]]], relevant: Relevant, limits: Sequence[int]
) -> dict[str, list[RecallPoint]]:
    """A point a limit for each cell, where `costs` say, query by query, what is spent before each document."""
    if not costs:
        return {}
    values = np.concatenate([_recalls(rows, relevant, limits) for rows in costs.values()])
    intervals = planned_intervals(values, comparison.plan)
    points = [
        RecallPoint(at=limit, mean=mean(row), low=interval.low, high=interval.high)
        for row, interval, limit in zip(values, intervals, list(limits) * len(costs), strict=True)
    ]
    return {cell: points[place * len(limits) :][: len(limits)] for place, cell in enumerate(costs)}


def _recalls(rows: Sequence[Mapping[str, int]], relevant: Relevant, limits: Sequence[int]) -> Ints:
    """Recall (limits, queries) in units of 1e-9."""
    found = np.zeros((len(limits), len(rows)))
    for place, (cost, wanted) in enumerate(zip(rows, relevant, strict=True)):
        if wanted:
            spent = np.array([cost[doc_id] for doc_id in wanted if doc_id in cost])
            found[:, place] = (spent[:, None] < limits).sum(axis=0) / len(wanted)
    return units(found)
