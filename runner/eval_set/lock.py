"""The lock of a record: SHA-256 of every file of it, written last, verified by every command."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_bytes, read_json, sha256, slug, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.schema import checked
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.decision import Lock
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_decision, load_results

LOCK_NAME = "lock.json"

REPORTS = "post-bulk"
"""In a record, the folder of its reports on the production database, named by their day, each with its own lock."""

_REPORT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-(\d+))?")
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
    return sorted(name for name in (*_FILES, *prompts, *runs) if (record / name).is_file())


def lock_over(folder: Path, names: Iterable[str]) -> Lock:
    """The lock over files of the folder as they are, by their POSIX paths relative to it; nothing is written."""
    files = {name: file_sha256(folder / name) for name in names}
    return Lock(schema_version=1, files=files, root_sha256=digest(files))


def write_lock(record: Path) -> Lock:
    """The lock over the record's files as they are, created exclusively: an existing lock is an IntegrityError."""
    lock = lock_over(record, locked_files(record))
    path = record / LOCK_NAME
    try:
        write_atomic(path, json_bytes(lock.model_dump()), new=True)
    except FileExistsError as error:
        raise IntegrityError(f"{path} exists already; a record is locked once.") from error
    return lock


def verify_lock(record: Path) -> Lock | None:
    """The lock of a record or of a report after checking every file against it, None if no record is locked yet.

    An IntegrityError names each file that is missing or changed, both digests, and the way out. A report is made with
    its lock, so one without it is an IntegrityError too, as is any file in its folder that the lock does not name, but
    for hidden ones.
    """
    path = record / LOCK_NAME
    if not path.exists():
        if _is_report(record):
            raise IntegrityError(f"{record} has lost its {LOCK_NAME}. {_way_out(record)}")
        return None
    try:
        lock = checked(Lock, read_json(path), path)
    except InputError as error:
        raise IntegrityError(f"{path} is damaged. {_way_out(record)}") from error
    is_whole = digest(lock.files) == lock.root_sha256 and json_bytes(lock.model_dump()) == path.read_bytes()
    problems = [] if is_whole else [f"{path}: its own table was edited"]
    for name, expected in sorted(lock.files.items()):
        file = record / name
        if not file.is_file():
            problems.append(f"{file}: missing")
        elif (found := file_sha256(file)) != expected:
            problems.append(f"{file}: changed (locked {expected[:16]}, found {found[:16]})")
    if _is_report(record):
        problems += [f"{file}: not in the report's lock; move it away" for file in _strangers(record, lock)]
    if problems:
        what = "A report" if _is_report(record) else "A frozen eval set"
        listed = "\n  ".join(problems)
        raise IntegrityError(f"{what} changed:\n  {listed}\n{_way_out(record)}")
    return lock


def report_folders(record: Path) -> list[Path]:
    """The record's reports on the production database, oldest first; `verify_lock` holds each to its lock."""
    named = [(match, path) for path in (record / REPORTS).glob("*") if (match := _REPORT.fullmatch(path.name))]
    return [path for _, path in sorted(named, key=lambda pair: (pair[0][1], int(pair[0][2] or 1)))]


def _is_report(folder: Path) -> bool:
    return folder.parent.name == REPORTS and _REPORT.fullmatch(folder.name) is not None


def _strangers(folder: Path, lock: Lock) -> list[Path]:
    """What lies in the folder, hidden files aside, and is neither its lock nor named in it."""
    own = {LOCK_NAME, *lock.files}
    files = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(p for p in files if not p.name.startswith(".") and p.relative_to(folder).as_posix() not in own)


def _way_out(record: Path) -> str:
    if _is_report(record):
        return f"Restore it (git checkout -- {record}), or delete it and make a new report with --post-bulk."
    return (
        f"Restore it (git checkout -- {record}); a change of queries, labels or rule belongs in the next version, "
        "with a new baseline run."
    )


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
    if rehearsal is not None and "results.json" in rehearsal.files:
        _verify_labels(version)
    if (version.record / "decision.json").exists():
        load_decision(version)
    return record, rehearsal


def _verify_labels(version: Version) -> None:
    scored = load_results(replace(version, record=version.folder / "rehearsal")).labels
    lines = version.labels_path.read_bytes().splitlines(keepends=True) if version.labels_path.exists() else []
    if sha256(b"".join(lines[: scored.lines])) != scored.sha256:
        raise IntegrityError(
            f"{version.labels_path}: the first {scored.lines} lines changed since the rehearsal was locked over them. "
            f"{_way_out(version.folder)}"
        )
