"""Whether planning figures hold: power, the chance that further queries settle it, and the corrected gain's interval.

    python benchmarks/simulate_planning.py [RUNS]

Queries are drawn with replacement from SciFact's 300 (docs/matrix/runs: eight cells against MiniLM over whole
documents), with weights that give each cell the true gain that is wanted (exponential tilting), so that ties, skewness
and what cells share are real. First comes the chunked cell of the baseline's encoder, as in a default plan. RUNS
evenings a row (1,000 unless told), 998 flips a test. Part of `make simulate`. Seeds are fixed.

Power: how often the first challenger, or another cell, is confirmed at a true gain, beside what is said at its SD.
Settling: true gains of all cells are drawn from the prior N(0, .05^2). After evenings that end with a candidate and
name a number of new queries, these are judged, with that cell first. Beside it, the chance that was said, and what
would be said if the observed gain were taken as true.
Corrected gain: its error and how often its interval covers the best cell's true gain.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from sizes import sized

from runner.base.records import SCORE_UNIT
from runner.decide.sample_size import error_for, settling
from runner.eval_set.catalog import source
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.score.gain_test import gain_tests
from runner.score.power import power
from runner.score.winners_curse import PRIOR_SD, believed_gains, corrected_gain

Floats = NDArray[np.float64]
BASELINE, FIRST = "minilm-l6-v2 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
RUNS_FOLDER = Path(__file__).parents[1] / "docs" / "matrix" / "runs" / "scifact"
DRAWS, SIZES, GAINS = 998, (25, 50, 100), (0.02, 0.03, 0.05, 0.10)


class World(NamedTuple):
    """Differences to the baseline (cells, queries), the first challenger's on top, and a plan over those cells."""

    differences: Floats
    plan: Plan


def scifact() -> World:
    rows = [json.loads(path.read_text()) for path in sorted(RUNS_FOLDER.glob("*.json"))]
    scores = {row["cell"]: np.array([query["ndcg10"] for query in row["perQuery"]]) for row in rows}
    baseline = scores.pop(BASELINE)
    cells = [FIRST, *(cell for cell in scores if cell != FIRST)]
    example = Plan.model_validate(yaml.safe_load(default_plan_text(source("demo"), rehearsal=False)))
    plan = example.model_copy(update={"cells": [BASELINE, *cells], "baseline": BASELINE, "first": [FIRST]})
    return World(np.array([scores[cell] - baseline for cell in cells]), plan)


def tilted(differences: Floats, gains: Floats) -> Floats | None:
    """Weights of the queries that give every cell its gain, as near to equal as can be; None if there are none."""
    slope = np.zeros(len(differences))
    for _ in range(100):
        weights = np.exp(slope @ differences - (slope @ differences).max())
        weights /= weights.sum()
        mean = differences @ weights
        spread = (differences * weights) @ differences.T - np.outer(mean, mean)
        step = np.linalg.solve(spread + 1e-9 * np.eye(len(slope)), gains - mean)
        slope += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            return weights
    return None


def confirmed(values: Floats, plan: Plan, first: int, seed: int) -> NDArray[np.bool_]:
    """Which cells are, with recall, null gate and Judged@10 taken as passed."""
    units = np.rint(values * SCORE_UNIT).astype(np.int64)
    p = np.array(gain_tests(units, first, draws=DRAWS, seed=seed))
    return (p <= plan.significance.alpha) & (values.mean(axis=1) >= plan.rule.min_gain)


def share(found: float, runs: int) -> str:
    """A percentage with its Monte Carlo standard error."""
    return f"{found:.1%} ± {math.sqrt(found * (1 - found) / max(runs, 1)):.1%}"


