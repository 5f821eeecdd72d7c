"""How often `confirmed` is wrong, what it finds, and what the recall mark and the intervals are worth.

    python benchmarks/simulate_decision.py [RUNS]

RUNS evenings of each world (2,000 unless told; half as many of a row on power), whose queries are drawn with
replacement from real differences in nDCG@10: SciFact, NFCorpus, the eight rehearsed sources, and the queries of these
eight together. Every verdict is that of runner/decide/tiers.py; Recall@10, null gate and Judged@10 are taken as passed,
which a real evening asks besides. Seeds are fixed; Monte Carlo errors are .5 at 5 % and 1.6 at 50 %. Part of
`make simulate`.

Worlds without a gain: the cells as they are (wrong is a cell that truly gains nothing); every cell shifted to a mean of
0, with or without its ties; both mirrored, every gain a loss; and queries weighted so that every mean is 0 (tilted),
where such weights exist and leave twelve queries' worth. The made worlds are like no collection at hand: nine cells of
SD .15 that correlate by .5, with a long tail of losses.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
from measuring import runs_asked
from numpy.typing import NDArray
from worlds import (
    CLAIMS,
    REHEARSED,
    TEST_SEED,
    Floats,
    World,
    all_rehearsals,
    print_table,
    public,
    rehearsal,
    tilted,
    units,
)

from runner.decide.tiers import CellFigures, unmet_criteria
from runner.eval_set.shapes.plan import Rule
from runner.score.gain_test import FIRST_SHARE, effective_number, gain_tests
from runner.score.power import critical_t, power
from runner.score.recall_bound import recall_bounds
from runner.score.sign_flip import paired_tests

ALPHA, RULE, SIZES = 0.05, Rule(min_gain=0.02, max_recall_loss=0.02), (50, 100, 200)
FEW = 12
"""Queries' worth that weights leave at least, for a world to be tilted."""

Shares = dict[int, float]
"""Per cent of evenings, by number of queries."""


def drawn(gains: Floats, n_queries: int, runs: int, weights: Floats | None = None) -> Floats:
    """Return the differences of so many evenings, (cells, evenings, queries)."""
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    evenings: Floats = gains[:, rng.choice(gains.shape[1], (runs, n_queries), p=weights)]
    return evenings


def confirmed(evenings: Floats, first: int) -> NDArray[np.bool_]:
    """Return which cells are confirmed, (cells, evenings)."""
    n_queries, means = evenings.shape[2], evenings.mean(axis=2)
    # Where Student's t is lower than this, no p is below alpha, and nothing is left to test.
    least = 0.999 * critical_t(n_queries, ALPHA) * evenings.std(axis=2, ddof=1) / math.sqrt(n_queries)
    near = (means >= 0.0199) & (means >= least)
    found = np.zeros_like(near)
    for evening in np.flatnonzero(near.any(axis=0)):
        tests = gain_tests(units(evenings[:, evening]), first, ALPHA)
        for cell in np.flatnonzero(near[:, evening]):
            figures = CellFigures(means[cell, evening], 0.0, n_queries, tests[cell], "pass", 1.0)
            found[cell, evening] = not unmet_criteria(figures, RULE)
    return found


def wrong(gains: Floats, first: int, n_queries: int, runs: int, weights: Floats | None = None) -> float:
    """Return in how many per cent of evenings a cell is confirmed that gains nothing in truth."""
    truth = np.average(gains, axis=1, weights=weights)
    found = confirmed(drawn(gains, n_queries, runs, weights), first)
    return 100 * float(found[truth < 1e-9].any(axis=0).mean())


def level(gains: Floats) -> Floats:
    """Return every cell moved to a mean of 0."""
    return gains - gains.mean(axis=1, keepdims=True)


def level_with_ties(gains: Floats) -> Floats:
    """Return the same, moved on the queries alone on which the cell differs."""
    differs = gains != 0
    return gains - differs * (gains.sum(axis=1) / np.maximum(1, differs.sum(axis=1)))[:, None]


def real_worlds() -> dict[str, World]:
    worlds = {"SciFact": public("scifact"), "NFCorpus": public("nfcorpus")}
    return worlds | {source: rehearsal(source) for source in REHEARSED} | {"all eight": all_rehearsals()}


def null_worlds(gains: Floats) -> dict[str, tuple[Floats, Floats | None]]:
    """Return the worlds in which nothing gains, each with the weights of its queries."""
    worlds: dict[str, tuple[Floats, Floats | None]] = {
        "as they are": (gains, None),
        "shifted": (level(gains), None),
        "ties kept": (level_with_ties(gains), None),
        "mirrored": (-level(gains), None),
        "mirrored, ties kept": (-level_with_ties(gains), None),
    }
    try:
        weights = tilted(gains, np.zeros(len(gains)))
    except ValueError:
        return worlds
    if effective_number(weights.tolist()) < FEW:
        return worlds
    return worlds | {"tilted": (gains, weights), "tilted and mirrored": (-gains, weights)}


