"""What `choose SOURCE recommended` loses, and how often it switches to a cell that is worse than the baseline.

    python benchmarks/simulate_choice.py [RUNS]

RUNS evenings (5,000 unless told) of 25, 50 and 100 queries, drawn with replacement from the 300 of SciFact, with the
scores that docs/matrix/runs/scifact has of nine cells; the baseline is MiniLM over whole documents, and a cell's mean
over all 300 is the truth; the same without the cell that is far worse than all others, and on NFCorpus, to which
nothing was tuned. Regret is what the choice scores less than the best of all cells. In the other worlds the differences
of SciFact's cells are moved to other true means, Recall@10's to 0: "worse" draws them from N(-.02, .02) in each
evening, "all worse" from an exponential of mean -.02, "equal" has 0. A switch is harmful if the cell is truly worse.

The frontier is the same over other priors and costs. The planted worlds have a first challenger that truly gains, with
normal differences of standard deviation .2, alone or beside seven others that equal the baseline or are worse by .05
and correlate by .5; and the seven of SciFact, moved to equal the baseline. RUNS / 10 evenings each, 999 draws a test;
RUNS of those in which nothing gains, of which only the choice is counted. All is by the prior that a new plan states.
Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import yaml
from measuring import runs_asked
from worlds import TEST_SEED, Floats, differences, percent, print_table, scores

from runner.base.records import SCORE_UNIT
from runner.decide.tiers import CellFigures, least_loss, meets_criterion_5, unmet_criteria
from runner.eval_set.catalog import SOURCES
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan, Prior
from runner.score.expected_loss import beliefs, expected_losses
from runner.score.gain_test import gain_tests

SIZES, TIERS = (25, 50, 100), ("confirmed", "candidate", "inconclusive", "baseline kept")
PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))
RULE, PRIOR, COST = PLAN.rule, PLAN.prior, PLAN.switching_cost
"""What a new plan states."""


class World(NamedTuple):
    """Differences of nDCG@10 and Recall@10 (cells, queries) to the baseline; `truth` draws the cells' true means."""

    gains: Floats
    recalls: Floats
    truth: Callable[[np.random.Generator], Floats]


class Evening(NamedTuple):
    """Differences (cells, queries) of one evening, mean changes of Recall@10, and true gains."""

    gains: Floats
    recalls: Floats
    truth: Floats


def as_it_is(collection: str, *, but: str = "none") -> World:
    """Return a public collection; without the cells of one encoder."""
    rows = [place for place, cell in enumerate(list(scores(collection))[1:]) if not cell.startswith(but)]
    gains, recalls = differences(collection)[rows], differences(collection, "recall10")[rows]
    means = gains.mean(axis=1)
    return World(gains - means[:, None], recalls, lambda rng: means)


def worlds() -> dict[str, World]:
    gains, recalls = differences("scifact"), differences("scifact", "recall10")
    level, safe = (values - values.mean(axis=1, keepdims=True) for values in (gains, recalls))
    n = len(gains)
    return {
        "SciFact": as_it_is("scifact"),
        "SciFact without its worst cell": as_it_is("scifact", but="minilm-static-384"),
        "NFCorpus": as_it_is("nfcorpus"),
        "worse": World(level, safe, lambda rng: rng.normal(-0.02, 0.02, n)),
        "all worse": World(level, safe, lambda rng: -rng.exponential(0.02, n)),
        "equal": World(level, safe, lambda rng: np.zeros(n)),
    }


def evenings(world: World, n_queries: int, runs: int) -> Iterator[Evening]:
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    for _ in range(runs):
        queries, truth = rng.integers(world.gains.shape[1], size=n_queries), world.truth(rng)
        yield Evening(world.gains[:, queries] + truth[:, None], world.recalls[:, queries].mean(axis=1), truth)


def chosen(evening: Evening, prior: Prior | None, cost: float) -> int | None:
    """Return the cell that is recommended, None for the baseline; without a prior the best that meets criterion 5."""
    means = evening.gains.mean(axis=1)
    eligible = [i for i, gain in enumerate(means) if meets_criterion_5(gain, evening.recalls[i], RULE)]
    if prior is None:
        return max(eligible, key=lambda cell: means[cell], default=None)
    # What is believed needs the scores as a run keeps them.
    units = np.rint(evening.gains * SCORE_UNIT).astype(np.int64)
    losses = expected_losses(beliefs(units, prior), PLAN.model_copy(update={"switching_cost": cost}))
    found = least_loss("", {str(cell): losses[cell] for cell in eligible})
    return int(found) if found else None


class Found(NamedTuple):
    """Mean regret x 1000 with its Monte Carlo error; numbers of evenings that switch, and that switch to harm."""

    regret: float
    error: float
    switched: int
    harmed: int

    @classmethod
    def of(cls, world: World, n_queries: int, runs: int, prior: Prior | None = PRIOR, cost: float = COST) -> "Found":
        """Return the figures of so many evenings."""
        regrets, switched, harmed = [], 0, 0
        for evening in evenings(world, n_queries, runs):
            cell = chosen(evening, prior, cost)
            worth = 0.0 if cell is None else float(evening.truth[cell])
            regrets.append(1000 * (max(0.0, evening.truth.max()) - worth))
            switched += cell is not None
            harmed += worth < 0
        return cls(float(np.mean(regrets)), float(np.std(regrets)) / math.sqrt(runs), switched, harmed)


