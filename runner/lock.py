"""The lock of a record: SHA-256 of every file of it, written last, verified by every command."""

import os
from pathlib import Path

from runner.canonical import digest, file_sha256, json_bytes, read_json, sha256, write_atomic
from runner.errors import InputError, IntegrityError
from runner.eval_set import Version
from runner.result_schemas import Lock, Results
from runner.strict import checked

LOCK_NAME = "lock.json"
_OUTSIDE = ("rehearsal", "post-bulk")
"""Folders of a version that a record's lock leaves alone: they have locks of their own."""


def locked_files(record: Path) -> list[str]:
    """The record's files by name, sorted, POSIX paths relative to it: all but the lock and what it leaves alone."""
    names = []
    for path in sorted(record.rglob("*")):
        name = path.relative_to(record).as_posix()
        first = name.split("/", 1)[0]
        if (
            path.is_file()
            and first not in _OUTSIDE
            and name != LOCK_NAME
            and not any(part.startswith(".") for part in Path(name).parts)
        ):
            names.append(name)
    return sorted(names)


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