def print_power(world: World, runs: int) -> None:
    print(f"Confirmed at a true gain, all other cells at 0; {runs:,} evenings\n")
    print("| cell | exactly 0 | SD | tested | true gain | queries | said | confirmed |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in (FIRST, "rrf(bm25,minilm-l6-v2) x whole_doc", "mpnet-base-v2 x whole_doc"):
        place = world.plan.cells.index(cell) - 1
        row = world.differences[place]
        order = [place, *(other for other in range(len(world.differences)) if other != place)]
        for gain in GAINS:
            target = np.where(np.arange(len(world.differences)) == place, gain, 0.0)
            weights = tilted(world.differences, target)
            assert weights is not None
            sd = math.sqrt(float(weights @ (row - gain) ** 2))
            head = f"| {cell} | {float(weights @ (row == 0)):.0%} | {sd:.2f}"
            for n in SIZES:
                rng = np.random.default_rng(np.random.PCG64(n))
                first = other = 0
                for seed in range(runs):
                    drawn = world.differences[:, rng.choice(len(row), n, p=weights)]
                    first += confirmed(drawn[order], world.plan, 1, seed)[0]
                    other += 0 if cell == FIRST else confirmed(drawn, world.plan, 1, seed)[place]
                for name, found, plan in (("first", first, [cell]), ("after another", other, [FIRST])):
                    if cell != FIRST or name == "first":
                        alpha = error_for(world.plan.model_copy(update={"first": plan}), cell)
                        said = power(n, gain, sd, alpha, bar=world.plan.rule.min_gain)
                        print(f"{head} | {name} | {gain:+.2f} | {n} | {said:.1%} | {share(found / runs, runs)} |")


def print_settling(world: World, runs: int) -> None:
    print(f"\nThe chance that new queries settle it; {runs:,} evenings, true gains from N(0, {PRIOR_SD}^2)\n")
    print("| queries | candidates | queries named, median | said | confirmed | said by the observed gain |")
    print("|---|---|---|---|---|---|")
    for n in SIZES:
        rng, found = np.random.default_rng(np.random.PCG64(n)), []
        for seed in range(runs):
            weights = tilted(world.differences, rng.normal(0, PRIOR_SD, len(world.differences)))
            if weights is None:
                continue
            evening = world.differences[:, rng.choice(world.differences.shape[1], n, p=weights)]
            means = evening.mean(axis=1)
            place = int(means.argmax())
            if means[place] < world.plan.rule.min_gain or confirmed(evening, world.plan, 1, seed).any():
                continue
            sd = float(evening[place].std(ddof=1))
            believed = believed_gains(np.rint(evening * SCORE_UNIT).astype(np.int64))[place]
            said = settling(world.plan, sd, believed)
            if not said.queries:
                continue
            order = [place, *(row for row in range(len(means)) if row != place)]
            new = world.differences[:, rng.choice(world.differences.shape[1], said.queries, p=weights)][order]
            settled = confirmed(new, world.plan, 1, seed)[0]
            naive = power(said.queries, means[place], sd, 0.8 * 0.05, bar=world.plan.rule.min_gain)
            found.append((said.chance, settled, said.queries, naive))
        chance, settled_of, named, observed = np.array(found).T
        print(
            f"| {n} | {len(found)} | {np.median(named):.0f} | {chance.mean():.1%} | "
            f"{share(settled_of.mean(), len(found))} | {observed.mean():.1%} |",
            flush=True,
        )


def print_corrected(world: World, runs: int) -> None:
    print(f"\nThe best cell's gain, corrected; {runs:,} evenings, true gains from N(0, {PRIOR_SD}^2)\n")
    print("| queries | RMSE observed | RMSE corrected | interval covers | its width |\n|---|---|---|---|---|")
    for n in SIZES:
        rng = np.random.default_rng(np.random.PCG64(n))
        errors = []
        for seed in range(runs):
            gains = rng.normal(0, PRIOR_SD, len(world.differences))
            weights = tilted(world.differences, gains)
            if weights is None:
                continue
            values = world.differences[:, rng.choice(world.differences.shape[1], n, p=weights)]
            best = int(values.mean(axis=1).argmax())
            found = corrected_gain(np.rint(values * SCORE_UNIT).astype(np.int64), resamples=400, seed=seed)
            within = found.low <= gains[best] <= found.high
            errors.append((values[best].mean() - gains[best], found.gain - gains[best], within, found.high - found.low))
        observed, corrected, covers, width = np.array(errors).T
        rmse = [f"{math.sqrt(float((one**2).mean())):.3f}" for one in (observed, corrected)]
        print(f"| {n} | {' | '.join(rmse)} | {share(covers.mean(), len(errors))} | {width.mean():.2f} |", flush=True)


def main() -> None:
    """Print the tables as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(1000, 3)
    world = scifact()
    print_power(world, runs)
    print_settling(world, runs)
    print_corrected(world, runs)


if __name__ == "__main__":
    main()
