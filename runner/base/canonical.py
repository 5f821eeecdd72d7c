"""Bytes that are the same wherever they are written: canonical JSON, digests, slugs, dates, whole-file writes."""

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from runner.base.errors import InputError

JSON = Any  # checked by the schemas of eval_set, not by a static type


def today() -> str:
    """Return the day in UTC, as records have it."""
    return datetime.now(UTC).date().isoformat()


def rounded(value: JSON) -> JSON:
    """Return the same structure with floats at 9 places; raise ValueError on NaN and infinities."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} cannot be written as JSON")
        return round(value, 9) + 0.0  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _PLAIN else rounded(item) for item in value]
    return value


_PLAIN = frozenset((str, int, bool, type(None)))


def json_bytes(value: JSON) -> bytes:
    """Return JSON with sorted keys, floats at 9 places and a final newline: the form of every committed file.

    What fits in a line of `LINE` characters stands on one, as does every list without lists and objects; all else has
    an item a line, indented by one space.
    """
    return (_laid_out(rounded(value), "") + "\n").encode()


LINE = 160

_encoded = json.JSONEncoder(ensure_ascii=False).encode


def _laid_out(value: JSON, margin: str) -> str:
    """Return the JSON of a rounded value; `margin` stands before the lines after the first."""
    inner = margin + " "
    if isinstance(value, dict):
        brackets = "{}"
        items = [f"{encode_basestring(str(key))}: {_laid_out(item, inner)}" for key, item in sorted(value.items())]
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        brackets, items = "[]", [_laid_out(item, inner) for item in value]
    else:
        return _encoded(value)
    # On one line where it fits, else an item a line.
    whole = ", ".join(items)
    if len(whole) <= LINE and "\n" not in whole:
        return f"{brackets[0]}{whole}{brackets[1]}"
    return f"{brackets[0]}\n{inner}" + f",\n{inner}".join(items) + f"\n{margin}{brackets[1]}"


def json_line(value: JSON) -> str:
    """Return one line of JSON with sorted keys, without a newline: the form of every .jsonl row."""
    return _encoded_line(rounded(value))


def jsonl_bytes(rows: Iterable[JSON]) -> bytes:
    """Return a .jsonl file: one `json_line` a row, each with its newline; empty for no rows."""
    return "".join(json_line(row) + "\n" for row in rows).encode()


def refuse_special(path: Path) -> None:
    """Raise InputError for a device or a pipe, which may never end; a file, or a path with nothing there, passes."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file.")


def read_bytes(path: Path) -> bytes:
    """Return what a file holds; InputError if it is missing, cannot be read, or is a device or a pipe."""
    refuse_special(path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. Give the path of a file that does, or restore it.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error


def parse_json(text: str | bytes, *, halves: bool = False) -> JSON:
    """Return the value of a JSON text in UTF-8; ValueError for anything else, NaN and a field that occurs twice.

    So is, unless `halves` may pass, half a surrogate pair, as a cut emoji leaves it: it could not be written again.
    """
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        value = _decoded(text)
        if not halves and "\\ud" in text.lower():
            json_line(value).encode()
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    except UnicodeEncodeError as error:
        raise ValueError("it has half of a surrogate pair") from error
    return value


def _without_repeats(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


# Made once: `json.loads` and `json.dumps` with settings of one's own make theirs anew for every row.
_decoded = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_constant=_refuse_constant).decode
_encoded_line = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False).encode


def read_json(path: Path) -> JSON:
    """Return what a file of JSON holds; InputError, which names it, if it is missing or not JSON."""
    try:
        return parse_json(read_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}). Restore it from git or a backup, or make it again.") from error


def read_jsonl(path: Path, content: bytes | None = None) -> Iterator[tuple[int, dict[str, JSON]]]:
    """Yield line number (from 1) and object of each non-blank row of a file, or of its `content` if it was read.

    An InputError names file and line. A byte order mark and CRLF ends pass, since answers come from people's editors.
    """
    content = read_bytes(path) if content is None else content
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 ({error}). Save it as UTF-8 and run the command again.") from error
    # Split on newlines alone: str.splitlines would also break a row at U+2028 inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise InputError(f"{path}:{number}: not JSON ({error}); one object a line is expected.") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: a JSON object is expected, found {type(row).__name__}.")
        yield number, row


def sha256(data: bytes | str) -> str:
    """Return the hex SHA-256 of bytes, or of a string's UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def digest(value: JSON) -> str:
    """Return the hex SHA-256 of a value's canonical JSON line."""
    return sha256(json_line(value))


def file_sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes; an InputError names one that is missing."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing. Restore it from git or a backup and run the command again.") from error


def slug(name: str) -> str:
    """Return a file name for a cell: every run of characters outside [a-z0-9._] becomes one dash."""
    return re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-")


def write_atomic(path: Path, data: bytes, *, new: bool = False) -> None:
    """Put `data` at `path` whole or not at all, on the disk on return; FileExistsError if `new` and it is there.

    A killed process can leave a `.tmp-*` file behind, which `remove_stale` takes away, never a half-written `path`.
    """
    # Folders that are new need their own names on the disk as well.
    made = list(takewhile(lambda folder: not folder.exists(), path.parents))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(path.parent) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
        if new:
            os.link(stream.name, path)  # fails where the name is taken
        else:
            Path(stream.name).replace(path)
    for folder in (path.parent, *(each.parent for each in made)):
        sync_folder(folder)


@contextmanager
def _temporary(folder: Path) -> Iterator[BinaryIO]:
    """Open a file of our own for writing, locked for as long as it is ours, and gone after unless it was renamed."""
    while True:
        path = folder / f".tmp-{secrets.token_hex(8)}"
        with path.open("xb") as stream:
            _lock(stream.fileno(), fcntl.LOCK_EX)
            if not os.fstat(stream.fileno()).st_nlink:
                continue  # taken for a killed writer's before it was locked
            try:
                yield stream
            finally:
                path.unlink(missing_ok=True)
            return


def remove_stale(folder: Path) -> None:
    """Remove the temporary files of killed writers below a folder; one that is being written stays."""
    for path in folder.rglob(".tmp-*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                if _lock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB):
                    path.unlink(missing_ok=True)


def _lock(descriptor: int, how: int) -> bool:
    """Return whether the lock was had; where the file system knows none it never is."""
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def rename_synced(path: Path, target: Path) -> Path:
    """Rename `path` to `target`, on the disk when this returns; return the target."""
    path.rename(target)
    sync_folder(target.parent)
    return target


def sync_folder(folder: Path) -> None:
    """Put a folder's names on the disk: without that a rename may be undone when the power fails."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that does not do this for folders
            raise
    finally:
        os.close(descriptor)
