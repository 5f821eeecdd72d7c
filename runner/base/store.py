"""The disposable store: `.cache/<stage>/<key>/`, content-addressed, verified on every read, safe to kill and to share.

An artefact is complete when its `manifest.json` is there, which is written last, by rename. Until then its folder may
hold `pieces/`, the builder's own scratch: it survives a killed attempt and is removed when the artefact is complete.
"""

import errno
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.base.canonical import (
    JSON,
    digest,
    file_sha256,
    json_bytes,
    json_line,
    parse_json,
    remove_stale,
    write_atomic,
)
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
        """Return the folder of a complete, verified artefact, built if it is missing or damaged.

        `build` gets the folder, empty but for the `pieces/` of a killed attempt, which it must verify itself; it
        writes everything else anew. It must be a pure function of `inputs`. Of two processes that want one
        artefact, one builds and the other waits. A damaged artefact is discarded with a warning in the log.
        """
        folder = self.folder(stage, inputs)
        lock = folder.with_name(f"{folder.name}.lock")
        with disk_errors(folder), exclusive(lock, f"another run to finish {stage}"):
            # Under the lock: complete and sound, or discarded; then built unless it is there.
            is_made = (folder / MANIFEST).exists()
            if is_made and (fault := _fault(folder, stage, inputs)):
                _log.warning("%s is damaged (%s); it is discarded and made again", folder, fault)
                _clear(folder, keep_pieces=False)
                is_made = False
            if not is_made:
                _clear(folder, keep_pieces=True)
                build(folder)
                remove_stale(folder)
                paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
                names = sorted(path.as_posix() for path in paths if path.parts[0] != PIECES)
                write_atomic(folder / MANIFEST, json_bytes(_manifest(stage, inputs, folder, names)))
            if (folder / PIECES).exists():
                shutil.rmtree(folder / PIECES)
        return folder

    def holds(self, stage: str, inputs: JSON) -> bool:
        """Return whether the artefact is complete; its bytes are verified when it is taken."""
        return (self.folder(stage, inputs) / MANIFEST).exists()

    def folder(self, stage: str, inputs: JSON) -> Path:
        """Return where the artefact lies, or will."""
        return self.root / stage / digest({"stage": stage, "inputs": inputs})


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` alone; a second process that has to wait says in the log that it waits for `what`.

    The lock is advisory and dies with its process, however that ends. The empty file stays behind: removing it would
    let a third process lock a new file while a second one still waits for the old.
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
        yield
    finally:
        lock.release()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Make of a full or unwritable disk, while something writes below `path`, a BackendError with the way out."""
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


def _fault(folder: Path, stage: str, inputs: JSON) -> str:
    """Return what of an artefact is not as its manifest says, "" for nothing."""
    stored = (folder / MANIFEST).read_bytes()
    try:
        recorded = parse_json(stored)
        names = sorted(recorded["files"])
    except (ValueError, TypeError, KeyError):
        return f"{MANIFEST} cannot be read"
    if missing := [name for name in names if not (folder / name).is_file()]:
        return f"{missing[0]} is missing"
    # Through JSON, so that tuples and long floats compare as they were written.
    manifest = _manifest(stage, inputs, folder, names)
    if parse_json(json_line(manifest)) == recorded:
        return ""
    changed = [name for name in names if manifest["files"][name] != recorded["files"][name]]
    return f"{(changed or [MANIFEST])[0]} is not what was written"


def _manifest(stage: str, inputs: JSON, folder: Path, names: list[str]) -> dict[str, JSON]:
    files = {name: file_sha256(folder / name) for name in names}
    return {"stage": stage, "inputs": inputs, "files": files, "content": digest(files)}


def _clear(folder: Path, *, keep_pieces: bool) -> None:
    """Empty a folder, manifest removed first so that a kill in between leaves an unfinished artefact."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not (keep_pieces and path.name == PIECES):
            shutil.rmtree(path)
        elif not path.is_dir():
            path.unlink()
    remove_stale(folder)
