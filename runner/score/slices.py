"""Scores of parts of the queries: by origin and by kind."""

from collections.abc import Callable, Sequence
from typing import Literal

from runner.base.records import Ints, Query
from runner.eval_set.shapes.pool import Slice, SliceMeans
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean

_COMMON: dict[Literal["origin", "kind"], Callable[[Query], str]] = {
    "origin": lambda query: query.origin,
    "kind": lambda query: query.kind,
}


def slices(comparison: Comparison) -> list[Slice]:
    """Every cell's mean nDCG@10 and Recall@10 over parts of the queries; no part that holds all of them.

    They describe and test nothing: with so many parts some differ by chance.
    """
    queries = comparison.queries
    found: list[Slice] = []
    for by, common in _COMMON.items():
        names = [common(query) for query in queries]
        for name in sorted(set(names)) if len(set(names)) > 1 else ():
            rows = [row for row, own in enumerate(names) if own == name]
            found.append(_slice(comparison, rows, by, name))
    return found


def _slice(comparison: Comparison, rows: Sequence[int], by: Literal["origin", "kind"], name: str) -> Slice:
    ndcg, recall = (_part(comparison, measure, rows) for measure in ("ndcg@10", "recall@10"))
    return Slice(
        by=by,
        name=name,
        queries=len(rows),
        cells={
            cell: SliceMeans(ndcg=mean(ndcg[place]), recall=mean(recall[place]))
            for place, cell in enumerate(comparison.runs)
        },
    )


def _part(comparison: Comparison, measure: str, rows: Sequence[int]) -> Ints:
    """(cells, rows) in units of 1e-9."""
    values: Ints = score_matrix(list(comparison.scores.values()), measure)[:, rows]
    return values
