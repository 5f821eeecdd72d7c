"""How often the decision is wrong, how often it answers, and what the recall mark and the intervals are worth.

    python benchmarks/simulate_decision.py [RUNS]

RUNS evenings of each kind (2,000 unless told), 999 draws a test where a real run takes 100,000. Evenings draw their
queries from the real differences of eight cells to `minilm-l6-v2 x whole_doc` on SciFact, nDCG@10 and Recall@10
together. The first challenger is another chunker under the baseline's encoder (SD .16 per query); the others are
hybrids, BM25 and other encoders (SD .12 to .41). The null gate and Judged@10 are taken as passed. Seeds are fixed; in
brackets stand Monte Carlo standard errors. Part of `make simulate`, whose tables docs/statistics.md explains.

The worlds in which no cell gains: systems permuted (each query's scores dealt out to the cells at random); tilted
(queries weighted so that every mean is 0, with the skewness that real differences have); tied (as tilted, half of the
queries without a difference); mirrored (as tilted, every gain turned into a loss and every loss into a gain); and three
made ones that no collection at hand is like, of nine cells with SD .15: skewed down (sums of two exponential parts,
skewness 1.4, the tail downwards), strongly skewed down (2.8), and tied and skewed down (half of them 0).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from measuring import runs_asked, sized
from worlds import TEST_SEED, Floats, differences, percent, print_table, scores, tilted, units

from runner.base.records import Ints
from runner.decide.tiers import CellFigures, meets_criterion_5, unmet_criteria
from runner.eval_set.shapes.plan import Rule
from runner.score.comparison import mean
from runner.score.gain_test import gain_tests
from runner.score.recall_bound import recall_bounds
from runner.score.sign_flip import paired_tests

DRAWS, ALPHA, SIZES = sized(999, 199), 0.05, (25, 50, 100)
RULE = Rule(min_gain=0.02, max_recall_loss=0.02)


class Evening(NamedTuple):
    """Differences in nDCG@10 and Recall@10, (cells, queries) each, the first challenger first."""

    gains: Ints
    recall: Ints


Draw = Callable[[np.random.Generator, int], Evening]


def real(means: Floats | None = None, *, ties: float = 0.0, sign: int = 1) -> Draw:
    """Return evenings of real queries, weighted so that cells have these mean gains; a share of them made ties."""
    gains, recall = sign * differences("scifact"), sign * differences("scifact", "recall10")
    weights = None if means is None else tilted(gains, means)

    def draw(rng: np.random.Generator, n_queries: int) -> Evening:
        chosen = rng.choice(gains.shape[1], n_queries, p=weights)
        kept = rng.random(n_queries) >= ties
        return Evening(units(gains[:, chosen] * kept), units(recall[:, chosen] * kept))

    return draw


def permuted(rng: np.random.Generator, n_queries: int) -> Evening:
    """Return every query's scores dealt out to the cells at random."""
    both = [np.array(list(scores("scifact", measure).values())) for measure in ("ndcg10", "recall10")]
    chosen = rng.integers(both[0].shape[1], size=n_queries)
    # One deal a query, the same for both measures.
    order = rng.permuted(np.tile(np.arange(len(both[0]))[:, None], n_queries), axis=0)
    dealt = [np.take_along_axis(values[:, chosen], order, axis=0) for values in both]
    return Evening(*(units(values[1:] - values[0]) for values in dealt))


def skewed(shape: float, *, ties: float = 0.0) -> Draw:
    """Return cells that gain a little on most queries and lose much on few, correlated by .5."""

    def draw(rng: np.random.Generator, n_queries: int) -> Evening:
        def noise() -> Floats:
            own, shared = (rng.gamma(shape, size=(rows, n_queries)) - shape for rows in (9, 1))
            # Scaled to variance 1 after ties, each query's share common to all cells.
            return (own + shared) / (2 * shape * (1 - ties)) ** 0.5

        kept = rng.random((9, n_queries)) >= ties
        gains = -0.15 * noise() * kept
        return Evening(units(gains), units(0.6 * gains - 0.8 * 0.15 * noise() * kept))

    return draw


def means_of(gain: float, n_cells: int = 8) -> Floats:
    """Return a gain of the first challenger alone."""
    return np.array([gain] + [0.0] * (n_cells - 1))


