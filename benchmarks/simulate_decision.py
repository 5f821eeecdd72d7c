"""How often the decision is wrong, how often intervals cover, and which correction of the winner's curse errs least.

    python benchmarks/simulate_decision.py [RUNS]

Nine cells against a baseline, RUNS runs of each kind (2,000 unless told), 999 draws a test where a real run takes
100,000. Differences have standard deviation .15 and are correlated by .5 between cells, which share their baseline;
Recall@10's are correlated with nDCG@10's by .6. Not part of `make bench`: it takes minutes. Seeds are fixed, so the
tables are those of docs/statistics.md, which says what their columns are.

The kinds of differences: normal; tied (half of them exactly 0, the rest Laplace); skewed (sums of two exponential
parts, skewness 1.4, the long tail upwards or downwards); strongly skewed (gamma parts of shape 1/4, skewness 2.8);
tied and skewed (half of them 0, the rest skewed).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sizes import sized

from runner.base.records import SCORE_UNIT, Interval, Ints
from runner.decide.tiers import CellFigures, meets_criterion_5, unmet_criteria
from runner.eval_set.shapes.paired import GuardResult
from runner.eval_set.shapes.plan import Rule
from runner.score.bootstrap import bootstrap_counts, mean_intervals
from runner.score.sign_flip import PairedTest, non_inferiority, paired_tests
from runner.score.winners_curse import corrected_gain

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]

CELLS, SD, DRAWS, ALPHA, RESAMPLES = 9, 0.15, 999, 0.05, 400
RULE = Rule(min_gain=0.02, max_recall_loss=0.02)
SOME, MUCH = 0.05, 0.12
SAFE = GuardResult(state="non-inferior", low=0.0, high=0.0, p=0.0)
"""The guard of a cell that finds the very documents that the baseline finds."""
OTHER = 1_000_000
"""Between a run's seed and that of its tests: flips must not come from the numbers that made the differences."""


class Kind(NamedTuple):
    """Noise of mean 0 and variance 1, the share of differences that are 0, and which way the noise is turned."""

    noise: Noise
    ties: float = 0
    sign: int = 1


def gamma(shape: float) -> Noise:
    return lambda rng, size: (rng.gamma(shape, size=size) - shape) / shape**0.5


