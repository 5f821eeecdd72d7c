"""Whether the ranking of cells would hold in a smaller or a larger collection of the same kind.

Distractors are the documents without gain for a query, judged or not; documents with gain are never taken away and
none is added. Fewer distractors: the exact expectation over all subsamples. More: a law of how many of the added ones
stand above a relevant document, fitted cell by cell and tested from a tenth of the collection up to all of it. The
order of a run is taken as given: a cell whose scores depend on the collection (BM25's idf, fusion by rank, re-ranking
of BM25's first 100) would not quite keep it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runner.base.records import SCORE_UNIT, Ints, Qrels, Run
from runner.decide.scale.backtest import back_tests, counts, extrapolated
from runner.decide.scale.law import Law
from runner.decide.scale.places import Floats, Places, placed
from runner.decide.scale.sentences import sentences
from runner.decide.scale.thinning import thinned
from runner.eval_set.shapes.scale import ScaleCell, ScaleFactor, ScalePoint, ScaleResult
from runner.score.bootstrap import mean_intervals, resampled_totals
from runner.score.comparison import Comparison
from runner.score.score import units

FACTORS = (0.1, 0.33, 1.0, 10.0, 100.0)
NOW = FACTORS.index(1.0)


class _Table(NamedTuple):
    """Cells by factors: sums over the queries, the most they can be, ends of intervals, sums of every resample."""

    sums: Ints
    most: Ints
    ends: Floats
    totals: Ints
    n_queries: int


def scale_of(comparison: Comparison) -> ScaleResult:
    """What fewer and more distractors would make of the scores and of the cells' order, by the plan's settings."""
    bootstrap = comparison.plan.bootstrap
    return scale_result(
        comparison.runs,
        comparison.query_ids,
        comparison.qrels,
        len(comparison.document_lengths),
        baseline=comparison.plan.baseline,
        seed=bootstrap.seed,
        resamples=bootstrap.resamples,
        confidence=bootstrap.confidence,
    )


def scale_result(
    runs: Mapping[str, Run],
    query_ids: Sequence[str],
    qrels: Qrels,
    n_documents: int,
    *,
    baseline: str,
    seed: int,
    resamples: int,
    confidence: float,
) -> ScaleResult:
    """Every run's nDCG@10 at every factor of FACTORS, the order of the cells there, and how far to trust it.

    At factor 1 means and intervals are those of `score` and `mean_intervals`. ValueError for no query, or a baseline
    that is not among the runs; KeyError if a run misses a query.
    """
    if not query_ids:
        raise ValueError("0 queries have no mean")
    if baseline not in runs:
        raise ValueError(f"the baseline {baseline!r} is not among the {len(runs)} runs")
    places, lists, n_named = placed(runs, query_ids, qrels)
    distractors = _distractors(places, query_ids, qrels, n_documents)
    names = sorted(runs, key=lambda cell: (-int(places[cell].ndcg().sum()), cell))
    laws = {cell: Law(counts(places[cell], places[cell].above, distractors)) for cell in names}
    table = _table([_cell_values(places[cell], laws[cell], distractors) for cell in names], seed, resamples, confidence)
    factors = _factors(names, table)
    tests = back_tests(places, lists, distractors, max(n_documents, n_named), seed=seed)
    sides = _sides(table, names.index(baseline))
    cells = [
        ScaleCell(
            cell=cell,
            centre=float(laws[cell].parameters[0]),
            scale=float(np.exp(laws[cell].parameters[1])),
            points=_points(table, row, None if cell == baseline else sides[row]),
            back_test=tests.get(cell),
        )
        for row, cell in enumerate(names)
    ]
    return ScaleResult(
        baseline=baseline,
        documents=n_documents,
        distractors=[int(distractors.min()), int(distractors.max())],
        factors=factors,
        cells=cells,
        sentences=sentences(factors, cells, baseline),
    )


def _distractors(places: Mapping[str, Places], query_ids: Sequence[str], qrels: Qrels, n_documents: int) -> Ints:
    """Each query's documents without gain; no fewer than stand above one of its relevant documents in some run."""
    with_gain = [sum(gain > 0 for gain in qrels.get(query_id, {}).values()) for query_id in query_ids]
    found = np.maximum(n_documents - np.array(with_gain, np.int64), 0)
    for place in places.values():
        np.maximum.at(found, place.queries, place.above)
    return found


