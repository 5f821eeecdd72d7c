"""How much worse a cell would look had its like no part in the pool: leave-one-out by kin (Zobel, SIGIR 1998)."""

from collections.abc import Mapping, Set

from runner.base.records import IMPORTED, BM25Cell, CrossCell, HybridCell, Qrels, parse_cell
from runner.eval_set.batches import Pair
from runner.eval_set.shapes.pool import CellPool, LeftOut
from runner.retrieve.pool import pool
from runner.score.bootstrap import score_matrix
from runner.score.comparison import Comparison, mean
from runner.score.score import score

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
