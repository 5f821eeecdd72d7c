"""Pairs graded more than once, by another judge or by the same one again, and whether a judge repeats itself.

Some pairs are planted once more in later batches. A model asked the same words at temperature 0 should repeat itself;
if it does not, the service changed what serves it. A person who grows tired or strict is seen here too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from runner.eval_set.batches import Pair
from runner.eval_set.labels import scored
from runner.eval_set.shapes.judges import JudgeDrift
from runner.eval_set.shapes.labels import Label
from runner.score.flips import exact_p, flipped
from runner.score.sign_flip import EXACT_UP_TO

DRAWS = 10_000


class Double(NamedTuple):
    """The scored grade of a pair beside another judge's. A model is "" if a person judged.

    `copied` is true if both gave the same reason, word for word.
    """

    query_id: str
    doc_id: str
    first: int
    second: int
    first_judge: str
    second_judge: str
    first_model: str
    second_model: str
    copied: bool = False

    @property
    def pair(self) -> Pair:
        """Query and document."""
        return (self.query_id, self.doc_id)


def doubles(labels: Iterable[Label]) -> tuple[Double, ...]:
    """Return every other judge's first reading of a pair beside the scored grade, by query, document and judge.

    The scored grade is the pair's earliest first-round line. A judge's first reading may be of a later round: if
    several share the batches, one is given another's pairs once more.
    """
    rows = tuple(labels)
    earliest = scored(rows)
    return tuple(
        Double(
            query_id,
            doc_id,
            first.grade,
            label.grade,
            first.judge,
            judge,
            first.model,
            label.model,
            bool(label.reason) and label.reason == first.reason,
        )
        for (query_id, doc_id, judge), label in sorted(_first_readings(rows).items())
        if (first := earliest.get((query_id, doc_id))) and first.judge != judge
    )


def second_grades(labels: Iterable[Label]) -> dict[Pair, list[int]]:
    """Return what every judge but the first said of a pair that several read."""
    grades: dict[Pair, list[int]] = defaultdict(list)
    for double in doubles(labels):
        grades[double.pair].append(double.second)
    return grades


def drifts(labels: Iterable[Label], *, seed: int) -> dict[str, JudgeDrift]:
    """Return one entry per judge who read pairs again, by name: later readings beside its first one of the pair."""
    rows = sorted(labels, key=lambda label: label.key)
    firsts = _first_readings(rows)
    changes: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for label in rows:
        first = firsts[label.query_id, label.doc_id, label.judge]
        if first.round < label.round:
            changes[label.judge].append((label.query_id, label.grade - first.grade))
    return {judge: _drift(changes[judge], seed) for judge in sorted(changes)}


def _drift(changes: Sequence[tuple[str, int]], seed: int) -> JudgeDrift:
    # The readings of one query are not independent: signs are flipped by query.
    shifts: Counter[str] = Counter()
    for query_id, change in changes:
        shifts[query_id] += change
    return JudgeDrift(
        repeats=len(changes),
        queries=len(shifts),
        same=sum(change == 0 for _, change in changes),
        shift=shifts.total() / len(changes),
        p_shift=sign_flip_p(list(shifts.values()), seed),
    )


def _first_readings(labels: Iterable[Label]) -> dict[tuple[str, str, str], Label]:
    """Return the label of the lowest round by query, document and judge."""
    firsts: dict[tuple[str, str, str], Label] = {}
    for label in labels:
        first = firsts.setdefault((*label.pair, label.judge), label)
        if label.round < first.round:
            firsts[*label.pair, label.judge] = label
    return firsts


def sign_flip_p(values: Sequence[int], seed: int) -> float:
    """Return the two-sided p of "their mean is 0"; exact up to EXACT_UP_TO values other than 0, else of draws."""
    if sum(map(bool, values)) <= EXACT_UP_TO:
        return exact_p(values)
    # Too many to enumerate: random signs, drawn by query.
    sums = flipped(np.array([values], np.int64), draws=DRAWS, seed=seed).sums[0]
    extreme = int((np.abs(sum(values) - 2 * sums) >= abs(sum(values))).sum())
    # The values as they are count as one more draw.
    return (1 + extreme) / (1 + len(sums))
