"""The next version of an eval set, opened from the newest one or given up, and the files that a version begins with."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from runner.base.canonical import file_sha256, json_bytes, rename_synced, write_atomic
from runner.base.errors import InputError, IntegrityError, PlanError
from runner.base.places import DRIVER
from runner.base.progress import duration, say
from runner.base.records import parse_cell
from runner.decide.locked_gains import new_plan_text
from runner.decide.roster import version_in_force
from runner.decide.tiers import MIN_CONFIRMED
from runner.eval_set.corpus import archive_path
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import versions_of
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.lock import Lock
from runner.eval_set.shapes.plan import Confirms, Plan
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.eval_set.version import (
    Version,
    alone,
    is_abandoned,
    load_corpus,
    load_decision,
    load_queries,
    numbered,
    version_numbers,
)
from runner.evening.bump import incumbent_of, plan_with, work_of


def begin_version(version: Version) -> None:
    """Write the plans and judge's instructions that are missing, from catalog and template, and check both plans.

    Once the version is preregistered nothing is created: a plan that is missing then was lost.
    """
    version.folder.mkdir(parents=True, exist_ok=True)
    if not version.preregistration_path.exists():
        made = {
            version.plan_path(rehearsal=False): lambda: new_plan_text(version, rehearsal=False).encode(),
            version.plan_path(rehearsal=True): lambda: new_plan_text(version, rehearsal=True).encode(),
            version.judge_path: version.judge_prompt.read_bytes,
        }
        for path, content in made.items():
            if not path.exists():
                write_atomic(path, content())
                say(f"wrote {path}")
    for rehearsal in (False, True):
        if rehearsal == version.rehearsal or version.plan_path(rehearsal=rehearsal).exists():
            version.plan(rehearsal=rehearsal)


def open_next(
    version: Version,
    *,
    reason: str = "",
    by: str = "",
    today: str,
    confirm: bool = False,
    encoders: Sequence[str] = (),
) -> str:
    """Return the answer for stdout once the next version of `version`'s source lies on disk as a whole.

    With `confirm` it compares the cell that the newest one chose with the baseline alone, over queries of its own. With
    `encoders` it has their cells too, the runs of the others, and the chosen cell as incumbent.

    Raises InputError if the newest one may still be edited, is a collection, or stands open beside an earlier decision,
    and IntegrityError if it is not what was frozen or locked.
    """
    if version.source.policy == "external":
        raise InputError(
            f"{version.name} is a collection: it is compared and never frozen, so there is nothing to open. Edit "
            f"{version.plan_path(rehearsal=False)} and run again."
        )
    with alone(version):
        before, lock = _newest_frozen(version)
        target = numbered(before, version_numbers(before.folder.parent)[-1] + 1)
        for place in (target.folder, target.judging):
            if place.is_dir() and any(place.iterdir()):
                raise InputError(f"{place} is there, though {target.name} is no version. Move it away and run again.")
        opened = Opened(
            schema_version=1,
            source=target.source.name,
            version=target.number,
            previous=before.number,
            previous_root_sha256=lock.root_sha256 if lock else None,
            reason=reason,
            by=by,
            opened_on=today,
        )
        # Made under a name that nothing reads and git leaves out, so that a kill leaves no half version.
        staged = replace(target, folder=target.folder.with_name(f".tmp-v{target.number}"))
        plan = _plan_to_confirm(before) if confirm else plan_with(before, encoders) if encoders else None
        shutil.rmtree(staged.folder, ignore_errors=True)
        _copy(before, staged, plan)
        for name in ("runs", "cells") if encoders else ():
            shutil.copytree(before.record / name, staged.record / name)
        write_atomic(staged.folder / "opened.json", json_bytes(opened.model_dump()))
        if archive_path(before).exists():
            write_atomic(archive_path(target), archive_path(before).read_bytes())
        rename_synced(staged.folder, target.folder)
    return "\n".join(_report(before, target, bumped=bool(encoders)))


def _plan_to_confirm(before: Version) -> Plan:
    """Return the plan that compares a version's chosen cell with its baseline alone; InputError if it chose no cell."""
    decided = (before.record / "decision.json").exists()
    decision = load_decision(before) if decided else None
    if decision is None or decision.chosen.cell == decision.baseline or not before.results_path.exists():
        raise InputError(
            f"{before.name} chose no cell over its baseline, so there is nothing to confirm. Leave --confirm out to "
            "open a version that compares all cells."
        )
    cell, results_sha256 = decision.chosen.cell, file_sha256(before.results_path)
    confirms = Confirms(version=before.number, cell=cell, results_sha256=results_sha256)
    plan = read_plan(before.plan_path(rehearsal=before.rehearsal))
    cells = [plan.baseline, cell]
    named = {getattr(parse_cell(each), "encoder", "") for each in cells}
    encoders = {name: spec for name, spec in plan.encoders.items() if name in named}
    changes = {"cells": cells, "first": [], "confirms": confirms, "encoders": encoders, "incumbent": ""}
    return plan.model_copy(update=changes)


