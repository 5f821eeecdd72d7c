"""How often pooling over sources shows a gain that is there, and how often one that is not.

    python benchmarks/simulate_pooled.py [RUNS]

RUNS (1,000 unless told) times eight sources of 25 queries with one structural cell each: true gains scatter by TAU
about the mean gain, differences per query by the SD. "Shown" is a 95 % interval above 0, an error of 2.5 % if the
posterior is calibrated. Beside it: one source's own t interval, and how often its shrunk gain's lies above 0.
Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import math
import sys

import numpy as np
from measuring import sized

from runner.score.power import t_quantile
from runner.tools.pooled.model import SourceGains, pool

SOURCES, QUERIES, TAU, SHOWN = 8, 25, 0.02, 0.975
MEANS, SDS = (0.0, 0.03, 0.05), (0.20, 0.25)


def sources(rng: np.random.Generator, mean: float, sd: float) -> list[SourceGains]:
    """Eight sources with one cell each."""
    found = []
    for number in range(SOURCES):
        differences = mean + TAU * rng.standard_normal() + sd * rng.standard_normal(QUERIES)
        error = np.array([[differences.var(ddof=1) / QUERIES]])
        gains = np.array([differences.mean()])
        found.append(SourceGains(f"source {number}", ("cell",), (("structural",),), gains, error, QUERIES))
    return found


def main() -> None:
    """Print the table as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(1000, 3)
    bar = t_quantile(SHOWN, QUERIES - 1)
    print(f"{SOURCES} sources of {QUERIES} queries, true gains scatter by {TAU}; {runs:,} runs each\n")
    print("| mean gain | SD | shown over all | a source shown, pooled | a source shown alone |\n|---|---|---|---|---|")
    for mean in MEANS:
        for sd in SDS:
            rng = np.random.default_rng(np.random.PCG64(2026))
            together = pooled = alone = 0
            for _ in range(runs):
                drawn = sources(rng, mean, sd)
                found = pool(drawn)
                together += found.effects["structural"].p_above_0 > SHOWN
                pooled += sum(cell.pooled.p_above_0 > SHOWN for cell in found.cells)
                alone += sum(cell.gain / cell.standard_error > bar for cell in found.cells)
            shares = [share(together, runs), share(pooled, runs * SOURCES), share(alone, runs * SOURCES)]
            print(f"| {mean:+.2f} | {sd:.2f} | {' | '.join(shares)} |", flush=True)


def share(count: int, of: int) -> str:
    """Return a percentage with its Monte Carlo standard error, for which sources are taken as independent."""
    found = count / of
    return f"{found:.1%} ± {math.sqrt(found * (1 - found) / of):.1%}"


if __name__ == "__main__":
    main()