class Planted(NamedTuple):
    """A first challenger and so many others, whose true gain is `others`; normal differences if `level` is None."""

    n_others: int
    others: float = 0.0
    level: Floats | None = None

    def evening(self, rng: np.random.Generator, n_queries: int, gain: float) -> Evening:
        """Return an evening whose first cell gains so much."""
        if self.level is None:
            own, shared = rng.normal(size=(1 + self.n_others, n_queries)), rng.normal(size=n_queries)
            # Half of the variance is the query's, so that cells correlate by .5.
            drawn = 0.2 * (own + shared) / 2**0.5
        else:
            drawn = self.level[:, rng.integers(self.level.shape[1], size=n_queries)]
        truth = np.array([gain, *[self.others] * self.n_others])
        return Evening(drawn + truth[:, None], np.zeros(len(drawn)), truth)


def tier_of(evening: Evening, seed: int) -> tuple[str, bool]:
    """Return the tier, and whether the first cell is confirmed; gate and judges taken as passed."""
    units = np.rint(evening.gains * SCORE_UNIT).astype(np.int64)
    ps = [one.p for one in gain_tests(units, 1, draws=999, seed=seed)]
    means = evening.gains.mean(axis=1).tolist()
    short = [
        unmet_criteria(CellFigures(mean, 0.0, p, "pass", 1.0), RULE, PLAN.significance.alpha)
        for mean, p in zip(means, ps, strict=True)
    ]
    # The ladder of tiers: a cell that falls short of nothing, one that meets criterion 5, then what knowing is worth.
    if not all(short):
        return "confirmed", not short[0]
    if any(meets_criterion_5(mean, 0.0, RULE) for mean in means):
        return "candidate", False
    worth = beliefs(units, PRIOR).best(range(len(units)))
    return ("inconclusive" if worth > COST else "baseline kept"), False


def planted_worlds() -> dict[str, Planted]:
    """Return what stands beside a first challenger."""
    gains = differences("scifact")
    level = gains - gains.mean(axis=1, keepdims=True)
    return {
        "alone": Planted(0),
        "7 equal": Planted(7),
        "7 worse by .05": Planted(7, -0.05),
        "7 of SciFact, equal": Planted(7, 0.0, level),
    }


def planted(kind: Planted, n_queries: int, gain: float, runs: int) -> Iterator[tuple[int, Evening]]:
    """Yield so many evenings of a planted world, each with its seed."""
    for seed in range(runs):
        yield seed, kind.evening(np.random.default_rng(np.random.PCG64(seed)), n_queries, gain)


def equal_rows(runs: int) -> Iterator[list[str]]:
    """Yield how often the baseline is recommended where nothing gains, by what stands beside the first challenger."""
    for name, kind in planted_worlds().items():
        kept = [sum(chosen(each, PRIOR, COST) is None for _, each in planted(kind, n, 0.0, runs)) for n in SIZES]
        yield [name, *(percent(each, runs) for each in kept)]


def planted_rows(runs: int) -> Iterator[list[object]]:
    """Yield tiers and recommendations where a first challenger gains, by its true gain."""
    for name, kind in planted_worlds().items():
        for gain in (0.0, 0.05, 0.15):
            for n_queries in SIZES:
                ends: Counter[str] = Counter()
                for seed, evening in planted(kind, n_queries, gain, runs):
                    tier, first = tier_of(evening, seed + TEST_SEED)
                    choice = chosen(evening, PRIOR, COST)
                    ends.update([tier, *["first"] * first, "baseline" if choice is None else f"cell {choice}"])
                shares = (percent(ends[key], runs) for key in ("first", "cell 0", "baseline", *TIERS))
                yield [name, f"{gain:+.2f}", n_queries, *shares]


def choice_rows(runs: int) -> Iterator[list[object]]:
    for name, world in worlds().items():
        for n_queries in SIZES:
            own, literal = (Found.of(world, n_queries, runs, prior) for prior in (PRIOR, None))
            regrets = f"{own.regret:.1f} ± {own.error:.1f}", f"{literal.regret:.1f}"
            yield [name, n_queries, *regrets, percent(own.switched, runs), percent(own.harmed, runs)]


def frontier_rows(runs: int) -> Iterator[list[str]]:
    compared = [worlds()[name] for name in ("SciFact", "worse", "equal")]
    for mean, sd, cost in product((-0.01, -0.03, -0.05), (0.04, PRIOR.sd, 0.07), (0.01, 0.02, 0.03)):
        prior = PRIOR.model_copy(update={"mean": mean, "sd": sd})
        figures = []
        for n in SIZES:
            good, bad, same = (Found.of(world, n, runs, prior, cost) for world in compared)
            figures.append(f"{good.regret:.0f} / {bad.harmed / runs:.0%} / {same.switched / runs:.0%}")
        yield [f"N({mean:g}, {sd:g}²)", f"{cost:g}", *figures]


def main() -> None:
    runs = runs_asked(5_000, 2)
    few = max(1, runs // 10)
    told = (
        f"prior N({PRIOR.mean:g}, {PRIOR.sd:g}²), switching cost {COST:g}; {runs:,} evenings each, shares in per cent"
    )
    heads = ("world", "queries", "regret x 1000", "by criterion 5 alone", "switches", "harmful")
    print_table(told[0].upper() + told[1:], heads, choice_rows(runs))
    print_table(f"Nothing gains, baseline recommended; {told}", ("others", *map(str, SIZES)), equal_rows(runs))
    heads = ("others", "true gain", "queries", "first confirmed", "first recommended", "baseline recommended", *TIERS)
    print_table(f"Planted worlds; {few:,} evenings each, shares in per cent", heads, planted_rows(few))
    title = "Regret x 1000 on SciFact / harmful switches where cells are worse / switches where all are equal"
    print_table(title, ("prior", "cost", *map(str, SIZES)), frontier_rows(few))


if __name__ == "__main__":
    main()
