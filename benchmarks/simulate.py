"""`make simulate`: how often the decision errs, what it finds and what it loses, as one table (docs/statistics.md).

    python benchmarks/simulate.py [RUNS]

RUNS evenings a figure (2,000 unless told; half of them for power, fewer where a row says so), on all cores. Queries are
drawn with replacement from real differences: SciFact, NFCorpus, eight rehearsed sources, and these eight together.
Every verdict is that of runner/decide/tiers.py; null gate, Judged@10 and second readings are taken as passed, which a
real evening asks besides, and Recall@10 unless a row says otherwise. Seeds are fixed. Monte Carlo errors of 2,000
evenings are .5 at 5 % and 1.1 at 50 %.

Worlds without a gain: the cells as they are (wrong is a cell that truly gains nothing); every cell shifted to a mean of
0, with or without its ties; both mirrored, every gain a loss; and queries weighted so that every mean is 0 (tilted),
where such weights exist and leave twelve queries' worth. The made worlds are like no collection at hand: nine cells of
SD .15 that correlate by .5, with a long tail of losses.

`recommended`: a rehearsed source has the prior that the seven others make, a public collection that of all eight. Loss
is what the best choice is worth more than the recommended one, the cost of a switch counted in both; regret leaves the
cost out. Where all cells are worse, their true gains are drawn from an exponential of mean -.02 in each evening.

Pooled: eight sources of 25 queries, whose true gains scatter by tau about +.03, alike for the cells of a kind in one
source or each by itself; differences have a SD of .2, half of their variance shared by a source's cells.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math
import operator
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain, islice

import numpy as np
import yaml
from measuring import runs_asked
from numpy.typing import NDArray
from simulate_judges import LISTED, list_rows, low_rows
from worlds import (
    BASELINE,
    PUBLIC,
    REHEARSED,
    REHEARSED_BASELINE,
    TEST_SEED,
    Floats,
    Row,
    World,
    all_rehearsals,
    drawn,
    level,
    level_with_ties,
    made,
    null_worlds,
    print_table,
    rehearsal,
    tilted,
    units,
    world,
)

from runner.decide.tiers import CellFigures, greatest_gain, meets_criterion_5, unmet_criteria
from runner.eval_set.catalog import SOURCES
from runner.eval_set.kinds import kind_of
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.plan import Plan, Prior
from runner.score.expected_gain import expected_gain
from runner.score.gain_test import FIRST_SHARE, effective_number, gain_tests
from runner.score.pooling import SourceGains, effect_of, prior_of
from runner.score.power import power
from runner.score.recall_bound import recall_bounds
from runner.score.sign_flip import paired_tests

SIZES, TESTED, CHOSEN = (25, 50, 100, 200), (50, 100), (25, 50, 100)
HEADS = ("per cent of evenings, unless said otherwise", *(f"{n} queries" for n in SIZES), "wanted")
PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))
RULE, ALPHA = PLAN.rule, PLAN.significance.alpha
CHOICES = ("regret x 1000", "loss after the cost x 1000", "all cells equal: switches", "all cells worse: switches")
LEAST_T = 1.64
"""No p is below .05 where t is lower, whatever its degrees of freedom."""


def confirmed(evenings: Floats, first: int, weights: Floats | None = None) -> NDArray[np.bool_]:
    """Return which cells are confirmed, (cells, evenings), in (cells, evenings, queries)."""
    weights = np.ones(evenings.shape[1:]) if weights is None else weights
    shares = weights / weights.sum(axis=1, keepdims=True)
    means, squares = (np.einsum("ceq,eq->ce", evenings**power, shares) for power in (1, 2))
    n = 1 / (shares**2).sum(axis=1)
    s = (n * means / np.sqrt(np.maximum(squares, 1e-18)) - 1) / (n + 1)
    near = (means >= RULE.min_gain - 1e-4) & (s * np.sqrt(n / np.maximum(1 - s * s, 1e-18)) >= LEAST_T)
    found: NDArray[np.bool_] = np.zeros(near.shape, bool)
    for evening in np.flatnonzero(near.any(axis=0)):
        tests = gain_tests(units(evenings[:, evening]), first, ALPHA, weights[evening].tolist())
        for cell in np.flatnonzero(near[:, evening]):
            figures = CellFigures(means[cell, evening], 0.0, evenings.shape[2], tests[cell], "pass", 1.0)
            found[cell, evening] = not unmet_criteria(figures, RULE)
    return found


def share(found: NDArray[np.bool_]) -> float:
    """Return how many per cent of evenings have any of these cells confirmed."""
    return 100 * float(found.any(axis=0).mean())


def error_rows(name: str, runs: int) -> list[Row]:
    """Return how often a cell of a real world is confirmed that gains nothing in truth."""
    real, rows = world(name), []
    for kind, (gains, weights) in null_worlds(real.gains).items():
        nothing = np.average(gains, axis=1, weights=weights) < 1e-9
        found = {n: share(confirmed(drawn(gains, n, runs, weights), real.first)[nothing]) for n in TESTED}
        rows.append((f"error: {name}, {kind}", found, ""))
    return rows


def extremes(what: str, rows: list[Row], wanted: tuple[str, str]) -> list[Row]:
    """Return the mean and the largest of rows."""
    found = [{n: float(fold([row[1][n] for row in rows])) for n in TESTED} for fold in (np.mean, np.max)]
    return [(f"{what}: mean", found[0], wanted[0]), (f"{what}: largest", found[1], wanted[1])]


def made_rows(runs: int) -> list[Row]:
    worlds = {"skewness -1.4": (1.0, 0.0), "-2.8": (0.25, 0.0), "-1.4, half of the differences 0": (1.0, 0.5)}
    return [
        (f"error: made skewed world, {name}", {n: share(confirmed(made(*form, n, runs), 1)) for n in TESTED}, "printed")
        for name, form in worlds.items()
    ]


def mixed_rows(runs: int) -> list[Row]:
    """Return the error of the weighted test if the plan's mix counts all kinds of query alike, or one of them for half.

    Cells are moved to a weighted mean of 0; so many queries are drawn that they are worth 50 and 100 of equal weight.
    """
    rows: list[Row] = []
    for name in (*REHEARSED, "all eight"):
        real = world(name)
        counts = Counter(real.kinds)
        mixes = {"alike": dict.fromkeys(counts, 1 / len(counts))}
        for kind, count in counts.items():
            rest = 0.5 / (len(real.kinds) - count)
            mixes[f"half {kind}"] = {other: 0.5 if other == kind else rest * counts[other] for other in counts}
        for mix, parts in mixes.items():
            weights = np.array([parts[kind] / counts[kind] for kind in real.kinds])
            worth = effective_number(weights.tolist()) / len(weights)
            # A mix that leaves a quarter would have somebody judge four times as much.
            if worth < 0.25:
                continue
            both, found = (
                np.vstack([real.gains - np.average(real.gains, axis=1, weights=weights)[:, None], weights]),
                {},
            )
            for n in TESTED:
                *gains, own = drawn(both, math.ceil(n / worth), runs)
                found[n] = share(confirmed(np.array(gains), real.first, own))
            rows.append((f"{name}, {mix}", found, ""))
    return extremes(f"error: with weights, {len(rows)} mixes of kinds of query", rows, ("printed", "printed"))


def found_in(real: World, place: int, gain: float, first: int, runs: int, *, recall: bool = False) -> dict[int, float]:
    """Return how often the cell is confirmed that alone gains in truth; with `recall` it keeps Recall@10 besides."""
    gains, shares = level(real.gains), {}
    gains[place] += gain
    for n in SIZES[1:]:
        found = confirmed(drawn(gains, n, runs), first)[[place]]
        if recall:
            # The same queries once more: one seed draws both.
            changes = drawn(level(real.recalls)[[place]], n, runs)[0].mean(axis=1)
            found &= np.round(changes, 4) >= -RULE.max_recall_loss
        shares[n] = share(found)
    return shares


def said_of(real: World, place: int, gain: float, part: float) -> dict[int, float]:
    """Return what the plan says of it beforehand, at the cell's own scatter."""
    sd = float(real.gains[place].std())
    return {n: 100 * power(n, gain, sd, part * ALPHA, bar=RULE.min_gain) for n in SIZES[1:]}


