"""The next version of an eval set, opened from the newest one or given up, and the files that a version begins with."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from runner.base.canonical import json_bytes, rename_synced, write_atomic
from runner.base.errors import InputError, IntegrityError, PlanError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import parse_cell
from runner.decide.roster import new_plan_text, version_in_force
from runner.eval_set.corpus import archive_path
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import versions_of
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import check_cell, read_plan
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.eval_set.version import (
    Version,
    alone,
    is_abandoned,
    load_corpus,
    load_queries,
    load_results,
    numbered,
    version_numbers,
)


def begin_version(version: Version) -> None:
    """Write the plans and judge's instructions that are missing, from catalog and template, and check both plans.

    Once the version is preregistered nothing is created: a plan that is missing then was lost.
    """
    version.folder.mkdir(parents=True, exist_ok=True)
    frozen = version.preregistration_path.exists()
    for rehearsal in (False, True):
        path = version.plan_path(rehearsal=rehearsal)
        if not path.exists() and not frozen:
            text = new_plan_text(version, rehearsal=rehearsal)
            write_atomic(path, text.encode())
            say(f"wrote {path}")
    if not version.judge_path.exists() and not frozen:
        write_atomic(version.judge_path, version.judge_prompt.read_bytes())
        say(f"wrote {version.judge_path}")
    for rehearsal in (False, True):
        if rehearsal == version.rehearsal or version.plan_path(rehearsal=rehearsal).exists():
            version.plan(rehearsal=rehearsal)


_VERSION_LINE = re.compile(r"^(version:[ \t]*)\d+", re.MULTILINE)


def open_next(
    version: Version,
    *,
    cells: Sequence[str] = (),
    reason: str = "",
    by: str = "",
    today: str,
    with_labels: bool = True,
) -> str:
    """The answer for stdout once the next version of `version`'s source lies on disk as a whole.

    `cells` join the plan in view. Raises InputError if the newest one may still be edited, is a collection, or stands
    open beside an earlier decision, and IntegrityError if it is not what was frozen or locked.
    """
    if version.source.policy == "external":
        raise InputError(
            f"{version.name} is a collection: it is compared and never frozen, so there is nothing to open. Edit "
            f"{version.plan_path(rehearsal=False)} and run again."
        )
    with alone(version):
        before = _newest_frozen(version)
        given = _checked_cells(before, cells)
        target = numbered(before, version_numbers(before.folder.parent)[-1] + 1)
        _refuse_leftovers(target)
        staged = _staged(before, target, given)
        lock = verify_version(_record(before))[0]
        opened = Opened(
            schema_version=1,
            source=target.source.name,
            version=target.number,
            previous=before.number,
            previous_root_sha256=lock.root_sha256 if lock else None,
            reason=reason,
            by=by,
            opened_on=today,
            without_labels=not with_labels,
        )
        write_atomic(staged / "opened.json", json_bytes(opened.model_dump()))
        if archive_path(before).exists():
            write_atomic(archive_path(target), archive_path(before).read_bytes())
        rename_synced(staged, target.folder)
    return "\n".join(_told(before, target, given, with_labels=with_labels))


def abandon(version: Version, *, reason: str, by: str, today: str) -> str:
    """The answer for stdout once abandoned.json says that the newest version is given up.

    InputError for a version that is decided, is not there, or is a collection.
    """
    if not (reason.strip() and by.strip()):
        raise InputError("--reason TEXT and --by NAME are needed: abandoned.json names who gave up, and why.")
    record = _record(version)
    if version.source.policy == "external" or record.number not in version_numbers(record.folder.parent):
        raise InputError(f"{record.name} was not begun, or is a collection: there is nothing to give up.")
    with alone(record):
        verify_version(record)
        if is_abandoned(record.folder):
            raise InputError(f"{record.name} was given up already.")
        if (record.folder / "decision.json").exists():
            raise InputError(
                f"{record.name} is decided, and a decision is final. To decide anew: {DRIVER} version new "
                f"{record.flags}"
            )
        given_up = Abandoned(
            schema_version=1,
            source=record.source.name,
            version=record.number,
            reason=reason,
            by=by,
            abandoned_on=today,
        )
        write_atomic(record.folder / "abandoned.json", json_bytes(given_up.model_dump()))
    in_force = version_in_force(record)
    left = f"{in_force.name} stays in force" if in_force else f"no version of {record.source.name} is decided"
    return (
        f"{record.name} is given up by {by}: {reason}. {left[0].upper()}{left[1:]}. To commit: "
        f"{record.folder / 'abandoned.json'}. A further version: {DRIVER} version new {record.flags}"
    )


def _record(version: Version) -> Version:
    return numbered(replace(version, rehearsal=False), version.number)


def _checked_cells(before: Version, texts: Sequence[str]) -> list[str]:
    """The cells that the plan of the version before lacks, as plans write them; encoders may be own ones of it."""
    if not texts:
        return []
    plan, cells = read_plan(before.plan_path(rehearsal=before.rehearsal)), list(map(parse_cell, texts))
    for cell in cells:
        check_cell(cell, plan.own)
    return [text for text in dict.fromkeys(map(str, cells)) if text not in plan.cells]


def _newest_frozen(version: Version) -> Version:
    """The version to begin from, in the same view: the newest one, or the last one given up if no other is left."""
    known = versions_of(version)
    if not known:
        raise InputError(
            f"{version.name} has not begun, so there is nothing to open the next one from. Begin it: "
            f"{DRIVER} run {version.flags}"
        )
    before = [one for one in known if not is_abandoned(one.folder)][-1:] or known[-1:]
    record = _record(before[0])
    verify_version(record)
    if not (record.folder / "decision.json").exists():
        _refuse_open(record)
    elif not (record.folder / LOCK_NAME).exists():
        raise InputError(f"{record.name} is decided and not locked yet. Run {DRIVER} run {record.flags} first.")
    return before[0]


def _refuse_open(record: Version) -> None:
    """Raise unless the version is undecided and still as it was frozen, or was given up."""
    in_force = version_in_force(record)
    if in_force is not None:
        raise InputError(
            f"{record.name} stands open beside {in_force.name}, which is decided. Edit it in {record.folder} where it "
            f"is not frozen yet, finish it ({DRIVER} run {record.flags}), or give it up ({DRIVER} version abandon "
            f"{record.flags} --reason WHY --by NAME)."
        )
    if record.preregistration_path.exists():
        try:
            verified_preregistration(record)
        except IntegrityError as error:
            raise IntegrityError(f"{error} The next one begins with what was frozen: restore that first.") from error
    elif not is_abandoned(record.folder):
        raise InputError(f"{record.name} is not frozen yet, so no next one is needed: edit it in {record.folder}.")


def _refuse_leftovers(target: Version) -> None:
    """Raise InputError if other files, or batches of a deleted version, lie where the next version goes."""
    for place in (target.folder, target.judging):
        if place.is_dir() and any(place.iterdir()):
            raise InputError(f"{place} is there, though {target.name} is no version. Move it away and run again.")


def _staged(before: Version, target: Version, cells: Sequence[str]) -> Path:
    """A folder under a name that nothing reads, with all but opened.json of what the new version begins with.

    What the earlier one does not have, as after a decision by policy, comes from catalog and template.
    """
    folder = target.folder.with_name(f".tmp-v{target.number}")  # git leaves such names out
    if folder.exists():
        shutil.rmtree(folder)  # of a run that was killed
    staged = replace(target, folder=folder, record=folder)
    for rehearsal in (False, True):
        path = before.plan_path(rehearsal=rehearsal)
        added = cells if rehearsal == before.rehearsal else ()
        if not path.exists():
            write_atomic(staged.plan_path(rehearsal=rehearsal), new_plan_text(target, rehearsal=rehearsal).encode())
            path = staged.plan_path(rehearsal=rehearsal)
        write_atomic(staged.plan_path(rehearsal=rehearsal), next_plan_text(path, target.number, added).encode())
    write_atomic(staged.judge_path, before.judge_prompt.read_bytes())
    for kept, copy in ((before.queries_path, staged.queries_path), (before.corpus_path, staged.corpus_path)):
        if kept.exists():
            write_atomic(copy, kept.read_bytes())
    return folder


def next_plan_text(path: Path, number: int, cells: Sequence[str]) -> str:
    """The plan at `path` as plan `number`, with `cells` after its own; comments and order stay where that can be."""
    plan, text = read_plan(path), path.read_bytes().decode()
    wanted = plan.model_copy(update={"version": number, "cells": [*plan.cells, *dict.fromkeys(cells)]})
    for found in (_edited(text, wanted, len(plan.cells)), yaml.safe_dump(wanted.model_dump(), sort_keys=False)):
        if says(found, wanted):
            return found
    raise InputError(f"{path} could not be carried over as v{number}. Write its settings plainly, as the catalog does.")


def _edited(text: str, wanted: Plan, n_before: int) -> str:
    """The text with its version line and its list of cells changed, whether or not that came out right."""
    text = _VERSION_LINE.sub(rf"\g<1>{wanted.version}", text, count=1)
    added = wanted.cells[n_before:]
    listed = _list_end(text)
    if not added or listed is None:
        return text
    end, indent = listed
    return text[:end] + "".join(f"{indent}- {json.dumps(cell)}\n" for cell in added) + text[end:]


def _list_end(text: str) -> tuple[int, str] | None:
    """Where the block list under `cells:` ends, and its indentation; None if there is no such list."""
    head = re.search(r"^cells:[ \t]*(?:#.*)?\r?\n", text, re.MULTILINE)
    if head is None:
        return None
    found, place = None, head.end()
    for line in text[head.end() :].splitlines(keepends=True):
        place += len(line)
        if item := re.match(r"([ \t]*)-[ \t]", line):
            found = (place, item[1])
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def says(text: str, wanted: Plan) -> bool:
    """Whether the text of a plan.yaml is this plan."""
    try:
        return Plan.model_validate(yaml.safe_load(text)) == wanted
    except (ValueError, yaml.YAMLError):
        return False


def _told(before: Version, target: Version, cells: Sequence[str], *, with_labels: bool) -> list[str]:
    """What the new version holds, what may be edited, and what is still to be done before it runs."""
    n_cells = len(read_plan(target.plan_path(rehearsal=target.rehearsal)).cells)
    added = f" ({len(cells)} of them new)" if cells else ""
    held = [f"{n_cells} cells{added}{' in the rehearsal' if target.rehearsal else ''}"]
    if target.corpus_path.exists():
        held.append(f"{load_corpus(target.corpus_path)[0].n_documents} documents")
    if target.queries_path.exists():
        held.append(f"{len(load_queries(target.queries_path))} queries")
    lines = [
        f"{target.number_name} is open, from {before.number_name}: {', '.join(held)}.",
        f"All of it may be edited in {target.folder} until its first pair goes to a judge; without corpus.jsonl "
        "documents are drawn anew. "
        + (
            "Labels are carried then, where query, document and prompt stay."
            if with_labels
            else "No label is carried: every pair is judged anew."
        ),
        *_plan_faults(target),
    ]
    lines += _to_settle(before, target, cells)
    if cells and target.queries_path.exists():
        lines.append(
            "Cells that were picked by their scores on these queries look better on them than they are: add queries "
            "that no exploration has seen."
        )
    if target.corpus_path.exists() and not archive_path(target).exists() and not target.source.corpus:
        lines.append(
            f"The documents' archive is not here ({archive_path(before)}): give the folder that they were drawn from "
            "with --corpus-path."
        )
    return [*lines, f"Next: {DRIVER} run {target.viewed}"]


def _to_settle(before: Version, target: Version, cells: Sequence[str]) -> list[str]:
    """What a new version takes to confirm a cell that joins its plan, else the last one's candidate.

    Of the latter its own results say how many queries.
    """
    plan = target.plan_path(rehearsal=target.rehearsal)
    if cells:
        return [f"To have {cells[0]} tested before the other cells, let {plan} say first: [{json.dumps(cells[0])}]."]
    said = load_results(before).outcome if before.results_path.exists() else None
    if said is None or said.queries_needed is None or not said.candidates:
        return []
    cell = said.candidates[0]
    first = f"first: [{json.dumps(cell)}]"
    return [
        f"To confirm {cell}: put some {said.queries_needed:,} new queries in place of those of {target.queries_path}, "
        f"and let {plan} say {first}. The old queries' grades prove nothing new."
    ]


def _plan_faults(target: Version) -> list[str]:
    """What keeps the plans from being run: the catalog may have moved on since they were written."""
    faults = []
    for rehearsal in (False, True):
        try:
            target.plan(rehearsal=rehearsal)
        except PlanError as error:
            faults.append(str(error))
    return faults
