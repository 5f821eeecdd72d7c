"""What unjudged hits and the pool do to a cell's score.

Measures that treat unjudged hits otherwise (condensed lists, bpref, RBP with its residual), and how much worse a cell
would look had its like no part in the pool: leave-one-out by kin (Zobel, SIGIR 1998).
"""

from collections.abc import Mapping, Set
from typing import NamedTuple

import numpy as np

from runner.base.records import IMPORTED, BM25Cell, CrossCell, HybridCell, Ints, Qrels, Run, parse_cell
from runner.eval_set.batches import Pair
from runner.eval_set.shapes.pool import CellPool, LeftOut, Sensitivity, SensitivityMeasure
from runner.retrieve.pool import pool
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean
from runner.score.score import score, units

PERSISTENCE = 0.8
"""How likely a reader goes on to the next rank (RBP's p)."""


class SensitivityScores(NamedTuple):
    """Per-query values (queries,) in units of 1e-9, in the order of the comparison's queries."""

    condensed: Ints
    bpref: Ints
    rbp: Ints
    residual: Ints


def sensitivity(comparison: Comparison) -> dict[str, Sensitivity]:
    """Every cell's means and their differences to the baseline."""
    values = {cell: sensitivity_scores(comparison, run) for cell, run in comparison.runs.items()}
    baseline = values[comparison.plan.baseline]
    return {
        cell: Sensitivity(
            condensed=_beside(own.condensed, baseline.condensed),
            bpref=_beside(own.bpref, baseline.bpref),
            rbp=_beside(own.rbp, baseline.rbp),
            residual=mean(own.residual),
        )
        for cell, own in values.items()
    }


def sensitivity_scores(comparison: Comparison, run: Run) -> SensitivityScores:
    """The run's values query by query.

    `condensed` is nDCG@10 of the ranking without its unjudged hits (Sakai, SIGIR 2007); where a query's first ten are
    all judged it is nDCG@10 itself. It favours systems that were not pooled, as counting holes as wrong hurts them.
    """
    qrels, relevant_grade = comparison.qrels, comparison.plan.relevant_grade
    condensed = score(_condensed(run, qrels), comparison.query_ids, qrels, relevant_grade).values["ndcg@10"]
    lists = {
        query_id: [qrels.get(query_id, {}).get(hit.doc_id) for hit in run.hits[query_id]]
        for query_id in comparison.query_ids
    }
    rbp = [_rbp(grades, comparison.highest_grade) for grades in lists.values()]
    return SensitivityScores(
        np.array(condensed, np.int64),
        units(np.array([_bpref(found, qrels.get(q, {}), relevant_grade) for q, found in lists.items()])),
        units(np.array([value for value, _ in rbp])),
        units(np.array([residual for _, residual in rbp])),
    )


def _beside(own: Ints, baseline: Ints) -> SensitivityMeasure:
    return SensitivityMeasure(mean=mean(own), difference=mean(own - baseline))


def _condensed(run: Run, qrels: Qrels) -> Run:
    return Run(
        run.cell,
        {
            query_id: tuple(hit for hit in hits if hit.doc_id in qrels.get(query_id, {}))
            for query_id, hits in run.hits.items()
        },
    )


def _bpref(ranked: list[int | None], judged: Mapping[str, int], relevant_grade: int) -> float:
    """How rarely documents judged irrelevant stand above relevant ones, as trec_eval has it; 0 without relevant ones.

    1/R sum over the relevant r retrieved of 1 - min(n above r, R) / min(N, R), where R and N are the documents judged
    relevant and not (Buckley & Voorhees, SIGIR 2004).
    """
    n_relevant = sum(grade >= relevant_grade for grade in judged.values())
    most = min(n_relevant, sum(0 <= grade < relevant_grade for grade in judged.values()))
    total, above = 0.0, 0
    for grade in ranked:
        if grade is None or grade < 0:
            continue
        if grade < relevant_grade:
            above += 1
        else:
            total += 1 - min(above, n_relevant) / most if above else 1
    return total / n_relevant if n_relevant else 0.0


def _rbp(ranked: list[int | None], highest_grade: int) -> tuple[float, float]:
    """Rank-biased precision with gain grade / highest, and its residual (Moffat & Zobel, TOIS 2008).

    The residual is what unjudged hits would add if all were perfect. Nothing is added for ranks below the end of a
    list: a run of 100 hits leaves PERSISTENCE ** 100 = 2e-10 there, and a shorter one retrieved nothing more.
    """
    value = residual = 0.0
    weight = 1 - PERSISTENCE
    for grade in ranked:
        if grade is None:
            residual += weight
        else:
            value += weight * max(grade, 0) / highest_grade
        weight *= PERSISTENCE
    return value, residual


_BM25 = "bm25"


def pool_bias(comparison: Comparison) -> dict[str, CellPool]:
    """Every cell without what only it and its like brought into the pool; {} where the qrels are published.

    Both scores are under the same rules: what is left out counts as not relevant, and no longer in the ideal either,
    so that a score can rise where the cell had ranked a relevant document low.
    """
    if comparison.published:
        return {}
    depth = comparison.plan.pool_depth
    pooled = {cell: frozenset(pool([run], depth)) for cell, run in comparison.runs.items()}
    return {cell: _cell_pool(comparison, cell, pooled) for cell in pooled}


def arms(cell: str) -> frozenset[str]:
    """What a cell ranks by: its encoder, BM25 of any variant, or both; an imported cell is known by its name alone."""
    if cell.startswith(f"{IMPORTED}:"):
        return frozenset([cell])
    parsed = parse_cell(cell)
    if isinstance(parsed, BM25Cell):
        return frozenset([_BM25])
    if isinstance(parsed, CrossCell):
        return frozenset([parsed.model, _BM25])
    return frozenset([parsed.encoder, _BM25] if isinstance(parsed, HybridCell) else [parsed.encoder])


def _cell_pool(comparison: Comparison, cell: str, pooled: Mapping[str, Set[Pair]]) -> CellPool:
    baseline = comparison.plan.baseline
    strangers = [other for other in pooled if other != cell and (other == baseline or not arms(cell) & arms(other))]
    return CellPool(pairs=len(pooled[cell]), kin=_left_out(comparison, cell, strangers, pooled))


def _left_out(comparison: Comparison, cell: str, pooling: list[str], pooled: Mapping[str, Set[Pair]]) -> LeftOut | None:
    """The cell if only the cells `pooling` made the pool; None if there are none of them."""
    if not pooling:
        return None
    kept = frozenset().union(*(pooled[other] for other in pooling))
    pairs = frozenset().union(*pooled.values()) - kept
    without, relevant_grade = _without(comparison.qrels, pairs), comparison.plan.relevant_grade
    baseline, own = (
        score(comparison.runs[name], comparison.query_ids, without, relevant_grade)
        for name in (comparison.plan.baseline, cell)
    )
    values = score_matrix([baseline, own], "ndcg@10")
    return LeftOut(
        pairs=len(pairs),
        relevant=sum(comparison.qrels.get(q, {}).get(d, 0) >= relevant_grade for q, d in pairs),
        ndcg=mean(values[1]),
        difference=mean(values[1] - values[0]),
    )


def _without(qrels: Qrels, pairs: Set[Pair]) -> Qrels:
    return {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if (query_id, doc_id) not in pairs}
        for query_id, grades in qrels.items()
    }
