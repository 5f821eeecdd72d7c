"""How sure a choice is once the judge's errors count: a bootstrap over queries and, within it, over grades.

The second judge is the reference, as far as it read: of a pair that both read, the second's own grade counts. Of any
other, a grade is drawn from what the second said where the first gave the same grade to documents in the same place:
among the first ten of the cell alone, of the baseline alone, of both, of neither. So a judge that favours what one cell
finds shows in that cell's difference, which errors that fall on all cells alike do not. It takes second readings drawn
without regard to how the judges erred, as `labels double` draws them.

Everything random is a whole number out of PCG64, and everything summed is one too: results are the same on every
machine, where gamma or binomial variates, which go through the platform's logarithm, need not be.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import SCORE_UNIT, Ints
from runner.eval_set.asked import asked
from runner.eval_set.shapes.judges import JudgeNoise, NoisyCell
from runner.eval_set.shapes.plan import Rule
from runner.judge.agreement.double_graded import Double
from runner.score.comparison import Comparison
from runner.score.score import DISCOUNTS, units

SHRINKAGE = 2
"""Readings drawn from all places that join those of one place. They keep a place of few readings from being taken at
its word, and, drawn anew every time, from looking certain."""

Floats = NDArray[np.float64]

Levels = NDArray[np.uint16]

N_GRADES = 4

N_PLACES = 4

_KNOWN = N_GRADES * N_PLACES
"""Codes below are drawn: 4 times the place, and the first grade. From there on the grade is known: the code less this.
"""

_N_CODES = _KNOWN + N_GRADES

_SCALE = (1 << 16) - 1

_REACHED = np.concatenate([[0.0], np.cumsum(DISCOUNTS)])
"""What so many documents of one grade at the top gain, for a grade of 1."""


class JudgedQuery(NamedTuple):
    """A query's judged documents in a fixed order: first grades, and the second judge's where it read (else -1)."""

    slots: Mapping[str, int]
    first: Ints
    second: Ints


class Arm(NamedTuple):
    """A cell beside the baseline in one topic, which has a weight: of each wording its own weight, and the slots of
    both first tens, -1 if nothing was judged.

    `places` and `codes` (documents,) are every judged document's, over all wordings: 0 neither, 1 the cell alone, 2 the
    baseline alone, 3 both.
    """

    weight: int
    wordings: list[tuple[int, Ints, Ints]]
    places: Ints
    codes: Ints


def judged_queries(comparison: Comparison, doubles: Sequence[Double]) -> list[JudgedQuery]:
    """Return every topic that counts with its scored grades and those second readings, in the order of the queries."""
    second = {(double.query_id, double.doc_id): double.second for double in doubles}
    queries = []
    for place in comparison.counted:
        query_id = comparison.query_ids[place]
        grades = comparison.qrels.get(query_id, {})
        slots = {doc_id: slot for slot, doc_id in enumerate(sorted(grades))}
        first = np.array([grades[doc_id] for doc_id in slots], np.int64)
        read = np.array([second.get((query_id, doc_id), -1) for doc_id in slots], np.int64)
        queries.append(JudgedQuery(slots, first, read))
    return queries


def arms(comparison: Comparison, cell: str, queries: Sequence[JudgedQuery]) -> list[Arm]:
    """Return the cell beside the baseline, query by query."""
    beside = []
    for place, weight, query in zip(comparison.counted, comparison.weights, queries, strict=True):
        places, wordings = np.zeros(len(query.first), np.int64), []
        for one in asked([comparison.queries[place]]):
            own, other = (
                np.array([query.slots.get(hit.doc_id, -1) for hit in comparison.runs[name].hits[one.id][:10]], np.int64)
                for name in (cell, comparison.plan.baseline)
            )
            # A bit for the cell, and one for the baseline.
            places[own[own >= 0]] |= 1
            places[other[other >= 0]] |= 2
            wordings.append((comparison.weighing.wordings[one.wording], own, other))
        codes = np.where(query.second >= 0, _KNOWN + query.second, N_GRADES * places + query.first)
        beside.append(Arm(weight, wordings, places, codes))
    return beside


def drawn_differences(
    queries: Sequence[JudgedQuery],
    cells: Sequence[Sequence[Arm]],
    counts: Ints,
    relevant_grade: int,
    generator: np.random.Generator,
) -> Iterator[tuple[int, Ints]]:
    """Yield, for every query and cell, the cell's number and its differences (2, draws), summed over a draw's copies.

    In units of 1e-9: nDCG@10 and Recall@10 less the baseline's, their ideals over the grades drawn. `counts` (draws,
    queries) says how often a draw takes a query; what the second judge makes of a grade comes from the readings of the
    queries that the draw took. Each copy has grades of its own, the same ones for all cells as far as their places
    agree. What was not judged counts nothing. Memory goes with the documents and copies of one query.
    """
    draws = len(counts)
    pseudo = generator.integers(_SCALE, size=(N_PLACES, N_GRADES, SHRINKAGE, 1, draws), dtype=np.uint16)
    levels = [_levels(_readings(queries, of_cell, counts), pseudo) for of_cell in cells]
    for row, query in enumerate(queries):
        # A draw that takes the query twice has two copies of it.
        copies = np.repeat(np.arange(draws), counts[:, row])
        uniform = generator.integers(_SCALE, size=(len(query.first), len(copies)), dtype=np.uint16)
        for number, of_cell in enumerate(cells):
            values = _differences(of_cell[row], uniform, levels[number][:, :, copies], relevant_grade)
            # Whole numbers below 2 ** 53, so that weights of float add up exactly.
            of_draws = np.stack([np.bincount(copies, value, draws) for value in values]).astype(np.int64)
            yield number, of_cell[row].weight * of_draws


def _readings(queries: Sequence[JudgedQuery], of_cell: Sequence[Arm], counts: Ints) -> Ints:
    """Count second readings of the queries that each draw took: (places, first grades, second grades, draws)."""
    readings = np.zeros((len(queries), N_PLACES, N_GRADES, N_GRADES), np.int64)
    for row, (query, arm) in enumerate(zip(queries, of_cell, strict=True)):
        read = query.second >= 0
        np.add.at(readings[row], (arm.places[read], query.first[read], query.second[read]), 1)
    return np.tensordot(readings, counts, axes=(0, 1))


def _levels(readings: Ints, pseudo: Levels) -> Levels:
    """Return (3, codes, draws): the grade drawn is how many of the three a uniform number below _SCALE is not below."""
    everywhere = readings.sum(axis=0)
    # A quarter of a reading of every grade: what the second judge happened not to say is not impossible.
    below = np.cumsum(4 * everywhere + 1, axis=1)[:, :-1] / (4 * everywhere.sum(axis=1, keepdims=True) + N_GRADES)
    added = (pseudo < np.ceil(below * _SCALE)[None, :, None]).sum(axis=2)
    # Readings of the place itself, and those that join them.
    totals = readings.sum(axis=2, keepdims=True) + SHRINKAGE
    drawn = np.ceil((np.cumsum(readings, axis=2)[:, :, :-1] + added) / totals * _SCALE)
    grades, steps = np.arange(N_GRADES), np.arange(N_GRADES - 1)
    levels = np.empty((len(steps), _N_CODES, readings.shape[3]), np.uint16)
    levels[:, :_KNOWN] = drawn.transpose(2, 0, 1, 3).reshape(len(steps), _KNOWN, -1)
    # What the second judge read is what it said, whatever is drawn.
    levels[:, _KNOWN:] = np.where(grades > steps[:, None], 0, _SCALE)[:, :, None]
    return levels


def _differences(arm: Arm, uniform: Levels, levels: Levels, relevant_grade: int) -> tuple[Ints, Ints]:
    """Return nDCG@10 and Recall@10 of the cell less the baseline's, one a copy."""
    # Which documents reach grade 1, 2 and 3 in each copy: a grade is the sum of its steps.
    reached = [uniform >= level[arm.codes] for level in levels]
    numbers = [at_least.view(np.uint8).sum(axis=0, dtype=np.uint32) for at_least in reached]
    ideal, relevant = np.zeros(uniform.shape[1]), relevant_grade - 1
    # The best ranking has all documents of a step first.
    for number in numbers:
        ideal += _REACHED[np.minimum(number, len(DISCOUNTS))]
    gained, found = np.zeros((2, uniform.shape[1]), np.int64)
    for weight, *rankings in arm.wordings:
        gains = [np.zeros_like(ideal), np.zeros_like(ideal)]
        for gain, ranking in zip(gains, rankings, strict=True):
            for at_least in reached:
                gain += _discounted(at_least, ranking)
        hits = [reached[relevant][ranking[ranking >= 0]].sum(axis=0) for ranking in rankings]
        gained += weight * _less(gains, ideal)
        found += weight * _less(hits, numbers[relevant])
    size = sum(weight for weight, _, _ in arm.wordings)
    return _shared(gained, size), _shared(found, size)


