"""Evenings to simulate: real per-query differences of public collections under the means that are asked for."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints

Floats = NDArray[np.float64]

RUNS = Path(__file__).resolve().parents[1] / "docs" / "matrix" / "runs"
BASELINE, CHALLENGER = "minilm-l6-v2 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
"""The challenger changes the chunker alone, as the first one of a default plan does."""

TEST_SEED = 1_000_000
"""Between a run's seed and that of its tests: flips must not come from the numbers that made the differences."""


@cache
def scores(collection: str, measure: str = "ndcg10") -> dict[str, Floats]:
    """Return every cell's scores by query (queries,), the baseline first, then the challenger."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((RUNS / collection).glob("*.json"))]
    found = {file["cell"]: np.array([row[measure] for row in file["perQuery"]]) for file in files}
    return {cell: found[cell] for cell in sorted(found, key=lambda cell: (cell != BASELINE, cell != CHALLENGER, cell))}


def differences(collection: str, measure: str = "ndcg10") -> Floats:
    """Return every other cell's scores less the baseline's, (cells, queries), the challenger first."""
    baseline, *others = scores(collection, measure).values()
    return np.array(others) - baseline


def tilted(values: Floats, means: Floats) -> Floats:
    """Return the weights of queries, of least relative entropy, under which each row of (cells, queries) has its mean.

    ValueError if no weights give these means.
    """
    # Newton's method on the dual: the tilt of least relative entropy is exponential in the rows' values.
    slopes = np.zeros(len(values))
    for _ in range(200):
        weights = np.exp(slopes @ values)
        weights /= weights.sum()
        found = values @ weights
        spread = (values * weights) @ values.T - np.outer(found, found)
        # A clipped step cannot overshoot into weights that underflow.
        slopes += np.clip(np.linalg.solve(spread + 1e-9 * np.eye(len(slopes)), means - found), -2, 2)
    if not np.allclose(values @ weights, means, atol=1e-6):
        raise ValueError("no weights of these queries give these means")
    return weights


def units(values: Floats) -> Ints:
    """Return differences as the tests take them."""
    return np.rint(np.clip(values, -1, 1) * SCORE_UNIT).astype(np.int64)


def percent(found: float, of: int) -> str:
    """Return a share in per cent with its Monte Carlo standard error."""
    p = found / of
    return f"{100 * p:.1f} ({100 * (p * (1 - p) / of) ** 0.5:.1f})"


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, each row as soon as it is there."""
    print(f"\n{title}\n")
    for row in chain((heads, ["---"] * len(heads)), rows):
        print("|", " | ".join(map(str, row)), "|", flush=True)
