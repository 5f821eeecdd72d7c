"""The measures of a run against ir_measures (pytrec_eval-terrier beneath) over the same run and qrels.

Each side reads the lists as it holds them: a Run, which knows every document's place since it was checked for
repeats, and a dict of scores; a second ratio counts the seconds in which the Run is made and checked. Ours also
computes judged@10, which takes ir_measures as long as all the others and is not asked of it; of a deeper list ours
reads the first RUN_DEPTH, as of every run, so that `mrr` is compared down to there alone.

python benchmarks/score.py
"""

import time

import ir_measures
import numpy as np
from ir_measures import RR, R, nDCG
from measuring import fastest
from sizes import sized

from runner.base.records import RUN_DEPTH, SCORE_UNIT, Hit, Run, Span
from runner.score.score import score

N_DOCUMENTS = sized(100_000, 1_000)
N_JUDGED = 8
RELEVANT = 2
WANTED = 15
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

    our_seconds, ours = fastest(lambda: score(run, list(ranked), graded, RELEVANT), clock=time.process_time)
    measures = list(MEASURES.values())
    made_seconds, _ = fastest(lambda: Run("cell", run.hits), clock=time.process_time)
    their_seconds, found = fastest(
        lambda: list(ir_measures.iter_calc(measures, graded, theirs)), clock=time.process_time
    )
    reference = {(metric.query_id, str(metric.measure)): metric.value for metric in found}
    gap = max(
        abs(value / SCORE_UNIT - reference[query_id, str(measure)])
        for name, measure in MEASURES.items()
        for query_id, value in zip(ours.query_ids, ours.values[name], strict=True)
        if name != "mrr" or depth <= RUN_DEPTH  # ours looks at RUN_DEPTH documents, theirs at all
    )
    print(
        f"scores: {n_queries:,} queries x depth {depth}: ours {our_seconds:.3f} s, ir_measures {their_seconds:.3f} s, "
        f"ratio {their_seconds / our_seconds:.1f}x faster (wanted {WANTED}), with the Run made anew "
        f"{their_seconds / (our_seconds + made_seconds):.1f}x; largest difference {gap:.1e}"
    )


def main() -> None:
    for n_queries, depth in sized(((25, 100), (3_000, 100), (3_000, 1_000)), ((5, 120),)):
        compare(n_queries, depth)


if __name__ == "__main__":
    main()