def _shared(total: Ints, size: int) -> Ints:
    """Return totals by their weight, to the nearest unit, halves up."""
    return (2 * total + size) // (2 * size)


def _discounted(at_least: NDArray[np.bool_], ranking: Ints) -> Floats:
    """Return the discounts (copies,) of a ranking's documents that reach a grade; added rank by rank, in that order."""
    judged = np.flatnonzero(ranking >= 0)
    discounts: Floats = (at_least[ranking[judged]] * DISCOUNTS[judged, None]).sum(axis=0)
    return discounts


def _less(parts: Sequence[NDArray[Any]], whole: NDArray[Any]) -> Ints:
    """Return the first part's share of the whole less the second's, in units of 1e-9; 0 if there is no whole."""
    divisor = np.where(whole > 0, whole, 1)
    first, second = (units(part / divisor) for part in parts)
    return first - second


DRAWS = 2000

LEAST_READINGS = 30
"""Fewer second readings than this do not say how often a judge errs."""


def two_level(comparison: Comparison, doubles: Sequence[Double], *, draws: int = DRAWS, seed: int) -> JudgeNoise:
    """Return every cell's difference and share of candidates, over draws of queries and the second judge's grades.

    Of several second judges the one with the most readings counts, of equals the first by name. Nothing is drawn, and
    `unknown` says why, without a challenger, or with fewer than LEAST_READINGS second readings.
    """
    n_read = Counter(double.second_judge for double in doubles)
    judge = min(n_read, key=lambda name: (-n_read[name], name), default="")
    read = [double for double in doubles if double.second_judge == judge]
    cells, unknown = sorted(comparison.challengers), ""
    if not cells:
        unknown = "no cell is tested for a gain"
    elif len(read) < LEAST_READINGS:
        unknown = f"{len(read)} second readings do not say how often a judge errs; it takes {LEAST_READINGS}"
    if unknown:
        nothing: dict[str, Any] = {"draws": 0, "no_candidate": None, "cells": {}}
        return JudgeNoise(judge=judge, unknown=unknown, **nothing)
    plan, n_queries, weights = comparison.plan, len(comparison.counted), np.array(comparison.weights)
    # First level: which queries a draw takes, and how often.
    generator = np.random.default_rng(np.random.PCG64(seed))
    taken = generator.integers(n_queries, size=(draws, n_queries))
    counts = np.stack([(taken == row).sum(axis=1) for row in range(n_queries)], axis=1)
    # Second level: grades, as the second judge would give them.
    queries = judged_queries(comparison, read)
    beside = [arms(comparison, cell, queries) for cell in cells]
    totals = np.zeros((len(cells), 2, draws), np.int64)
    for number, values in drawn_differences(queries, beside, counts, plan.relevant_grade, generator):
        totals[number] += values
    whole = counts @ weights * SCORE_UNIT
    gains, recalls = totals[:, 0] / whole, totals[:, 1] / whole
    plain = comparison.paired(cells, "ndcg@10") * weights @ counts.T / whole
    candidates, level = _candidates(gains, recalls, plan.rule), plan.bootstrap.confidence
    return JudgeNoise(
        judge=judge,
        draws=draws,
        no_candidate=float((~candidates.any(axis=0)).mean()),
        cells={
            cell: NoisyCell(
                gain=float(gains[row].mean()),
                candidate=float(candidates[row].mean()),
                interval=_percentiles(gains[row], level),
                queries_only=_percentiles(plain[row], level),
            )
            for row, cell in enumerate(cells)
        },
        unknown="",
    )


def _percentiles(values: Floats, level: float) -> list[float]:
    """Return order statistics without interpolation, the same number from either end, as `mean_intervals` does."""
    # In binary 1 - 0.9 is a little too small, and would lose a draw.
    outside = int(len(values) * (1 - level) / 2 + 1e-9)
    low, high = np.sort(values)[[outside, len(values) - 1 - outside]].tolist()
    return [low, high]


def _candidates(gains: Floats, recalls: Floats, rule: Rule) -> NDArray[np.bool_]:
    """Return whether a cell meets criterion 5, by draw.

    `gains` and `recalls` are means less the baseline's (cells, draws), compared at the four places of thresholds.
    """
    # First to the nine places of results.json, since rounding twice is not rounding once.
    rounded_gains, rounded_recalls = (np.round(np.round(values, 9), 4) for values in (gains, recalls))
    return (rounded_gains >= rule.min_gain) & (rounded_recalls >= -rule.max_recall_loss)
