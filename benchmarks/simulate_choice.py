"""What `choose SOURCE recommended` loses, and how often it switches to a cell that is no better than the baseline.

    python benchmarks/simulate_choice.py [RUNS]

RUNS evenings of each row (2,000 unless told) of 25, 50 and 100 queries, drawn with replacement from those of SciFact
and NFCorpus; a cell's mean over all of them is its truth. Loss is what the best choice is worth more than the
recommended one, the cost of a switch counted in both; regret leaves the cost out. In the other worlds differences are
moved to other true means, Recall@10's to 0: "equal" has 0 everywhere, "all worse" draws them from an exponential of
mean -.02 in each evening. A switch is harmful if the cell is truly worse than the baseline. Null gate and judges are
taken as passed. Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import yaml
from measuring import runs_asked
from worlds import BASELINE, Floats, differences, percent, print_table, scores, units

from runner.decide.tiers import greatest_gain, meets_criterion_5
from runner.eval_set.catalog import SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan
from runner.score.expected_gain import expected_gain

SIZES, KINDS = (25, 50, 100), ("as it is", "equal", "all worse")
PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))


class Place(NamedTuple):
    """Cells with their differences in nDCG@10 and Recall@10 (cells, queries), and the plan that weighs them."""

    name: str
    cells: Sequence[str]
    gains: Floats
    recalls: Floats
    plan: Plan


class Evening(NamedTuple):
    """Differences (cells, queries) of one evening, mean changes of Recall@10, and true gains."""

    gains: Floats
    recalls: Floats
    truth: Floats


def places() -> list[Place]:
    """Return the public collections."""
    plan = PLAN.model_copy(update={"baseline": BASELINE})
    return [
        Place(name, list(scores(name))[1:], differences(name), differences(name, "recall10"), plan)
        for name in ("scifact", "nfcorpus")
    ]


def evenings(place: Place, kind: str, n_queries: int, runs: int) -> Iterator[Evening]:
    """Yield so many evenings under the true gains of the kind of world."""
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    own = place.gains.mean(axis=1)
    recalls = place.recalls - (0 if kind == "as it is" else place.recalls.mean(axis=1, keepdims=True))
    for _ in range(runs):
        queries = rng.integers(place.gains.shape[1], size=n_queries)
        truth = own if kind == "as it is" else np.zeros(len(own))
        if kind == "all worse":
            truth = -rng.exponential(0.02, len(own))
        moved = place.gains[:, queries] + (truth - own)[:, None]
        yield Evening(moved, recalls[:, queries].mean(axis=1), truth)


def chosen(evening: Evening, place: Place) -> int | None:
    """Return the cell that is recommended, None for the baseline."""
    means = evening.gains.mean(axis=1).tolist()
    eligible = {
        cell: expected_gain(cell, units(evening.gains[row]), place.plan)
        for row, cell in enumerate(place.cells)
        if meets_criterion_5(means[row], float(evening.recalls[row]), place.plan.rule)
    }
    choice = greatest_gain(eligible, place.plan)
    return None if choice == place.plan.baseline else list(place.cells).index(choice)


class Found(NamedTuple):
    """Regret and loss of every evening, and whether it switched, and to harm."""

    regret: Floats
    loss: Floats
    switched: Floats
    harmed: Floats


def found(place: Place, kind: str, n_queries: int, runs: int) -> Found:
    """Return the figures of so many evenings."""
    rows, cost = [], place.plan.switching_cost
    for evening in evenings(place, kind, n_queries, runs):
        cell, best = chosen(evening, place), float(evening.truth.max())
        worth = 0.0 if cell is None else float(evening.truth[cell])
        less = 0.0 if cell is None else cost
        rows.append((max(0.0, best) - worth, max(0.0, best - cost) - (worth - less), cell is not None, worth < 0))
    return Found(*np.array(rows, float).T)


def thousandths(values: Floats) -> str:
    """Return a mean x 1000 with its Monte Carlo standard error."""
    return f"{1000 * values.mean():.1f} ({1000 * values.std() / len(values) ** 0.5:.1f})"


def choice_rows(runs: int) -> Iterator[list[object]]:
    for place in places():
        for kind in KINDS:
            for n_queries in SIZES:
                one = found(place, kind, n_queries, runs)
                shares = (percent(each.sum(), runs) for each in (one.switched, one.harmed))
                yield [place.name, kind, n_queries, thousandths(one.regret), thousandths(one.loss), *shares]


def main() -> None:
    runs = runs_asked(2_000, 2)
    heads = ("where", "world", "queries", "regret x 1000", "loss after the cost x 1000", "switches", "harmful")
    print_table(f"`choose recommended`; {runs:,} evenings a row, shares in per cent", heads, choice_rows(runs))


if __name__ == "__main__":
    main()
