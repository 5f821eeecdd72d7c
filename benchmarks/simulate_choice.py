"""What `choose SOURCE recommended` loses, and how often it switches to a cell that is no better than the baseline.

    python benchmarks/simulate_choice.py [RUNS]

RUNS evenings a row (2,000 unless told) of 25, 50 and 100 queries, drawn with replacement from those of eight rehearsed
sources, dealt out evenly, of SciFact and of NFCorpus; a cell's mean over all queries of its source is its truth. A
rehearsed source is chosen by the prior that the seven others make, a public collection by that of all eight.

Loss is what the best choice is worth more than the recommended one, the cost of a switch counted in both; regret leaves
the cost out. In the other worlds differences are moved to other true means, Recall@10's to 0: "equal" has 0 everywhere,
"all worse" draws them from an exponential of mean -.02 in each evening. A switch is harmful if the cell is truly worse
than the baseline. Null gate and judges are taken as passed. Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import yaml
from measuring import runs_asked
from worlds import BASELINE, REHEARSED, Floats, World, percent, print_table, public, rehearsal, units

from runner.decide.tiers import greatest_gain, meets_criterion_5
from runner.eval_set.catalog import SOURCES
from runner.eval_set.kinds import kind_of
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan, Prior
from runner.score.expected_gain import expected_gain
from runner.score.pooling import SourceGains, prior_of

SIZES, WORLDS = (25, 50, 100), ("as it is", "equal", "all worse")
REHEARSED_BASELINE = "minilm-l6-v2 x fixed_token_256_25"
PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))


class Place(NamedTuple):
    """Real differences, and the plan with the prior that other sources make."""

    world: World
    plan: Plan


class Evening(NamedTuple):
    """Differences (cells, queries) of one evening, mean changes of Recall@10, and true gains."""

    gains: Floats
    recalls: Floats
    truth: Floats


def source_gains(source: str) -> SourceGains:
    """Return what a rehearsed source says to the others."""
    world = rehearsal(source)
    kinds = tuple(kind_of(cell, REHEARSED_BASELINE) for cell in world.cells)
    n_queries = world.gains.shape[1]
    errors = np.cov(world.gains) / n_queries
    return SourceGains(source, tuple(world.cells), kinds, world.gains.mean(axis=1), errors, n_queries)


def plan_of(baseline: str, *, without: str = "") -> Plan:
    """Return a plan whose prior all rehearsed sources make, but one."""
    kinds = prior_of([source_gains(source) for source in REHEARSED if source != without])
    return PLAN.model_copy(update={"baseline": baseline, "prior": Prior(kinds=kinds)})


def places() -> dict[str, list[Place]]:
    """Return the rehearsed sources as one, and the public collections."""
    rehearsals = [Place(rehearsal(source), plan_of(REHEARSED_BASELINE, without=source)) for source in REHEARSED]
    plan = plan_of(BASELINE)
    return {
        "eight sources": rehearsals,
        "SciFact": [Place(public("scifact"), plan)],
        "NFCorpus": [Place(public("nfcorpus"), plan)],
    }


def evening(world: World, kind: str, n_queries: int, rng: np.random.Generator) -> Evening:
    """Return an evening under the true gains of the kind of world."""
    own, recalls = world.gains.mean(axis=1), world.recalls
    truth = own
    if kind != "as it is":
        truth = np.zeros(len(own)) if kind == "equal" else -rng.exponential(0.02, len(own))
        recalls = recalls - recalls.mean(axis=1, keepdims=True)
    queries = rng.integers(world.gains.shape[1], size=n_queries)
    return Evening(world.gains[:, queries] + (truth - own)[:, None], recalls[:, queries].mean(axis=1), truth)


def chosen(evening: Evening, cells: list[str], plan: Plan) -> int | None:
    """Return the cell that is recommended, None for the baseline."""
    means, changes = evening.gains.mean(axis=1).tolist(), evening.recalls.tolist()
    eligible = {
        cell: expected_gain(cell, units(evening.gains[row]), plan)
        for row, cell in enumerate(cells)
        if meets_criterion_5(means[row], changes[row], plan.rule)
    }
    choice = greatest_gain(eligible, plan)
    return None if choice == plan.baseline else cells.index(choice)


class Found(NamedTuple):
    """By evening: regret and loss x 1000, whether it switched, and whether to harm."""

    regret: Floats
    loss: Floats
    switched: Floats
    harmed: Floats


def found(held: list[Place], kind: str, n_queries: int, runs: int) -> Found:
    """Return the figures of so many evenings, dealt out to the places."""
    rng, rows = np.random.default_rng(np.random.PCG64(n_queries)), []
    for number in range(runs):
        world, plan = held[number % len(held)]
        drawn = evening(world, kind, n_queries, rng)
        cell, best, cost = chosen(drawn, world.cells, plan), float(drawn.truth.max()), plan.switching_cost
        worth = 0.0 if cell is None else float(drawn.truth[cell])
        left = worth if cell is None else worth - cost
        rows.append((max(0.0, best) - worth, max(0.0, best - cost) - left, cell is not None, worth < 0))
    return Found(*(np.array(rows, float) * [1000, 1000, 1, 1]).T)


CLAIMS = (
    ("as it is", "regret", "regret x 1000", ""),
    ("as it is", "loss", "loss after the cost x 1000", "<= 7.5 / 4.5"),
    ("equal", "switched", "all cells equal the baseline: switches", "<= 25 of 50 queries"),
    ("all worse", "harmed", "all cells are worse: switches", "<= 12 of 50 queries"),
)
"""World, field of `Found`, the figure in words, and what is wanted of the eight sources."""


def choice_rows(runs: int) -> Iterator[list[object]]:
    for name, held in places().items():
        found_in = {(kind, n): found(held, kind, n, runs) for kind in WORLDS for n in SIZES}
        for kind, field, words, wanted in CLAIMS:
            values = [getattr(found_in[kind, n], field) for n in SIZES]
            if kind == "as it is":
                told = [f"{each.mean():.1f} ({each.std() / runs**0.5:.1f})" for each in values]
            else:
                told = [percent(float(each.sum()), runs) for each in values]
            yield [f"{name}: {words}", *told, wanted if name == "eight sources" else ""]


def main() -> None:
    runs = runs_asked(2_000, 8)
    heads = ("", *(f"{n} queries" for n in SIZES), "wanted")
    print_table(f"`choose recommended`; {runs:,} evenings a figure, switches in per cent", heads, choice_rows(runs))


if __name__ == "__main__":
    main()
