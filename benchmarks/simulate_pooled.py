"""How often pooling over sources shows a gain that is there, and how often one that is not.

    python benchmarks/simulate_pooled.py [RUNS]

RUNS (1,000 unless told) times eight sources of 25 queries with one structural cell each: true gains scatter by TAU
about the mean gain, differences per query by the SD. "Shown" is a 95 % interval above 0, an error of 2.5 % if the
posterior is calibrated. Beside it: one source's own t interval, and how often its shrunk gain's lies above 0.
Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections.abc import Iterator

import numpy as np
from measuring import runs_asked
from worlds import percent, print_table

from runner.score.power import t_quantile
from runner.tools.pooled.model import SourceGains, pool

SOURCES, QUERIES, TAU, SHOWN = 8, 25, 0.02, 0.975
BAR = t_quantile(SHOWN, QUERIES - 1)
MEANS, SDS = (0.0, 0.03, 0.05), (0.20, 0.25)


def sources(rng: np.random.Generator, mean: float, sd: float) -> list[SourceGains]:
    """Return eight sources with one cell each."""
    found = []
    for number in range(SOURCES):
        differences = mean + TAU * rng.standard_normal() + sd * rng.standard_normal(QUERIES)
        error = np.array([[differences.var(ddof=1) / QUERIES]])
        gains = np.array([differences.mean()])
        found.append(SourceGains(f"source {number}", ("cell",), (("structural",),), gains, error, QUERIES))
    return found


def rows(runs: int) -> Iterator[list[str]]:
    for mean in MEANS:
        for sd in SDS:
            rng = np.random.default_rng(np.random.PCG64(2026))
            together = pooled = alone = 0
            for _ in range(runs):
                drawn = sources(rng, mean, sd)
                found = pool(drawn)
                together += found.effects["structural"].p_above_0 > SHOWN
                pooled += sum(cell.pooled.p_above_0 > SHOWN for cell in found.cells)
                alone += sum(cell.gain / cell.standard_error > BAR for cell in found.cells)
            # The errors of the last two take sources as independent.
            shares = percent(together, runs), percent(pooled, runs * SOURCES), percent(alone, runs * SOURCES)
            yield [f"{mean:+.2f}", f"{sd:.2f}", *shares]


def main() -> None:
    runs = runs_asked(1000, 3)
    title = f"{SOURCES} sources of {QUERIES} queries, true gains scatter by {TAU}; per cent of {runs:,} runs each"
    heads = ("mean gain", "SD", "shown over all", "a source shown, pooled", "a source shown alone")
    print_table(title, heads, rows(runs))


if __name__ == "__main__":
    main()
