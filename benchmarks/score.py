"""The measures of a run against ir_measures (pytrec_eval-terrier beneath) over the same run and qrels.

Each side reads the lists as it holds them: a Run, which knows every document's place since it was checked for
repeats, and a dict of scores. Ours also computes judged@10, which takes ir_measures as long as all the others and is
not asked of it; of a deeper list ours reads the first RUN_DEPTH, so that `mrr` is compared down to there alone.
"""

import time

import ir_measures
import numpy as np
from ir_measures import RR, R, nDCG
from measuring import fastest, row, sized

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Hit, Run, Span
from runner.score.score import score

N_DOCUMENTS = sized(100_000, 1_000)
N_JUDGED = 8
RELEVANT = 2
MEASURES = {
    "ndcg@10": nDCG @ 10,
    "recall@10": R(rel=RELEVANT) @ 10,
    "recall@100": R(rel=RELEVANT) @ 100,
    "mrr@10": RR(rel=RELEVANT) @ 10,
    "mrr": RR(rel=RELEVANT),
}


def compare(n_queries: int, depth: int) -> None:
    rng = np.random.default_rng(1)
    docs = [f"d{i:06}" for i in range(N_DOCUMENTS)]
    ranked = {f"q{i}": [docs[j] for j in rng.choice(N_DOCUMENTS, depth, replace=False)] for i in range(n_queries)}
    graded = {q: {found[5]: 3, found[8]: 1} for q, found in ranked.items()}
    for grades in graded.values():
        judged = rng.choice(N_DOCUMENTS, N_JUDGED, replace=False)
        grades |= {docs[i]: grade for i, grade in zip(judged, rng.integers(0, 4, N_JUDGED).tolist(), strict=True)}
    run = Run("cell", {q: tuple(Hit(d, 1.0, Span(0, 1)) for d in found) for q, found in ranked.items()})
    theirs = {q: {d: float(depth - i) for i, d in enumerate(found)} for q, found in ranked.items()}

    own, ours = fastest(lambda: score(run, list(ranked), graded, RELEVANT), clock=time.process_time)
    peer, found = fastest(
        lambda: list(ir_measures.iter_calc(list(MEASURES.values()), graded, theirs)), clock=time.process_time
    )
    reference = {(metric.query_id, str(metric.measure)): metric.value for metric in found}
    gap = max(
        abs(value / SCORE_UNIT - reference[query_id, str(measure)])
        for name, measure in MEASURES.items()
        for query_id, value in zip(ours.query_ids, ours.values[name], strict=True)
        if name != "mrr" or depth <= RUN_DEPTH  # ours looks at RUN_DEPTH documents, theirs at all
    )
    what = f"scoring {n_queries:,} queries at depth {depth}, CPU seconds; ir_measures"
    row(what, f"{own:.3f}", f"{peer:.3f}", f"{peer / own:.1f}x, values within {gap:.0e}", "15x")


def main() -> None:
    for n_queries, depth in sized(((25, 100), (3_000, 100), (3_000, 1_000)), ((5, 120),)):
        compare(n_queries, depth)


if __name__ == "__main__":
    main()
