"""What planned looks cost and save: error over all looks, power, and the queries that are judged.

    python benchmarks/simulate_looks.py [RUNS]

RUNS evenings (2,000 unless told) of each kind, looked at after 25, 50 and 100 queries: by spending alpha, by testing at
all of alpha each time (what nobody should do), and by e-value; beside them one look after 100. Queries are drawn from
real differences to `minilm-l6-v2 x whole_doc` on SciFact and NFCorpus (docs/matrix/runs), with weights that give every
cell the mean that is asked for (exponential tilting): 0, a gain of the first challenger alone, or a loss of all cells.
"Tied, skewed down" is that of simulate_decision.py. 2,999 draws a test where a real run takes 100,000, so that the
first look, which spends .0001, can hardly confirm here. Part of `make simulate`. Seeds are fixed.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sizes import sized

from runner.base.records import SCORE_UNIT, Ints
from runner.score.gain_test import gain_tests, shares
from runner.score.looks import FUTILE_CHANCE, Look, chance_at_last, e_value

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Floats]

LOOKS, ALPHA, MIN_GAIN, DRAWS, FIRST = [25, 50, 100], 0.05, 0.02, sized(2999, 199), 1
GAINS = (-0.05, 0.0, 0.03, 0.05, 0.1)
RUNS = Path(__file__).resolve().parents[1] / "docs" / "matrix" / "runs"
BASELINE, CHALLENGER = "minilm-l6-v2 x whole_doc", "minilm-l6-v2 x fixed_token_256_25"
OTHER = 1_000_000
"""Between a run's seed and that of its tests: flips must not come from the numbers that made the differences."""


def measured(name: str) -> Floats:
    """Every cell's nDCG@10 less the baseline's on a public set, (cells, queries), the first challenger first."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((RUNS / name).glob("*.json"))]
    scores = {file["cell"]: np.array([row["ndcg10"] for row in file["perQuery"]]) for file in files}
    cells = sorted(scores.keys() - {BASELINE}, key=lambda cell: (cell != CHALLENGER, cell))
    return np.array([scores[cell] - scores[BASELINE] for cell in cells])


def tilted(differences: Floats, means: Floats) -> Floats:
    """Weights of the queries under which every cell has the mean that is asked for; those of least relative entropy."""
    slopes = np.zeros(len(differences))
    for _ in range(200):
        weights = np.exp(slopes @ differences)
        weights /= weights.sum()
        found = differences @ weights
        spread = (differences * weights) @ differences.T - np.outer(found, found)
        slopes += np.clip(np.linalg.solve(spread + 1e-9 * np.eye(len(slopes)), means - found), -2, 2)
    assert np.allclose(differences @ weights, means, atol=1e-6), "no weights give these means"
    return weights


def real(name: str, gain: float) -> Draw:
    """Draws of real differences; the first cell gains and the others do not, or all of them lose."""
    differences = measured(name)
    means = np.full(len(differences), min(0.0, gain))
    means[0] = gain
    weights = tilted(differences, means)
    return lambda rng: differences[:, rng.choice(differences.shape[1], LOOKS[-1], p=weights)]


def skewed_down(_: str, gain: float) -> Draw:
    """Nine cells of SD .15 that gain a little or nothing on most queries and lose much on few."""

    def draw(rng: np.random.Generator) -> Floats:
        own, shared = (rng.gamma(1.0, size=(rows, LOOKS[-1])) - 1 for rows in (9, 1))
        found = -0.15 * (own + shared) * (rng.random((9, LOOKS[-1])) >= 0.5)
        found[0] += gain
        return np.clip(found + min(0.0, gain) * (np.arange(9)[:, None] > 0), -1, 1)

    return draw


def evening(values: Ints, seed: int, truly: bool, found: Counter[str]) -> None:
    """One evening under every rule; `truly` says that the first row gains, else no row does."""
    ended = ""
    over: set[str] = set()
    for number, n_queries in enumerate(LOOKS, start=1):
        look, judged = Look.of_plan(LOOKS, number, ALPHA), values[:, :n_queries]
        p = gain_tests(judged, FIRST, draws=DRAWS, seed=seed)
        asked = range(1) if truly else range(len(values))
        gains = judged.mean(axis=1) / SCORE_UNIT
        able = [row for row in asked if gains[row] >= MIN_GAIN]
        if any(look.adjusted(p[row]) <= ALPHA for row in able):
            over.add("spending, never giving up")
            ended = ended or "confirmed"
        if any(p[row] <= ALPHA for row in able):
            over.add("repeated")
            over |= {"once"} if look.is_last else set()
        parts = shares(FIRST, len(values) - FIRST)
        if any(e_value(judged[row].tolist(), parts[row]) >= 1 / ALPHA for row in able):
            over.add("e-value")
        if not ended and not look.is_last:
            sds = judged.std(axis=1, ddof=1) / SCORE_UNIT
            chances = (
                chance_at_last(gain, sd, look, MIN_GAIN, part) for gain, sd, part in zip(gains, sds, parts, strict=True)
            )
            ended = "" if any(chance >= FUTILE_CHANCE for chance in chances) else "stopped"
        if ended or look.is_last:
            ended = ended or "last look"
            found["queries"] += n_queries if "counted" not in over else 0
            over.add("counted")
    found.update(over | {ended})


def main() -> None:
    """Print the table as Markdown."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(2000, 2)
    print(
        f"Looks after {', '.join(map(str, LOOKS))} queries; {runs:,} evenings a row; Monte Carlo errors in brackets\n"
    )
    print(
        "| differences | true gain | confirmed | if it never gives up | stopped | queries judged | one look at 100 | ",
        end="",
    )
    print("at .05 each time | e-value |\n|---|---|---|---|---|---|---|---|---|")
    for name, world in (("scifact", real), ("nfcorpus", real), ("tied, skewed down", skewed_down)):
        for gain in GAINS:
            draw, found = world(name, gain), Counter[str]()
            for seed in range(runs):
                drawn = draw(np.random.default_rng(np.random.PCG64(seed)))
                evening(np.rint(drawn * SCORE_UNIT).astype(np.int64), OTHER + seed, gain > 0, found)
            columns = ("confirmed", "spending, never giving up", "stopped")
            shares = [share(found[column], runs) for column in columns]
            rest = [share(found[column], runs) for column in ("once", "repeated", "e-value")]
            row = [name, f"{gain:+.2f}", *shares, f"{found['queries'] / runs:.0f}", *rest]
            print(f"| {' | '.join(row)} |", flush=True)


def share(count: int, runs: int) -> str:
    """A percentage with its Monte Carlo standard error."""
    part = count / runs
    return f"{100 * part:.1f} ({100 * (part * (1 - part) / runs) ** 0.5:.1f})"


if __name__ == "__main__":
    main()
