"""Scores of parts of the queries: by origin, kind, stratum, and length of the document that answers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from runner.base.records import Ints, Query
from runner.eval_set.shapes.pool import Slice, SliceMeans
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean
from runner.score.score import single_gold

FEWEST = 5
"""A slice of fewer queries says nothing."""

_COMMON: dict[Literal["origin", "kind", "stratum"], Callable[[Query], str]] = {
    "origin": lambda query: query.origin,
    "kind": lambda query: query.kind,
    "stratum": lambda query: query.stratum,
}
_THIRDS = ("short", "medium", "long")


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
            found.append(_slice(comparison, rows, by=by, name=name))
    return [*found, *_by_length(comparison)]


def _by_length(comparison: Comparison) -> Iterator[Slice]:
    """Thirds of the queries by the characters of their highest-graded document (of equal ones the first by id).

    Queries without a document of `relevant_grade` or more are in none of them. Equal lengths stay together, so thirds
    may be uneven, and there are fewer than three where lengths repeat much.
    """
    gold, least = single_gold(comparison.query_ids, comparison.qrels), comparison.plan.relevant_grade
    lengths = {
        query_id: comparison.document_lengths[doc_id]
        for query_id, doc_id in gold.items()
        if comparison.qrels[query_id][doc_id] >= least
    }
    parts = thirds(list(lengths.values()))
    for name, (low, high) in parts.items() if len(parts) > 1 else ():
        rows = [row for row, q in enumerate(comparison.query_ids) if q in lengths and low <= lengths[q] <= high]
        yield _slice(comparison, rows, by="length", name=name, low=low, high=high)


def thirds(lengths: Sequence[int]) -> dict[str, tuple[int, int]]:
    """The least and the greatest length of each third; a third that equal lengths leave empty is left out.

    >>> thirds([300, 100, 200, 100])
    {'short': (100, 100), 'medium': (200, 200), 'long': (300, 300)}
    """
    ordered = np.sort(np.array(lengths, np.int64))
    # A length belongs to the third in which it first occurs.
    places = np.searchsorted(ordered, ordered) * len(_THIRDS) // max(1, len(ordered))
    parts = {name: ordered[places == number].tolist() for number, name in enumerate(_THIRDS)}
    return {name: (part[0], part[-1]) for name, part in parts.items() if part}


def _slice(
    comparison: Comparison,
    rows: Sequence[int],
    *,
    by: Literal["origin", "kind", "stratum", "length"],
    name: str,
    low: int | None = None,
    high: int | None = None,
) -> Slice:
    ndcg, recall = (_part(comparison, measure, rows) for measure in ("ndcg@10", "recall@10"))
    return Slice(
        by=by,
        name=name,
        low=low,
        high=high,
        queries=len(rows),
        few=len(rows) < FEWEST,
        cells={
            cell: SliceMeans(ndcg=mean(ndcg[place]), recall=mean(recall[place]))
            for place, cell in enumerate(comparison.runs)
        },
    )


def _part(comparison: Comparison, measure: str, rows: Sequence[int]) -> Ints:
    """(cells, rows) in units of 1e-9."""
    values: Ints = score_matrix(list(comparison.scores.values()), measure)[:, rows]
    return values
