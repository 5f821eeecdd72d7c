"""Files of a corpus, in a folder, in a ZIP or in the substrate's database, each read only when it is wanted."""

import errno
import json
import os
import re
import sqlite3
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from runner.base.errors import DocumentError, InputError

MAX_MEMBERS = 200_000
"""Members of a ZIP, rows of a database; the bills of one Congress are near 20,000."""

MAX_TOTAL = 20_000_000_000
"""Bytes that members or rows may declare together: four times the Code of Federal Regulations of a year."""

MAX_RATIO = 200
"""How far a member may expand; XML of the Government Publishing Office expands 6 to 15 times."""

FREE_RATIO = 1_000_000
"""Declared bytes up to which no ratio is asked for: a small file may be all spaces."""

_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_SQLITE_START = b"SQLite format 3\x00"
_NO_FILE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file that a corpus holds: its posix path there, its size as declared, and the way to its bytes.

    `load` raises DocumentError if the bytes cannot be had; another process may call it too.
    """

    place: str
    size: int
    load: Callable[[], bytes]
    is_regular: bool = True
    """Whether it is a file, not a link to a folder or to nothing, a pipe or a device, which are never opened."""
    leads_out: bool = False
    """Whether it is a link to a file elsewhere, of which no word may be repeated unless it is a document."""


@contextmanager
def corpus_files(path: Path, table: str, *, records: bool = False) -> Iterator[list[CorpusFile]]:
    """Give every file of a corpus in the order of places; they can be loaded inside the block.

    A folder is taken with all below it, links to files too, links to folders not, nor names that begin with a dot, nor
    what this tool keeps of an evaluation; raise an InputError for a folder in it that cannot be listed, since a sample
    from the rest would be biased. A ZIP is read in place, nothing is unpacked
    to the disk, and archives inside it stay closed. In a database each row of the table is a file (see `_rows`); with
    `records` one of any columns is a record of JSON, and a `table` of no name is the only one. Any other file is a
    corpus of one.
    """
    with ExitStack() as stack:
        if os.path.isdir(path):  # noqa: PTH112  # Path.is_dir raises where a folder above cannot be searched
            files = _folder(path)
        elif (start := _start(path)).startswith(_ZIP_STARTS):
            stack.callback(_archive.cache_clear)
            try:
                archive = stack.enter_context(_archive(path))
            except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
                raise InputError(f"{path} is a damaged ZIP ({error}). Fetch it again.") from error
            files = _members(archive, path)
        elif start.startswith(_SQLITE_START):
            stack.callback(_database.cache_clear)
            database = stack.enter_context(closing(_database(path)))
            try:
                files = list(_rows(database, path, table, records=records))
            except sqlite3.Error as error:
                raise InputError(f"{path} cannot be read as a database ({error}). Give another place.") from error
        elif start:
            files = [CorpusFile(printable(path.name), path.stat().st_size, partial(_from_disk, path))]
        else:
            raise InputError(
                f"{path} is not a folder, a ZIP, an SQLite database or a file with content. Give the place that holds "
                "the files."
            )
        yield sorted(files, key=lambda file: file.place)


@lru_cache(1)
def _archive(path: Path) -> zipfile.ZipFile:
    """Return this process's own handle of a ZIP: one that another process has cannot be handed over."""
    return zipfile.ZipFile(path)


@lru_cache(1)
def _database(path: Path) -> sqlite3.Connection:
    """Return this process's own connection to a database."""
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)


def _start(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""  # opening a pipe would wait for ever
        with path.open("rb") as handle:
            return handle.read(len(_SQLITE_START))
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}). Give another place.") from error


def printable(name: str) -> str:
    """Return a name with a question mark for what a terminal would obey or no encoding can write."""
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def _folder(folder: Path) -> list[CorpusFile]:
    files = []
    folders = [folder]
    while folders:
        inside = folders.pop()
        try:
            with os.scandir(inside) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if not _is_of_evaluation(Path(entry.path)):
                            folders.append(Path(entry.path))
                    else:
                        files.append(_on_disk(entry, folder))
        except OSError as error:
            raise InputError(
                f"{printable(str(error.filename or inside))} cannot be read ({error.strerror}), and the rest would not "
                "stand for the whole. Make it readable, or take it out of the folder."
            ) from error
    return files


def _is_of_evaluation(folder: Path) -> bool:
    """Return whether a folder holds versions of an evaluation, or is one itself, as where documents lie beside it."""
    is_version = re.fullmatch(r"v\d+", folder.name) is not None and (folder / "plan.yaml").is_file()
    return is_version or (folder / "v1" / "plan.yaml").is_file()


def _on_disk(entry: os.DirEntry[str], folder: Path) -> CorpusFile:
    path = Path(entry.path)
    place = printable(path.relative_to(folder).as_posix())
    try:
        status = path.stat()
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return CorpusFile(place, 0, partial(_from_disk, path), is_regular=False)
    is_regular = stat.S_ISREG(status.st_mode)
    leads_out = is_regular and entry.is_symlink() and not path.resolve().is_relative_to(folder.resolve())
    return CorpusFile(place, status.st_size, partial(_from_disk, path), is_regular, leads_out)


