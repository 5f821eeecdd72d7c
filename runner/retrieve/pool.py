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


def unjudged(pairs: Iterable[Pair], labels: Iterable[Label]) -> list[Pair]:
    """Return the pairs without a grade of the first round, in order: those that scores have no grade for."""
    judged = {label.pair for label in labels if label.round == 1}
    return [pair for pair in pairs if pair not in judged]
