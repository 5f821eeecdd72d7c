"""The production substrate, opened to be read and never written, and what its documents are called there."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from runner.base.canonical import refuse_special
from runner.base.errors import InputError
from runner.base.given_files import display, printable
from runner.substrate.shapes import SubstrateFacts
from runner.substrate.tables import Rows, declared, table_names

BUSY_MS = 5000
"""How long a statement waits for a writer's lock."""

CACHE_KIB = 256 * 1024
"""Memory for pages of the database: with SQLite's own 2 MB, rescoring took twice as long."""

LONGEST_VALUE = 1 << 28
"""Bytes of the longest value that is read."""

Bindings = Sequence[Any] | Mapping[str, Any]

_WAL = 2  # at byte 18 of a database file


@dataclass(frozen=True)
class Substrate:
    """An open substrate of one source; `names` are its tables, as `table_names` has them.

    `rows` yields the rows of a statement that names tables in braces, and raises InputError if the database is locked
    or damaged, or holds text that is not UTF-8.
    """

    source: str
    names: Mapping[str, str]
    rows: Rows = field(repr=False)
    facts: SubstrateFacts

    def ids_of(self, doc_ids: Sequence[str]) -> Mapping[str, str]:
        """Return each eval-set document's id here: its own if a chunk carries it, else as `document_id` maps it.

        Raises InputError if two of them are one document here.
        """
        carried = "SELECT DISTINCT document_id FROM {chunks} WHERE " + AMONG_DOCUMENTS
        known = {document for (document,) in self.rows(carried, (json_array(doc_ids),))}
        ids = {doc_id: doc_id if doc_id in known else document_id(self.source, doc_id) for doc_id in doc_ids}
        owners: dict[str, str] = {}
        for doc_id, document in ids.items():
            other = owners.setdefault(document, doc_id)
            if other != doc_id:
                raise InputError(
                    f"{other} and {doc_id} are one document of the substrate, {document}, so its hits cannot be "
                    "told apart. Keep one version of each document in the eval set."
                )
        return ids


AMONG_DOCUMENTS = "document_id COLLATE BINARY IN (SELECT value FROM json_each(?))"
"""Of chunks; a column may compare without case, and ids never do."""


def json_array(values: Iterable[int | str]) -> str:
    """Return ids as one binding, which json_each turns into rows again."""
    return json.dumps(list(values))


@contextmanager
def open_substrate(path: Path, source: str) -> Iterator[Substrate]:
    """Open the database at `path` read-only; InputError names every table and column of the source that it lacks.

    A WAL database without a -wal file is read as immutable, and an InputError on leaving says if it was written
    meanwhile. With one, everything is read from one snapshot, and SQLite may make a -shm file. In another journal mode
    each statement sees the state of its own time, since a longer read would hold writers up.
    """
    names = table_names(source)
    path, is_wal = _database_file(path)
    log = path.with_name(path.name + "-wal")
    state = _state(path) if is_wal and not (log.exists() and log.stat().st_size) else None
    connection = _connect(path, immutable=state is not None)
    rows = partial(_rows, connection, path, names)
    try:
        with input_errors(path):
            connection.execute("PRAGMA query_only = 1")
            if is_wal and state is None:
                connection.execute("BEGIN")
        facts, problems = declared(names, rows)
        if facts is None:
            listed = "\n".join(f"  - {problem}" for problem in problems)
            raise InputError(
                f"{display(path)} is not a substrate of {source} as this tool reads it:\n{listed}\n"
                "Give the substrate's database and the source that it holds; runner/substrate/tables.py has the schema."
            )
        yield Substrate(source, names, rows, facts)
    finally:
        connection.close()
    # Reached only where nothing was raised: the file that was taken for immutable must still be the same.
    if state not in (None, _state(path)):
        raise InputError(
            f"{display(path)} was written while it was read, so nothing found in it holds. "
            "Run the command again, or give a copy of the database."
        )


def document_id(source: str, doc_id: str) -> str:
    """Return the substrate's id of an eval set's document: all versions of a bill are one there; others stay."""
    pattern, form = _IDS.get(source, (r"(?!)", ""))
    match = re.fullmatch(pattern, doc_id)
    return match.expand(form) if match else doc_id


_BILL = (r"BILLS-(\d+)([a-z]+)(\d+)[a-z]+\d*", r"bill:\1-\2-\3")
_IDS: dict[str, tuple[str, str]] = {
    "bills": _BILL,
    "demo": _BILL,
    "us_code": (r"(usc:[^@]+)@.+", r"\1"),
    "congressional_record": (r"(CREC-\d{4}-\d{2}-\d{2}-.+)", r"crec-granule:\1"),
}


def _database_file(path: Path) -> tuple[Path, bool]:
    """Return the file that a path or a symbolic link names, and if its header says WAL mode."""
    if not path.exists():
        raise InputError(f"{display(path)} does not exist. Give the path of the substrate's database file.")
    refuse_special(path)
    try:
        with path.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise InputError(f"{display(path)} cannot be read ({error.strerror}).") from error
    # Of a shorter file SQLite would make a database without tables.
    if len(header) < 100:
        raise InputError(f"{display(path)} is too short for an SQLite database. Give the substrate's database file.")
    return path.resolve(), header[18] == _WAL


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _connect(path: Path, *, immutable: bool) -> apsw.Connection:
    with input_errors(path):
        connection = apsw.Connection(
            f"{path.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        connection.set_busy_timeout(BUSY_MS)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        # What the file's own schema says is not to be trusted with functions or with its shadow tables.
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.execute(f"PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{CACHE_KIB}")
        load_vec0(connection)
    return connection


def load_vec0(connection: apsw.Connection) -> None:
    """Give a connection sqlite-vec's tables and functions."""
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)


def _rows(
    connection: apsw.Connection, path: Path, names: Mapping[str, str], sql: str, bindings: Bindings = ()
) -> Iterator[tuple[Any, ...]]:
    with input_errors(path):
        yield from connection.execute(sql.format(**names), bindings)


@contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Turn every error of SQLite into one that names the file and says what to do."""
    name = display(path)
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise InputError(
            f"{name} is locked by another program. Run the command again when its writer is done."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} holds text that is not UTF-8 ({printable(str(error))}). Give a sound copy."
        ) from error
    except apsw.Error as error:
        is_damaged = isinstance(error, apsw.NotADBError | apsw.CorruptError)
        what = "is damaged or encrypted" if is_damaged else "cannot be read as a substrate"
        raise InputError(f"{name} {what} ({printable(str(error))}). Give a sound copy of it.") from error
