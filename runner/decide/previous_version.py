"""A version beside the one that it was opened from: what changed, and how far cells that both scored have moved."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError
from runner.base.schema import problems, shaped
from runner.eval_set.history import earlier
from runner.eval_set.labels import load_labels
from runner.eval_set.lock import verify_lock
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import (
    CellBeside,
    DecidedBefore,
    DocumentsKept,
    LabelsKept,
    MeanInterval,
    MeasureBeside,
    Movement,
    PreviousVersion,
    QueriesKept,
)
from runner.eval_set.version import Version, load_decision
from runner.judge.carried_labels import check_earlier, digests, texts
from runner.score.comparison import paired_differences

BESIDE = ("ndcg@10", "recall@10")
"""What is set beside one another; the second depends on the relevant grade."""

_OF_A_VERSION = ("version", "cells")
"""Fields of a plan that are no settings: its number, and the cells, which are told by themselves."""


class Lenient(BaseModel):
    """What is read of an earlier results.json; other releases wrote more or less beside it."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Score(Lenient):
    mean: float
    low: float
    high: float
    per_query: list[int]


class _Provenance(Lenient):
    run_sha256: str


class EarlierCell(Lenient):
    """A cell of it."""

    cell: str
    scores: dict[str, _Score]
    provenance: _Provenance


class _Query(Lenient):
    id: str


class _Scored(Lenient):
    queries: list[_Query]
    cells: list[EarlierCell]


def previous_version(version: Version, results: Results) -> PreviousVersion | None:
    """The version that this one was opened from, beside its results; None without one, and in an exploration.

    A pure function of the two versions' files. An IntegrityError if the earlier one is not as it was locked.
    """
    before = earlier(version)
    if before is None or results.kind not in ("production", "rehearsal"):
        return None
    check_earlier(version, before)
    asked_before, asked = texts(before), texts(version)
    held_before, held = digests(before), digests(version)
    prompt_changed = before.judge_path.exists() and file_sha256(before.judge_path) != results.judge_prompt_sha256
    plan, plan_before = results.plan, _plan(before)
    settings = [] if plan_before is None else settings_changed(plan_before, plan)
    common = [name for name in asked if asked_before.get(name) == asked[name]]
    comparable = not prompt_changed and asked == asked_before and held == held_before
    beside = Beside(plan, common, same_documents=held == held_before, same_grade="relevant_grade" not in settings)
    cells_before = [] if plan_before is None else plan_before.cells
    scored = _scored(before)
    return PreviousVersion(
        version=before.number,
        decision=_decision(before),
        queries=queries_kept(asked_before, asked, len(common)),
        documents=_documents_kept(held_before, held),
        labels=_labels_kept(before, version, results.labels.lines),
        prompt_changed=prompt_changed,
        settings=settings,
        cells_new=[cell for cell in plan.cells if cell not in cells_before],
        cells_gone=[cell for cell in cells_before if cell not in plan.cells],
        cells=[] if scored is None else beside.cells(scored, results, comparable=comparable),
    )


class Beside:
    """Sets cells of two results beside one another, over the queries that both ask in the same words."""

    def __init__(self, plan: Plan, common: Sequence[str], *, same_documents: bool, same_grade: bool) -> None:
        self.plan = plan
        self.common = common
        self.same_documents = same_documents
        self.same_grade = same_grade

    def cells(self, scored: _Scored, results: Results, *, comparable: bool) -> list[CellBeside]:
        """The cells that both scored, in the order of the new ranking."""
        old = {row.cell: row for row in scored.cells}
        places = _places([query.id for query in scored.queries]), _places([query.id for query in results.queries])
        return [
            CellBeside(
                cell=row.cell,
                comparable=comparable and self.same_grade,
                same_run=old[row.cell].provenance.run_sha256 == row.provenance.run_sha256,
                scores={measure: self.measure_beside(measure, old[row.cell], row, places) for measure in BESIDE},
            )
            for row in results.cells
            if row.cell in old
        ]

    def measure_beside(
        self, measure: str, old: EarlierCell, new: CellResult, places: tuple[Mapping[str, int], Mapping[str, int]]
    ) -> MeasureBeside:
        """One measure of a cell in both results; `places` say where each has its queries.

        No movement if documents differ, or if the measure asks for relevance and that means something else.
        """
        before, now = old.scores[measure], new.scores[measure]
        alike = self.same_documents and (self.same_grade or measure == "ndcg@10")
        movement = None
        if alike and self.common:
            values = [
                [before.per_query[places[0][name]] for name in self.common],
                [now.per_query[places[1][name]] for name in self.common],
            ]
            moved = paired_differences(np.array(values, np.int64), 0, self.plan)[1]
            movement = Movement(n_queries=len(self.common), **moved.model_dump())
        means = shaped(MeanInterval, before), shaped(MeanInterval, now)
        return MeasureBeside(before=means[0], now=means[1], movement=movement)


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _scored(before: Version) -> _Scored | None:
    """What the earlier version's locked results say; None if nothing of it is locked, or nothing was measured."""
    lock, path = verify_lock(before.record), before.record / "results.json"
    if lock is None or path.name not in lock.files:
        return None
    try:
        return _Scored.model_validate(read_json(path))
    except ValidationError as error:
        raise InputError(f"{path} cannot be set beside {before.source.name}'s next: {problems(error)[0]}.") from error