def errors(runs: int) -> dict[str, dict[str, Shares]]:
    """Return the error of `confirmed` in every real world, by collection and kind of world."""
    return {
        name: {
            kind: {n: wrong(gains, world.first, n, runs, weights) for n in SIZES[:2]}
            for kind, (gains, weights) in null_worlds(world.gains).items()
        }
        for name, world in real_worlds().items()
    }


def made(shape: float, ties: float, n_queries: int, runs: int) -> Floats:
    """Return evenings of nine cells that gain a little on most queries and lose much on few, correlated by .5."""
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    own, shared = (rng.gamma(shape, size=(cells, runs, n_queries)) - shape for cells in (9, 1))
    # Scaled to a SD of .15 after ties, each query's share common to all cells.
    noise: Floats = (own + shared) / (2 * shape * (1 - ties)) ** 0.5
    return -0.15 * noise * (rng.random((9, runs, n_queries)) >= ties)


def mixed(runs: int) -> list[tuple[str, Shares]]:
    """Return the error of the weighted test if the plan's mix counts all kinds of query alike, or one of them for half.

    Cells are moved to a weighted mean of 0; so many queries are drawn that they are worth 50 and 100 of equal weight.
    """
    found = []
    for name, world in real_worlds().items():
        counts = Counter(world.kinds)
        mixes = {"alike": dict.fromkeys(counts, 1 / max(1, len(counts)))}
        for kind, count in counts.items():
            rest = 0.5 / (len(world.kinds) - count)
            mixes[f"half {kind}"] = {other: 0.5 if other == kind else rest * counts[other] for other in counts}
        for mix, parts in mixes.items() if counts else ():
            weights = np.array([parts[kind] / counts[kind] for kind in world.kinds])
            worth = effective_number(weights.tolist()) / len(weights)
            # A mix that leaves a quarter would have somebody judge four times as much.
            if worth >= 0.25:
                found.append((f"{name}, {mix}", weighted_errors(world, weights, worth, runs)))
    return found


def weighted_errors(world: World, weights: Floats, worth: float, runs: int) -> Shares:
    """Return in how many per cent of evenings a weighted gain is confirmed that is none."""
    gains, shares = world.gains - np.average(world.gains, axis=1, weights=weights)[:, None], {}
    for size in SIZES[:2]:
        n_queries = math.ceil(size / worth)
        rng = np.random.default_rng(np.random.PCG64(n_queries))
        count = 0
        for _ in range(runs):
            queries = rng.integers(gains.shape[1], size=n_queries)
            own = weights[queries].tolist()
            means, squares = (np.average(gains[:, queries] ** power, axis=1, weights=own) for power in (1, 2))
            u, n = means / np.sqrt(np.maximum(squares, 1e-18)), effective_number(own)
            near = u * math.sqrt(n - 1) >= 0.999 * critical_t(n, ALPHA) * np.sqrt(np.maximum(0.0, 1 - u * u))
            if not (near & (means >= 0.0199)).any():
                continue
            tests = gain_tests(units(gains[:, queries]), world.first, ALPHA, own)
            figures = (CellFigures(mean, 0.0, size, test, "pass", 1.0) for mean, test in zip(means, tests, strict=True))
            count += any(not unmet_criteria(each, RULE) for each in figures)
        shares[size] = 100 * count / runs
    return shares


def found_in(world: World, place: int, gain: float, first: int, runs: int, *, recall: bool = False) -> Shares:
    """Return how often the cell is confirmed that alone gains in truth; with `recall` it keeps Recall@10 besides."""
    gains, shares = level(world.gains), {}
    gains[place] += gain
    for n in SIZES:
        found = confirmed(drawn(gains, n, runs), first)[place]
        if recall:
            # The same queries once more: one seed draws both.
            changes = drawn(level(world.recalls)[[place]], n, runs)[0].mean(axis=1)
            found &= np.round(changes, 4) >= -RULE.max_recall_loss
        shares[n] = 100 * float(found.mean())
    return shares


def said_of(world: World, place: int, gain: float, share: float) -> Shares:
    """Return what the plan says of it beforehand, at the cell's own scatter."""
    sd = float(world.gains[place].std())
    return {n: 100 * power(n, gain, sd, share * ALPHA, bar=RULE.min_gain) for n in SIZES}


def without(world: World, part: str) -> World:
    """Return the world without the cells whose name has this in it."""
    rows = [row for row, cell in enumerate(world.cells) if part not in cell]
    return World([world.cells[row] for row in rows], world.first, world.gains[rows], world.recalls[rows], world.kinds)


def averaged(shares: list[Shares]) -> Shares:
    return {n: float(np.mean([each[n] for each in shares])) for n in SIZES}


