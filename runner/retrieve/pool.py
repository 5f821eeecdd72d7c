"""The pool: every document within the depth of some run, each query's source document, and what of it is ungraded."""

from collections.abc import Iterable, Sequence

from runner.base.records import Run
from runner.eval_set.asked import topic_of
from runner.eval_set.batches import Pair
from runner.eval_set.labels import scored
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.queries import QueryRow


def pool(runs: Iterable[Run], depth: int, queries: Sequence[QueryRow]) -> list[Pair]:
    """Return every (topic, document) within `depth` of any run, and every topic's source document, sorted."""
    return sorted(
        pooled(runs, depth) | {(query.id, query.source_document) for query in queries if query.source_document}
    )


def pooled(runs: Iterable[Run], depth: int) -> set[Pair]:
    """Return every (topic, document) within `depth` of any run in some wording."""
    listed = (each for run in runs for each in run.hits.items())
    return {(topic_of(asked_id), hit.doc_id) for asked_id, hits in listed for hit in hits[:depth]}


def likely_pairs(depth: int, n_cells: int, n_wordings: int = 1) -> float:
    """Return how many documents a topic pools before the cells are run.

    Cells agree on much of what they find, so a pool grows slower than their number: at depth 10 over 9 cells 26 were
    pooled in the demo, and 24 on real bills with earlier queries. Wordings agree less: of 20 topics of public laws a
    second one made six cells' pools 1.7 times as large. Source documents add next to nothing: of 317 some cell found
    310.
    """
    return depth * float(n_cells**0.45 * n_wordings**0.77)


def unjudged(pairs: Iterable[Pair], labels: Iterable[Label]) -> list[Pair]:
    """Return the pairs that scores have no grade for, in order: never read, or in doubt and not read more fully yet."""
    judged = scored(labels)
    return [pair for pair in pairs if pair not in judged]
