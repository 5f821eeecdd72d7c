"""The next version of an eval set, opened from the newest one or given up, and the files that a version begins with."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import yaml

from runner.base.canonical import json_bytes, rename_synced, write_atomic
from runner.base.errors import InputError, IntegrityError, PlanError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.decide.roster import new_plan_text, version_in_force
from runner.eval_set.corpus import archive_path
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import versions_of
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.eval_set.version import (
    Version,
    alone,
    is_abandoned,
    load_corpus,
    load_queries,
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


def open_next(version: Version, *, reason: str = "", by: str = "", today: str) -> str:
    """Return the answer for stdout once the next version of `version`'s source lies on disk as a whole.

    Raises InputError if the newest one may still be edited, is a collection, or stands open beside an earlier decision,
    and IntegrityError if it is not what was frozen or locked.
    """
    if version.source.policy == "external":
        raise InputError(
            f"{version.name} is a collection: it is compared and never frozen, so there is nothing to open. Edit "
            f"{version.plan_path(rehearsal=False)} and run again."
        )
    with alone(version):
        before = _newest_frozen(version)
        target = numbered(before, version_numbers(before.folder.parent)[-1] + 1)
        _refuse_leftovers(target)
        staged = _staged(before, target)
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
        )
        write_atomic(staged / "opened.json", json_bytes(opened.model_dump()))
        if archive_path(before).exists():
            write_atomic(archive_path(target), archive_path(before).read_bytes())
        rename_synced(staged, target.folder)
    return "\n".join(_told(before, target))


def abandon(version: Version, *, reason: str, by: str, today: str) -> str:
    """Return the answer for stdout once abandoned.json says that the newest version is given up.

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
        write_atomic(record.folder / "abandoned.json", json_bytes(given_up.model_dump()))
    in_force = version_in_force(record)
    left = f"{in_force.name} stays in force" if in_force else f"no version of {record.source.name} is decided"
    return (
        f"{record.name} is given up by {by}: {reason}. {left[0].upper()}{left[1:]}. To commit: "
        f"{record.folder / 'abandoned.json'}. A further version: {DRIVER} version {record.flags}"
    )


def _record(version: Version) -> Version:
    return numbered(replace(version, rehearsal=False), version.number)


def _newest_frozen(version: Version) -> Version:
    """Return the version to begin from, in the same view: the newest one, or the last given up if no other is left."""
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
            f"is not frozen yet, finish it ({DRIVER} run {record.flags}), or give it up ({DRIVER} version "
            f"{record.flags} --abandon --reason WHY --by NAME)."
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


def _staged(before: Version, target: Version) -> Path:
    """Return a folder under a name that nothing reads, with all but opened.json of what the new version begins with.

    What the earlier one does not have, as after a decision by policy, comes from catalog and template.
    """
    folder = target.folder.with_name(f".tmp-v{target.number}")  # git leaves such names out
    if folder.exists():
        shutil.rmtree(folder)  # of a run that was killed
    staged = replace(target, folder=folder, rehearsal=False)
    for rehearsal in (False, True):
        path = before.plan_path(rehearsal=rehearsal)
        text = renumbered(path, target.number) if path.exists() else new_plan_text(target, rehearsal=rehearsal)
        write_atomic(staged.plan_path(rehearsal=rehearsal), text.encode())
    write_atomic(staged.judge_path, before.judge_prompt.read_bytes())
    for kept, copy in ((before.queries_path, staged.queries_path), (before.corpus_path, staged.corpus_path)):
        if kept.exists():
            write_atomic(copy, kept.read_bytes())
    return folder


def renumbered(path: Path, number: int) -> str:
    """Return the text of a plan with another version in its `version:` line, and nothing else changed."""
    text = _VERSION_LINE.sub(rf"\g<1>{number}", path.read_bytes().decode(), count=1)
    if Plan.model_validate(yaml.safe_load(text)) != read_plan(path).model_copy(update={"version": number}):
        raise InputError(f"{path} has no line of its own that begins with `version:`. Write one, as the catalog does.")
    return text


def _told(before: Version, target: Version) -> list[str]:
    """Return what the new version holds, what may be edited, and what is still to be done before it runs."""
    held = [f"{len(read_plan(target.plan_path(rehearsal=target.rehearsal)).cells)} cells"]
    if target.corpus_path.exists():
        held.append(f"{load_corpus(target.corpus_path)[0].n_documents} documents")
    if target.queries_path.exists():
        held.append(f"{len(load_queries(target.queries_path))} queries")
    lines = [
        f"{target.number_name} is open, from {before.number_name}: {', '.join(held)}.",
        f"All of it may be edited in {target.folder} until its first pair goes to a judge: add cells to plan.yaml, and "
        "queries that no exploration has seen. Labels are carried then, where query, document and prompt stay. Without "
        "corpus.jsonl documents are drawn anew.",
        *_plan_faults(target),
    ]
    if target.corpus_path.exists() and not archive_path(target).exists() and not target.source.corpus:
        lines.append(
            f"The documents' archive is not here ({archive_path(before)}): give the folder that they were drawn from "
            "with --corpus-path."
        )
    return [*lines, f"Next: {DRIVER} run {target.viewed}"]


def _plan_faults(target: Version) -> list[str]:
    """Return what keeps the plans from being run: the catalog may have moved on since they were written."""
    faults = []
    for rehearsal in (False, True):
        try:
            target.plan(rehearsal=rehearsal)
        except PlanError as error:
            faults.append(str(error))
    return faults
