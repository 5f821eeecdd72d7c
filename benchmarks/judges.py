"""Judges who err along a list, for `make simulate`: one challenger truly gains nothing, by known true grades.

The grades are those of tests/support/judge_cases.py. p is of queries, so it shows such a gain the more often the more
queries there are.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
from worlds import TEST_SEED, Row

from runner.base.records import RUN_DEPTH, Qrels
from runner.decide.judging import cell_under_judge, under_judge
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison
from runner.score.source_documents import missed_sources, source_documents
from tests.support.judge_cases import evening, plan

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
            row = sources.by_list[0]
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
            found["read again"][n_queries] += under_judge(given, again)[0][0].holds
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
