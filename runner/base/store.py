"""The disposable store: `.cache/<stage>/<key>/`, content-addressed, verified on every read, safe to kill and to share.

An artefact is complete when its `manifest.json` is there, which is written last, by rename. Until then its folder may
hold `pieces/`, the builder's own scratch: it survives a killed attempt and is removed when the artefact is complete.
"""

import errno
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.base.canonical import JSON, digest, file_sha256, json_bytes, json_line, remove_stale, write_atomic
from runner.base.errors import BackendError

MANIFEST = "manifest.json"
PIECES = "pieces"

QUIET_SECONDS = 0.2
"""How long a wait for a lock goes unsaid."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR)
_log = logging.getLogger(__name__)


class Store:
    """Artefacts under `root`, one folder each, named by stage and by the digest of what they were made from."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ensure(self, stage: str, inputs: JSON, build: Callable[[Path], None]) -> Path:
        """The folder of a complete, verified artefact, built if it is missing or damaged.

        `build` gets the folder, empty but for the `pieces/` of a killed attempt, which it must verify itself; it
        writes everything else anew. It must be a pure function of `inputs`. Of two processes that want one
        artefact, one builds and the other waits. A damaged artefact is discarded with a warning in the log.
        """
        folder = self.folder(stage, inputs)
        lock = folder.with_name(f"{folder.name}.lock")
        with disk_errors(folder), exclusive(lock, f"another run to finish {stage}", guarded=folder):
            if not _is_complete(folder, stage, inputs):
                _clear(folder, keep_pieces=True)
                build(folder)
                remove_stale(folder)
                manifest = _manifest(stage, inputs, folder, _files(folder))
                write_atomic(folder / MANIFEST, json_bytes(manifest))
            if (folder / PIECES).exists():
                shutil.rmtree(folder / PIECES)
        return folder

    def holds(self, stage: str, inputs: JSON) -> bool:
        """Whether the artefact is complete; its bytes are verified when it is taken."""
        return (self.folder(stage, inputs) / MANIFEST).exists()

    def folder(self, stage: str, inputs: JSON) -> Path:
        """Where the artefact lies, or will."""
        return self.root / stage / digest({"stage": stage, "inputs": inputs})


@contextmanager
def exclusive(path: Path, what: str, guarded: Path | None = None) -> Iterator[None]:
    """Hold the lock file `path` alone; a second process that has to wait says in the log that it waits for `what`.

    The folder `guarded`, by default that of the file, is locked too: a lock file that somebody removes while it is
    held lets nobody in. Both locks are advisory and die with their process, however that ends. The empty file stays
    behind: removing it would let a third process lock a new file while a second one still waits for the old.
    """
    import filelock

    lock, seconds = filelock.FileLock(path), QUIET_SECONDS
    with disk_errors(path):
        while not lock.is_locked:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire(seconds)
            except filelock.Timeout:
                _log.warning("waiting for %s (lock: %s)", what, path)
                seconds = -1
            except FileNotFoundError:
                pass  # somebody cleared the folder while this process waited
    try:
        folder = _locked_folder(guarded or path.parent, what)
        try:
            yield
        finally:
            os.close(folder)
    finally:
        lock.release()


def _locked_folder(folder: Path, what: str) -> int:
    """A descriptor of the folder, locked until it is closed."""
    how = fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            _log.warning("waiting for %s (its lock file was removed; its folder: %s)", what, folder)
            how = fcntl.LOCK_EX
        except OSError:
            return descriptor  # a file system that locks no folder: the lock file has to do
        else:
            if folder.exists() and os.path.samestat(folder.stat(), os.fstat(descriptor)):
                return descriptor
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Writing below `path`: a full or unwritable disk becomes a BackendError that names the file and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise BackendError(
                f"The disk is full: {path} could not be written ({error.strerror}). Free some space, or delete "
                "older folders of .cache, and run the command again; what was finished is kept."
            ) from error
        if error.errno in _UNWRITABLE:
            raise BackendError(
                f"{error.filename or path} cannot be written ({error.strerror}). Make the folder writable for "
                "this user, or work in a folder that is, and run the command again."
            ) from error
        raise


def _is_complete(folder: Path, stage: str, inputs: JSON) -> bool:
    """Whether the manifest is there and holds; a manifest that does not is removed first, then its files."""
    path = folder / MANIFEST
    if not path.exists():
        return False
    trouble = _trouble(folder, stage, inputs)
    if trouble:
        _log.warning("%s is damaged (%s); it is discarded and made again", folder, trouble)
        _clear(folder, keep_pieces=False)
    return not trouble


def _trouble(folder: Path, stage: str, inputs: JSON) -> str:
    stored = (folder / MANIFEST).read_bytes()
    try:
        names = sorted(json.loads(stored)["files"])
    except (ValueError, TypeError, KeyError):
        return f"{MANIFEST} cannot be read"
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        return f"{missing[0]} is missing"
    manifest = _manifest(stage, inputs, folder, names)
    recorded = json.loads(stored)
    if json.loads(json_line(manifest)) == recorded:
        return ""
    changed = [name for name in names if manifest["files"][name] != recorded["files"][name]]
    return f"{(changed or [MANIFEST])[0]} is not what was written"


def _manifest(stage: str, inputs: JSON, folder: Path, names: list[str]) -> dict[str, JSON]:
    files = {name: file_sha256(folder / name) for name in names}
    return {"stage": stage, "inputs": inputs, "files": files, "content": digest(files)}


def _files(folder: Path) -> list[str]:
    """Relative paths of everything a builder made, sorted; its pieces and the manifest are not part of it."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(name.as_posix() for name in names if name.parts[0] != PIECES and name.as_posix() != MANIFEST)


def _clear(folder: Path, *, keep_pieces: bool) -> None:
    """An empty folder, manifest removed first so that a kill in between leaves an unfinished artefact."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in sorted(folder.iterdir()):
        if path.name == PIECES and path.is_dir() and keep_pieces:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    remove_stale(folder)