def _cell_values(places: Places, law: Law, distractors: Ints) -> tuple[Ints, Ints, Ints]:
    """Per-query nDCG@10, the most that it can be, and the values to resample, (factors, queries) in units of 1e-9.

    The values to resample add to a query's nDCG@10 what it does to the law, and through it to the others': their
    mean over a resample is, to first order, that of an extrapolation fitted to the resample (the infinitesimal
    jackknife, Efron 1982).
    """
    moved = np.stack([places.per_query(row) for row in law.influences()])
    moved -= moved.mean(axis=1, keepdims=True)
    now = places.ndcg()
    rows: list[tuple[Ints, Ints, Ints]] = []
    for factor in FACTORS:
        if factor > 1:
            expected, slopes = extrapolated(law, places, places.above, distractors, factor)
            mean = places.per_query(expected)
            rows.append((units(mean), units(mean), units(mean + slopes.sum(axis=1) @ moved)))
        elif factor < 1:
            mean, missing = thinned(places, distractors, factor)
            rows.append((units(mean), units(mean + missing), units(mean)))
        else:
            rows.append((now, now, now))
    values, most, resampled = (np.stack(column) for column in zip(*rows, strict=True))
    return values, most, resampled


def _table(found: Sequence[tuple[Ints, Ints, Ints]], seed: int, resamples: int, confidence: float) -> _Table:
    values, most, resampled = (np.stack(column) for column in zip(*found, strict=True))
    shape = values.shape[:2]
    flat = resampled.reshape(-1, resampled.shape[2])
    intervals = mean_intervals(flat, seed=seed, resamples=resamples, level=confidence)
    ends = np.array([(interval.low, interval.high) for interval in intervals]).clip(0.0, 1.0)
    totals = resampled_totals(flat, seed=seed, resamples=resamples)
    return _Table(
        values.sum(axis=2), most.sum(axis=2), ends.reshape(*shape, 2), totals.reshape(*shape, -1), values.shape[2]
    )


def _points(table: _Table, row: int, sides: Floats | None) -> list[ScalePoint]:
    whole = table.n_queries * SCORE_UNIT
    return [
        ScalePoint(
            factor=factor,
            mean=int(table.sums[row, j]) / whole,
            low=float(table.ends[row, j, 0]),
            high=float(table.ends[row, j, 1]),
            at_most=int(table.most[row, j]) / whole,
            rank=1 + int((table.sums[:, j] > table.sums[row, j]).sum()),
            side_stays=None if sides is None else float(sides[j]),
        )
        for j, factor in enumerate(FACTORS)
    ]


def _sides(table: _Table, baseline: int) -> Floats:
    """Shares of resamples (cells, factors) in which a cell lies to the baseline as its mean does now."""
    now = np.sign(table.sums[:, NOW] - table.sums[baseline, NOW])[:, None, None]
    found: Floats = (np.sign(table.totals - table.totals[baseline]) == now).mean(axis=2)
    return found


def _factors(names: Sequence[str], table: _Table) -> list[ScaleFactor]:
    """The order at every factor; the first cell is the best now."""
    return [
        ScaleFactor(
            factor=factor,
            tau=_tau_b(table.sums[:, NOW], table.sums[:, j]),
            best=min(zip((-table.sums[:, j]).tolist(), names, strict=True))[1],
            best_stays=float((table.totals[0, j] == table.totals[:, j].max(axis=0)).mean()),
        )
        for j, factor in enumerate(FACTORS)
    ]


def _tau_b(left: Ints, right: Ints) -> float | None:
    """Kendall's rank correlation with its correction for ties (Kendall 1945); None if either does not vary."""
    signs = [np.sign(values[:, None] - values) for values in (left, right)]
    pairs = [int((sign**2).sum()) for sign in signs]
    if not all(pairs):
        return None
    return float((signs[0] * signs[1]).sum() / (pairs[0] * pairs[1]) ** 0.5)
