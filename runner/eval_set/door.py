"""The one door to the files of a version: whoever reads one gets it as its record's lock holds it."""

import re
from collections.abc import Iterator
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_bytes, read_json
from runner.base.errors import InputError, IntegrityError
from runner.base.git import ignored
from runner.base.schema import checked
from runner.eval_set.shapes.decision import Lock

LOCK_NAME = "lock.json"

REPORTS = "post-bulk"
"""In a record, the folder of its reports on the production database, named by their day, each with its own lock."""

REPORT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-(\d+))?")
"""The name of a report's folder."""


def held(path: Path) -> Path:
    """The path of a file to read; an IntegrityError if the record that it lies in is locked and holds another.

    A file that no lock names passes: of an open version, or of no version at all.
    """
    for record, name in _places(path):
        if not is_of_any_folder(record / LOCK_NAME):
            lock = read_lock(record)
            if name in lock.files and (fault := fault_of(record, name, lock.files[name])):
                raise IntegrityError(f"A frozen eval set changed:\n  {fault}\n{way_out(record)}")
    return path


def _places(path: Path) -> Iterator[tuple[Path, str]]:
    """The locked folders that a file may belong to, with its name there, also where a link to it leads."""
    for place in dict.fromkeys((path.absolute(), path.resolve())):
        for record in list(place.parents)[:2]:  # runs and cells lie one deeper
            if (record / LOCK_NAME).exists():
                yield record, place.relative_to(record).as_posix()


def is_of_any_folder(path: Path) -> bool:
    """Whether a file of that name is what `lock FOLDER` writes, and no lock of a record."""
    try:
        value = read_json(path)
    except InputError:
        return False
    return isinstance(value, dict) and "artifacts" in value


def read_lock(record: Path) -> Lock:
    """The lock of a record as it was written; an IntegrityError for one that is damaged, edited or a link."""
    path = record / LOCK_NAME
    try:
        lock = checked(Lock, read_json(path), path)
    except InputError as error:
        raise IntegrityError(f"{path} is damaged. {way_out(record)}") from error
    if path.is_symlink():
        raise IntegrityError(f"{path} is a link, and no lock is. {way_out(record)}")
    if digest(lock.files) != lock.root_sha256 or json_bytes(lock.model_dump()) != path.read_bytes():
        raise IntegrityError(f"{path}: its own table was edited. {way_out(record)}")
    return lock


def fault_of(record: Path, name: str, expected: str) -> str:
    """What is wrong with a locked file, "" if it is as locked; a link in its place is wrong wherever it leads."""
    path = record / name
    if not path.is_file():
        return f"{path}: missing"
    if path.resolve() != record.resolve() / name:
        return f"{path}: a link stands in its place"
    found = file_sha256(path)
    return "" if found == expected else f"{path}: changed (locked {expected[:16]}, found {found[:16]})"


def is_report(folder: Path) -> bool:
    """Whether a folder is a report's, which is made with its lock."""
    return folder.parent.name == REPORTS and REPORT.fullmatch(folder.name) is not None


def from_git(record: Path) -> str:
    """The command that restores a record; that of a rehearsal rests on files beside its folder too."""
    return f"git checkout -- {record.parent if record.name == 'rehearsal' else record}"


def way_out(record: Path) -> str:
    """What to do about a record or a report that changed."""
    if is_report(record):
        return f"Restore it (git checkout -- {record}), or delete it and make a new report with --post-bulk."
    if LOCK_NAME in ignored(record):
        return (
            f"git ignores it, so it is made anew: delete results.json, decision.json and {LOCK_NAME} in {record}, put "
            f"back what git has ({from_git(record)}), and decide again."
        )
    return (
        f"Restore it ({from_git(record)}); a change of queries, labels or rule belongs in the next version, "
        "with a new baseline run."
    )