NULLS: dict[str, Draw] = {
    "systems permuted": permuted,
    "tilted": real(means_of(0.0)),
    "tied": real(means_of(0.0), ties=0.5),
    "mirrored": real(means_of(0.0), sign=-1),
    "skewed down": skewed(1.0),
    "strongly skewed down": skewed(0.25),
    "tied and skewed down": skewed(1.0, ties=0.5),
}


def confirmed(evening: Evening, first: int, seed: int) -> list[bool]:
    """Return which cells are."""
    p = [one.p for one in gain_tests(evening.gains, first, draws=DRAWS, seed=seed)]
    figures = map(mean, evening.gains), map(mean, evening.recall), p
    return [not unmet_criteria(CellFigures(*each, "pass", 1.0), RULE, ALPHA) for each in zip(*figures, strict=True)]


def evenings(draw: Draw, n_queries: int, runs: int) -> list[tuple[int, Evening]]:
    """Return the evenings of a world, each with the seed of its tests."""
    rngs = (np.random.default_rng(np.random.PCG64(seed)) for seed in range(runs))
    return [(seed + TEST_SEED, draw(rng, n_queries)) for seed, rng in enumerate(rngs)]


def error_rows(runs: int) -> Iterator[list[object]]:
    """Yield how often there is a candidate, and a confirmed cell, where none gains; how often intervals hold 0."""
    for name, draw in NULLS.items():
        for n_queries in SIZES:
            ends: Counter[str] = Counter()
            for seed, evening in evenings(draw, n_queries, runs):
                pairs = zip(map(mean, evening.gains), map(mean, evening.recall), strict=True)
                ends["candidate"] += any(meets_criterion_5(*pair, RULE) for pair in pairs)
                ends["confirmed"] += any(confirmed(evening, 1, seed))
                ends["one step"] += any(confirmed(evening, 0, seed))
                tests = paired_tests(evening.gains, draws=DRAWS, alpha=ALPHA, seed=seed)
                ends["hold 0"] += all(test.simultaneous[0] <= 0 <= test.simultaneous[1] for test in tests)
            shares = (percent(ends[what], runs) for what in ("candidate", "confirmed", "one step", "hold 0"))
            yield [name, n_queries, *shares]


def power_rows(runs: int) -> Iterator[list[object]]:
    """Yield how often a true gain is confirmed, in the first challenger and in one of the others."""
    for gain in (0.03, 0.05, 0.1):
        for n_queries in (*SIZES, 200):
            drawn = evenings(real(means_of(gain)), n_queries, runs)
            alone = sum(confirmed(evening, 1, seed)[0] for seed, evening in drawn)
            among = sum(confirmed(evening, 0, seed)[0] for seed, evening in drawn)
            wrong = sum(any(confirmed(evening, 1, seed)[1:]) for seed, evening in drawn)
            yield [f"+{gain:g}", n_queries, *(percent(count, runs) for count in (alone, among, wrong))]


def recall_rows(runs: int) -> Iterator[list[object]]:
    """Yield how often Recall@10 is said not to fall by .02, of a cell that truly changes by so much."""
    values = differences("scifact", "recall10")[:1]
    for change in (-0.04, -0.02, 0.0, 0.02):
        weights = tilted(values, np.array([change]))
        for n_queries in (*SIZES, 200, 400):
            marks = 0
            for seed in range(runs):
                chosen = np.random.default_rng(np.random.PCG64(seed)).choice(values.shape[1], n_queries, p=weights)
                (bound,) = recall_bounds(units(values[:, chosen]), RULE.max_recall_loss, alpha=ALPHA)
                marks += bound.state == "shown not to fall"
            yield [f"{change:+g}", n_queries, percent(marks, runs)]


def main() -> None:
    runs = runs_asked(2_000, 2)
    heads = ["world", "queries", "a candidate", "a cell confirmed", "the same with no first challenger"]
    heads.append("all simultaneous intervals hold 0")
    print_table("No cell gains: per cent of evenings with", heads, error_rows(runs))
    heads = ["true gain", "queries", "as first challenger", "as one of eight", "another cell confirmed"]
    print_table("One cell gains: per cent of evenings in which it is confirmed", heads, power_rows(runs))
    title = "Recall@10 is shown not to fall by .02: per cent of evenings"
    print_table(title, ["true change", "queries", "shown"], recall_rows(runs))


if __name__ == "__main__":
    main()
