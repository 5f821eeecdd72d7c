"""What judges who err do to the decision, and what second readings save of it.

    python benchmarks/simulate_judges.py [RUNS]

Evenings of 25 queries and nine cells against a baseline whose true grades are known (tests/support/judge_cases.py),
RUNS of each kind (400 unless told), 999 draws a test where a real run takes 100,000, 400 of the two-level bootstrap
where a real run takes 2,000. Not part of `make bench`: it takes minutes. Seeds are fixed.

Judges: exact; random, where either judge moves 30 % of the grades by 1, up or down; favouring, where the first judge,
random beside, gives all documents of the first cell's first ten 1 more, up to 3; half favouring, where it does so in
every second query. The second judge never favours.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sizes import sized

from runner.base.figures import round4
from runner.base.records import Qrels
from runner.decide.judge_noise.ppi import powered
from runner.decide.judge_noise.two_level import two_level
from runner.decide.other_judges import judge_blockers, under_judge, under_other_judges
from runner.eval_set.shapes.judges import CellUnderJudge, NoiseResult, PoweredCell
from runner.eval_set.shapes.labels import Label
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison
from tests.support.judge_cases import evening, favouring, label, off_by_one, read_twice

ALPHA, DRAWS, RESAMPLES, SHARES = 0.05, 400, 1000, (0.1, 0.3)
OTHER = 1_000_000
"""Between the seeds of an evening and of its judges."""
LIFTS = {0.0: 0.0, 0.08: 0.21, 0.12: 0.34, 0.16: 0.51}
"""How much sharper a cell's eye must be to gain so much by true grades."""


class Judges(NamedTuple):
    """How either judge errs."""

    errs: bool = True
    favours_in: int = 0
    """Every how-manieth query the first one favours in; 0 for none."""


KINDS = {
    "exact": Judges(errs=False),
    "random": Judges(),
    "half favouring": Judges(favours_in=2),
    "favouring": Judges(favours_in=1),
}
TABLE = (
    ("exact", 0.0),
    ("random", 0.0),
    ("half favouring", 0.0),
    ("favouring", 0.0),
    ("exact", 0.08),
    ("random", 0.08),
    ("exact", 0.12),
    ("random", 0.12),
    ("random", 0.16),
)
COLUMNS = ("gain", "significant", "confirmed")
WITH_SECOND = ("other judge", "by cell", "two-level", "all three")


def graded(truth: Comparison, judges: Judges, seed: int) -> tuple[Comparison, Qrels, np.random.Generator]:
    """The evening as the first judge grades it, what the second judge would say, and what goes on drawing."""
    rng = np.random.default_rng(np.random.PCG64(seed + OTHER))
    first = second = truth.qrels
    if judges.errs:
        first, second = off_by_one(truth.qrels, rng), off_by_one(truth.qrels, rng)
    if judges.favours_in:
        run = truth.runs[truth.challengers[0]]
        some = {query_id: run.hits[query_id] for query_id in truth.query_ids[:: judges.favours_in]}
        first = favouring(first, replace(run, hits=some))
    return replace(truth, qrels=first), second, rng


def significant(row: CellUnderJudge) -> bool:
    return row.gain >= 0.02 and row.p_gain is not None and round4(row.p_gain) <= ALPHA


def labels_of(comparison: Comparison, doubles: Sequence[Double]) -> list[Label]:
    first = [label(q, d, g, "first", "model-a") for q, row in comparison.qrels.items() for d, g in row.items()]
    return first + [label(row.query_id, row.doc_id, row.second, "second", "model-b") for row in doubles]


def left(comparison: Comparison, doubles: Sequence[Double], confirmed: Sequence[str], seed: int) -> dict[str, bool]:
    """Whether each safeguard, alone and together, leaves any of the confirmed cells confirmed."""
    noise = two_level(comparison, doubles, draws=DRAWS, seed=seed)
    others = under_other_judges(comparison, labels_of(comparison, doubles))
    rows = favours(doubles, comparison.runs, comparison.plan.baseline, alpha=ALPHA, seed=seed, draws=999)
    favoured = {row.cell: row.p_for_cell for row in rows}
    none: NoiseResult | None = None
    asked = {
        "other judge": (none, others, {}),
        "by cell": (none, [], favoured),
        "two-level": (noise, [], {}),
        "all three": (noise, others, favoured),
    }
    return {name: any(not judge_blockers(cell, *given, ALPHA) for cell in confirmed) for name, given in asked.items()}


