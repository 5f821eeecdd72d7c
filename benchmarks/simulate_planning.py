"""Whether planning figures hold: power, and the chance that new queries settle it.

    python benchmarks/simulate_planning.py [RUNS]

Queries are drawn with replacement from SciFact's 300, tilted so that each cell has the true gain that is wanted
(benchmarks/worlds.py): ties, skewness and what cells share are real. RUNS evenings a row (1,000 unless told), 998 flips
a test; recall, null gate and Judged@10 are taken as passed. Part of `make simulate`. Seeds are fixed.

Power: how often a cell is confirmed at a true gain, as the first challenger or after another, beside what is said at
its SD. All other cells equal the baseline.

Settling: each cell's true gain is drawn from the prior, as runner/score/expected_loss.py reads it; or of one scale, so
that half of their variance is the baseline's own quality, or none, or so that they are worse than the prior has it.
After evenings that end with a candidate and name a number of new queries, these are judged, with that cell first.
Beside it the chance that was said, and what would be said if the observed gain were taken as true.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math
import sys

import numpy as np
import yaml
from measuring import sized
from numpy.typing import NDArray
from worlds import BASELINE, CHALLENGER, TEST_SEED, Floats, differences, percent, print_table, scores, tilted, units

from runner.decide.sample_size import error_for, settling
from runner.eval_set.catalog import source
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.score.expected_loss import GAINS_ALIKE, HARDLY, believed
from runner.score.gain_test import gain_tests
from runner.score.power import power

DRAWS, SIZES, GAINS = 998, (25, 50, 100), (0.02, 0.03, 0.05, 0.10)
COMPARED = (CHALLENGER, "rrf(bm25,minilm-l6-v2) x whole_doc", "mpnet-base-v2 x whole_doc")


def plan_of(first: str) -> Plan:
    example = Plan.model_validate(yaml.safe_load(default_plan_text(source("demo"), rehearsal=False)))
    return example.model_copy(update={"cells": list(scores("scifact")), "baseline": BASELINE, "first": [first]})


PLAN = plan_of(CHALLENGER)


def confirmed(values: Floats, seed: int) -> NDArray[np.bool_]:
    """Which rows are, the first of them being the first challenger."""
    p = np.array([one.p for one in gain_tests(units(values), 1, draws=DRAWS, seed=TEST_SEED + seed)])
    return (p <= PLAN.significance.alpha) & (values.mean(axis=1) >= PLAN.rule.min_gain)


def first_is(place: int, values: Floats) -> Floats:
    """The rows with one of them moved to the front."""
    return np.vstack([values[[place]], np.delete(values, place, axis=0)])


def print_power(runs: int) -> None:
    world, rows = differences("scifact"), []
    for cell in COMPARED:
        place = list(PLAN.cells).index(cell) - 1
        for gain in GAINS:
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


KINDS = {
    "as believed": (0.0, 0.0),
    "share the baseline": (0.0, 0.5),
    "independent": (0.0, 0.0),
    "worse by .03": (-0.03, 0.5),
}
"""What the mean of true gains is beside the prior's, and the part of their variance that is the baseline's own.

Where gains are as believed, the cells are alike as their errors are and have one of two scatters
(runner/score/expected_loss.py).
"""


def true_gains(kind: str, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
    """Gains of every cell, each of SD PLAN.prior.sd, and weights of the queries that give them; None if none do."""
    mean, shared = KINDS[kind]
    own, baseline = rng.standard_normal(len(PLAN.cells) - 1), rng.standard_normal()
    if kind == "as believed":
        own = believed_scatter(rng) @ own
    gains = PLAN.prior.mean + mean + PLAN.prior.sd * (math.sqrt(1 - shared) * own - math.sqrt(shared) * baseline)
    try:
        return gains, tilted(differences("scifact"), gains)
    except (ValueError, np.linalg.LinAlgError):
        return None


def believed_scatter(rng: np.random.Generator) -> Floats:
    """A root of the covariance that gains of SD 1 have, drawn anew."""
    correlations = np.corrcoef(differences("scifact"))
    alike = GAINS_ALIKE * correlations + (1 - GAINS_ALIKE) * np.eye(len(correlations))
    scatter = (1 / 3 if rng.random() < HARDLY else 1.0) / math.sqrt(HARDLY / 9 + 1 - HARDLY)
    return scatter * np.linalg.cholesky(alike)


def settled(kind: str, n: int, runs: int) -> list[object]:
    """A row: evenings of n queries after which new ones are judged, as many as is said."""
    world, rng, found = differences("scifact"), np.random.default_rng(np.random.PCG64(n)), []
    for seed in range(runs):
        if (drawn := true_gains(kind, rng)) is None:
            continue
        evening = world[:, rng.choice(world.shape[1], n, p=drawn[1])]
        means = evening.mean(axis=1)
        place = int(means.argmax())
        if means[place] < PLAN.rule.min_gain or confirmed(evening, seed).any():
            continue
        gain, sd = float(means[place]), float(evening[place].std(ddof=1))
        said = settling(PLAN, sd, believed(gain, sd / math.sqrt(n), PLAN.prior).gain)
        if not said.queries:
            continue
        new = world[:, rng.choice(world.shape[1], said.queries, p=drawn[1])]
        naive = power(said.queries, gain, sd, error_for(PLAN, CHALLENGER), bar=PLAN.rule.min_gain)
        found.append((said.queries, said.chance, confirmed(first_is(place, new), runs + seed)[0], naive))
    named, chance, held, observed = np.array(found, float).reshape(-1, 4).T
    shares = [f"{100 * chance.mean():.1f}", percent(held.sum(), len(found)), f"{100 * observed.mean():.1f}"]
    return [kind, n, len(found), f"{np.median(named):.0f}", *shares]


def print_settling(runs: int) -> None:
    heads = ["true gains", "queries", "candidates with a number", "its median", "said", "confirmed"]
    title = f"New queries settle it, in per cent; {runs:,} evenings, gains from the prior"
    rows = [settled(kind, n, runs) for kind in KINDS for n in SIZES]
    print_table(title, [*heads, "said by the observed gain"], rows)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(1_000, 30)
    print_power(runs)
    print_settling(runs)


if __name__ == "__main__":
    main()
