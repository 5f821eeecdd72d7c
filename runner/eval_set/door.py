"""Locks of folders: SHA-256 of every file; and the one door to the files of a version, which holds them to their lock.

A lock is no signature: whoever can write both the folder and the lock can make the two agree.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from runner.base.canonical import digest, file_sha256, json_bytes, read_json, sha256
from runner.base.errors import InputError, IntegrityError
from runner.base.git import git_state, ignored
from runner.base.given_files import display
from runner.base.schema import checked
from runner.eval_set.shapes.lock import FolderFacts, Lock

LOCK_NAME = "lock.json"

REPORTS = "post-bulk"
"""In a record, the folder of its reports on the production database, named by their day, each with its own lock."""

REPORT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-(\d+))?")
"""The name of a report's folder."""


def lock_over(folder: Path, names: Iterable[str]) -> Lock:
    """Return the lock over files of a folder as they are, by their POSIX paths relative to it."""
    files = {name: file_sha256(folder / name) for name in names}
    return Lock(schema_version=1, files=files, root_sha256=_root(files, None))


def _root(files: Mapping[str, str], folder: FolderFacts | None) -> str:
    return digest(files if folder is None else {"files": files, "folder": folder.model_dump()})


def held(path: Path) -> Path:
    """Return the path of a file to read; IntegrityError if it lies in a locked record that holds another.

    A file that no lock names passes: of an open version, or of no version at all.
    """
    for location in dict.fromkeys((path.absolute(), path.resolve())):  # also where a link to it leads
        for record in (location.parent, location.parent.parent):  # runs and cells lie one deeper
            if (record / LOCK_NAME).exists():
                lock, name = read_lock(record), location.relative_to(record).as_posix()
                # The lock of any other folder binds `verify` alone; files beside the record's own are free.
                if lock.folder is None and name in lock.files and (fault := fault_of(record, name, lock.files[name])):
                    raise IntegrityError(f"A frozen eval set changed:\n  {fault}\n{way_out(record)}")
    return path


def read_lock(record: Path) -> Lock:
    """Return the lock of a record as it was written; IntegrityError for one that is damaged, edited or a link."""
    path = record / LOCK_NAME
    try:
        lock = checked(Lock, read_json(path), path)
    except InputError as error:
        raise IntegrityError(f"{path} is damaged. {way_out(record)}") from error
    if path.is_symlink():
        raise IntegrityError(f"{path} is a link, and no lock is. {way_out(record)}")
    # A record's lock is compared by bytes: another layout is an edit too.
    is_laid_out = lock.folder is not None or json_bytes(lock.model_dump()) == path.read_bytes()
    if is_edited(lock) or not is_laid_out:
        raise IntegrityError(f"{path}: its own table was edited. {way_out(record)}")
    return lock


def fault_of(record: Path, name: str, expected: str) -> str:
    """Return what is wrong with a locked file, "" if it is as locked; a link is wrong wherever it leads."""
    path = record / name
    if not path.is_file():
        return f"{path}: missing"
    if any(part.is_symlink() for part in (path, *list(path.parents)[: name.count("/")])):
        return f"{path}: a link stands in its place"
    now = file_sha256(path)
    return "" if now == expected else f"{path}: changed (locked {expected[:16]}, found {now[:16]})"


def is_report(folder: Path) -> bool:
    """Return whether a folder is a report's, which is made with its lock."""
    return folder.parent.name == REPORTS and REPORT.fullmatch(folder.name) is not None


def way_out(record: Path) -> str:
    """Return what to do about a record or a report that changed."""
    if is_report(record):
        return f"Restore it (git checkout -- {record}), or delete it and make a new report with --post-bulk."
    # A rehearsal rests on files beside its folder too.
    restore = f"git checkout -- {record.parent if record.name == 'rehearsal' else record}"
    if LOCK_NAME in ignored(record):
        return (
            f"git ignores it, so it is made anew: delete results.json, decision.json and {LOCK_NAME} in {record}, put "
            f"back what git has ({restore}), and decide again."
        )
    return (
        f"Restore it ({restore}, or from a backup); a change of queries, labels or rule belongs in the next version, "
        "with a new baseline run."
    )


