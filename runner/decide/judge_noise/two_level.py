"""How sure a choice is once the judge's errors count: a bootstrap over queries and, within it, over grades.

The second judge is the reference, as far as it read; what it would have said of the rest is drawn
(`runner.decide.judge_noise.second_grades`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT
from runner.decide.judge_noise.second_grades import Floats, arms, drawn_differences, judged_queries
from runner.eval_set.shapes.judges import NoiseResult, NoisyCell
from runner.eval_set.shapes.plan import Plan
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison

DRAWS = 2000

LEAST_READINGS = 30
"""Fewer second readings than this do not say how often a judge errs."""


class _Drawn(NamedTuple):
    """Means over the queries of every draw, (cells, draws): nDCG@10 and Recall@10 less the baseline's."""

    gains: Floats
    recalls: Floats


def two_level(comparison: Comparison, doubles: Sequence[Double], *, draws: int = DRAWS, seed: int) -> NoiseResult:
    """Every cell's difference to the baseline, and the choice, over draws of queries and of the second judge's grades.

    Of several second judges the one with the most readings counts, of equals the first by name. Nothing is drawn, and
    `unknown` says why, without a challenger, or with fewer than LEAST_READINGS second readings.
    """
    judge, read = _reference(doubles)
    unknown = ""
    if not comparison.challengers:
        unknown = "no cell stands beside the baseline"
    elif len(read) < LEAST_READINGS:
        unknown = f"{len(read)} second readings do not say how often a judge errs; it takes {LEAST_READINGS}"
    found = NoiseResult(
        judge=judge,
        readings=len(read),
        changed=sum(double.first != double.second for double in read),
        draws=0 if unknown else draws,
        confidence=comparison.plan.bootstrap.confidence,
        chosen=_chosen_now(comparison),
        stability=None,
        stability_queries_only=None,
        cells=[],
        unknown=unknown,
    )
    return found if unknown else _with_draws(found, comparison, read, seed)


def _reference(doubles: Sequence[Double]) -> tuple[str, list[Double]]:
    """The second judge with the most readings, and those; "" without any."""
    counts = Counter(double.second_judge for double in doubles)
    judge = min(counts, key=lambda name: (-counts[name], name), default="")
    return judge, [double for double in doubles if double.second_judge == judge]


def _with_draws(found: NoiseResult, comparison: Comparison, read: Sequence[Double], seed: int) -> NoiseResult:
    cells, plan, n_queries = sorted(comparison.challengers), comparison.plan, len(comparison.query_ids)
    generator = np.random.default_rng(np.random.PCG64(seed))
    taken = generator.integers(n_queries, size=(found.draws, n_queries))
    counts = np.stack([(taken == row).sum(axis=1) for row in range(n_queries)], axis=1)
    queries = judged_queries(comparison, read)
    beside = [arms(comparison, cell, queries) for cell in cells]
    totals = np.zeros((len(cells), 2, found.draws), np.int64)
    for number, values in drawn_differences(queries, beside, counts, plan.relevant_grade, generator):
        totals[number] += values
    scored = (comparison.paired(cells, measure) @ counts.T for measure in ("ndcg@10", "recall@10"))
    whole = n_queries * SCORE_UNIT
    noisy, plain = _Drawn(totals[:, 0] / whole, totals[:, 1] / whole), _Drawn(*(total / whole for total in scored))
    level, choice = plan.bootstrap.confidence, [*cells, plan.baseline].index(found.chosen)
    stable, plainly = (float((_choices(drawn, plan) == choice).mean()) for drawn in (noisy, plain))
    rows = [
        NoisyCell(
            cell=cell,
            gain=float(noisy.gains[number].mean()),
            interval=percentiles(noisy.gains[number], level),
            queries_only=percentiles(plain.gains[number], level),
        )
        for number, cell in enumerate(cells)
    ]
    return found.model_copy(update={"stability": stable, "stability_queries_only": plainly, "cells": rows})


def percentiles(values: Floats, level: float) -> list[float]:
    """Order statistics without interpolation, the same number from either end, as of `significance.mean_intervals`."""
    outside = int(len(values) * (1 - level) / 2 + 1e-9)
    low, high = np.sort(values)[[outside, len(values) - 1 - outside]].tolist()
    return [low, high]


def _choices(drawn: _Drawn, plan: Plan) -> NDArray[np.intp]:
    """By draw the number of the best cell that meets criterion 5, of equals the first; that of the cells if none does.

    Compared at the four places of thresholds.
    """
    gains, recalls = (np.round(np.round(values, 9), 4) for values in drawn)
    meets = (gains >= plan.rule.min_gain) & (recalls >= -plan.rule.max_recall_loss)
    return np.where(meets.any(axis=0), np.where(meets, drawn.gains, -np.inf).argmax(axis=0), len(meets))


def _chosen_now(comparison: Comparison) -> str:
    cells = sorted(comparison.challengers)
    if not cells:
        return comparison.plan.baseline
    whole = len(comparison.query_ids) * SCORE_UNIT
    gains, recalls = (comparison.paired(cells, name).sum(axis=1) / whole for name in ("ndcg@10", "recall@10"))
    (number,) = _choices(_Drawn(gains[:, None], recalls[:, None]), comparison.plan)
    return [*cells, comparison.plan.baseline][int(number)]
