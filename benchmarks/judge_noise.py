"""How long it takes to carry judge noise into the decision, and what it allocates, against the 5 s that it may take.

    python benchmarks/judge_noise.py

No peer known to us does it. The size is that of a large evening: 10 cells, 25 queries, 150 judged documents per query,
10 % of them read twice.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from measuring import timed
from sizes import sized

from runner.decide.other_judges import under_other_judges
from runner.decide.two_level import DRAWS, two_level
from tests.support.judge_cases import evening, labels_of, off_by_one, plan, read_twice

BUDGET = 5.0
N_DRAWS = sized(DRAWS, 50)


def report(name: str, call: Callable[[], object], allowed: float) -> None:
    taken, _ = timed(call)
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(
        f"{name}: {taken:.2f} s and {peak:.0f} MB, ratio {allowed / taken:.1f}x faster than the {allowed:g} s allowed"
    )


def main() -> None:
    rng = np.random.default_rng(np.random.PCG64(1))
    comparison = evening(1, n_docs=400, settings=plan(draws=sized(100_000, 200)))
    for row in comparison.qrels.values():
        row.update({f"x{i:03}": int(rng.random() < 0.1) for i in range(150 - len(row))})
    second = off_by_one(comparison.qrels, rng)
    pairs = [(query_id, doc_id) for query_id, row in comparison.qrels.items() for doc_id in row]
    for share in (0.1, 1.0):
        doubles = read_twice(comparison.qrels, second, share, rng)
        size = f"{N_DRAWS:,} draws x 10 cells x 25 queries, {len(pairs):,} pairs, {len(doubles):,} read twice"
        report(f"two-level bootstrap, {size}", partial(two_level, comparison, doubles, seed=1, draws=N_DRAWS), BUDGET)
    labels = labels_of(comparison.qrels, pairs[::10], people=second)
    report("decision under another judge, 100,000 draws", lambda: under_other_judges(comparison, labels), BUDGET)


if __name__ == "__main__":
    main()
