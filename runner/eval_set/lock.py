"""The lock of a record: SHA-256 of every file of it, written last, verified by every command that reads one."""

import os
from collections.abc import Iterable
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_bytes, slug, write_atomic
from runner.base.errors import IntegrityError
from runner.eval_set.claims import contradictions
from runner.eval_set.door import (
    LOCK_NAME,
    REPORT,
    REPORTS,
    fault_of,
    held,
    is_of_any_folder,
    is_report,
    read_lock,
    way_out,
)
from runner.eval_set.looks import LOOKS, look_files
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.decision import Lock
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_decision

_CELL_FILES = (("runs", ".tsv"), ("runs", ".chunks.tsv"), ("cells", ".json"))
_FILES = (
    "corpus.jsonl",
    "decision.json",
    "labels.jsonl",
    "opened.json",
    "plan.yaml",
    "preregistration.json",
    "queries.yaml",
    "receipt.json",
    "results.html",
    "results.json",
)


def locked_files(record: Path) -> list[str]:
    """The record's own files by name, sorted, POSIX paths relative to it; what else lies there is not the record's.

    Runs are those of the plan's cells and of the A/A run: a cell that left the plan before it was frozen is no part.
    """
    plan = record / "plan.yaml"
    planned = read_plan(plan).cells if plan.exists() else []  # a decision by policy has none
    cells = [*map(slug, planned), NOISE_FLOOR_CELL]
    runs = (f"{folder}/{cell}{ending}" for cell in cells for folder, ending in _CELL_FILES)
    prompts = (path.name for path in record.glob("judge-v*.md"))
    looks = (f"{LOOKS}/{path.name}" for path in look_files(record))
    return sorted(name for name in (*_FILES, *prompts, *runs, *looks) if (record / name).is_file())


def lock_over(folder: Path, names: Iterable[str]) -> Lock:
    """The lock over files of the folder as they are, by their POSIX paths relative to it; nothing is written."""
    files = {name: file_sha256(folder / name) for name in names}
    return Lock(schema_version=1, files=files, root_sha256=digest(files))


def write_lock(record: Path) -> Lock:
    """The lock over the record's files as they are, created exclusively.

    An existing lock is an IntegrityError, and so is a link among the files: what it leads to is not the record's.
    """
    lock = lock_over(record, locked_files(record))
    if fault := next(filter(None, (fault_of(record, *file) for file in lock.files.items())), ""):
        raise IntegrityError(f"{fault}. Put the file itself there and run again.")
    path = record / LOCK_NAME
    try:
        write_atomic(path, json_bytes(lock.model_dump()), new=True)
    except FileExistsError as error:
        raise IntegrityError(f"{path} exists already; a record is locked once.") from error
    return lock


def verify_lock(record: Path) -> Lock | None:
    """The lock of a record or of a report after checking every file against it, None if no record is locked yet.

    An IntegrityError names each file that is missing, changed or a link, both digests, and the way out; else every
    digest that one file holds of another and that contradicts it. A report is made with its lock, so one without it is
    an IntegrityError too, as is any file in its folder that the lock does not name, but for hidden ones.
    """
    if not os.path.lexists(record / LOCK_NAME):
        if is_report(record):
            raise IntegrityError(f"{record} has lost its {LOCK_NAME}. {way_out(record)}")
        return None
    lock = read_lock(record)
    faults = (fault_of(record, name, expected) for name, expected in sorted(lock.files.items()))
    problems = [fault for fault in faults if fault] or contradictions(record, lock.files)
    if is_report(record):
        problems += [f"{file}: not in the report's lock; move it away" for file in _strangers(record, lock)]
    if problems:
        what = "A report" if is_report(record) else "A frozen eval set"
        listed = "\n  ".join(problems)
        raise IntegrityError(f"{what} changed:\n  {listed}\n{way_out(record)}")
    return lock


def verified(path: Path) -> Path:
    """The path of a given file, once the record that it lies in is verified; a file of no record passes."""
    record = path.resolve().parent
    if not is_of_any_folder(record / LOCK_NAME):
        verify_lock(record)
    return held(path)


def report_folders(record: Path) -> list[Path]:
    """The record's reports on the production database, oldest first; `verify_lock` holds each to its lock."""
    named = [(match, path) for path in (record / REPORTS).glob("*") if (match := REPORT.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda pair: (pair[0][1], int(pair[0][2] or 1)))]


def _strangers(folder: Path, lock: Lock) -> list[Path]:
    """What lies in the folder, hidden files aside, and is neither its lock nor named in it."""
    own = {LOCK_NAME, *lock.files}
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(p for p in files if not p.name.startswith(".") and p.relative_to(folder).as_posix() not in own)


def verify_version(version: Version) -> tuple[Lock | None, Lock | None]:
    """The locks of the record and of its rehearsal, both verified; a decision must be of this source and version.

    A locked rehearsal also holds the lines of labels.jsonl that it was scored with; later ones may follow. A record
    that is decided and given up at once is an IntegrityError.
    """
    record, rehearsal = verify_lock(version.folder), verify_lock(version.folder / "rehearsal")
    if (version.folder / "abandoned.json").exists() and (version.folder / "decision.json").exists():
        raise IntegrityError(
            f"{version.folder} is decided and abandoned.json says that it was given up. What was decided cannot be: "
            "remove abandoned.json, or restore the folder from git."
        )
    if (version.record / "decision.json").exists():
        load_decision(version)
    return record, rehearsal