def _written(plan: Plan, number: int) -> str:
    """Return plan.yaml of a version that differs from the one before it by more than its number."""
    what = f"Confirms what v{plan.confirms.version} chose." if plan.confirms else "What this version compares."
    head = f"# {what} Frozen by preregistration.json when the first pair goes to a judge.\n"
    fields = plan.model_copy(update={"version": number}).model_dump()
    return head + yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def _copy(before: Version, staged: Version, plan: Plan | None) -> None:
    """Copy what the new version begins with, its plans with its own number; no query to a version that confirms.

    `plan` is that of the view, None for the earlier one's.

    What the earlier one does not have, as after a decision by policy, comes from catalog and template.
    """
    for rehearsal in (False, True):
        path = before.plan_path(rehearsal=rehearsal)
        if plan is not None and rehearsal == before.rehearsal:
            text = _written(plan, staged.number)
        elif path.exists() and (own := read_plan(path)).incumbent:
            chosen = incumbent_of(replace(before, rehearsal=rehearsal), own)
            text = _written(own.model_copy(update={"incumbent": chosen}), staged.number)
        elif path.exists():
            # One line is edited as text: comments and line ends of the operator's stay.
            text = re.sub(r"(?m)^(version:[ \t]*)\d+", rf"\g<1>{staged.number}", path.read_bytes().decode(), count=1)
        else:
            text = new_plan_text(staged, rehearsal=rehearsal)
        write_atomic(staged.plan_path(rehearsal=rehearsal), text.encode())
    write_atomic(staged.judge_path, before.judge_prompt.read_bytes())
    copied = [(before.corpus_path, staged.corpus_path)]
    if plan is None or plan.confirms is None:
        copied.append((before.queries_path, staged.queries_path))
    for kept, copy in copied:
        if kept.exists():
            write_atomic(copy, kept.read_bytes())


def _newest_frozen(version: Version) -> tuple[Version, Lock | None]:
    """Return the version to begin from, in the same view, and the lock of its record.

    It is the newest one, or the last given up if no other is left. InputError if the next one is not due yet, and
    IntegrityError if it is not what was frozen or locked.
    """
    known = versions_of(version)
    if not known:
        raise InputError(
            f"{version.name} has not begun, so there is nothing to open the next one from. Begin it: "
            f"{DRIVER} run {version.flags}"
        )
    before = ([each for each in known if not is_abandoned(each.folder)] or known)[-1]
    record = replace(before, rehearsal=False)
    lock = verify_version(record)[0]
    if (record.folder / "decision.json").exists():
        if not (record.folder / LOCK_NAME).exists():
            raise InputError(f"{record.name} is decided and not locked yet. Run {DRIVER} run {record.flags} first.")
    elif in_force := version_in_force(record):
        raise InputError(
            f"{record.name} stands open beside {in_force.name}, which is decided. Edit it in {record.folder} where it "
            f"is not frozen yet, finish it ({DRIVER} run {record.flags}), or give it up ({DRIVER} version "
            f"{record.flags} --abandon --reason WHY --by NAME)."
        )
    elif record.preregistration_path.exists():
        try:
            verified_preregistration(record)
        except IntegrityError as error:
            raise IntegrityError(f"{error} The next one begins with what was frozen: restore that first.") from error
    elif not is_abandoned(record.folder):
        raise InputError(f"{record.name} is not frozen yet, so no next one is needed: edit it in {record.folder}.")
    return before, lock


