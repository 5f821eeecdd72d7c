"""The lock of a record: SHA-256 of every file of it, written last, verified by every command."""

import os
from pathlib import Path

from runner.canonical import digest, file_sha256, json_bytes, read_json, sha256, slug, write_atomic
from runner.errors import InputError, IntegrityError
from runner.eval_set import NOISE_FLOOR_CELL, Version
from runner.plan import read_plan
from runner.result_schemas import Lock, Results
from runner.strict import checked

LOCK_NAME = "lock.json"
_CELL_FILES = (("runs", ".tsv"), ("runs", ".chunks.tsv"), ("cells", ".json"))
_FILES = (
    "corpus.jsonl",
    "decision.json",
    "labels.jsonl",
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
    cells = [*(slug(cell) for cell in read_plan(record / "plan.yaml").cells), NOISE_FLOOR_CELL]
    runs = (f"{folder}/{cell}{ending}" for cell in cells for folder, ending in _CELL_FILES)
    prompts = (path.name for path in record.glob("judge-v*.md"))
    return sorted(name for name in (*_FILES, *prompts, *runs) if (record / name).is_file())


def write_lock(record: Path) -> Lock:
    """The lock over the record's files as they are, created exclusively: an existing lock is an IntegrityError."""
    files = {name: file_sha256(record / name) for name in locked_files(record)}
    lock = Lock(schema_version=1, files=files, root_sha256=digest(files))
    path = record / LOCK_NAME
    partial = path.with_name(f".{LOCK_NAME}.{os.getpid()}")
    write_atomic(partial, json_bytes(lock.model_dump()))
    try:
        os.link(partial, path)  # fails where the name is taken, and never shows half a file
    except FileExistsError as error:
        raise IntegrityError(f"{path} exists already; a record is locked once.") from error
    finally:
        partial.unlink()
    return lock


def verify_lock(record: Path) -> Lock | None:
    """The record's lock after checking every file against it, None where nothing is locked yet.

    An IntegrityError names each file that is missing or changed, both digests, and the way out.
    """
    path = record / LOCK_NAME
    if not path.exists():
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
    if problems:
        listed = "\n  ".join(problems)
        raise IntegrityError(f"A frozen eval set changed:\n  {listed}\n{_way_out(record)}")
    return lock


def _way_out(record: Path) -> str:
    return (
        f"Restore it (git checkout -- {record}); a change of queries, labels or rule belongs in the next version, "
        "with a new baseline run."
    )


def verify_version(version: Version) -> tuple[Lock | None, Lock | None]:
    """The locks of the record and of its rehearsal, both verified.

    A locked rehearsal also holds the lines of labels.jsonl that it was scored with; later ones may follow.
    """
    record, rehearsal = verify_lock(version.folder), verify_lock(version.folder / "rehearsal")
    if rehearsal is not None and "results.json" in rehearsal.files:
        _verify_labels(version)
    return record, rehearsal


def _verify_labels(version: Version) -> None:
    path = version.folder / "rehearsal" / "results.json"
    scored = checked(Results, read_json(path), path).labels
    lines = version.labels_path.read_bytes().splitlines(keepends=True) if version.labels_path.exists() else []
    if sha256(b"".join(lines[: scored.lines])) != scored.sha256:
        raise IntegrityError(
            f"{version.labels_path}: the first {scored.lines} lines changed since the rehearsal was locked over them. "
            f"{_way_out(version.folder)}"
        )