_SKIPPED = re.compile(r"\.fuse_hidden.*|.*\.db-(wal|shm)")
"""Names of passing files, which count in no folder."""


def lock_folder(folder: Path, *, own: Path | None = None) -> Lock:
    """Return the lock of any folder as it is, with the commit it stands at; a lock at `own` does not lock itself.

    ".git" never counts, and a symbolic link counts by its text. InputError if no file counts, or one cannot be read,
    changes meanwhile, has a name that is not UTF-8, or is a pipe or a socket.
    """
    own_path, root = own and own.parent.resolve() / own.name, folder.resolve()
    facts = FolderFacts(
        locked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        git=git_state(folder),
        own=own_path.relative_to(root).as_posix() if own_path and own_path.is_relative_to(root) else "",
    )
    files = {name: _digest(folder / name) for name in sorted(_counted(folder, facts))}
    if not files:
        raise InputError(f"{display(folder)} holds no file to lock. Name another folder.")
    if strange := [name for name in files if name.encode(errors="replace").decode() != name]:
        raise InputError(f"{display(folder / strange[0])}: this name is not UTF-8. Rename the file to lock it.")
    return Lock(schema_version=1, files=files, root_sha256=_root(files, facts), folder=facts)


def is_edited(lock: Lock) -> bool:
    """Return whether a lock's table or facts were edited after it was made."""
    return _root(lock.files, lock.folder) != lock.root_sha256


def folder_differences(folder: Path, lock: Lock) -> list[dict[str, str]]:
    """Return path, kind (missing, changed or extra) and both digests of every file that is not as it was locked."""
    assert lock.folder is not None
    now = {name: _digest(folder / name) for name in _counted(folder, lock.folder)}
    rows = []
    for name in sorted(lock.files.keys() | now.keys()):
        locked, found = lock.files.get(name, ""), now.get(name, "")
        if locked != found:
            kind = "extra" if not locked else "changed" if found else "missing"
            rows.append({"path": display(name), "kind": kind, "locked": locked, "found": found})
    return rows


def _counted(folder: Path, facts: FolderFacts) -> Iterator[str]:
    """Yield the POSIX paths below a folder of what counts; links to folders are not followed."""
    for name in names_below(folder):
        if name != facts.own and not _SKIPPED.fullmatch(name.rpartition("/")[2]):
            yield name


def names_below(folder: Path) -> Iterator[str]:
    """Yield the POSIX paths below a folder of every file and link, but for git's own; a name may hold surrogates."""
    for inner, folders, names in os.walk(folder, onerror=_raise_unreadable):
        links = [name for name in folders if (Path(inner) / name).is_symlink()]
        # In place, which keeps os.walk out of git's own folder and of links.
        folders[:] = [name for name in folders if name not in (".git", *links)]
        yield from ((Path(inner) / name).relative_to(folder).as_posix() for name in (*names, *links) if name != ".git")


def _raise_unreadable(error: OSError) -> None:
    raise InputError(f"{display(error.filename)} cannot be read ({error.strerror}).") from error


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of a link's text; InputError for anything else, and for one that changes."""
    try:
        # Looked at before and after: a file that is being written has no digest worth keeping.
        before = path.lstat()
        if stat.S_ISLNK(before.st_mode):
            return sha256(b"link to " + os.fsencode(path.readlink()))
        if not stat.S_ISREG(before.st_mode):
            raise InputError(f"{display(path)} is a pipe, socket or device. Move it out of the folder.")
        content = file_sha256(path)
        after = path.lstat()
    except OSError as error:
        _raise_unreadable(error)
        raise
    if (before.st_ino, before.st_size, before.st_mtime_ns) != (after.st_ino, after.st_size, after.st_mtime_ns):
        raise InputError(f"{display(path)} changed while it was read. Stop what writes to it, then try again.")
    return content