def _from_disk(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(path.name, f"cannot be opened ({error.strerror})") from error


def _members(archive: zipfile.ZipFile, path: Path) -> list[CorpusFile]:
    members = [info for info in archive.infolist() if not info.is_dir()]
    total = sum(info.file_size for info in members)
    if len(members) > MAX_MEMBERS or total > MAX_TOTAL:
        raise InputError(
            f"{path} declares {len(members)} members of {total / 1e9:.1f} GB, more than the limits of {MAX_MEMBERS} "
            f"members and {MAX_TOTAL / 1e9:.0f} GB. Give a smaller archive or a folder."
        )
    seen: set[str] = set()
    files = []
    for info in members:
        refused = _refused(info, seen)
        place = printable(info.filename)
        load = partial(_refuse, place, refused) if refused else partial(_from_archive, path, info)
        files.append(CorpusFile(place, info.file_size, load))
        seen.add(info.filename)
    return files


def _refused(info: zipfile.ZipInfo, seen: set[str]) -> str:
    """Return why a member is not opened, "" for one that may be."""
    name = info.filename
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or re.match("[A-Za-z]:", name):
        return "its path leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a link, not a file"
    if name in seen:
        return "the archive holds another file of this name"
    if info.flag_bits & 0x1:
        return "encrypted"
    if info.compress_type not in _METHODS:
        return f"compressed by a method that is not read ({info.compress_type})"
    if info.file_size > max(FREE_RATIO, MAX_RATIO * info.compress_size):
        return f"expands more than {MAX_RATIO} times"
    return ""


def _refuse(place: str, reason: str) -> bytes:
    raise DocumentError(place, reason)


def _from_archive(path: Path, info: zipfile.ZipInfo) -> bytes:
    """Return the member's bytes; never more than it declares, since zipfile stops there and checks the sum."""
    try:
        return _archive(path).read(info)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DocumentError(info.filename, "damaged in the archive") from error


def _rows(database: sqlite3.Connection, path: Path, table: str, *, records: bool) -> Iterator[CorpusFile]:
    """Give the rows of a table with doc_id, path or name, and raw, the bytes of the source file; or its `records`."""
    database.execute("PRAGMA trusted_schema = OFF")
    listed = database.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    found = sorted(str(row[0]) for row in listed)
    tables = ", ".join(map(printable, found)) or "none"
    if not table and len(found) != 1:
        raise InputError(f"{path}: which table has the documents? Name it: table=NAME. Tables found: {tables}.")
    table = table or found[0]
    shown, name = printable(table), _quoted(table)
    # The schema as SQLite understood it: what the file says a view or a virtual table is may be false.
    kinds = {row[2] for row in database.execute(f"PRAGMA table_list({name})") if row[0] == "main"}
    if kinds - {"table"}:
        raise InputError(
            f"{path}: {shown} is a {printable(min(kinds))}, not a table, and may have rows without end. Write its rows "
            "to a table, or give another place."
        )
    columns = sorted(row[1] for row in database.execute(f"PRAGMA table_info({name})"))
    places = [column for column in ("path", "name") if column in columns]
    is_of_files = bool(places) and {"doc_id", "raw"} <= set(columns)
    if not columns or not (records or is_of_files) or "rowid" in map(str.lower, columns):
        has = f"has the columns {', '.join(map(printable, columns))}" if columns else "is not there"
        wanted = "columns of any names" if records else "the columns doc_id, path or name, and raw (the source file)"
        raise InputError(
            f"{path}: the table {shown} {has}. Documents are read from a table {shown} with {wanted}, and none that is "
            f"named rowid. Tables found: {tables}."
        )
    # Each row is found again by SQLite's own key: doc_id and path need no index, and two rows may have equal ones.
    taken = ["raw"] if is_of_files else columns
    wanted = "CAST(raw AS BLOB)" if is_of_files else ", ".join(map(_quoted, columns))
    size = " + ".join(f"coalesce(length({_quoted(column)}), 0)" for column in taken)
    place = f"coalesce({_quoted(places[0])}, doc_id)" if is_of_files else "rowid || '.json'"
    fetch = f"SELECT {wanted} FROM {name} WHERE rowid = ?"  # noqa: S608
    total = 0
    listing = f"SELECT {place}, {size}, rowid FROM {name}"  # noqa: S608
    for number, (of_row, n_bytes, key) in enumerate(database.execute(listing), start=1):
        total += n_bytes
        if number > MAX_MEMBERS or total > MAX_TOTAL:
            raise InputError(
                f"{path}: the table {shown} has more than {MAX_MEMBERS} rows or {MAX_TOTAL / 1e9:.0f} GB. Give a "
                "smaller database or a folder."
            )
        at = printable(str(of_row)) if is_of_files else f"{shown}/{of_row}"
        load = partial(_from_row, path, fetch, at, key, () if is_of_files else tuple(columns))
        yield CorpusFile(at, n_bytes, load)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _from_row(path: Path, fetch: str, place: str, key: int, columns: Sequence[str]) -> bytes:
    """Return the bytes of a row's file; of a row that is a record, its columns as JSON, bytes read as UTF-8."""
    try:
        row = _database(path).execute(fetch, (key,)).fetchone()
    except sqlite3.Error as error:
        raise DocumentError(place, "cannot be read from the database") from error
    if not columns:
        return row[0] or b"" if row else b""
    values = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in row or ()]
    return json.dumps(dict(zip(columns, values, strict=False))).encode()