def averaged(shares: list[dict[int, float]]) -> dict[int, float]:
    return {n: float(np.mean([each[n] for each in shares])) for n in shares[0]}


def first_rows(runs: int) -> list[Row]:
    """Return how often the cell that goes first is confirmed, over the eight sources."""
    sources = [rehearsal(source) for source in REHEARSED]
    alone, second = "power: first cell +.05, alone in its step", "power: the same with a second cell beside it"
    return [
        (alone, averaged([found_in(each, 0, 0.05, 1, runs) for each in sources]), ">= 53 / 82"),
        (
            "power: the same, as said beforehand",
            averaged([said_of(each, 0, 0.05, FIRST_SHARE) for each in sources]),
            "",
        ),
        (
            "power: the same, Recall@10 asked too (truly unchanged)",
            averaged([found_in(each, 0, 0.05, 1, runs, recall=True) for each in sources]),
            "printed",
        ),
        (second, averaged([found_in(each, 0, 0.05, 2, runs) for each in sources]), "printed"),
        (
            "power: the same cell in a version that confirms it",
            averaged([found_in(each.only([0]), 0, 0.05, 1, runs) for each in sources]),
            "printed",
        ),
    ]


def other_rows(runs: int) -> list[Row]:
    """Return how often any other cell is confirmed; near-copies of the baseline, which nobody tests, stand aside."""
    real = all_rehearsals()
    real = real.only([row for row, cell in enumerate(real.cells) if "@" not in cell])
    place = next(row for row, cell in enumerate(real.cells) if cell.startswith(("rrf(", "sum(")))
    part, what = (1 - FIRST_SHARE) / (len(real.cells) - 1), "power: any other cell, hybrid +.10"
    return [
        (what, found_in(real, place, 0.1, 1, runs), ">= 20 / 52 / 90"),
        (f"{what}, as said beforehand", said_of(real, place, 0.1, part), ""),
    ]


