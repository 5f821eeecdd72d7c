"""Whether planning figures hold: how often a cell is confirmed at a true gain.

    python benchmarks/simulate_planning.py [RUNS]

Queries are drawn with replacement from SciFact's 300, tilted so that each cell has the true gain that is wanted
(benchmarks/worlds.py): ties, skewness and what cells share are real. RUNS evenings a row (1,000 unless told), 998 flips
a test; recall, null gate and Judged@10 are taken as passed. Part of `make simulate`. Seeds are fixed.

Power: how often a cell is confirmed at a true gain, as the first challenger or after another, beside what is said at
its SD. All other cells equal the baseline.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math

import numpy as np
import yaml
from measuring import runs_asked
from numpy.typing import NDArray
from worlds import BASELINE, CHALLENGER, TEST_SEED, Floats, differences, percent, print_table, scores, tilted, units

from runner.decide.sample_size import error_for
from runner.eval_set.catalog import source
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.score.gain_test import gain_tests
from runner.score.power import power

DRAWS, SIZES, GAINS = 998, (25, 50, 100), (0.02, 0.03, 0.05, 0.10)
COMPARED = (CHALLENGER, "rrf(bm25,minilm-l6-v2) x whole_doc", "mpnet-base-v2 x whole_doc")


def plan_of(first: str) -> Plan:
    example = Plan.model_validate(yaml.safe_load(default_plan_text(source("demo"), rehearsal=False)))
    return example.model_copy(update={"cells": list(scores("scifact")), "baseline": BASELINE, "first": [first]})


PLAN = plan_of(CHALLENGER)


def confirmed(values: Floats, seed: int) -> NDArray[np.bool_]:
    """Return which rows are, the first of them being the first challenger."""
    p = np.array([one.p for one in gain_tests(units(values), 1, draws=DRAWS, seed=TEST_SEED + seed)])
    return (p <= PLAN.significance.alpha) & (values.mean(axis=1) >= PLAN.rule.min_gain)


def first_is(place: int, values: Floats) -> Floats:
    """Return the rows with one of them moved to the front."""
    return np.vstack([values[[place]], np.delete(values, place, axis=0)])


def print_power(runs: int) -> None:
    world, rows = differences("scifact"), []
    for cell in COMPARED:
        place = list(PLAN.cells).index(cell) - 1
        for gain in GAINS:
            # This cell alone gains; all others are tilted to equal the baseline.
            weights = tilted(world, np.where(np.arange(len(world)) == place, gain, 0.0))
            sd = math.sqrt(float(weights @ (world[place] - gain) ** 2))
            ties = f"{100 * float(weights @ (world[place] == 0)):.0f}"
            for n in SIZES:
                rng, first, other = np.random.default_rng(np.random.PCG64(n)), 0, 0
                for seed in range(runs):
                    drawn = world[:, rng.choice(world.shape[1], n, p=weights)]
                    first += confirmed(first_is(place, drawn), seed)[0]
                    other += confirmed(drawn, seed)[place] if place else 0
                said, after = (
                    100 * power(n, gain, sd, error_for(plan_of(named), cell), bar=PLAN.rule.min_gain)
                    for named in (cell, CHALLENGER)
                )
                row = [cell, f"{sd:.2f}", ties, f"{gain:+.2f}", n, f"{said:.1f}", percent(first, runs)]
                rows.append([*row, *((f"{after:.1f}", percent(other, runs)) if place else ("", ""))])
    heads = ["cell", "SD", "% exactly 0", "true gain", "queries", "first: said", "confirmed", "after another: said"]
    print_table(f"Confirmed at a true gain, in per cent of {runs:,} evenings", [*heads, "confirmed"], rows)


if __name__ == "__main__":
    print_power(runs_asked(1_000, 30))
