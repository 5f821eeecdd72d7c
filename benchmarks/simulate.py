"""`make simulate`: how often the decision errs, what it finds and what it loses, in tables (docs/statistics.md).

    python benchmarks/simulate.py [RUNS]

RUNS evenings a figure (2,000 unless told; half of them for power, fewer where a row says so), on all cores. Queries are
drawn with replacement from real differences: SciFact, NFCorpus, eight rehearsed sources, and these eight together.
Every verdict is that of runner/decide/tiers.py; null gate, Judged@10 and second readings are taken as passed, which a
real evening asks besides, and Recall@10 unless a row says otherwise. Seeds are fixed. Monte Carlo errors of 2,000
evenings are .5 at 5 % and 1.1 at 50 %.

The default plan names two cells first, the sum and the structural chunks, before nine others; the sum is moved to no
change of Recall@10. Fewer than nine others are filled up with cells that equal the baseline, which take their share of
alpha. Near-copies stand in no world.

Worlds without a gain: the cells as they are (wrong is a cell that truly gains nothing); every cell shifted to a mean of
0, with or without its ties; both mirrored, every gain a loss; and queries weighted so that every mean is 0 (tilted),
where such weights exist and leave twelve queries' worth. The made worlds are like no collection at hand: nine cells of
SD .15 that correlate by .5, with a long tail of losses.

`recommended`: a rehearsed source has the prior that the seven others make. Loss is what the best choice is worth more
than the recommended one, the cost of a switch (.02) counted in both, whatever expected gain is asked for. A sum's true
gain is drawn from its prior, and Recall@10 rises alike (by .8 of it over 87 cells of the records). Where all cells are
worse, their true gains are drawn from an exponential of mean -.02.

Pooled: eight sources of 25 queries and two cells, whose true gains scatter by tau about +.03, alike in one source;
differences have a SD of .2, half of their variance shared by a source's cells.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain, islice

import numpy as np
import yaml
from measuring import runs_asked
from numpy.typing import NDArray
from simulate_judges import LISTED, list_rows, low_rows
from worlds import (
    PUBLIC,
    REHEARSED,
    REHEARSED_BASELINE,
    TEST_SEED,
    Floats,
    Row,
    World,
    all_rehearsals,
    as_default,
    drawn,
    drawn_by_kind,
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
from runner.score.power import least_gain, power
from runner.score.recall_bound import recall_bounds, recall_state
from runner.score.sign_flip import paired_tests

SIZES, TESTED, CHOSEN = (25, 50, 100, 200), (50, 100), (25, 50)
HEADS = ("per cent of evenings", f"{SIZES[0]} queries", *map(str, SIZES[1:]), "wanted")
PLAN = Plan.model_validate(yaml.safe_load(default_plan_text(SOURCES["demo"], rehearsal=False)))
RULE, ALPHA = PLAN.rule, PLAN.significance.alpha
ASKED = (0.02, 0.025, 0.03, 0.04)
"""What `recommended` may ask of an expected gain: the plan's `switching_cost`."""
CHOICES = (
    "`recommended` asks for more than",
    "loss x 1000, 25 queries",
    "50",
    "all cells equal: switches in %, 50",
    "all worse: switches in %, 50",
)
LEAST_T = 1.64
"""No p is below .05 where t is lower, whatever its degrees of freedom."""


def confirmed(evenings: Floats, first: int, weights: Floats | None = None) -> NDArray[np.bool_]:
    """Return which cells are confirmed, (cells, evenings), in (cells, evenings, queries) of these weights."""
    weights = np.ones(evenings.shape[2]) if weights is None else weights
    shares, n = weights / weights.sum(), effective_number(weights.tolist())
    means, squares = (evenings**power @ shares for power in (1, 2))
    s = (n * means / np.sqrt(np.maximum(squares, 1e-18)) - 1) / (n + 1)
    near = (means >= RULE.min_gain - 1e-4) & (s * np.sqrt(n / np.maximum(1 - s * s, 1e-18)) >= LEAST_T)
    found: NDArray[np.bool_] = np.zeros(near.shape, bool)
    for evening in np.flatnonzero(near.any(axis=0)):
        tests = gain_tests(units(evenings[:, evening]), first, ALPHA, weights.tolist())
        for cell in np.flatnonzero(near[:, evening]):
            figures = CellFigures(means[cell, evening], 0.0, n, tests[cell], "pass", 1.0)
            found[cell, evening] = not unmet_criteria(figures, RULE)
    return found


