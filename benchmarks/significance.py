"""Bootstrap, permutation and sign-flip tests against falsify-eval 0.2.0 in one process, on one core.

    python benchmarks/significance.py

falsify-eval tests one pair of sequences at a time and has neither max-T nor intervals that invert a test; where ours
does more, the line says so. Peak memory is what a call allocates, by tracemalloc, measured in a run of its own.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import time
import tracemalloc
from collections.abc import Callable

import falsify_eval
import numpy as np

from runner.base.records import SCORE_UNIT
from runner.score import bootstrap as significance
from runner.score.sign_flip import non_inferiority, paired_tests
from runner.score.winners_curse import corrected_gain, false_alarm_probability

ROUNDS = 3


def seconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The fastest of some calls."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return min(taken)


def megabytes(call: Callable[[], object]) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    our_seconds, their_seconds = seconds(ours), seconds(theirs)
    print(
        f"{name}: ours {1000 * our_seconds:.1f} ms and {megabytes(ours):.0f} MB, falsify-eval "
        f"{1000 * their_seconds:.1f} ms and {megabytes(theirs):.0f} MB, ratio {their_seconds / our_seconds:.1f}x faster"
    )


def matrix(cells: int, queries: int) -> np.ndarray:
    values = np.random.default_rng(1).normal(0.01, 0.15, (cells, queries))
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def main() -> None:
    a, b = np.random.default_rng(1).random((2, 5000))
    compare("bootstrap_ci, n=5,000", lambda: significance.bootstrap_ci(a), lambda: falsify_eval.bootstrap_ci(a))
    compare(
        "bootstrap_diff_ci, n=5,000",
        lambda: significance.bootstrap_diff_ci(a, b),
        lambda: falsify_eval.bootstrap_diff_ci(a, b),
    )
    compare(
        "paired_permutation_p, n=5,000",
        lambda: significance.paired_permutation_p(a, b),
        lambda: falsify_eval.paired_permutation_p(a, b),
    )
    scores = np.abs(matrix(20, 25))
    floats = scores / SCORE_UNIT
    compare(
        "10,000 paired resamples, 20 cells x 25 queries",
        lambda: significance.paired_intervals(scores, 0, seed=1),
        lambda: [falsify_eval.bootstrap_diff_ci(row, floats[0]) for row in floats],
    )
    small = matrix(10, 25)
    compare(
        "100,000 sign flips, 10 cells x 25 queries (ours with inversion and max-T)",
        lambda: paired_tests(small, draws=100_000, alpha=0.05, seed=1),
        lambda: [falsify_eval.paired_permutation_p(r, 0 * r, n_resamples=100_000) for r in small / SCORE_UNIT],
    )
    large = matrix(10, 5000)
    for name, call in {
        "recall guard, 10 cells x 25 queries": lambda: non_inferiority(small, 0.02, draws=100_000, alpha=0.05, seed=1),
        "false-alarm figure, 100,000 draws, 10 cells x 25 queries": lambda: false_alarm_probability(
            small, small, min_gain=0.02, max_recall_loss=0.02, draws=100_000, seed=1
        ),
        "winner's curse, 10,000 resamples, 10 cells x 25 queries": lambda: corrected_gain(
            small, resamples=10_000, seed=1
        ),
        "100,000 sign flips, 10 cells x 5,000 queries": lambda: paired_tests(large, draws=100_000, alpha=0.05, seed=1),
    }.items():
        print(f"{name}: ours {1000 * seconds(call, 1):.1f} ms and {megabytes(call):.0f} MB, falsify-eval has no such")


if __name__ == "__main__":
    main()
