"""A share of the judged pairs once more, for a judge who does not see what the first one said."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import digest, write_atomic
from runner.base.errors import InputError, InputNeeded
from runner.base.places import DRIVER
from runner.eval_set.batches import Pair, all_rows, batch_files, number_of, read_batch, write_batches
from runner.eval_set.labels import scored, version_labels
from runner.eval_set.plan import same_model
from runner.eval_set.shapes.labels import BatchRow, Label
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version
from runner.judge.prep_labels import import_command

SHARE = 0.1
"""Of the judged pairs, unless somebody says otherwise."""


@dataclass(frozen=True)
class SecondReadings:
    """What is with a second judge: `pairs` of the `judged` ones, `waiting` for an answer, in the files of `paths`."""

    judged: int
    pairs: int
    waiting: int
    paths: list[Path]


def chosen_pairs(grades: Mapping[Pair, int], share: float) -> list[Pair]:
    """That share of the pairs of every grade, by a digest of the pair, sorted; rounded so that their sum is the share.

    A larger share holds a smaller one, and labels added later change little of it.
    """
    return _of_every_grade(sorted(grades, key=lambda pair: digest(["second reading", *pair])), grades, share)


def _of_every_grade(ordered: Iterable[Pair], grades: Mapping[Pair, int], share: float) -> list[Pair]:
    """That share of the pairs of every grade, sorted: the first of each as they are ordered."""
    of_grade: dict[int, list[Pair]] = defaultdict(list)
    for pair in ordered:
        of_grade[grades[pair]].append(pair)
    chosen: list[Pair] = []
    wanted = 0.0
    for grade in sorted(of_grade):
        wanted += share * len(of_grade[grade])
        chosen += of_grade[grade][: round(wanted + 1e-9) - len(chosen)]
    return sorted(chosen)


def export_doubles(version: Version, labels: Sequence[Label], share: float) -> SecondReadings:
    """Batches of second readings for that share of the judged pairs whose batch is here, with those exported before.

    InputError if nothing is judged, or no batch is here.
    """
    judges = judges_of(labels)
    grades = {pair: label.grade for pair, label in scored(labels).items()}
    if not grades:
        raise InputError(f"{version.name} has no judged pairs yet; a second reading needs a first one.")
    folder = version.judging
    rows: dict[Pair, BatchRow] = {}
    for row in all_rows(folder):
        rows.setdefault((row.query_id, row.doc_id), row)
    known = {pair: grade for pair, grade in grades.items() if pair in rows}
    if not known:
        raise InputError(
            f"{version.name}: no judged pair is in a batch of {folder}: what the first judge was shown is not known on "
            "this machine. Take the second reading where the batches are."
        )
    place = {(r.query_id, r.doc_id): path for path in batch_files(folder, "double") for r in read_batch(path)}
    wanted = [pair for pair in chosen_pairs(known, share) if pair not in place and len(judges[pair]) < 2]
    fresh = [rows[pair] for pair in sorted(wanted, key=digest)]
    above = max((number_of(label.batch) for label in labels if label.batch.startswith("double-")), default=0)
    for path in write_batches(folder, fresh, "double", above=above):
        place.update({(row.query_id, row.doc_id): path for row in read_batch(path)})
    write_atomic(folder / version.judge_path.name, version.judge_path.read_bytes())
    waiting = [pair for pair in place if len(judges[pair]) < 2]
    return SecondReadings(len(known), len(place), len(waiting), sorted({place[pair] for pair in waiting}))


REGRADED = 100
"""Pairs of the model that graded first, which another model reads before its own grades may confirm anything."""


class Regrading(NamedTuple):
    """Pairs that the model `first` graded and the model `then`, which grades what was added, has still to read."""

    first: str
    then: str
    pairs: list[Pair]

    @property
    def title(self) -> str:
        """What is to be done, where nothing else is."""
        return f"{len(self.pairs):,} pairs of {self.first} to be read by {self.then}, blind, before its grades confirm"

    @property
    def note(self) -> str:
        """What whoever hands out the batches should know, and whoever judges them need not."""
        return (
            f"{self.first} graded {len(self.pairs):,} of these pairs already; they stand among the others, unmarked, "
            f"so that the shift to {self.then} is known. Nothing is confirmed before they are read."
        )


def due_regrading(version: Version, plan: Plan, queries: Container[str], missing: Sequence[Pair]) -> Regrading | None:
    """What of the first model's pairs, of these queries, another model has still to read; None if nothing waits.

    The model that the plan names counts as the other one while pairs are missing.
    """
    coming = plan.judges.first.model if plan.judges and missing else ""
    if not (missing or batch_files(version.judging)):  # as for second readings: not on a machine without batches
        return None
    return to_regrade([label for label in version_labels(version) if label.query_id in queries], coming)


def scored_models(labels: Iterable[Label]) -> list[str]:
    """The language models whose grades are scored, by when each graded first; ids that differ by a date are one."""
    found: list[str] = []
    for label in scored(labels).values():
        if label.model and not any(same_model(label.model, one) for one in found):
            found.append(label.model)
    return found


def readings_of(labels: Iterable[Label], model: str, pairs: Container[Pair]) -> dict[Pair, int]:
    """The first grade that a model gave to each of the pairs that it read."""
    found: dict[Pair, int] = {}
    for label in sorted(labels, key=lambda label: label.round):
        if (label.query_id, label.doc_id) in pairs and same_model(label.model, model):
            found.setdefault((label.query_id, label.doc_id), label.grade)
    return found


def to_regrade(labels: Sequence[Label], coming: str = "") -> Regrading | None:
    """What the second of two models has still to read of the first one's pairs, until it has read REGRADED or all.

    `coming` is the model that is about to grade, "" for none. None if one model graded alone. More than two models are
    asked for nothing: a shift among so many is not estimated.
    """
    models = scored_models(labels)
    if coming and not any(same_model(coming, one) for one in models):
        models.append(coming)
    if len(models) != 2:  # two models have one shift
        return None
    first, then = models
    grades = {pair: label.grade for pair, label in scored(labels).items() if same_model(label.model, first)}
    read = readings_of(labels, then, grades)
    left = min(REGRADED, len(grades)) - len(read)
    pairs = [pair for pair in _drawn(grades, REGRADED) if pair not in read][: max(0, left)]
    return Regrading(first, then, pairs) if pairs else None


def _drawn(grades: Mapping[Pair, int], n_pairs: int) -> list[Pair]:
    """So many of the pairs, by a digest: every grade by its share, and within a grade the queries by turns."""
    by_chance = sorted(grades, key=lambda pair: digest(["regraded", *pair]))
    taken: Counter[tuple[str, int]] = Counter()
    turns: dict[Pair, int] = {}
    for pair in by_chance:
        turns[pair] = taken[pair[0], grades[pair]]
        taken[pair[0], grades[pair]] += 1
    chosen = set(_of_every_grade(sorted(by_chance, key=turns.__getitem__), grades, min(1.0, n_pairs / len(grades))))
    return [pair for pair in by_chance if pair in chosen]


def judges_of(labels: Iterable[Label]) -> dict[Pair, set[str]]:
    """Who read each pair; one whom two have read waits for nobody."""
    found: dict[Pair, set[str]] = defaultdict(set)
    for label in labels:
        found[label.query_id, label.doc_id].add(label.judge)
    return found


def unread_twice(version: Version, plan: Plan) -> list[Path]:
    """The files of the second judge's share of a model's grades that are not read again yet; [] if nothing waits."""
    labels = version_labels(version)
    second = plan.judges.second if plan.judges else None
    if second is None or not any(label.model for label in scored(labels).values()):
        return []
    if not batch_files(version.judging):  # what the first judge was shown is not known on this machine
        return []
    return export_doubles(version, labels, second.share).paths


def second_reading_stop(version: Version, files: Sequence[Path], again: str) -> InputNeeded:
    """What a person is told while pairs wait for a second judge."""
    judges = judges_of(version_labels(version))
    rows = [(row.query_id, row.doc_id) for path in files for row in read_batch(path)]
    waiting, named, flags = sum(len(judges[pair]) < 2 for pair in rows), " ".join(map(str, files)), version.flags
    planned = version.plan().judges
    second = planned.second if planned else None
    asks = f"{DRIVER} judge {version.viewed}      by the plan's second judge; then nothing is to be imported\n"
    return InputNeeded(
        f"{waiting:,} pairs to be read by a second judge, who does not see the first grades",
        [
            "Have them read, one of:\n"
            f"{DRIVER} labels page {flags} {named}      by keyboard, in your browser\n"
            f"{'' if second and second.by_file else asks}{named}      any other way",
            f"Import what was judged:\n{import_command(version, second, 'OTHER-NAME')}",
            again,
        ],
    )