def laplace(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.laplace(scale=0.5**0.5, size=size)


KINDS = {
    "normal": Kind(lambda rng, size: rng.normal(size=size)),
    "tied": Kind(laplace, ties=0.5),
    "skewed up": Kind(gamma(1)),
    "skewed down": Kind(gamma(1), sign=-1),
    "strongly skewed down": Kind(gamma(0.25), sign=-1),
    "tied, skewed down": Kind(gamma(1), ties=0.5, sign=-1),
}


def differences(kind: Kind, n_queries: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """nDCG@10 and Recall@10 of nine cells less the baseline's, (cells, queries) each, with expectation 0.

    The third is what a gain of 1 adds: 0 if a query is tied, so that it stays tied.
    """
    own, shared = kind.noise(rng, (2, CELLS, n_queries)), kind.noise(rng, (2, 1, n_queries))
    first, second = kind.sign * SD * (own + shared) / (2 * (1 - kind.ties)) ** 0.5
    kept = rng.random((CELLS, n_queries)) >= kind.ties
    return first * kept, (0.6 * first + 0.8 * second) * kept, kept / (1 - kind.ties)


def units(values: Floats) -> Ints:
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def covers(interval: Interval, mean: float) -> bool:
    return interval.low <= mean <= interval.high


def confirmed(tests: Sequence[PairedTest], guards: Sequence[GuardResult], *, skew: bool = True) -> list[bool]:
    """Which cells are, with the null gate and Judged@10 taken as passed; without `skew`, by max-T alone."""
    return [
        not unmet_criteria(
            CellFigures(
                test.mean, 0.0, test.p_adjusted, test.p_skew if skew else test.p_adjusted, guard.state, "pass", 1.0
            ),
            RULE,
            ALPHA,
        )
        for test, guard in zip(tests, guards, strict=True)
    ]


def run(kind: Kind, n_queries: int, seed: int, found: Counter[str]) -> None:
    """One evening three times over: nothing better, the first cell better by SOME, the first cell better by MUCH."""
    gains, recalls, lift = differences(kind, n_queries, np.random.default_rng(np.random.PCG64(seed)))
    lift[1:] = 0
    options = {"draws": DRAWS, "alpha": ALPHA, "seed": seed + OTHER}
    equal, some, much = (paired_tests(units(gains + size * lift), **options) for size in (0, SOME, MUCH))
    guards = non_inferiority(units(recalls), RULE.max_recall_loss, **options)
    lifted = non_inferiority(units(recalls + MUCH * lift), RULE.max_recall_loss, **options)
    worse = non_inferiority(units(recalls) - SCORE_UNIT // 50, RULE.max_recall_loss, **options)
    changes = recalls.mean(axis=1).tolist()
    percentile = mean_intervals(units(gains), seed=seed + OTHER, resamples=DRAWS)
    found["criterion 5"] += any(
        meets_criterion_5(test.mean, change, RULE) for test, change in zip(equal, changes, strict=True)
    )
    found["max-T"] += any(test.p_adjusted <= ALPHA for test in equal)
    found["confirmed by max-T alone"] += any(confirmed(equal, guards, skew=False))
    found["confirmed"] += any(confirmed(equal, guards))
    found["confirmed, recall safe"] += any(confirmed(equal, [SAFE] * CELLS))
    found["interval"] += sum(covers(test.interval, 0) for test in equal) / CELLS
    found["bootstrap"] += sum(covers(interval, 0) for interval in percentile) / CELLS
    found["simultaneous"] += all(covers(test.simultaneous, 0) for test in equal)
    found["interval, +.05"] += covers(some[0].interval, SOME)
    found["simultaneous, +.05"] += all(covers(test.simultaneous, SOME if i == 0 else 0) for i, test in enumerate(some))
    found["max-T, +.12"] += much[0].p_adjusted <= ALPHA
    found["confirmed, +.12"] += confirmed(much, lifted)[0]
    found["confirmed, +.12, recall 0"] += confirmed(much, guards)[0]
    found["another, +.12"] += any(confirmed(much, lifted)[1:])
    found["guard, recall 0"] += sum(guard.state == "non-inferior" for guard in guards) / CELLS
    found["guard, recall -.02"] += sum(guard.state == "non-inferior" for guard in worse) / CELLS


def winner_estimates(values: Ints, seed: int) -> dict[str, float]:
    """Estimates of the best cell's true gain: as observed, less the bootstrap's optimism, and out of bag."""
    columns, means = values.T / SCORE_UNIT, values.mean(axis=1) / SCORE_UNIT
    counts = np.concatenate(list(bootstrap_counts(values.shape[1], RESAMPLES, seed)))
    drawn = counts @ columns / values.shape[1]
    best = drawn.argmax(axis=1)
    optimism = float((drawn.max(axis=1) - means[best]).mean())
    weight = 0.632
    out_of_bag = corrected_gain(values, resamples=RESAMPLES, seed=seed)
    return {
        "observed": float(means.max()),
        "less optimism": float(means.max()) - optimism,
        ".632": (1 - weight) * float(means.max()) + weight * out_of_bag,
        "out of bag": out_of_bag,
    }


def print_head(title: str, *heads: str) -> None:
    print(f"\n{title}\n")
    print_row(*heads)
    print_row(*["---"] * len(heads))


def print_row(*fields: object) -> None:
    print("|", " | ".join(str(field) for field in fields), "|", flush=True)


TABLES = {
    "Runs with an error, where nothing is better": (
        "criterion 5",
        "max-T",
        "confirmed by max-T alone",
        "confirmed",
        "confirmed, recall safe",
        "guard, recall -.02",
    ),
    "Coverage": ("interval", "bootstrap", "simultaneous", "interval, +.05", "simultaneous, +.05"),
    "One cell better by .12": (
        "max-T, +.12",
        "confirmed, +.12",
        "confirmed, +.12, recall 0",
        "another, +.12",
        "guard, recall 0",
    ),
}


def print_decisions(runs: int) -> None:
    """Shares of runs, in percent; of runs and cells where a figure is of one cell."""
    found: dict[tuple[str, int], Counter[str]] = {}
    for name, kind in KINDS.items():
        for n_queries in (25, 50):
            started = time.perf_counter()
            counts = found[name, n_queries] = Counter()
            for seed in range(runs):
                run(kind, n_queries, seed, counts)
            print(f"{name}, {n_queries} queries: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    for title, heads in TABLES.items():
        print_head(title, "differences", "queries", *heads)
        for (name, n_queries), counts in found.items():
            print_row(name, n_queries, *(f"{100 * counts[head] / runs:.1f}" for head in heads))


def print_winners(runs: int) -> None:
    """Bias / root mean squared error of each estimate of what the best cell truly gains, in thousandths."""
    truths = {
        "all equal": [0.0] * CELLS,
        "one better by .05": [0.05] + [0.0] * (CELLS - 1),
        "three better by .05": [0.05] * 3 + [0.0] * (CELLS - 3),
        "0, .01, ... .08": [0.01 * i for i in range(CELLS)],
    }
    for n_queries in (25, 50):
        for name, truth in truths.items():
            errors: dict[str, list[float]] = {}
            for seed in range(runs):
                gains, *_ = differences(KINDS["normal"], n_queries, np.random.default_rng(np.random.PCG64(seed)))
                values = units(gains + np.reshape(truth, (-1, 1)))
                for estimator, estimate in winner_estimates(values, seed + OTHER).items():
                    errors.setdefault(estimator, []).append(estimate - truth[int(values.sum(axis=1).argmax())])
            if n_queries == 25 and name == "all equal":
                print_head("Estimates of what the best cell gains", "cells", "queries", *errors)
            cells = (f"{1000 * np.mean(e):+.0f} / {1000 * np.sqrt(np.mean(np.square(e))):.0f}" for e in errors.values())
            print_row(name, n_queries, *cells)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(2_000, 1)
    print_decisions(runs)
    print_winners((runs + 1) // 2)


if __name__ == "__main__":
    main()
