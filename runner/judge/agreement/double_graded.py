"""Pairs that were read more than once: by another judge, or by the same one again."""

from collections.abc import Iterable
from dataclasses import dataclass

from runner.eval_set.shapes.labels import Label


@dataclass(frozen=True, slots=True)
class Double:
    """The scored grade of a pair beside another judge's; `batch` is where the other judge read it.

    A model is "" where a person judged.
    """

    query_id: str
    doc_id: str
    first: int
    second: int
    first_judge: str
    second_judge: str
    first_model: str
    second_model: str
    batch: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """A pair that a judge read (`first`) and read once more (`again`), with the batches of both readings."""

    query_id: str
    doc_id: str
    judge: str
    first: int
    again: int
    first_batch: str
    again_batch: str


def doubles(labels: Iterable[Label]) -> tuple[Double, ...]:
    """Every other judge's first reading of a pair beside the scored grade, by query, document and that judge's name.

    The scored grade is the pair's earliest first-round line (`runner.score.score.qrels`). What a judge reads first
    may be of a later round: where several share the batches, one is given another's pairs once more.
    """
    rows = tuple(labels)
    scored: dict[tuple[str, str], Label] = {}
    for label in rows:
        if label.round == 1:
            scored.setdefault((label.query_id, label.doc_id), label)
    return tuple(
        _double(first, label)
        for (query_id, doc_id, judge), label in sorted(_first_readings(rows).items())
        if (first := scored.get((query_id, doc_id))) and first.judge != judge
    )


def repeats(labels: Iterable[Label]) -> tuple[Repeat, ...]:
    """Every further reading beside the same judge's first one, by query, document, judge and round."""
    rows = sorted(labels, key=lambda label: label.key)
    firsts = _first_readings(rows)
    return tuple(
        _repeat(first, label)
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


def _double(first: Label, second: Label) -> Double:
    return Double(
        first.query_id,
        first.doc_id,
        first.grade,
        second.grade,
        first.judge,
        second.judge,
        first.model,
        second.model,
        second.batch,
    )


def _repeat(first: Label, again: Label) -> Repeat:
    return Repeat(first.query_id, first.doc_id, first.judge, first.grade, again.grade, first.batch, again.batch)