def power_claims(runs: int) -> Iterator[list[object]]:
    """Yield how often true gains are confirmed."""
    sources = [rehearsal(source) for source in REHEARSED]
    asked = (
        ("alone in its step", 1, False, "53 / 82"),
        ("alone, Recall@10 asked too (truly the same)", 1, True, ""),
        ("with a second cell beside it", 2, False, ""),
    )
    for what, first, recall, wanted in asked:
        shares = averaged([found_in(world, 0, 0.05, first, runs, recall=recall) for world in sources])
        yield claim(f"first cell +.05, {what}", shares, wanted)
    yield claim(
        "the same alone, as said beforehand", averaged([said_of(world, 0, 0.05, FIRST_SHARE) for world in sources])
    )
    # Quantised cells are the near-copies of the baseline.
    plain, copies = without(all_rehearsals(), "@"), all_rehearsals()
    for world, what in ((plain, "any other, hybrid +.10"), (copies, "the same beside two near-copies of the baseline")):
        place = next(row for row, cell in enumerate(world.cells) if cell.startswith("rrf"))
        yield claim(what, found_in(world, place, 0.1, 1, runs), "20 (50 queries) / 52 / 90")
        others = len(world.cells) - 1
        yield claim("... as said beforehand", said_of(world, place, 0.1, (1 - FIRST_SHARE) / others))


def claim(what: str, shares: Shares, wanted: str = "") -> list[object]:
    return [what, *(f"{shares[n]:.1f}" if n in shares else "" for n in SIZES), wanted]


def held(runs: int) -> Iterator[list[object]]:
    """Yield how often the intervals of all cells hold the truth, and how often the mark of recall is wrong."""
    world = all_rehearsals()
    # Near-copies must keep their ties: moved, they would be a constant that does not scatter.
    gains, recall = level_with_ties(world.gains), world.recalls[:1]
    few, ends = max(1, runs // 4), {}
    for n in SIZES[:2]:
        both = (
            paired_tests(units(gains[:, at]), draws=999, alpha=ALPHA, seed=TEST_SEED) for at in queries(gains, n, few)
        )
        ends[n] = 100 * sum(all(t.simultaneous[0] <= 0 <= t.simultaneous[1] for t in tests) for tests in both) / few
    yield claim("all simultaneous intervals hold the truth", ends, "95")
    weights, marks = tilted(recall, np.array([-RULE.max_recall_loss])), {}
    for n in SIZES:
        rows = units(drawn(recall, n, runs, weights)[0])
        bounds = recall_bounds(rows, RULE.max_recall_loss, alpha=ALPHA)
        marks[n] = 100 * sum(bound.state == "shown not to fall" for bound in bounds) / runs
    yield claim("Recall@10 falls by .02 and is 'shown not to fall'", marks, "<= 5")


def queries(gains: Floats, n_queries: int, runs: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(np.random.PCG64(n_queries))
    return (rng.integers(gains.shape[1], size=n_queries) for _ in range(runs))


def main() -> None:
    runs = runs_asked(2_000, 2)
    found = errors(runs)
    kinds = list(found["all eight"])
    cells = [
        [name, *(" / ".join(f"{share:.1f}" for share in shares.get(kind, {}).values()) for kind in kinds)]
        for name, shares in found.items()
    ]
    print_table("A cell confirmed that gains nothing: per cent of evenings of 50 / 100 queries", ["", *kinds], cells)
    rows = [shares for worlds in found.values() for shares in worlds.values()]
    by_size = {n: [each[n] for each in rows] for n in SIZES[:2]}
    mixes = mixed(max(1, runs // 8))
    worst = max(mixes, key=lambda each: max(each[1].values()))
    skewed = [
        {n: 100 * float(confirmed(made(shape, ties, n, runs), 1).any(axis=0).mean()) for n in SIZES[:2]}
        for shape, ties in ((1.0, 0.0), (0.25, 0.0), (1.0, 0.5))
    ]
    half = max(1, runs // 2)
    claims = [
        claim(
            f"error of confirmed, {len(rows)} real worlds: mean",
            {n: float(np.mean(by_size[n])) for n in by_size},
            "<= 4",
        ),
        claim("... largest", {n: max(by_size[n]) for n in by_size}, "<= 6.5"),
        claim("... made skewed worlds: largest", {n: max(each[n] for each in skewed) for n in by_size}, "printed"),
        claim(
            f"... with weights, {len(mixes)} mixes of kinds: mean",
            {n: float(np.mean([each[n] for _, each in mixes])) for n in by_size},
            "printed",
        ),
        claim(f"... largest ({worst[0]})", {n: max(each[n] for _, each in mixes) for n in by_size}, "printed"),
    ]
    print_table("What a claim costs: per cent of evenings", CLAIMS, [*claims, *power_claims(half), *held(half)])


if __name__ == "__main__":
    main()
