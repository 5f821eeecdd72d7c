"""What judges who err do to the decision, and what second readings save of it: half an hour.

    python benchmarks/simulate_judges.py [RUNS]

Evenings of 50 queries and nine cells against a baseline whose true grades are known (tests/support/judge_cases.py),
RUNS of each kind (400 unless told), 400 draws of the two-level bootstrap where a real run takes 2,000. Seeds are
fixed.

Judges: exact; random, where either judge moves 30 % of the grades by 1, up or down; favouring, where the first judge,
random beside, gives all documents of the first cell's first ten 1 more, up to 3. The second judge never favours.

`list_rows` and `low_rows` are part of `make simulate`: one challenger that truly gains nothing, and a first judge whose
errors follow a list. p is of queries, so it shows such a gain the more often the more queries there are.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy reads it

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from measuring import runs_asked
from worlds import TEST_SEED, Row, print_table

from runner.base.records import RUN_DEPTH, Qrels
from runner.decide.judging import cell_under_judge, judge_blockers, under_judge
from runner.decide.two_level import two_level
from runner.eval_set.shapes.judges import JudgeNoise
from runner.judge.agreement.by_cell import favours
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison
from runner.score.source_documents import missed_sources, source_documents
from tests.support.judge_cases import evening, favouring, off_by_one, plan, read_twice

ALPHA, DRAWS, SHARES = 0.05, 400, (0.1, 0.3)
LIFTS = {0.0: 0.0, 0.08: 0.21}
"""How much sharper a cell's eye must be to gain so much by true grades."""

TABLE = (("random", 0.0), ("favouring", 0.0), ("exact", 0.08), ("random", 0.08))
SIZES = (25, 50, 100)
LISTED = {
    "exact": ((0.0, 0.0), (0.0, 0.0)),
    "misses 2 %, 10 % where the baseline ranks higher": ((0.0, 0.0), (0.1, 0.02)),
    "overrates 1 %, 5 % in the cell's list": ((0.05, 0.01), (0.0, 0.0)),
}
"""Chances that an irrelevant document is taken for relevant in the challenger's first ten, and elsewhere; and that a
relevant one is missed that the baseline ranks higher, and elsewhere."""

TOO_LOW = 0.05
"""Chance that a relevant document is graded one too low."""

SAFEGUARDS = ("other judge", "by cell", "two-level", "all three")


def graded(truth: Comparison, kind: str, seed: int) -> tuple[Comparison, Qrels, np.random.Generator]:
    """Return the evening as the first judge grades it, what the second judge would say, and what goes on drawing."""
    rng = np.random.default_rng(np.random.PCG64(seed + TEST_SEED))
    first = second = truth.qrels
    if kind != "exact":
        first, second = off_by_one(truth.qrels, rng), off_by_one(truth.qrels, rng)
    if kind == "favouring":
        first = favouring(first, truth.runs[truth.challengers[0]])
    return replace(truth, qrels=first), second, rng


def left(comparison: Comparison, doubles: Sequence[Double], confirmed: Sequence[str], seed: int) -> dict[str, bool]:
    """Return whether each safeguard, alone and together, leaves any of the confirmed cells confirmed."""
    noise = two_level(comparison, doubles, draws=DRAWS, seed=seed)
    others = {"second": under_judge(comparison, doubles)[0]}
    rows = favours(doubles, comparison.runs, comparison.plan.baseline, alpha=ALPHA, seed=seed, draws=999)
    favoured = {cell: row.p_for_cell for cell, row in rows.items()}
    none: JudgeNoise | None = None
    asked = {
        "other judge": (none, others, {}),
        "by cell": (none, {}, favoured),
        "two-level": (noise, {}, {}),
        "all three": (noise, others, favoured),
    }
    return {name: any(not judge_blockers(cell, *given, ALPHA) for cell in confirmed) for name, given in asked.items()}


def run(kind: str, gain: float, seed: int, found: Counter[str]) -> None:
    truth = evening(seed, lift=LIFTS[gain])
    comparison, second, rng = graded(truth, kind, seed)
    rows = {cell: cell_under_judge(comparison, cell) for cell in comparison.challengers}
    found["gain"] += rows[comparison.challengers[0]].gain
    confirmed = [cell for cell, row in rows.items() if row.holds]
    if not confirmed:
        return
    found["confirmed"] += 1
    # Safeguards can only take a confirmation away, so evenings without one end here.
    for share in SHARES:
        doubles = read_twice(comparison.qrels, second, share, rng)
        for name, remains in left(comparison, doubles, confirmed, seed).items():
            found[f"{name} {share}"] += remains


def decision_rows(runs: int) -> Iterator[list[str]]:
    """Yield shares of runs, in per cent: with a cell confirmed, and with one left by a safeguard."""
    for kind, gain in TABLE:
        found = Counter[str]()
        for seed in range(runs):
            run(kind, gain, seed, found)
        names = ["confirmed", *(f"{name} {share}" for share in SHARES for name in SAFEGUARDS)]
        figures = (f"{100 * found[name] / runs:.1f}" for name in names)
        yield [kind, f"{gain or 'nothing'}", f"{found['gain'] / runs:+.3f}", *figures]


