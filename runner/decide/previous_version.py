"""A version beside the one that it was opened from: what changed, and how far cells that both scored have moved."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from runner.base.canonical import file_sha256
from runner.eval_set.history import earlier
from runner.eval_set.labels import load_labels
from runner.eval_set.lock import verify_lock
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.versions import (
    CellBeside,
    DecidedBefore,
    Kept,
    PreviousVersion,
)
from runner.eval_set.version import Version, load_decision, load_results
from runner.judge.carried_labels import check_earlier, digests, texts
from runner.score.comparison import paired_differences

BESIDE = ("ndcg@10", "recall@10")
"""What is set beside one another; the second depends on the relevant grade."""

_OF_A_VERSION = ("version", "cells")
"""Fields of a plan that are no settings: its number, and the cells, which are told by themselves."""


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
    same_documents, same_grade = held == held_before, "relevant_grade" not in settings
    moving = [measure for measure in BESIDE if same_documents and common and (same_grade or measure == "ndcg@10")]
    cells_before = [] if plan_before is None else plan_before.cells
    return PreviousVersion(
        version=before.number,
        decision=_decision(before),
        comparable=not prompt_changed and asked == asked_before and same_documents and same_grade,
        queries=_kept(asked_before, asked),
        documents=_kept(held_before, held),
        labels_carried=_labels_carried(before, version, results.labels.lines),
        prompt_changed=prompt_changed,
        settings=settings,
        cells_new=[cell for cell in plan.cells if cell not in cells_before],
        cells_gone=[cell for cell in cells_before if cell not in plan.cells],
        cells=_cells(_scored(before), results, common, moving),
    )


def _cells(old: Results | None, new: Results, common: Sequence[str], moving: Sequence[str]) -> list[CellBeside]:
    """Return the cells that both scored, best first; `moving` measures are paired over the `common` queries."""
    if old is None:
        return []
    rows = {row.cell: row for row in old.cells}
    places = [[[query.id for query in each.queries].index(name) for name in common] for each in (old, new)]

    def moved(measure: str, before: CellResult, now: CellResult) -> Difference:
        values = [
            [row.scores[measure].per_query[place] for place in own]
            for row, own in zip((before, now), places, strict=True)
        ]
        return paired_differences(np.array(values, np.int64), 0, new.plan)[1]

    return [
        CellBeside(
            cell=row.cell,
            same_run=rows[row.cell].provenance.run_sha256 == row.provenance.run_sha256,
            before={measure: rows[row.cell].scores[measure].mean for measure in BESIDE},
            moved={measure: moved(measure, rows[row.cell], row) for measure in moving},
        )
        for row in new.cells
        if row.cell in rows
    ]


def _scored(before: Version) -> Results | None:
    """Return the earlier version's locked results; None if nothing of it is locked, or nothing was measured."""
    lock = verify_lock(before.record)
    return None if lock is None or before.results_path.name not in lock.files else load_results(before)


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


def _kept(before: Mapping[str, str], now: Mapping[str, str]) -> Kept:
    """Count how queries or documents, by id their text or its digest, became others."""
    both = now.keys() & before.keys()
    common = sum(before[name] == now[name] for name in both)
    return Kept(common=common, changed=len(both) - common, new=len(now) - len(both), gone=len(before) - len(both))


def _labels_carried(before: Version, version: Version, n_scored: int) -> int:
    """Count the lines that were scored and that the earlier version has word for word."""
    known = {label.key: label for label in load_labels(before.labels_path)}
    return sum(known.get(label.key) == label for label in load_labels(version.labels_path, n_scored))


def comparison_lines(results: Results) -> list[str]:
    """Return the earlier version and every cell that both scored as a terminal shows them; [] for a first one."""
    previous = results.previous
    if previous is None:
        return []
    lines = [_head(previous), *_changes(previous, results.labels.lines)]
    if not previous.cells:
        return lines
    width, now = max(len(row.cell) for row in previous.cells), {row.cell: row.scores for row in results.cells}
    lines.append(f"{'cell':<{width}}  nDCG@10 then  now     moved                      Recall@10 then  now     moved")
    for row in previous.cells:
        ndcg, recall = (
            _told(row, measure, now[row.cell][measure].mean, room)
            for measure, room in zip(BESIDE, (12, 14), strict=True)
        )
        lines.append(f"{row.cell:<{width}}  {ndcg}  {recall}".rstrip())
    if not previous.comparable:
        lines.append("Not comparable: queries, documents, judge prompt or relevant grade differ, so levels may too.")
    return lines


def _head(previous: PreviousVersion) -> str:
    name, decision = f"beside v{previous.version}", previous.decision
    if decision is None:
        return f"{name}, which was never decided"
    return f"{name}, which chose {decision.cell} ({decision.tier})"


def _changes(previous: PreviousVersion, n_labels: int) -> list[str]:
    kept = (("queries", previous.queries), ("documents", previous.documents))
    lines = [
        *(f"{what}: {n.common} the same, {n.changed} changed, {n.new} new, {n.gone} gone" for what, n in kept),
        f"labels: {previous.labels_carried} carried, {n_labels - previous.labels_carried} new",
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


def _told(row: CellBeside, measure: str, now: float, room: int) -> str:
    moved = row.moved.get(measure)
    said = f"{row.before[measure]:<{room}.4f}  {now:.4f}  "
    return said + (f"{moved.mean:+.4f} ({moved.low:+.4f} to {moved.high:+.4f})" if moved else "-").ljust(25)