def run(kind: str, gain: float, seed: int, found: Counter[str]) -> None:
    truth = evening(seed, lift=LIFTS[gain])
    comparison, second, rng = graded(truth, KINDS[kind], seed)
    rows = [under_judge(comparison, cell) for cell in comparison.challengers]
    found["gain"] += rows[0].gain
    found["significant"] += any(map(significant, rows))
    confirmed = [row.cell for row in rows if row.holds]
    if not confirmed:
        return
    found["confirmed"] += 1
    for share in SHARES:
        doubles = read_twice(comparison.qrels, second, share, rng)
        for name, remains in left(comparison, doubles, confirmed, seed).items():
            found[f"{name} {share}"] += remains


def print_decisions(runs: int) -> None:
    """Shares of runs, in percent: with a significant gain, with a cell confirmed, and with one left by a safeguard."""
    heads = [*COLUMNS, *(f"{name}, {100 * share:.0f} %" for share in SHARES for name in WITH_SECOND)]
    print("| judges | truly better by |", " | ".join(heads), "|")
    print("| --- " * (len(heads) + 2) + "|")
    for kind, gain in TABLE:
        started, found = time.perf_counter(), Counter[str]()
        for seed in range(runs):
            run(kind, gain, seed, found)
        print(f"{kind}, {gain}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
        shares = [found[name] for name in ("significant", "confirmed")]
        shares += [found[f"{name} {share}"] for share in SHARES for name in WITH_SECOND]
        figures = [f"{found['gain'] / runs:+.3f}", *(f"{100 * share / runs:.1f}" for share in shares)]
        print(f"| {kind} | {gain or 'nothing'} |", " | ".join(figures), "|", flush=True)


def print_powered(runs: int) -> None:
    """One cell that truly equals the baseline: means and SDs of estimates of its gain, in thousandths, and coverage.

    People, who grade truly, read pairs drawn from all that were judged.
    """
    print("\n| judge | pairs read by people | judge alone | people alone | powered | lambda | interval holds 0, % |")
    print("| --- " * 7 + "|")
    for kind in ("random", "favouring"):
        for n_read in (100, 200, 400):
            rows = [powered_row(kind, n_read, seed) for seed in range(runs)]
            alone, people, both, weight = (
                [getattr(row, name) for row in rows] for name in ("judge_alone", "people_alone", "gain", "weight")
            )
            holds = np.mean([row.interval[0] <= 0 <= row.interval[1] for row in rows])
            told = [f"{1000 * np.mean(v):+.0f} ({1000 * np.std(v):.0f})" for v in (alone, people, both)]
            print(
                "|",
                kind,
                "|",
                n_read,
                "|",
                " | ".join(told),
                f"| {np.mean(weight):.2f} | {100 * holds:.0f} |",
                flush=True,
            )


def powered_row(kind: str, n_read: int, seed: int) -> PoweredCell:
    truth = evening(seed, n_cells=2)
    comparison, _, rng = graded(truth, KINDS[kind], seed)
    pairs = [(query_id, doc_id) for query_id, row in comparison.qrels.items() for doc_id in row]
    read = [pairs[i] for i in rng.choice(len(pairs), n_read, replace=False)]
    bootstrap = comparison.plan.bootstrap.model_copy(update={"resamples": RESAMPLES})
    settings = comparison.plan.model_copy(update={"bootstrap": bootstrap})
    labels = labels_of(comparison, ()) + [label(q, d, truth.qrels[q][d], "a person", "") for q, d in read]
    return powered(replace(comparison, plan=settings), labels).cells[0]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(400, 1)
    print_decisions(runs)
    print_powered(runs)


if __name__ == "__main__":
    main()
