"""Bootstrap, permutation and sign-flip tests against falsify-eval 0.2.0 in one process, on one core.

    python benchmarks/significance.py

falsify-eval tests one pair of sequences at a time and has neither max-T nor intervals that invert a test; where ours
does more, the line says so. Peak memory is what a call allocates, by tracemalloc, measured in a run of its own.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import tracemalloc
from collections.abc import Callable

import falsify_eval
import numpy as np
from measuring import fastest, timed
from sizes import sized

from runner.base.records import SCORE_UNIT
from runner.score.bootstrap import mean_intervals
from runner.score.recall_bound import recall_bounds
from runner.score.sign_flip import paired_tests
from runner.score.winners_curse import corrected_gain, false_alarms

ROUNDS = sized(3, 1)
N_LONG, N_DRAWS, N_RESAMPLES = sized((5_000, 100_000, 10_000), (50, 1_000, 100))


def megabytes(call: Callable[[], object]) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    our_seconds, their_seconds = (fastest(call, ROUNDS)[0] for call in (ours, theirs))
    print(
        f"{name}: ours {1000 * our_seconds:.1f} ms and {megabytes(ours):.0f} MB, falsify-eval "
        f"{1000 * their_seconds:.1f} ms and {megabytes(theirs):.0f} MB, ratio {their_seconds / our_seconds:.1f}x faster"
    )


def matrix(cells: int, queries: int) -> np.ndarray:
    values = np.random.default_rng(1).normal(0.01, 0.15, (cells, queries))
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def main() -> None:
    scores = np.abs(matrix(sized(20, 2), 25))
    floats = scores / SCORE_UNIT
    compare(
        f"10,000 paired resamples, {len(scores)} cells x 25 queries",
        lambda: mean_intervals(scores - scores[0], seed=1),
        lambda: [falsify_eval.bootstrap_diff_ci(row, floats[0]) for row in floats],
    )
    small = matrix(10, 25)
    compare(
        f"{N_DRAWS:,} sign flips, 10 cells x 25 queries (ours with inversion and max-T)",
        lambda: paired_tests(small, draws=N_DRAWS, alpha=0.05, seed=1),
        lambda: [falsify_eval.paired_permutation_p(r, 0 * r, n_resamples=N_DRAWS) for r in small / SCORE_UNIT],
    )
    large = matrix(10, N_LONG)
    for name, call in {
        "recall bounds, 10 cells x 25 queries": lambda: recall_bounds(small, 0.02, alpha=0.05),
        f"false-alarm figure, {N_DRAWS:,} draws, 10 cells x 25 queries": lambda: false_alarms(
            small, small, min_gain=0.02, max_recall_loss=0.02, draws=N_DRAWS, seed=1
        ),
        f"winner's curse, {N_RESAMPLES:,} resamples, 10 cells x 25 queries": lambda: corrected_gain(
            small, resamples=N_RESAMPLES, seed=1
        ),
        f"{N_DRAWS:,} sign flips, 10 cells x {N_LONG:,} queries": lambda: paired_tests(
            large, draws=N_DRAWS, alpha=0.05, seed=1
        ),
    }.items():
        taken, _ = timed(call)
        print(f"{name}: ours {1000 * taken:.1f} ms and {megabytes(call):.0f} MB, falsify-eval has no such")


if __name__ == "__main__":
    main()
