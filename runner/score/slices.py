"""Scores of parts of the queries: by origin and by kind. They describe and test nothing."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from runner.base.records import SCORE_UNIT
from runner.eval_set.shapes.results import CellResult, Results


class Slice(NamedTuple):
    """The queries of one origin or of one kind: how many, and every cell's mean nDCG@10 and Recall@10 over them."""

    by: Literal["origin", "kind"]
    name: str
    queries: int
    cells: Mapping[str, tuple[float, float]]


def slices(results: Results) -> list[Slice]:
    """Return the parts of the queries by either; none of a kind that all of them have."""
    parts = []
    by: Literal["origin", "kind"]
    for by in ("origin", "kind"):
        names = [query.origin if by == "origin" else query.kind for query in results.queries]
        for name in sorted(set(names)) if len(set(names)) > 1 else ():
            places = [place for place, own in enumerate(names) if own == name]
            parts.append(Slice(by, name, len(places), {row.cell: _means(row, places) for row in results.cells}))
    return parts


def _means(row: CellResult, places: Sequence[int]) -> tuple[float, float]:
    ndcg, recall = (row.scores[measure].per_query for measure in ("ndcg@10", "recall@10"))
    whole = len(places) * SCORE_UNIT
    return sum(ndcg[place] for place in places) / whole, sum(recall[place] for place in places) / whole