def _decision(before: Version) -> DecidedBefore | None:
    if verify_lock(before.record) is None:
        return None
    found = load_decision(before)
    return DecidedBefore(kind=found.kind, tier=found.tier, cell=found.chosen.cell, results_sha256=found.results_sha256)


def _plan(before: Version) -> Plan | None:
    path: Path = before.plan_path(rehearsal=before.rehearsal)
    return read_plan(path) if path.exists() else None


def settings_changed(before: Plan, now: Plan) -> list[str]:
    """The plan's fields that differ, but for its number and its cells."""
    names = [name for name in Plan.model_fields if name not in _OF_A_VERSION]
    return [name for name in names if getattr(before, name) != getattr(now, name)]


def queries_kept(before: Mapping[str, str], now: Mapping[str, str], common: int) -> QueriesKept:
    """How queries, their texts by id, became others; `common` have one text in both."""
    return QueriesKept(
        common=common,
        changed=[name for name in now if name in before and before[name] != now[name]],
        new=[name for name in now if name not in before],
        gone=[name for name in before if name not in now],
    )


def _documents_kept(before: Mapping[str, str], now: Mapping[str, str]) -> DocumentsKept:
    both = now.keys() & before.keys()
    common = sum(before[name] == now[name] for name in both)
    return DocumentsKept(
        common=common, changed=len(both) - common, new=len(now) - len(both), gone=len(before) - len(both)
    )


def _labels_kept(before: Version, version: Version, n_scored: int) -> LabelsKept:
    """Of the lines that were scored, those that the earlier version has word for word."""
    known = {label.key: label for label in load_labels(before.labels_path)}
    scored = load_labels(version.labels_path, n_scored)
    carried = sum(known.get(label.key) == label for label in scored)
    return LabelsKept(carried=carried, new=len(scored) - carried)


def comparison_lines(previous: PreviousVersion) -> list[str]:
    """The earlier version and every cell that both scored, as a terminal shows them."""
    lines = [_head(previous), *_changes(previous)]
    if not previous.cells:
        return lines
    width = max(len(row.cell) for row in previous.cells)
    lines.append(f"{'cell':<{width}}  nDCG@10 then  now     moved                      Recall@10 then  now     moved")
    for row in previous.cells:
        ndcg, recall = (row.scores[measure] for measure in BESIDE)
        lines.append(f"{row.cell:<{width}}  {_told(ndcg, 12)}  {_told(recall, 14)}".rstrip())
    if not all(row.comparable for row in previous.cells):
        lines.append("Not comparable: queries, documents, judge prompt or relevant grade differ, so levels may too.")
    return lines


def _head(previous: PreviousVersion) -> str:
    name, decision = f"beside v{previous.version}", previous.decision
    if decision is None:
        return f"{name}, which was never decided"
    return f"{name}, which chose {decision.cell} ({decision.tier})"


def _changes(previous: PreviousVersion) -> list[str]:
    queries, documents, labels = previous.queries, previous.documents, previous.labels
    lines = [
        f"queries: {queries.common} the same, {len(queries.changed)} changed, {len(queries.new)} new, "
        f"{len(queries.gone)} gone",
        f"documents: {documents.common} the same, {documents.changed} changed, {documents.new} new, "
        f"{documents.gone} gone",
        f"labels: {labels.carried} carried, {labels.new} new",
    ]
    if previous.prompt_changed:
        lines.append("the judge prompt changed")
    for what, names in (
        ("settings that changed", previous.settings),
        ("cells that are new", previous.cells_new),
        ("cells that are gone", previous.cells_gone),
    ):
        if names:
            lines.append(f"{what}: {', '.join(names)}")
    return lines


def _told(measure: MeasureBeside, width: int) -> str:
    said = f"{measure.before.mean:<{width}.4f}  {measure.now.mean:.4f}  "
    moved = measure.movement
    return said + (f"{moved.mean:+.4f} ({moved.low:+.4f} to {moved.high:+.4f})" if moved else "-").ljust(25)
