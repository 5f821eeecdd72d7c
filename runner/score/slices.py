"""Scores of parts of the queries: by origin, by kind and by wording. They describe and test nothing."""

from collections.abc import Mapping, Sequence
from operator import mul
from typing import Literal, NamedTuple

from runner.base.records import SCORE_UNIT
from runner.eval_set.asked import asked
from runner.eval_set.shapes.queries import WORDINGS
from runner.eval_set.shapes.results import Results

By = Literal["origin", "kind", "wording"]

SHOWN = ("ndcg@10", "recall@10")


class Slice(NamedTuple):
    """The queries of one origin, kind or wording: how many, and every cell's mean nDCG@10 and Recall@10 over them."""

    by: By
    name: str
    queries: int
    cells: Mapping[str, tuple[float, float]]


def slices(results: Results) -> list[Slice]:
    """Return the parts of the queries that count in the means; none of a kind that all of them have."""
    named: dict[By, Sequence[str]] = {
        "origin": [query.origin for query in results.queries],
        "kind": [query.kind for query in results.queries],
    }
    parts, topics = [], {row.cell: {name: row.scores[name].per_query for name in SHOWN} for row in results.cells}
    for by, names in named.items():
        for name in sorted(set(names)) if len(set(names)) > 1 else ():
            weights = [own * (of == name) for of, own in zip(names, results.topic_weights, strict=True)]
            parts.append(_part(by, name, weights, topics))
    weight_of = {query.id: own for query, own in zip(results.queries, results.topic_weights, strict=True)}
    for wording in WORDINGS:
        weights = [weight_of[one.topic] * (one.wording == wording) for one in asked(results.queries)]
        parts.append(_part("wording", wording, weights, {row.cell: row.by_wording for row in results.cells}))
    return [part for part in parts if part.queries]


def _part(by: By, name: str, weights: Sequence[int], values: Mapping[str, Mapping[str, Sequence[int]]]) -> Slice:
    whole, cells = sum(weights) * SCORE_UNIT, {}
    for cell, of_cell in values.items() if whole else ():
        ndcg, recall = (sum(map(mul, weights, of_cell[measure])) / whole for measure in SHOWN)
        cells[cell] = ndcg, recall
    return Slice(by, name, sum(map(bool, weights)), cells)
