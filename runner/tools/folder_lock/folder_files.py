"""The files below a folder, one at a time and as they are: links by their text, and nothing that changes meanwhile."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.base.canonical import JSON, sha256
from runner.base.errors import InputError
from runner.base.given_files import display


def files_below(folder: Path) -> set[str]:
    """The POSIX paths, relative to the folder, of everything below it that is no folder.

    Links are not followed, and what is named ".git" is left out. A name that is not UTF-8 comes with surrogates, as
    Python has it. An InputError names a folder that does not exist or cannot be read.
    """
    with _readable(folder):
        return set(_walk(folder))


def _walk(folder: Path) -> Iterator[str]:
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{below}{entry.name}/")
                else:
                    yield below + entry.name


def file_entry(folder: Path, name: str) -> dict[str, JSON]:
    """{sha256, size_bytes} of a file below a folder; of a symbolic link those of its text, and link: True.

    An InputError names one that is neither, that cannot be read, or that changes (size, time, or another file in its
    place) while it is read.
    """
    path = folder / name
    with _readable(path):
        before = path.lstat()
        if stat.S_ISLNK(before.st_mode):
            text = os.fsencode(path.readlink())
            return {"sha256": sha256(text), "size_bytes": len(text), "link": True}
        if not stat.S_ISREG(before.st_mode):
            raise InputError(f"{display(path)} is no file but a pipe, socket or device. Move it out of the folder.")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if _identity(before) != _identity(path.lstat()):
            raise InputError(f"{display(path)} changed while it was read. Stop what writes to it, then try again.")
    return {"sha256": found, "size_bytes": before.st_size}


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def name_inside(folder: Path, path: Path) -> str:
    """The POSIX path of a file relative to the folder that it lies in, however deep, or "" where it lies elsewhere."""
    place = path.parent.resolve() / path.name
    root = folder.resolve()
    return place.relative_to(root).as_posix() if place.is_relative_to(root) else ""


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{display(error.filename or path)} cannot be read ({error.strerror}).") from error