def _report(before: Version, target: Version, *, bumped: bool) -> list[str]:
    """Return what the new version holds, what may be edited, and what is still to be done before it runs."""
    plan = read_plan(target.plan_path(rehearsal=target.rehearsal))
    held = [f"{len(plan.cells)} cells"]
    if target.corpus_path.exists():
        held.append(f"{load_corpus(target.corpus_path)[0].n_documents} documents")
    if target.queries_path.exists():
        held.append(f"{len(load_queries(target.queries_path))} queries")
    lines = [f"{target.number_name} is open, from {before.number_name}: {', '.join(held)}."]
    if (confirms := plan.confirms) is not None:
        lines.append(
            f"It confirms {confirms.cell}, which {before.number_name} chose: write {MIN_CONFIRMED} new queries or "
            "more. No query and no grade is carried, and cells that you add to its plan are shown and not judged."
        )
    else:
        lines.append(
            f"All of it may be edited in {target.folder} until its first pair goes to a judge: add cells to plan.yaml, "
            "and queries that no exploration has seen. Labels are carried then, where query, document and prompt stay. "
            "Without corpus.jsonl documents are drawn anew."
        )
    if bumped:
        work = work_of(target, plan)
        asks = "" if work.usd is None else " --judge"
        lines.append(
            f"A switch is held against {plan.in_place}, which {before.number_name} chose. Nothing is embedded or "
            f"judged twice: about {work.pairs:,} new pairs to judge ({work.dollars}), {duration(work.seconds)} to "
            f"embed here. Priced by flags, as on Modal: {DRIVER} plan {target.viewed}{asks}"
        )
    # A plan that the catalog now refuses is opened all the same: it may still be edited.
    for rehearsal in (False, True):
        try:
            target.plan(rehearsal=rehearsal)
        except PlanError as error:
            lines.append(str(error))
    if target.corpus_path.exists() and not archive_path(target).exists() and not target.source.corpus:
        lines.append(
            f"The documents' archive is not here ({archive_path(before)}): give the folder that they were drawn from "
            "with --corpus-path."
        )
    first = "" if target.queries_path.exists() else "write queries, from the documents that this lays out: "
    return [*lines, f"Next: {first}{DRIVER} run {target.viewed}"]


def abandon(version: Version, *, reason: str, by: str, today: str) -> str:
    """Return the answer for stdout once abandoned.json says that the newest version is given up.

    InputError for a version that is decided, is not there, or is a collection.
    """
    if not (reason.strip() and by.strip()):
        raise InputError("--reason TEXT and --by NAME are needed: abandoned.json names who gave up, and why.")
    record = replace(version, rehearsal=False)
    if version.source.policy == "external" or record.number not in version_numbers(record.folder.parent):
        raise InputError(f"{record.name} was not begun, or is a collection: there is nothing to give up.")
    path: Path = record.folder / "abandoned.json"
    with alone(record):
        verify_version(record)
        if is_abandoned(record.folder):
            raise InputError(f"{record.name} was given up already.")
        if (record.folder / "decision.json").exists():
            raise InputError(
                f"{record.name} is decided, and a decision is final. To decide anew: {DRIVER} version {record.flags}"
            )
        given_up = Abandoned(
            schema_version=1,
            source=record.source.name,
            version=record.number,
            reason=reason,
            by=by,
            abandoned_on=today,
        )
        write_atomic(path, json_bytes(given_up.model_dump()))
    in_force = version_in_force(record)
    left = f"{in_force.name} stays in force" if in_force else f"No version of {record.source.name} is decided"
    return (
        f"{record.name} is given up by {by}: {reason}. {left}. To commit: {path}. A further version: {DRIVER} version "
        f"{record.flags}"
    )
