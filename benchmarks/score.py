"""All six measures of a run against ir_measures (pytrec_eval-terrier beneath) over the same run and qrels.

python benchmarks/score.py
"""

import time

import ir_measures
import numpy as np
from ir_measures import RR, Judged, R, nDCG

from runner.ranking import RUN_DEPTH
from runner.records import SCORE_UNIT, Hit, Run, Span
from runner.score import score

N_DOCUMENTS = 20_000
N_JUDGED = 60
RELEVANT = 2
MEASURES = {
    "ndcg@10": nDCG @ 10,
    "recall@10": R(rel=RELEVANT) @ 10,
    "recall@100": R(rel=RELEVANT) @ 100,
    "mrr@10": RR(rel=RELEVANT) @ 10,
    "judged@10": Judged @ 10,
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

    started = time.perf_counter()
    ours = score(run, list(ranked), graded, RELEVANT)
    our_seconds = time.perf_counter() - started
    started = time.perf_counter()
    reference = {
        (m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(list(MEASURES.values()), graded, theirs)
    }
    their_seconds = time.perf_counter() - started

    gap = max(
        abs(value / SCORE_UNIT - reference[query_id, str(measure)])
        for name, measure in MEASURES.items()
        for query_id, value in zip(ours.query_ids, ours.values[name], strict=True)
        if name != "mrr" or depth <= RUN_DEPTH  # ours looks at RUN_DEPTH documents, theirs at all
    )
    print(
        f"scores: {n_queries:,} queries x depth {depth}: ours {our_seconds:.3f} s, ir_measures {their_seconds:.3f} s, "
        f"ratio {their_seconds / our_seconds:.1f}x faster; largest difference {gap:.1e}"
    )


def main() -> None:
    for n_queries, depth in ((25, 100), (3_000, 100), (3_000, 1_000)):
        compare(n_queries, depth)


if __name__ == "__main__":
    main()
