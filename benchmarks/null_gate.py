"""The single-gold null gate against falsify-eval 0.2.0 on one bench in one process, string ids encoded anew each time.

    python benchmarks/null_gate.py

5,000 queries, a pool of 100,000, 50 trials, lists of 10. CPU seconds, the best of alternating rounds on either side.
Wanted: nDCG by name 25x with draws and 200x without, an opaque function 3x, and 120 MB at most for a whole process
that makes the bench and grades it all four ways. An opaque function is asked once for each pair of query and label and
for each random list, and its own time is most of what is left: a line says how much. So a slow function, such as
falsify-eval's nDCG, gains less.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import fastest, peak_mb
from sizes import sized

from runner.gate.single_gold.gate import four_null_gate

N_QUERIES, N_POOL, TRIALS, DEPTH = *sized((5_000, 100_000, 50), (50, 200, 5)), 10
ROUNDS = sized(2, 1)
OWN_RUNS = sized(5, 1)  # in each round, since theirs takes a hundred times as long

Bench = tuple[list[list[str]], list[str], list[int]]


def make_bench() -> tuple[Bench, list[str]]:
    """Golds drawn evenly from the pool; six rows of ten hold theirs at a random rank."""
    rng = np.random.default_rng(2026)
    pool = [f"document-{i:06}" for i in range(N_POOL)]
    golds = [pool[i] for i in rng.integers(N_POOL, size=N_QUERIES)]
    rows = [[pool[i] for i in rng.choice(N_POOL, DEPTH, replace=False)] for _ in range(N_QUERIES)]
    for row, gold in zip(rows, golds, strict=True):
        if rng.random() < 0.6 and gold not in row:
            row[int(rng.integers(DEPTH))] = gold
    return (rows, golds, [3] * N_QUERIES), pool


def recall(retrieved: list[str], gold: str, _rel: int) -> float:
    return 1.0 if gold in retrieved[:DEPTH] else 0.0


def slow_ndcg(retrieved: list[str], gold: str, rel: int) -> float:
    from falsify_eval.mcp_server import METRICS

    value: float = METRICS["ndcg"](retrieved, gold, rel, DEPTH)
    return value


def own_gates() -> dict[str, Callable[[], dict[str, Any]]]:
    bench, pool = make_bench()
    return {
        "ndcg@10 by name": lambda: four_null_gate(*bench, "ndcg@10", item_pool=pool, n_trials=TRIALS),
        "ndcg@10, no draws": lambda: four_null_gate(*bench, "ndcg@10", item_pool=pool, n_trials=TRIALS, draw=False),
        "recall function": lambda: four_null_gate(*bench, recall, item_pool=pool, k=DEPTH, n_trials=TRIALS),
        "ndcg function": lambda: four_null_gate(*bench, slow_ndcg, item_pool=pool, k=DEPTH, n_trials=TRIALS),
    }


def share_inside(metric: Callable[[list[str], str, int], float], seconds: float) -> float:
    """The share of a gate's seconds that its function takes by itself."""
    (rows, golds, rels), _ = make_bench()
    asked = [(rows[i % N_QUERIES], golds[(7 * i) % N_QUERIES], rels[0]) for i in range(4 * N_QUERIES)]
    alone = fastest(lambda: [metric(*each) for each in asked], OWN_RUNS, time.process_time)[0]
    return alone * (4 * TRIALS + 1) / 4 / seconds


def peer_gates() -> dict[str, Callable[[], dict[str, Any]]]:
    import falsify_eval

    bench, pool = make_bench()
    settings = {"item_pool": pool, "k": DEPTH, "n_trials": TRIALS}
    return {
        "ndcg@10": lambda: falsify_eval.four_null_gate(*bench, slow_ndcg, **settings),
        "recall function": lambda: falsify_eval.four_null_gate(*bench, recall, **settings),
    }


def peak_of_all() -> int:
    """What a process that makes the bench and runs every own gate needed at its worst, Python and numpy included."""
    found = subprocess.run([sys.executable, __file__, "--memory"], check=True, capture_output=True, text=True)
    return int(found.stdout)


def main() -> None:
    own, peer = own_gates(), peer_gates()
    own_best, peer_best = dict.fromkeys(own, float("inf")), dict.fromkeys(peer, float("inf"))
    for _ in range(ROUNDS):
        for name, gate in peer.items():
            peer_best[name] = min(peer_best[name], fastest(gate, 1, time.process_time)[0])
        for name, gate in own.items():
            own_best[name] = min(own_best[name], fastest(gate, OWN_RUNS, time.process_time)[0])
    print(f"null gate: {N_QUERIES:,} queries, pool {N_POOL:,}, {TRIALS} trials, lists of {DEPTH}")
    for name, rival, wanted in (
        ("ndcg@10 by name", "ndcg@10", 25),
        ("ndcg@10, no draws", "ndcg@10", 200),
        ("recall function", "recall function", 3),
        ("ndcg function", "ndcg@10", 1.5),
    ):
        print(
            f"{name:18} {own_best[name]:.3f} s, falsify-eval {peer_best[rival]:.2f} s: "
            f"{peer_best[rival] / own_best[name]:.1f}x faster (wanted {wanted})"
        )
    for name, metric in (("recall", recall), ("ndcg", slow_ndcg)):
        inside = share_inside(metric, own_best[f"{name} function"])
        print(f"{name} function: {inside:.0%} of our time is inside the function")
    print(f"peak memory of a process with all four: {peak_of_all()} MB (wanted 120)")


if __name__ == "__main__":
    if sys.argv[1:] == ["--memory"]:
        for gate in own_gates().values():
            gate()
        print(peak_mb())
    else:
        main()
