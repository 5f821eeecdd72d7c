"""Whether the judge grades the documents that queries were written from, and whether it misses more of one list's.

A query's own source document most likely serves it. If the judge says that it does not, the judge is likelier to err
than the author; and if it errs so more often where one of two lists ranks that document higher, its errors follow that
list.
"""

from collections.abc import Sequence

from runner.base.records import RUN_DEPTH, Qrels, Run
from runner.eval_set.shapes.judges import SourceDocuments
from runner.eval_set.shapes.queries import QueryRow


def source_documents(
    queries: Sequence[QueryRow], run: Run, baseline: Run, qrels: Qrels, relevant_grade: int
) -> SourceDocuments | None:
    """Return how many judged source documents got less than `relevant_grade`, by which list ranks them higher.

    A document that a list does not have is below all that it has; of one that both rank alike nothing is said. None if
    no source document is told apart.
    """
    judged, missed = [0, 0], [0, 0]
    for query in queries:
        grade = qrels.get(query.id, {}).get(query.source_document, -1)
        own, other = (each.ranks[query.id].get(query.source_document, RUN_DEPTH) for each in (run, baseline))
        if grade < 0 or own == other:
            continue
        side = int(other < own)
        judged[side] += 1
        missed[side] += grade < relevant_grade
    if not any(judged):
        return None
    return SourceDocuments(
        cell=run.cell,
        cell_judged=judged[0],
        cell_missed=missed[0],
        baseline_judged=judged[1],
        baseline_missed=missed[1],
    )
