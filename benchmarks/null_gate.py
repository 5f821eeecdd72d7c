"""The single-gold null gate against falsify-eval 0.2.0 on one bench in one process, string ids encoded anew each time.

CPU seconds, the best of alternating rounds on either side. An opaque function is asked once for each pair of query and
label and for each random list, and its own time is most of what is left.
"""

import time

import falsify_eval
import numpy as np
from falsify_eval.mcp_server import METRICS
from measuring import fastest, row, sized

from runner.gate.single_gold import four_null_gate

N_QUERIES, N_POOL, TRIALS, DEPTH = *sized((5_000, 100_000, 50), (50, 200, 5)), 10


def ndcg(retrieved: list[str], gold: str, rel: int) -> float:
    value: float = METRICS["ndcg"](retrieved, gold, rel, DEPTH)
    return value


def main() -> None:
    # Every gold once or so, and an engine that has it among its ten for six queries in ten.
    rng = np.random.default_rng(2026)
    pool = [f"document-{i:06}" for i in range(N_POOL)]
    golds = [pool[i] for i in rng.integers(N_POOL, size=N_QUERIES)]
    rows = [[pool[i] for i in rng.choice(N_POOL, DEPTH, replace=False)] for _ in range(N_QUERIES)]
    for found, gold in zip(rows, golds, strict=True):
        if rng.random() < 0.6 and gold not in found:
            found[int(rng.integers(DEPTH))] = gold
    bench, settings = (rows, golds, [3] * N_QUERIES), {"item_pool": pool, "n_trials": TRIALS}
    # The peer is given its own measure and the same settings.
    peer = fastest(
        lambda: falsify_eval.four_null_gate(*bench, ndcg, k=DEPTH, **settings), sized(2, 1), time.process_time
    )[0]
    gates = {
        "by name": ("15x", lambda: four_null_gate(*bench, "ndcg@10", **settings)),
        "as a function": ("1.5x", lambda: four_null_gate(*bench, ndcg, k=DEPTH, **settings)),
    }
    for name, (wanted, gate) in gates.items():
        own = fastest(gate, sized(3, 1), time.process_time)[0]
        what = f"four nulls of nDCG@10 {name}, {N_QUERIES:,} queries, pool of {N_POOL:,}, CPU seconds; falsify-eval"
        row(what, f"{own:.3f}", f"{peer:.2f}", f"{peer / own:.1f}x", wanted)


if __name__ == "__main__":
    main()
