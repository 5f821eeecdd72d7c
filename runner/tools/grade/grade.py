"""Grading what a retriever returned: a bench with one right answer per query, or a TREC run with graded qrels.

A bench goes through the single-gold gate; a run through the graded gate, whose verdict counts, and, for comparison,
the single-gold one. Answers are dicts of plain values, ready for JSON.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from runner.base.given_files import printable
from runner.base.records import SCORE_UNIT, Hit, Ints, Qrels, Run
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.eval_set.trec import TrecRun
from runner.gate.diagnosis import sameness
from runner.gate.graded_gate import graded_gate
from runner.gate.single_gold.bench import Measure, parse_measure
from runner.gate.single_gold.gate import four_null_gate
from runner.score.bootstrap import mean_intervals
from runner.score.score import single_gold, units
from runner.tools.grade.bench_file import DEFAULT_REL, Bench

ALPHA = 0.05
TAU = 0.05
TRIALS = 1000
"""Draws of each null: of the 50 that four_null_gate makes, only one may be as good as the real score at 5 %."""

GATE_DEPTH = 10
"""Ranks that the graded gate looks at, whatever the measure: its own is nDCG@10."""

_SHOWN = 3


def grade_bench(
    bench: Bench,
    metric: str,
    pool: Sequence[str],
    *,
    n_trials: int = TRIALS,
    tau: float = TAU,
    seed: int = 2026,
) -> dict[str, Any]:
    """Return four_null_gate's result on a bench; ValueError if the bench cannot be tested."""
    return four_null_gate(
        bench.retrieved,
        bench.gold,
        bench.rel,
        metric,
        item_pool=pool,
        n_trials=n_trials,
        tau=tau,
        seed=seed,
        strata=bench.strata,
        alpha=ALPHA,
    )


