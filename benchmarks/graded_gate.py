"""The graded gate over ten cells and its controls, against falsify_eval.four_null_gate over the same runs.

The peer takes one right answer a query and tests less: four nulls of 50 draws by their mean alone, no p, no strata, no
graded judgments, no controls. Ours: five nulls of 2,000 draws on whole qrels, six controls of which two run 200 times.

python benchmarks/graded_gate.py
"""

import math

import numpy as np
from falsify_eval import four_null_gate
from measuring import fastest
from sizes import sized

from runner.base.records import Hit, Qrels, Run, Span
from runner.gate.controls import controls
from runner.gate.graded_gate import GradedGate
from runner.gate.nulls import GradedSet

N_CELLS = sized(10, 2)
N_JUDGED = 30
DRAWS, SEED = sized(2_000, 20), 2026
N_DRAWS_RATIO = 5 * DRAWS // (4 * 50)


def gate_of(query_ids: list[str], qrels: Qrels, strata: dict[str, str], lengths: dict[str, int]) -> GradedGate:
    return GradedGate(GradedSet(query_ids, qrels, strata, lengths, DRAWS, SEED), tau=0.05, alpha=0.05)


def main() -> None:
    for n_queries, n_documents in sized(((30, 100), (30, 5_000), (300, 5_000)), ((6, 120),)):
        compare(n_queries, n_documents)


def compare(n_queries: int, n_documents: int) -> None:
    rng = np.random.default_rng(1)
    documents = [f"d{i:05}" for i in range(n_documents)]
    qrels = {f"q{i}": judgments(documents, rng) for i in range(n_queries)}
    runs = [engine(f"cell {i}", documents, qrels, rng) for i in range(N_CELLS)]
    # Five chunkers, so that half of the cells find their random retrieval drawn.
    chunks = [dict(zip(documents, rng.integers(1, 20, n_documents).tolist(), strict=True)) for _ in range(N_CELLS // 2)]
    lengths = {doc_id: 2_000 * count for doc_id, count in chunks[0].items()}
    strata = dict.fromkeys(qrels, "")

    def all_cells() -> list[str]:
        gate = gate_of(list(qrels), qrels, strata, lengths)
        return [gate.judge(run, chunks[i % len(chunks)]).verdict for i, run in enumerate(runs)]

    gate_seconds, verdicts = fastest(all_cells)
    control_seconds, rows = fastest(lambda: controls(gate_of(list(qrels), qrels, strata, lengths), chunks[0]))
    their_seconds, theirs = fastest(lambda: [single_gold(run, qrels, documents) for run in runs])
    print(
        f"graded gate: {n_queries} queries, {n_documents:,} documents, {N_CELLS} cells: 5 nulls x "
        f"{DRAWS:,} draws {gate_seconds:.2f} s ({verdicts.count('pass')} pass), controls "
        f"{control_seconds:.2f} s ({sum(row.behaves for row in rows)} of {len(rows)} behave); falsify-eval, 4 nulls x "
        f"50 draws on one right answer a query, no controls, {their_seconds:.2f} s ({theirs.count(True)} pass): ratio "
        f"{their_seconds / gate_seconds:.1f}x for {N_DRAWS_RATIO} times the draws, "
        f"{their_seconds / (gate_seconds + control_seconds):.1f}x with the controls"
    )


def judgments(documents: list[str], rng: np.random.Generator) -> dict[str, int]:
    judged = rng.choice(len(documents), N_JUDGED, replace=False)
    grades = rng.choice(4, N_JUDGED, p=[0.6, 0.2, 0.12, 0.08]).tolist()
    return {documents[i]: grade for i, grade in zip(judged.tolist(), grades, strict=True)}


def engine(cell: str, documents: list[str], qrels: dict[str, dict[str, int]], rng: np.random.Generator) -> Run:
    """A run whose scores are grades and noise."""
    hits = {}
    for query_id, grades in qrels.items():
        scores = 0.8 * rng.standard_normal(len(documents)) + [grades.get(doc_id, 0) for doc_id in documents]
        best = np.argsort(-scores)[:100].tolist()
        hits[query_id] = tuple(Hit(documents[i], float(scores[i]), Span(0, 1)) for i in best)
    return Run(cell, hits)


def single_gold(run: Run, qrels: dict[str, dict[str, int]], documents: list[str]) -> bool:
    """falsify-eval's verdict, where the highest-graded document is the one right answer."""
    lists = [[hit.doc_id for hit in hits[:10]] for hits in run.hits.values()]
    gold = [min(grades, key=lambda doc_id: (-grades[doc_id], doc_id)) for grades in qrels.values()]
    found = four_null_gate(lists, gold, [3] * len(gold), ndcg_at_10, item_pool=documents, k=10)
    return bool(found["gate_passes"])


def ndcg_at_10(retrieved: list[str], gold: str, rel: int) -> float:
    """nDCG@10 where one document is relevant."""
    return 1 / math.log2(retrieved.index(gold) + 2) if gold in retrieved else 0.0


if __name__ == "__main__":
    main()
