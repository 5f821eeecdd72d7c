"""Bootstrap and sign flips against falsify-eval 0.2.0 in one process, on one core.

falsify-eval tests one pair of sequences at a time and has neither max-T nor intervals that invert a test.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import falsify_eval
import numpy as np
from measuring import fastest, row, sized

from runner.base.records import SCORE_UNIT
from runner.score.bootstrap import mean_intervals
from runner.score.sign_flip import paired_tests

N_DRAWS = sized(100_000, 1_000)


def matrix(cells: int, queries: int) -> np.ndarray:
    values = np.random.default_rng(1).normal(0.01, 0.15, (cells, queries))
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def main() -> None:
    scores, flipped = np.abs(matrix(sized(20, 2), 25)), matrix(10, 25)
    floats = scores / SCORE_UNIT
    own = fastest(lambda: mean_intervals(scores - scores[0], seed=1))[0]
    peer = fastest(lambda: [falsify_eval.bootstrap_diff_ci(values, floats[0]) for values in floats], 1)[0]
    what = f"10,000 resamples, {len(scores)} cells x 25 queries, ms; falsify-eval"
    row(what, f"{1000 * own:.1f}", f"{1000 * peer:.0f}", f"{peer / own:.0f}x")
    own = fastest(lambda: paired_tests(flipped, draws=N_DRAWS, alpha=0.05, seed=1))[0]
    rows = flipped / SCORE_UNIT
    peer = fastest(lambda: [falsify_eval.paired_permutation_p(r, 0 * r, n_resamples=N_DRAWS) for r in rows], 1)[0]
    what = f"{N_DRAWS:,} sign flips, 10 cells x 25 queries (ours with inversion and max-T), ms; falsify-eval"
    row(what, f"{1000 * own:.0f}", f"{1000 * peer:.0f}", f"{peer / own:.1f}x")


if __name__ == "__main__":
    main()
