"""What second readings say of the judges: speed, and how often the by-cell test is right.

    python benchmarks/agreement.py [--simulate RUNS]

The peer of kappa is scikit-learn's cohen_kappa_score, once a resample. With --simulate instead RUNS runs of
each kind of judges: 25 queries, ten cells, about 40 pooled documents per query, of which 10 % or 30 % are read twice;
999 draws a test where a real one takes 10,000; seeds are fixed. Printed is how often any cell, or the one named, is
found to be favoured at .05.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import fastest
from sizes import sized

from runner.decide.judge_agreement import judge_agreement
from runner.eval_set.shapes.labels import Label
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.kappa import RESAMPLES

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the invented pools belong to the tests

from tests.judge.test_agreement_world import BASELINE, EQUAL, UNEQUAL, World, favouring, harsh, read, read_twice, world
from tests.support.example_results import PLAN, SHA

ALPHA = 0.05
N_QUERIES = sized(25, 5)

Judge = Callable[[np.random.Generator, World], np.ndarray]


def by_query(generator: np.random.Generator, pool: World) -> np.ndarray:
    mood = generator.choice([-1, 0, 0, 1], size=pool.query.max() + 1)
    return read(generator, np.clip(pool.worth + mood[pool.query], 0, 3))


def for_cell_1_alone(generator: np.random.Generator, pool: World) -> np.ndarray:
    return np.clip(read(generator, pool.worth) + (pool.found[1] & ~pool.found[0]), 0, 3)


JUDGES: dict[str, Judge] = {
    "fair": lambda generator, pool: read(generator, pool.worth),
    "exact": lambda _, pool: pool.worth,
    "strict": lambda generator, pool: harsh(generator, pool.worth),
    "strict and exact": lambda _, pool: np.clip(pool.worth - 1, 0, 3),
    "lenient": lambda generator, pool: np.clip(read(generator, pool.worth) + 1, 0, 3),
    "all or nothing": lambda generator, pool: np.array([0, 0, 3, 3])[read(generator, pool.worth)],
    "noisier": lambda generator, pool: read(generator, read(generator, pool.worth, 0.5), 0.4),
    "by query": by_query,
    "for cell 1": lambda generator, pool: favouring(generator, pool, 1),
    "for cell 1 alone": for_cell_1_alone,
    "for baseline": lambda generator, pool: favouring(generator, pool, 0),
    "exactly for cell 1": lambda _, pool: np.clip(pool.worth + pool.found[1], 0, 3),
}
KINDS = [
    ("equal errors, equal cells", "fair", "fair", EQUAL),
    ("equal errors, unequal cells", "fair", "fair", UNEQUAL),
    ("second harsher, equal cells", "fair", "strict", EQUAL),
    ("second harsher, unequal cells", "fair", "strict", UNEQUAL),
    ("no errors, second harsher, unequal cells", "exact", "strict and exact", UNEQUAL),
    ("second more lenient, unequal cells", "fair", "lenient", UNEQUAL),
    ("second all or nothing, unequal cells", "fair", "all or nothing", UNEQUAL),
    ("first moody by query, unequal cells", "by query", "fair", UNEQUAL),
    ("second without error, unequal cells", "fair", "exact", UNEQUAL),
    ("first without error, second harsher, unequal cells", "exact", "strict", UNEQUAL),
    ("second errs in most pairs, unequal cells", "fair", "noisier", UNEQUAL),
    ("first favours cell 1, equal cells", "for cell 1", "fair", EQUAL),
    ("first favours what cell 1 alone finds, equal cells", "for cell 1 alone", "fair", EQUAL),
    ("first favours cell 1, second harsher, equal cells", "for cell 1", "strict", EQUAL),
    ("no errors, first favours cell 1, equal cells", "exactly for cell 1", "exact", EQUAL),
    ("first favours the baseline, equal cells", "for baseline", "fair", EQUAL),
]


def simulate(runs: int) -> None:
    print("kind | share read twice | pairs a side | some cell | cell 1 | baseline | cannot say")
    for number, (name, first, second, qualities) in enumerate(KINDS[: sized(len(KINDS), 2)]):
        for share in (0.1, 0.3):
            found = np.zeros(5)
            for run in range(runs):
                generator = np.random.default_rng([number, run])
                pool = world(generator, qualities)
                twice = read_twice(generator, pool, *(JUDGES[each](generator, pool) for each in (first, second)), share)
                rows = favours(twice, pool.runs, BASELINE, alpha=ALPHA, seed=run, draws=999)
                found += [
                    rows[0].n_cell,
                    any(_favoured(row.p_for_cell) for row in rows),
                    _favoured(rows[0].p_for_cell),
                    any(_favoured(row.p_for_baseline) for row in rows),
                    rows[0].p_for_cell is None,
                ]
            print(f"{name} | {share:g} | " + " | ".join(f"{figure:.3g}" for figure in found / runs), flush=True)


def _favoured(p: float | None) -> bool:
    return p is not None and p <= ALPHA


def labels(pool: World, first: np.ndarray, second: np.ndarray, share: float) -> list[Label]:
    generator = np.random.default_rng(3)
    given: dict[str, Any] = {"reason": "", "prompt_sha256": SHA, "evidence_sha256": SHA, "spans": [], "round": 1}
    given |= {"batch": "batch-0001", "judged_on": "2026-01-31"}
    pairs = [(f"q{query}", f"d{pair}") for pair, query in enumerate(pool.query)]
    rows = [
        Label(query_id=q, doc_id=d, grade=int(grade), judge="one", model="one", **given)
        for (q, d), grade in zip(pairs, first, strict=True)
    ]
    return rows + [
        Label(query_id=q, doc_id=d, grade=int(grade), judge="two", model="two", **given)
        for (q, d), grade in zip(pairs, second, strict=True)
        if generator.random() < share
    ]


def speed() -> None:
    generator = np.random.default_rng(1)
    pool = world(generator, queries=N_QUERIES, documents=sized(1000, 60), depth=sized(139, 12))
    grades = read(generator, pool.worth), read(generator, pool.worth)
    runs = {cell.replace(BASELINE, PLAN.baseline): run for cell, run in pool.runs.items()}
    query_ids = [f"q{q}" for q in range(N_QUERIES)]
    for share in (0.1, 1.0):
        rows = labels(pool, *grades, share)
        taken, _ = fastest(lambda rows=rows: judge_agreement(rows, runs, query_ids, PLAN))
        print(
            f"agreement of {len(pool.query):,} pairs, {len(rows) - len(pool.query):,} of them read twice, 10 cells: "
            f"{taken:.2f} s"
        )
    from sklearn.metrics import cohen_kappa_score

    once, _ = fastest(lambda: cohen_kappa_score(*grades, weights="quadratic"), 5)
    print(f"scikit-learn, one quadratic kappa {1000 * once:.1f} ms; {RESAMPLES:,} resamples: {RESAMPLES * once:.1f} s")


if __name__ == "__main__":
    if "--simulate" in sys.argv:
        simulate(int(sys.argv[-1]))
    else:
        speed()