def grade_run(
    found: TrecRun,
    qrels: Qrels,
    metric: str,
    pool: Collection[str] | None = None,
    *,
    relevant_grade: int = 1,
    n_trials: int = TRIALS,
    tau: float = TAU,
    seed: int = 2026,
    lengths: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the measure's mean over the queries of the qrels with its bootstrap interval, and both null gates.

    The run must be read to the measure's cutoff and to GATE_DEPTH. A query of the qrels without a ranking scores 0; one
    of the run without qrels is left out; `warnings` counts both. `verdict`, `gate_passes` and `reasons` are the graded
    gate's, on nDCG@10 with one chunk per document, of length 1 unless `lengths` are given. `single_gold` is
    four_null_gate's result with each query's highest-graded document (ties by id) as its only right one, or None.
    `pool` is every document that could have been retrieved, by default those of run and qrels. ValueError if ids do
    not fit together or an argument is out of range.
    """
    measure = parse_measure(metric)
    if relevant_grade < 1:
        raise ValueError(f"relevant_grade is {relevant_grade}; a relevant document has grade 1 at least")
    if not 0 <= tau <= 1:
        raise ValueError(f"tau must be in [0, 1], got {tau}")
    run = _completed(found.run, qrels)
    documents = _pool(found, qrels, pool)
    values = graded_values(run, qrels, measure, relevant_grade)
    interval = mean_intervals(values[None], seed=seed)[0]
    ones, strata = dict.fromkeys(documents, 1), dict.fromkeys(qrels, "")
    settings: dict[str, Any] = {"draws": n_trials, "tau": tau, "alpha": ALPHA, "seed": seed}
    gate = graded_gate(run, list(qrels), qrels, strata, ones, lengths or ones, **settings)
    bench = _single_gold_bench(run, qrels, measure, documents)
    single = bench and grade_bench(bench, metric, documents, n_trials=n_trials, tau=tau, seed=seed)
    return {
        "metric": metric,
        "relevant_grade": relevant_grade,
        "n_queries": len(qrels),
        "pool_size": len(documents),
        "real_mean": int(values.sum()) / (len(qrels) * SCORE_UNIT),
        "interval": [interval.low, interval.high],
        "gate": gate.model_dump(),
        "single_gold": single,
        "verdict": gate.verdict,
        "gate_passes": gate.verdict == "pass",
        "reasons": [_reason(null, gate) for null in gate.nulls if null.verdict != "pass"],
        "warnings": [*_query_warnings(found, qrels), *_document_warnings(run, qrels)],
        "n_trials": n_trials,
        "tau": float(tau),
        "alpha": ALPHA,
        "seed": seed,
    }


def graded_values(run: Run, qrels: Qrels, measure: Measure, relevant_grade: int) -> Ints:
    """The measure of each query of the qrels (queries,), in units of 1e-9; KeyError if the run misses one.

    As in trec_eval: nDCG has linear gain and its ideal over all judged documents; for recall and reciprocal rank a
    grade of `relevant_grade` or more is relevant; what is not judged is not relevant.
    """
    rows = [_value(run.hits[query_id], grades, measure, relevant_grade) for query_id, grades in qrels.items()]
    return units(np.array(rows, np.float64))


def _value(hits: Sequence[Hit], grades: Mapping[str, int], measure: Measure, relevant_grade: int) -> float:
    found = [grades.get(hit.doc_id, 0) for hit in hits[: measure.cutoff]]
    if measure.name == "ndcg":
        ideal = _discounted(sorted(grades.values(), reverse=True)[: measure.cutoff])
        return _discounted(found) / ideal if ideal > 0 else 0.0
    places = [place for place, grade in enumerate(found, start=1) if grade >= relevant_grade]
    if measure.name == "mrr":
        return 1 / places[0] if places else 0.0
    n_relevant = sum(grade >= relevant_grade for grade in grades.values())
    return len(places) / n_relevant if n_relevant else 0.0


def _discounted(grades: Sequence[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _completed(run: Run, qrels: Qrels) -> Run:
    """The run over the queries of the qrels, in their order, an empty ranking if it has none."""
    if run.hits.keys().isdisjoint(qrels):
        mine, theirs = (printable(next(iter(ids), "none")) for ids in (run.hits, qrels))
        raise ValueError(f"run and qrels have no query in common; the first of each is {mine} and {theirs}")
    return Run(run.cell, {query_id: run.hits.get(query_id, ()) for query_id in qrels})


def _pool(found: TrecRun, qrels: Qrels, pool: Collection[str] | None) -> list[str]:
    """The pool's documents in ascending order, each once."""
    named = found.documents.union(*qrels.values())
    if pool is None:
        return sorted(named)
    documents = set(pool)
    if missing := sorted(named - documents):
        shown = ", ".join(map(printable, missing[:_SHOWN]))
        raise ValueError(
            f"the pool lacks {len(missing)} documents of run and qrels ({shown}); it must hold every document that "
            "could have been retrieved"
        )
    return sorted(documents)


def _single_gold_bench(run: Run, qrels: Qrels, measure: Measure, documents: Sequence[str]) -> Bench | None:
    """The run as a bench with one right answer per query, None if no query has one or the pool is no deeper."""
    gold = single_gold(qrels, qrels)
    if not gold or measure.cutoff > len(documents):
        return None
    retrieved = [[hit.doc_id for hit in run.hits[query_id]] for query_id in gold]
    return Bench(retrieved, list(gold.values()), [DEFAULT_REL] * len(gold), None)


def _reason(null: NullResult, gate: GateVerdict) -> str:
    if null.verdict == "insufficient":
        return f"{null.name}: queries, qrels and draws allow no p below {null.smallest_p:.4g}"
    if null.p > gate.alpha:
        return f"{null.name}: as good by chance with p {null.p:.4g}, more than {gate.alpha:g}"
    return f"{null.name}: beaten by {null.delta:.4f} only, less than tau {gate.tau:g}"


def _query_warnings(found: TrecRun, qrels: Qrels) -> Iterator[str]:
    missing = [query_id for query_id in qrels if query_id not in found.run.hits]
    if missing:
        yield f"{_queries(missing)} of the qrels without a ranking: score 0, as in trec_eval -c"
    unasked = [query_id for query_id in found.run.hits if query_id not in qrels]
    if unasked:
        yield f"{_queries(unasked)} of the run without qrels: left out"
    barren = [query_id for query_id, grades in qrels.items() if not any(grade > 0 for grade in grades.values())]
    if barren:
        yield f"{_queries(barren)} without a relevant document: score 0, and in the mean"
    if same := sameness(_completed(found.run, qrels)):
        yield same
    if found.contradicted:
        yield f"{_queries(found.contradicted)} in which a better rank has a lower score: scores decide, as in trec_eval"


def _document_warnings(run: Run, qrels: Qrels) -> Iterator[str]:
    shown = [hit.doc_id in qrels[query_id] for query_id, hits in run.hits.items() for hit in hits[:GATE_DEPTH]]
    if not all(shown):
        yield (
            f"{shown.count(False)} of {len(shown)} documents at ranks 1 to {GATE_DEPTH} are not judged: not relevant"
            + ("" if any(shown) else "; as none is judged, ids may differ in form")
        )


def _queries(query_ids: Sequence[str]) -> str:
    shown = ", ".join(map(printable, query_ids[:_SHOWN])) + (", ..." if len(query_ids) > _SHOWN else "")
    return f"{len(query_ids)} queries ({shown})" if len(query_ids) > 1 else f"1 query ({shown})"