def share(found: NDArray[np.bool_]) -> float:
    """Return how many per cent of evenings have any of these cells confirmed."""
    return 100 * float(found.any(axis=0).mean())


def error_rows(real: World, name: str, runs: int) -> list[Row]:
    """Return how often a cell of a real world is confirmed that gains nothing in truth."""
    rows: list[Row] = []
    for kind, (gains, weights) in null_worlds(real.gains).items():
        nothing = np.average(gains, axis=1, weights=weights) < 1e-9
        found = {n: share(confirmed(drawn(gains, n, runs, weights), real.first)[nothing]) for n in TESTED}
        rows.append((f"error: {name}, {kind}", found, ""))
    return rows


def default_error_rows(runs: int) -> list[Row]:
    """Return the same of the rehearsed sources as a default plan has them."""
    rows = [row for name in (*REHEARSED, "all eight") for row in error_rows(as_default(world(name)), name, runs)]
    return extremes("error: default plan, {} of these worlds", rows, ("<= 4", "<= 6.5"))


def extremes(what: str, rows: list[Row], wanted: tuple[str, str]) -> list[Row]:
    """Return the mean and the largest of rows, whose number `what` has, without cells as they are, which may gain."""
    rows = [row for row in rows if not row[0].endswith(", as they are")]
    what = what.format(len(rows))
    found = [{n: float(fold([row[1][n] for row in rows])) for n in TESTED} for fold in (np.mean, np.max)]
    return [(f"{what}: mean", found[0], wanted[0]), (f"{what}: largest", found[1], wanted[1])]


def made_rows(runs: int) -> list[Row]:
    worlds = {"skewness -1.4": (1.0, 0.0), "-2.8": (0.25, 0.0), "-1.4, half of the differences 0": (1.0, 0.5)}
    return [
        (f"error: made skewed world, {name}", {n: share(confirmed(made(*form, n, runs), 1)) for n in TESTED}, "")
        for name, form in worlds.items()
    ]


