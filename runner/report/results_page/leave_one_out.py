"""Queries without which other cells would meet criterion 5."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import meets_criterion_5
from runner.eval_set.shapes.results import CellResult, Results


class Change(NamedTuple):
    """A query without which other cells are candidates: which are so then too, and which no longer."""

    query: str
    gained: Sequence[str]
    lost: Sequence[str]


class _Paired(NamedTuple):
    """A cell less the baseline by query in nDCG@10 and Recall@10, in units of 1e-9."""

    gains: Sequence[int]
    changes: Sequence[int]

    def means(self) -> tuple[float, float]:
        count = len(self.gains) * SCORE_UNIT
        return sum(self.gains) / count, sum(self.changes) / count

    def without(self, place: int) -> tuple[float, float]:
        count = (len(self.gains) - 1) * SCORE_UNIT
        return (sum(self.gains) - self.gains[place]) / count, (sum(self.changes) - self.changes[place]) / count


def left_out(results: Results) -> list[Change]:
    """In the order of the queries; none of a single query, nor of a public collection, which has no candidates."""
    base = next((row for row in results.cells if row.test is None), None)
    if base is None or results.kind == "external" or len(results.queries) < 2:
        return []
    paired = {row.cell: _paired(row, base) for row in results.cells if row.test is not None}
    rule, found = results.plan.rule, []
    now = {cell for cell, each in paired.items() if meets_criterion_5(*each.means(), rule)}
    for place, query in enumerate(results.queries):
        then = {cell for cell, each in paired.items() if meets_criterion_5(*each.without(place), rule)}
        if then != now:
            order = [cell for cell in paired if cell in then ^ now]
            gained = [cell for cell in order if cell in then]
            found.append(Change(query.id, gained, [cell for cell in order if cell in now]))
    return found


def _paired(row: CellResult, base: CellResult) -> _Paired:
    def less(measure: str) -> list[int]:
        own, other = (each.scores[measure].per_query for each in (row, base))
        return [a - b for a, b in zip(own, other, strict=True)]

    return _Paired(less("ndcg@10"), less("recall@10"))