def following_a_list(truth: Comparison, errors: tuple[tuple[float, float], tuple[float, float]], seed: int) -> Qrels:
    """Return the grades of a judge who errs more often in one list."""
    rng, relevant = np.random.default_rng(np.random.PCG64(seed + TEST_SEED)), truth.plan.relevant_grade
    challenger, baseline = (truth.runs[cell] for cell in (truth.challengers[0], truth.plan.baseline))
    (false_in, false_elsewhere), (missed_below, missed_elsewhere) = errors
    found: dict[str, dict[str, int]] = {}
    for query_id, grades in truth.qrels.items():
        own, other = challenger.ranks[query_id], baseline.ranks[query_id]
        found[query_id] = {}
        for doc_id, grade in grades.items():
            rank, rank_below = own.get(doc_id, RUN_DEPTH), other.get(doc_id, RUN_DEPTH)
            if grade >= relevant:
                chance, wrong = missed_below if rank_below < rank else missed_elsewhere, 0
            else:
                chance, wrong = false_in if rank < 10 else false_elsewhere, relevant
            found[query_id][doc_id] = wrong if rng.random() < chance else grade
    return found


def list_rows(judge: str, runs: int) -> list[Row]:
    """Return how often a gain is shown of a cell that has none."""
    shown: Counter[int] = Counter()
    for n_queries in SIZES:
        for seed in range(runs):
            truth = evening(seed, n_queries=n_queries, n_cells=2)
            comparison = replace(truth, qrels=following_a_list(truth, LISTED[judge], seed))
            [test] = comparison.gain_tests.values()
            shown[n_queries] += test.p <= test.bar
    return [(f"judge {judge}: false gain shown", {n: 100 * shown[n] / runs for n in SIZES}, "")]


def too_low(truth: Comparison, seed: int, *, in_both: bool) -> Comparison:
    """Return the evening with relevant documents graded one too low: those that the baseline ranks higher, or any.

    Each query gets a source document, by chance one of those that are truly relevant to it.
    """
    rng, relevant = np.random.default_rng(np.random.PCG64(seed + TEST_SEED)), truth.plan.relevant_grade
    own, other = (truth.runs[cell].ranks for cell in (truth.challengers[0], truth.plan.baseline))
    qrels, queries = {}, []
    for query in truth.queries:
        grades = truth.qrels[query.id]
        serve = [doc_id for doc_id, grade in grades.items() if grade >= relevant]
        ranks = (
            (doc_id, own[query.id].get(doc_id, RUN_DEPTH), other[query.id].get(doc_id, RUN_DEPTH)) for doc_id in serve
        )
        may_err = [doc_id for doc_id, rank, rank_below in ranks if in_both or rank_below < rank]
        wrong = {doc_id for doc_id in may_err if rng.random() < TOO_LOW}
        qrels[query.id] = {doc_id: grade - (doc_id in wrong) for doc_id, grade in grades.items()}
        queries.append(query.model_copy(update={"source_document": str(rng.choice(serve)) if serve else ""}))
    return replace(truth, qrels=qrels, queries=queries)


def low_rows(runs: int, *, in_both: bool) -> list[Row]:
    """Return how often a cell is confirmed that gains nothing, and what a look at source documents leaves of it."""
    found: dict[str, Counter[int]] = {name: Counter() for name in ("warns", "confirmed", "read again", "unwarned")}
    settings = plan()
    settings = settings.model_copy(update={"bootstrap": settings.bootstrap.model_copy(update={"resamples": 1})})
    for n_queries in SIZES[1:]:
        for seed in range(runs):
            truth = evening(seed, n_queries=n_queries, n_cells=2, settings=settings)
            given, cell = too_low(truth, seed, in_both=in_both), truth.challengers[0]
            sources = source_documents(given, {})
            assert sources is not None
            # As the page counts them: a larger share of the baseline's is missed than of the cell's.
            row = sources.by_list[cell]
            warns = row.baseline_missed * row.cell_judged > row.cell_missed * row.baseline_judged
            found["warns"][n_queries] += warns
            if not cell_under_judge(given, cell).holds:
                continue
            # A second judge who errs never reads the missed ones again.
            grades = {
                (query_id, doc_id): grade for query_id, rows in given.qrels.items() for doc_id, grade in rows.items()
            }
            missed = missed_sources(given.queries, grades, given.plan.relevant_grade)
            again = [
                Double(*pair, grade, truth.qrels[pair[0]][pair[1]], "first", "second", "a", "b")
                for pair, grade in missed.items()
            ]
            found["confirmed"][n_queries] += 1
            found["read again"][n_queries] += under_judge(given, again)[0][cell].holds
            found["unwarned"][n_queries] += not warns
    judge = "judge grades 5 % of relevant documents one too low"
    words = {"warns": f"{judge}: more of the baseline's source documents missed"}
    if not in_both:
        words = {
            "confirmed": f"{judge}, where the baseline ranks higher: confirms a cell that is not better",
            "read again": "the same, missed source documents read again",
            "unwarned": "the same, and no more of the baseline's source documents missed",
        }
    return [(what, {n: 100 * found[name][n] / runs for n in SIZES[1:]}, "") for name, what in words.items()]


def main() -> None:
    runs = runs_asked(400, 1)
    heads = ["judges", "truly better by", "gain", "confirmed"]
    heads += [f"{name}, {100 * share:.0f} %" for share in SHARES for name in SAFEGUARDS]
    print(f"Decisions under judges who err: per cent of {runs:,} evenings\n")
    print_table(heads, decision_rows(runs))


if __name__ == "__main__":
    main()
