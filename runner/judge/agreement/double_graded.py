"""Pairs graded more than once, by another judge or by the same one again, and whether a judge repeats itself.

Some pairs are planted once more in later batches. A model asked the same words at temperature 0 should repeat itself;
if it does not, the service changed what serves it. A person who grows tired or strict is seen here too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import JudgeDrift
from runner.eval_set.shapes.labels import Label
from runner.score.flips import exact_p, flipped
from runner.score.sign_flip import EXACT_UP_TO


@dataclass(frozen=True, slots=True)
class Double:
    """The scored grade of a pair beside another judge's. A model is "" if a person judged."""

    query_id: str
    doc_id: str
    first: int
    second: int
    first_judge: str
    second_judge: str
    first_model: str
    second_model: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """A pair that a judge read (`first`) and read once more (`again`)."""

    query_id: str
    doc_id: str
    judge: str
    first: int
    again: int


def doubles(labels: Iterable[Label]) -> tuple[Double, ...]:
    """Every other judge's first reading of a pair beside the scored grade, by query, document and that judge's name.

    The scored grade is the pair's earliest first-round line. A judge's first reading may be of a later round: if
    several share the batches, one is given another's pairs once more.
    """
    rows = tuple(labels)
    earliest = scored(rows)
    return tuple(
        Double(query_id, doc_id, first.grade, label.grade, first.judge, judge, first.model, label.model)
        for (query_id, doc_id, judge), label in sorted(_first_readings(rows).items())
        if (first := earliest.get((query_id, doc_id))) and first.judge != judge
    )


def repeats(labels: Iterable[Label]) -> tuple[Repeat, ...]:
    """Every further reading beside the same judge's first one, by query, document, judge and round."""
    rows = sorted(labels, key=lambda label: label.key)
    firsts = _first_readings(rows)
    return tuple(
        Repeat(label.query_id, label.doc_id, label.judge, first.grade, label.grade)
        for label in rows
        if (first := firsts[label.query_id, label.doc_id, label.judge]).round < label.round
    )


def _first_readings(labels: Iterable[Label]) -> dict[tuple[str, str, str], Label]:
    """The label of the lowest round by query, document and judge."""
    found: dict[tuple[str, str, str], Label] = {}
    for label in labels:
        first = found.setdefault((label.query_id, label.doc_id, label.judge), label)
        if label.round < first.round:
            found[label.query_id, label.doc_id, label.judge] = label
    return found


DRAWS = 10_000


def drifts(repeats: Sequence[Repeat], *, seed: int) -> list[JudgeDrift]:
    """One entry per judge with repeated readings, by name."""
    ordered = sorted(repeats, key=lambda repeat: repeat.judge)
    return [_drift(judge, list(rows), seed) for judge, rows in groupby(ordered, key=lambda repeat: repeat.judge)]


def _drift(judge: str, repeats: Sequence[Repeat], seed: int) -> JudgeDrift:
    shifts: Counter[str] = Counter()
    for repeat in repeats:
        shifts[repeat.query_id] += repeat.again - repeat.first
    same = sum(repeat.first == repeat.again for repeat in repeats)
    return JudgeDrift(
        judge=judge,
        repeats=len(repeats),
        queries=len(shifts),
        same=same,
        shift=shifts.total() / len(repeats),
        p_shift=sign_flip_p(list(shifts.values()), seed),
    )


def sign_flip_p(values: Sequence[int], seed: int) -> float:
    """Two-sided p of "their mean is 0"; exact up to EXACT_UP_TO values other than 0, else (1 + b) / (1 + draws)."""
    if sum(map(bool, values)) <= EXACT_UP_TO:
        return exact_p(values)
    sums = flipped(np.array([values], np.int64), draws=DRAWS, seed=seed).sums[0]
    extreme = int((np.abs(sum(values) - 2 * sums) >= abs(sum(values))).sum())
    return (1 + extreme) / (1 + len(sums))
