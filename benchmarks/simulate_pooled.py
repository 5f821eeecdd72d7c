"""How often pooling over sources misses what a kind of cell truly gains, and how often it shows a gain.

    python benchmarks/simulate_pooled.py [RUNS]

RUNS (1,000 unless told) times eight sources of 25 queries with one, two or three cells of a kind, whose true gains
scatter by TAU about the mean gain: each by itself, or as one, since what suits a source suits all its cells of a kind.
Differences per query have the SD, half of their variance shared by a source's cells. "Missed" is a 95 % interval
without the true mean, an error of 5 % if it is calibrated; "shown" is one above 0. Part of `make simulate`. Seeds are
fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections.abc import Iterator
from itertools import product

import numpy as np
from measuring import runs_asked
from worlds import percent, print_table

from runner.score.pooling import SourceGains, effect_of

SOURCES, QUERIES, SD = 8, 25, 0.2
MEAN, CELLS, TAUS = 0.03, (1, 2, 3), (0.02, 0.04)


def sources(rng: np.random.Generator, n_cells: int, tau: float, *, shared: bool) -> list[SourceGains]:
    """Return eight sources with so many cells of a kind."""
    found = []
    for number in range(SOURCES):
        own = tau * rng.standard_normal(1 if shared else n_cells)
        noise = rng.standard_normal((n_cells, QUERIES)) + rng.standard_normal(QUERIES)
        differences = MEAN + (own * np.ones(n_cells))[:, None] + SD * noise / 2**0.5
        errors = np.cov(differences).reshape(n_cells, n_cells) / QUERIES
        cells, kinds = ("cell",) * n_cells, ("window",) * n_cells
        found.append(SourceGains(f"source {number}", cells, kinds, differences.mean(axis=1), errors, QUERIES))
    return found


def rows(runs: int) -> Iterator[list[object]]:
    for n_cells, shared, tau in product(CELLS, (False, True), TAUS):
        if n_cells == 1 and not shared:
            continue  # a cell by itself shares with nobody
        rng = np.random.default_rng(np.random.PCG64(2026))
        missed = shown = 0
        for _ in range(runs):
            effect = effect_of("window", sources(rng, n_cells, tau, shared=shared))
            assert effect is not None
            missed += not effect.low <= MEAN <= effect.high
            shown += effect.low > 0
        yield [n_cells, "as one" if shared else "each", tau, percent(missed, runs), percent(shown, runs)]


def main() -> None:
    runs = runs_asked(1000, 3)
    title = f"A mean gain of {MEAN} over {SOURCES} sources of {QUERIES} queries; per cent of {runs:,} runs each"
    heads = ("cells a source", "scatter", "tau", "95 % interval missed it", "a gain shown")
    print_table(title, heads, rows(runs))


if __name__ == "__main__":
    main()