def mixed_rows(runs: int) -> list[Row]:
    """Return the error of the weighted test if the plan's mix counts all kinds of query alike, or one of them for half.

    Cells are moved to a weighted mean of 0.
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
            # A mix that leaves a quarter would have somebody judge four times as much.
            if effective_number(weights.tolist()) < len(weights) / 4:
                continue
            gains = real.gains - np.average(real.gains, axis=1, weights=weights)[:, None]
            drawings = {n: drawn_by_kind(gains, real.kinds, parts, n, runs) for n in TESTED}
            found = {n: share(confirmed(evenings, real.first, own)) for n, (evenings, own) in drawings.items()}
            rows.append((f"{name}, {mix}", found, ""))
    return extremes("error: with weights, {} mixes of kinds of query", rows, ("", ""))


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


def promised(real: World, runs: int, *, recall: bool) -> dict[int, float]:
    """Return how often the first cell is confirmed that gains what so many queries are said to show with 80 % power."""
    sd = float(real.gains[0].std())
    gains = {n: least_gain(n, sd, FIRST_SHARE * ALPHA, bar=RULE.min_gain) for n in TESTED}
    return {n: found_in(real, 0, gain, 1, runs, recall=recall)[n] for n, gain in gains.items()}


def averaged(shares: list[dict[int, float]]) -> dict[int, float]:
    return {n: float(np.mean([each[n] for each in shares])) for n in shares[0]}


def power_rows(runs: int) -> list[Row]:
    """Return how often a cell that gains is confirmed, over the eight sources."""
    sources, rows = [rehearsal(source) for source in REHEARSED], []
    first, confirming = "power: first cell +.05, alone in its step", [each.only([0]) for each in sources]
    for what, worlds, recall, wanted in (
        (first, sources, False, ">= 53 / 82"),
        ("power: the same, Recall@10 asked too (truly unchanged)", sources, True, ""),
        ("power: the same cell in a version that confirms it", confirming, False, ""),
    ):
        rows.append((what, averaged([found_in(each, 0, 0.05, 1, runs, recall=recall) for each in worlds]), wanted))
    told = "power: first cell, at the gain promised to show in 80"
    rows.append((told, averaged([promised(each, runs, recall=False) for each in sources]), ""))
    rows.append((f"{told}, Recall@10 asked too", averaged([promised(each, runs, recall=True) for each in sources]), ""))
    said = averaged([said_of(each, 0, 0.05, FIRST_SHARE) for each in sources])
    rows.append(("power: first cell +.05, as said beforehand", said, ""))
    defaults = [as_default(each) for each in sources]
    for what, opening, gain in (
        ("sum, one of two first cells, +.05", "sum(", 0.05),
        ("structural chunks, the other one, +.05", REHEARSED_BASELINE.split()[0], 0.05),
        ("any other cell, BM25 re-ranked, +.10", "bm25>", 0.1),
    ):
        able = [each for each in defaults if each.has(opening)]
        found = averaged([found_in(each, each.place(opening), gain, 2, runs) for each in able])
        rows.append((f"power, default plan: {what}", found, ""))
    real = all_rehearsals()
    other, what = real.place("sum(bm25,minilm-l6-v2) x fixed_token"), "any other cell, a sum +.10"
    part = (1 - FIRST_SHARE) / (len(real.cells) - 1)
    rows.append((f"power: {what}", found_in(real, other, 0.1, 1, runs), ">= 20 / 52 / 90"))
    rows.append((f"power: {what}, as said beforehand", said_of(real, other, 0.1, part), ""))
    return rows


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
        bounds = recall_bounds(units(drawn(recall, n, runs, weights)[0]), alpha=ALPHA)
        marks[n] = (
            100 * sum(recall_state(bound, RULE.max_recall_loss) == "shown not to fall" for bound in bounds) / runs
        )
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


def choice_rows(runs: int, *, default: bool) -> list[list[str]]:
    """Return what `recommended` loses, and how often it switches to a cell that is no better, by what it asks for."""
    places = []
    for source in REHEARSED:
        real, plan = rehearsal(source), plan_of(REHEARSED_BASELINE, without=source)
        places.append((as_default(real) if default else real, plan))
    columns = [_evenings(places, "as they are", n, runs) for n in CHOSEN]
    columns += [_evenings(places, kind, CHOSEN[-1], runs) for kind in ("equal", "worse")]
    rows = []
    for row, asked in enumerate(ASKED):
        lost = [f"{1000 * found[row][0]:.1f}" for found in columns[:2]]
        switched = [f"{100 * found[row][1]:.1f}" for found in columns[2:]]
        rows.append([f"{asked:g}, {'default plan, with a sum' if default else 'plans as recorded'}", *lost, *switched])
    return rows


def _evenings(places: list[tuple[World, Plan]], kind: str, n_queries: int, runs: int) -> list[list[float]]:
    """Return mean loss and share of switches, by what is asked, under the true gains of the kind of world."""
    rng, found = np.random.default_rng(np.random.PCG64(n_queries)), np.zeros((len(ASKED), 2))
    for number in range(runs):
        real, plan = places[number % len(places)]
        own, recalls = real.gains.mean(axis=1), real.recalls if kind == "as they are" else level(real.recalls)
        at = rng.integers(real.gains.shape[1], size=n_queries)
        changes, truth = recalls[:, at].mean(axis=1), np.zeros(len(own))
        if kind == "as they are":
            sums = np.array([cell.startswith("sum(") for cell in real.cells])
            believed = plan.prior.kinds["sum"]
            truth = np.where(sums, rng.normal(believed.mean, believed.sd), own)
            changes += sums * truth
        elif kind == "worse":
            truth = -rng.exponential(0.02, len(own))
        gains = real.gains[:, at] + (truth - own)[:, None]
        eligible = {
            cell: expected_gain(cell, units(gains[row]), plan)
            for row, cell in enumerate(real.cells)
            if meets_criterion_5(float(gains[row].mean()), float(changes[row]), plan.rule)
        }
        worth = {plan.baseline: 0.0, **dict(zip(real.cells, truth - PLAN.switching_cost, strict=True))}
        for row, asked in enumerate(ASKED):
            choice = greatest_gain(eligible, eligible, plan.model_copy(update={"switching_cost": asked}))
            found[row] += max(worth.values()) - worth[choice], choice != plan.baseline
    return (found / runs).tolist()


def pooled_rows(tau: float, runs: int) -> list[Row]:
    """Return how often pooling misses what a kind of cell truly gains, and how often it shows the gain."""
    mean, n, rng, missed, shown = 0.03, 25, np.random.default_rng(np.random.PCG64(2026)), 0, 0
    for _ in range(runs):
        sources = []
        for number in range(8):
            noise = rng.standard_normal((2, n)) + rng.standard_normal(n)
            values = mean + tau * rng.standard_normal() + 0.2 * noise / 2**0.5
            cells, kinds = ("one", "other"), ("window", "window")
            sources.append(SourceGains(f"{number}", cells, kinds, values.mean(axis=1), np.cov(values) / n, n))
        effect = effect_of("window", sources)
        assert effect is not None
        missed += not effect.low <= mean <= effect.high
        shown += effect.low > 0
    return [
        (f"pooled, tau {tau}: 95 % interval misses the mean", {n: 100 * missed / runs}, "5"),
        (f"pooled, tau {tau}: shows the gain of .03", {n: 100 * shown / runs}, ""),
    ]


def table(rows: Iterable[Row]) -> Iterator[list[str]]:
    """Yield rows as they are printed."""
    for what, found, wanted in rows:
        yield [what, *(f"{found[n]:.1f}" if n in found else "" for n in SIZES), wanted]


def main() -> None:
    runs = runs_asked(2_000, 8)
    half, names = runs // 2, [*PUBLIC, *REHEARSED, "all eight"]
    tasks = [partial(error_rows, world(name), name, runs) for name in names]
    tasks += [partial(default_error_rows, runs), partial(made_rows, runs), partial(mixed_rows, runs)]
    tasks += [partial(power_rows, half), partial(held_rows, half)]
    tasks += [partial(pooled_rows, tau, half) for tau in (0.02, 0.1, 0.2)]
    tasks += [partial(list_rows, judge, max(1, runs // 5)) for judge in LISTED]
    tasks += [partial(low_rows, half, in_both=in_both) for in_both in (False, True)]
    choices = [partial(choice_rows, 8 * runs, default=default) for default in (False, True)]
    with ProcessPoolExecutor() as pool:
        parts, chosen = pool.map(operator.call, tasks), pool.map(operator.call, choices)
        errors = list(chain.from_iterable(islice(parts, len(names))))
        summary = extremes("error: {} worlds where no cell gains", errors, ("<= 4", "<= 6.5"))
        print_table(HEADS, table(chain(summary, chain.from_iterable(parts))))
        print()
        print_table(CHOICES, [*chain.from_iterable(chosen), ["wanted", "<= 7.5", "<= 4.5", "<= 25", "<= 12"]])
        print()
        print_table(HEADS, table(errors))


if __name__ == "__main__":
    main()