def held_rows(runs: int) -> list[Row]:
    """Return how often the intervals of all cells hold the truth, and how often the mark of recall is wrong."""
    real, few, ends, marks = all_rehearsals(), max(1, runs // 4), {}, {}
    # Near-copies must keep their ties: moved, they would be a constant that does not scatter.
    for n in TESTED:
        evenings = drawn(level_with_ties(real.gains), n, few)
        tests = (paired_tests(units(evenings[:, e]), draws=999, alpha=ALPHA, seed=TEST_SEED) for e in range(few))
        ends[n] = 100 * sum(all(t.simultaneous[0] <= 0 <= t.simultaneous[1] for t in each) for each in tests) / few
    recall = real.recalls[:1]
    weights = tilted(recall, np.array([-RULE.max_recall_loss]))
    for n in SIZES[1:]:
        bounds = recall_bounds(units(drawn(recall, n, runs, weights)[0]), RULE.max_recall_loss, alpha=ALPHA)
        marks[n] = 100 * sum(bound.state == "shown not to fall" for bound in bounds) / runs
    return [
        ("all simultaneous intervals hold the truth", ends, "95"),
        ("Recall@10 falls by .02 and is 'shown not to fall'", marks, "<= 5"),
    ]


def plan_of(baseline: str, *, without: str = "") -> Plan:
    """Return a plan whose prior all rehearsed sources make, but one."""
    kinds = prior_of([source_gains(source) for source in REHEARSED if source != without])
    return PLAN.model_copy(update={"baseline": baseline, "prior": Prior(kinds=kinds)})


@cache
def source_gains(source: str) -> SourceGains:
    """Return what a rehearsed source says to the others."""
    cells, _, gains, _, query_kinds = rehearsal(source)
    kinds, n = tuple(kind_of(cell, REHEARSED_BASELINE) for cell in cells), len(query_kinds)
    return SourceGains(source, tuple(cells), kinds, gains.mean(axis=1), np.cov(gains) / n, n)


def recommended(gains: Floats, recalls: Floats, cells: list[str], plan: Plan) -> int | None:
    """Return the cell that is recommended by differences (cells, queries) and changes of Recall@10, None for none."""
    means = gains.mean(axis=1).tolist()
    eligible = {
        cell: expected_gain(cell, units(gains[row]), plan)
        for row, cell in enumerate(cells)
        if meets_criterion_5(means[row], float(recalls[row]), plan.rule)
    }
    choice = greatest_gain(eligible, plan)
    return None if choice == plan.baseline else cells.index(choice)


def choice_rows(name: str, runs: int, *, bar: float = PLAN.switching_cost) -> list[Row]:
    """Return what `choose recommended` loses, and how often it switches to a cell that is no better.

    `bar` is the expected gain that it asks for, where the cost of a switch stays the plan's.
    """
    if name == "eight sources":
        places = [(rehearsal(source), plan_of(REHEARSED_BASELINE, without=source)) for source in REHEARSED]
    else:
        places = [(world(name), plan_of(BASELINE))]
    places = [(real, plan.model_copy(update={"switching_cost": bar})) for real, plan in places]
    figures: list[dict[int, float]] = [{}, {}, {}, {}]
    for n in CHOSEN:
        regret, loss, _ = np.mean(_evenings(places, "as they are", n, runs), axis=0)
        equal, worse = (np.mean(_evenings(places, kind, n, runs), axis=0)[2] for kind in ("equal", "worse"))
        for figure, value in zip(figures, (1000 * regret, 1000 * loss, 100 * equal, 100 * worse), strict=True):
            figure[n] = float(value)
    wanted = ("", "<= 7.5 / 4.5 of 25 / 50", "<= 25 of 50", "<= 12 of 50") if name == "eight sources" else ("",) * 4
    told = "" if bar == PLAN.switching_cost else f", if it asked for {bar}"
    return [
        (f"recommended, {name}{told}: {what}", figure, want)
        for what, figure, want in zip(CHOICES, figures, wanted, strict=True)
    ]


def _evenings(
    places: list[tuple[World, Plan]], kind: str, n_queries: int, runs: int
) -> list[tuple[float, float, bool]]:
    """Return regret, loss and whether it switched, by evening under the true gains of the kind of world."""
    rng, found = np.random.default_rng(np.random.PCG64(n_queries)), []
    for number in range(runs):
        real, plan = places[number % len(places)]
        own, recalls = real.gains.mean(axis=1), real.recalls
        truth = own
        if kind != "as they are":
            truth = np.zeros(len(own)) if kind == "equal" else -rng.exponential(0.02, len(own))
            recalls = level(recalls)
        at = rng.integers(real.gains.shape[1], size=n_queries)
        gains = real.gains[:, at] + (truth - own)[:, None]
        cell = recommended(gains, recalls[:, at].mean(axis=1), real.cells, plan)
        best, worth, cost = float(truth.max()), 0.0 if cell is None else float(truth[cell]), PLAN.switching_cost
        left = worth if cell is None else worth - cost
        found.append((max(0.0, best) - worth, max(0.0, best - cost) - left, cell is not None))
    return found


def pooled_rows(n_cells: int, tau: float, runs: int, *, shared: bool = True) -> list[Row]:
    """Return how often pooling misses what a kind of cell truly gains, and how often it shows the gain."""
    mean, n, rng, missed, shown = 0.03, 25, np.random.default_rng(np.random.PCG64(2026)), 0, 0
    for _ in range(runs):
        sources = []
        for number in range(8):
            true = mean + tau * rng.standard_normal(1 if shared else n_cells) * np.ones(n_cells)
            noise = rng.standard_normal((n_cells, n)) + rng.standard_normal(n)
            values = true[:, None] + 0.2 * noise / 2**0.5
            errors, cells = np.cov(values).reshape(n_cells, n_cells) / n, ("cell",) * n_cells
            sources.append(SourceGains(f"{number}", cells, ("window",) * n_cells, values.mean(axis=1), errors, n))
        effect = effect_of("window", sources)
        assert effect is not None
        missed += not effect.low <= mean <= effect.high
        shown += effect.low > 0
    what = f"pooled, tau {tau}, {n_cells} {'alike' if shared else 'each by itself'}"
    return [
        (f"{what}: 95 % interval misses the mean", {n: 100 * missed / runs}, "5"),
        (f"{what}: shows the gain of .03", {n: 100 * shown / runs}, "printed"),
    ]


def main() -> None:
    runs = runs_asked(2_000, 8)
    half, eighth = runs // 2, runs // 8
    names = [*PUBLIC, *REHEARSED, "all eight"]
    tasks = [partial(error_rows, name, runs) for name in names]
    tasks += [partial(task, half) for task in (first_rows, other_rows, held_rows)]
    tasks += [partial(made_rows, runs), partial(mixed_rows, eighth)]
    tasks += [partial(choice_rows, name, runs) for name in ("eight sources", *PUBLIC)]
    tasks.append(partial(choice_rows, "eight sources", runs, bar=0.03))
    tasks += [partial(pooled_rows, n_cells, tau, half) for n_cells in (1, 2, 3) for tau in (0.02, 0.04)]
    tasks += [partial(pooled_rows, 3, tau, half, shared=False) for tau in (0.02, 0.04)]
    tasks += [partial(list_rows, judge, max(1, runs // 5)) for judge in LISTED]
    tasks += [partial(low_rows, half, in_both=in_both) for in_both in (False, True)]
    with ProcessPoolExecutor() as pool:
        parts = pool.map(operator.call, tasks)
        errors = list(chain.from_iterable(islice(parts, len(names))))
        summary = extremes(f"error: {len(errors)} real worlds", errors, ("<= 4", "<= 6.5"))
        rows = chain(errors, summary, chain.from_iterable(parts))
        print_table(
            HEADS,
            ([what, *(f"{found[n]:.1f}" if n in found else "" for n in SIZES), wanted] for what, found, wanted in rows),
        )


if __name__ == "__main__":
    main()
