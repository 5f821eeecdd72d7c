"""The pool: every document within the depth of some run, and what of it is ungraded."""

from collections.abc import Iterable

from runner.base.records import Run
from runner.eval_set.batches import Pair
from runner.eval_set.shapes.labels import Label


def pool(runs: Iterable[Run], depth: int) -> list[Pair]:
    """Return every (query, document) within `depth` of any run, sorted."""
    return sorted(
        {(query_id, hit.doc_id) for run in runs for query_id, hits in run.hits.items() for hit in hits[:depth]}
    )


def likely_pairs(depth: int, n_cells: int) -> float:
    """Return how many documents a query pools before the cells are run.

    Cells agree on much of what they find, so a pool grows slower than their number: at depth 10 over 9 cells 26 were
    pooled in the demo, and 24 on real bills.
    """
    return depth * float(n_cells**0.45)


def unjudged(pairs: Iterable[Pair], labels: Iterable[Label]) -> list[Pair]:
    """Return the pairs without a grade of the first round, in order: those that scores have no grade for."""
    judged = {label.pair for label in labels if label.round == 1}
    return [pair for pair in pairs if pair not in judged]
