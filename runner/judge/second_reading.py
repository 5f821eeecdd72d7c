"""A share of the judged pairs once more, for a judge who sees neither the first grade nor which list has the pair.

Errors that follow one list are those that a decision does not survive, and only pairs that one of two lists has alone
move what is decided. So these are read again first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import digest, write_atomic
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.steps import Step
from runner.eval_set.asked import asked_ids
from runner.eval_set.batches import Pair, all_rows, batch_files, read_batch, write_batches
from runner.eval_set.labels import newest_batch, scored, version_labels
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.labels import BatchRow, Label
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_queries
from runner.judge.prep_labels import import_command
from runner.retrieve.pool import pooled
from runner.score.source_documents import missed_sources

SHARE = 0.1
"""Of the judged pairs, unless somebody says otherwise."""


class SecondReadings(NamedTuple):
    """What is with a second judge: `pairs` of the `judged` ones, `waiting` for an answer, in the files of `paths`."""

    judged: int
    pairs: int
    waiting: int
    paths: list[Path]


def chosen_pairs(
    grades: Mapping[Pair, int], share: float, moving: Collection[Pair] = (), *, relevant_grade: int, seed: int
) -> list[Pair]:
    """Return that share of the pairs, sorted; half of them, and as large a share at least, of the relevant ones.

    Most pairs have grade 0, of which judges seldom differ: a share of all would say little of the grades that scores
    rest on. Of either half first those that move a difference, and as large a part of every grade, by a digest of seed
    and pair, which says nothing of rank or list. A larger share holds about all of a smaller one, and labels added
    later change little of it.
    """
    relevant = {pair: grade for pair, grade in grades.items() if grade >= relevant_grade}
    others = {pair: grade for pair, grade in grades.items() if grade < relevant_grade}
    n_wanted = ceil(share * len(grades) - 1e-9)
    n_relevant = min(len(relevant), ceil(max(n_wanted / 2, share * len(relevant)) - 1e-9))
    # What the others lack, more of the relevant ones make up for.
    n_relevant = max(n_relevant, n_wanted - len(others))
    return sorted(
        _moving_first(relevant, n_relevant, moving, seed) + _moving_first(others, n_wanted - n_relevant, moving, seed)
    )


def _moving_first(grades: Mapping[Pair, int], n_wanted: int, moving: Collection[Pair], seed: int) -> list[Pair]:
    first = {pair: grade for pair, grade in grades.items() if pair in moving}
    others = {pair: grade for pair, grade in grades.items() if pair not in moving}
    n_first = min(n_wanted, len(first))
    return _of_every_grade(first, n_first, seed) + _of_every_grade(others, n_wanted - n_first, seed)


def moving_pairs(version: Version, plan: Plan) -> set[Pair]:
    """Return the pairs that the baseline alone, or a cell beside it alone, has among its first ten.

    The cells are those that the plan tests first, all if it names none; without runs there are no pairs.
    """
    cells = plan.first or [cell for cell in plan.cells if cell != plan.baseline]
    known = [cell for cell in (plan.baseline, *cells) if version.run_path(cell).exists()]
    query_ids = asked_ids(load_queries(version.queries_path))
    runs = [read_run(version.run_path(cell), cell, query_ids) for cell in known]
    tops = [pooled([run], 10) for run in runs]
    return set().union(*(tops[0] ^ top for top in tops[1:])) if plan.baseline in known else set()


def _of_every_grade(grades: Mapping[Pair, int], n_wanted: int, seed: int) -> list[Pair]:
    of_grade: dict[int, list[Pair]] = defaultdict(list)
    for pair in sorted(grades, key=lambda pair: digest(["second reading", seed, *pair])):
        of_grade[grades[pair]].append(pair)
    chosen: list[Pair] = []
    share, wanted = n_wanted / max(1, len(grades)), 0.0
    # What a grade is short of by rounding, the next one takes, so that the sum is the share.
    for grade in sorted(of_grade):
        wanted += share * len(of_grade[grade])
        chosen += of_grade[grade][: round(wanted + 1e-9) - len(chosen)]
    return chosen


def export_doubles(version: Version, labels: Sequence[Label], share: float) -> SecondReadings:
    """Write batches of second readings for that share of the judged pairs whose batch is here; earlier ones count.

    With them go the source documents that a model graded less than relevant. InputError if nothing is judged, or no
    batch is here.
    """
    judges = judges_of(labels)
    counted = scored(labels)
    grades = {pair: label.grade for pair, label in counted.items()}
    if not grades:
        raise InputError(f"{version.name} has no judged pairs yet; a second reading needs a first one.")
    folder = version.judging
    # What the grade that counts was given on: of a pair that was in doubt, the fuller evidence.
    rows: dict[Pair, BatchRow] = {}
    for row in all_rows(folder):
        if row.pair in counted and row.is_fuller == counted[row.pair].is_fuller:
            rows.setdefault(row.pair, row)
    known = {pair: grade for pair, grade in grades.items() if pair in rows}
    if not known:
        raise InputError(
            f"{version.name}: no judged pair is in a batch of {folder}: what the first judge was shown is not known on "
            "this machine. Take the second reading where the batches are."
        )
    # Those exported earlier count towards the share, and a pair that two have read needs no third.
    file_of = {row.pair: path for path in batch_files(folder, "double") for row in read_batch(path)}
    plan = version.plan()
    least = plan.relevant_grade
    drawn = {
        *chosen_pairs(known, share, moving_pairs(version, plan), relevant_grade=least, seed=plan.significance.seed),
        *missed_by_models(version, labels, least),
    }
    wanted = [pair for pair in drawn & rows.keys() if pair not in file_of and len(judges[pair]) < 2]
    fresh = [rows[pair] for pair in sorted(wanted, key=digest)]
    # Numbers go on after those of labels, whose batches may be gone.
    for path in write_batches(folder, fresh, "double", above=newest_batch(labels, "double")):
        file_of.update({row.pair: path for row in read_batch(path)})
    write_atomic(folder / version.judge_path.name, version.judge_path.read_bytes())
    waiting = [pair for pair in file_of if len(judges[pair]) < 2]
    return SecondReadings(len(known), len(file_of), len(waiting), sorted({file_of[pair] for pair in waiting}))


def judges_of(labels: Iterable[Label]) -> dict[Pair, set[str]]:
    """Return who read each pair; one whom two have read waits for nobody."""
    readers: dict[Pair, set[str]] = defaultdict(set)
    for label in labels:
        readers[label.pair].add(label.judge)
    return readers


def unread_doubles(version: Version, labels: Iterable[Label]) -> list[Path]:
    """Return the files of second readings that still wait for an answer."""
    read_by = judges_of(labels)
    files = batch_files(version.judging, "double")
    return [path for path in files if any(len(read_by[row.pair]) < 2 for row in read_batch(path))]


def unread_twice(version: Version, plan: Plan) -> list[Path]:
    """Return the files of what a second judge is to read of a model's grades and has not; [] if nothing waits.

    That is the plan's share, if it names a second judge, and the source documents that were graded less than relevant.
    Grades of people alone wait for nobody.
    """
    labels = version_labels(version)
    if not batch_files(version.judging):  # what the first judge was shown is not known on this machine
        return []
    share = _planned_share(plan, labels)
    if not share and not missed_by_models(version, labels, plan.relevant_grade):
        return []
    return export_doubles(version, labels, share).paths


def _planned_share(plan: Plan, labels: Sequence[Label]) -> float:
    second = plan.judges.second if plan.judges else None
    return second.share if second and any(label.model for label in scored(labels).values()) else 0.0


def waits_for_nobody(version: Version, plan: Plan, labels: Sequence[Label]) -> bool:
    """Return whether pairs can be read twice here, none was, and no run will ask for it: the next may decide, and lock.

    Of labels that an earlier version's batches asked for there is none here that a second judge could be given.
    """
    is_once = bool(labels and batch_files(version.judging)) and all(
        len(judges) < 2 for judges in judges_of(labels).values()
    )
    return is_once and not _planned_share(plan, labels)


def missed_by_models(version: Version, labels: Iterable[Label], relevant_grade: int) -> set[Pair]:
    """Return the pairs of a query and its source document that a model graded less than relevant."""
    graded = {pair: label.grade for pair, label in scored(labels).items() if label.model}
    return missed_sources(load_queries(version.queries_path), graded, relevant_grade).keys() & graded.keys()


def second_reading_step(version: Version, files: Sequence[Path], again: str) -> Step:
    """Return what a person is told while pairs wait for a second judge."""
    plan, labels = version.plan(), version_labels(version)
    judges = judges_of(labels)
    rows = [row.pair for path in files for row in read_batch(path)]
    waiting, named, flags = sum(len(judges[pair]) < 2 for pair in rows), " ".join(map(str, files)), version.flags
    second = plan.judges.second if plan.judges else None
    asks = f"{DRIVER} run {version.viewed} --judge      by the plan's second judge; then nothing is to be imported\n"
    by_file = second if second and second.by_file else None  # of second readings any model's are taken
    # What a run asks for by itself it would write anew.
    missed = missed_by_models(version, labels, plan.relevant_grade)
    is_asked = _planned_share(plan, labels) or any(len(judges[pair]) < 2 for pair in missed)
    else_without = "" if is_asked else ", or delete those files to do without"
    return Step(
        "second reading",
        "open",
        f"{waiting:,} pairs to be read by a second judge, who does not see the first grades",
        (
            "Have them read, one of:\n"
            f"{DRIVER} labels page {flags} {named}      by keyboard, in your browser\n"
            f"{asks if second and not second.by_file else ''}{named}      any other way",
            f"Import what was judged{else_without}:\n{import_command(version, by_file, 'OTHER-NAME')}",
            again,
        ),
    )
