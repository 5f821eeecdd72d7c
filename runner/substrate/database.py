"""The production substrate, opened to be read and never written, and what its documents are called there."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw
import sqlite_vec

from runner.base.canonical import refuse_special
from runner.base.errors import InputError
from runner.base.given_files import display, printable
from runner.eval_set import catalog
from runner.substrate.tables import Layout, Metric, declared, version

BUSY_MS = 5000
"""How long a statement waits for a writer's lock."""

CACHE_KIB = 256 * 1024
"""Memory for pages of the database: with SQLite's own 2 MB, rescoring took twice as long."""

LONGEST_VALUE = 1 << 28
"""Bytes of the longest value that is read."""

_WAL = 2  # at bytes 18 and 19 of a database file


@dataclass(frozen=True)
class Substrate:
    """An open substrate of one source, closed as a context manager.

    `dim` and `metric` are the vec0 table's, `tokenizer` is the FTS5 table's. `state` is the size and time of a file
    that is read as one that nobody writes.
    """

    path: Path
    layout: Layout
    dim: int
    metric: Metric
    tokenizer: str
    version: str
    connection: apsw.Connection = field(repr=False)
    state: tuple[int, int] | None = None

    def __enter__(self) -> "Substrate":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.connection.close()
        if error is None and self.state not in (None, _state(self.path)):
            raise InputError(
                f"{display(self.path)} was written while it was read, so nothing found in it holds. "
                "Run the command again, or give a copy of the database."
            )

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, whose tables are named as in `Layout.sql`.

        An InputError if the database is locked or damaged, or holds text that is not UTF-8.
        """
        return _rows(self.connection, self.path, self.layout.sql(sql), bindings)

    def count_chunks(self) -> int:
        """How many chunks the source has."""
        return int(next(self.rows("SELECT count(*) FROM {chunks}"))[0])

    def ids_of(self, doc_ids: Sequence[str]) -> Mapping[str, str]:
        """Each eval-set document's id here: its own if a chunk carries it, else as `document_ids` maps it.

        An InputError if two of them are one document here.
        """
        known = {
            row[0]
            for row in self.rows(
                "SELECT DISTINCT document_id FROM {chunks} "
                "WHERE document_id COLLATE BINARY IN (SELECT value FROM json_each(?))",
                (json_array(doc_ids),),
            )
        }
        mapped = document_ids(self.layout.source)
        ids: dict[str, str] = {}
        owners: dict[str, str] = {}
        for doc_id in doc_ids:
            ids[doc_id] = doc_id if doc_id in known else mapped(doc_id)
            other = owners.setdefault(ids[doc_id], doc_id)
            if other != doc_id:
                raise InputError(
                    f"{other} and {doc_id} are one document of the substrate, {ids[doc_id]}, so its hits cannot be "
                    "told apart. Keep one version of each document in the eval set."
                )
        return ids


def json_array(values: Iterable[int | str]) -> str:
    """Ids as one binding, which json_each turns into rows again."""
    return json.dumps(list(values))


def open_substrate(path: Path, source: str) -> Substrate:
    """The database at `path`, opened read-only; an InputError names every table and column of the source it lacks.

    A WAL database without a -wal file is read as immutable, and an InputError on leaving says if it was written
    meanwhile. With one, everything is read from one snapshot, and SQLite may make a -shm file. In another journal mode
    each statement sees the state of its own time, since a longer read would hold writers up.
    """
    layout = Layout(catalog.source(source).name)
    path = _database_file(path)
    wal = _header(path)[18] == _WAL
    state = _state(path) if wal and not _has_content(path.with_name(path.name + "-wal")) else None
    connection = _connect(path, immutable=state is not None)

    def rows(sql: str, bindings: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        return _rows(connection, path, layout.sql(sql), bindings)

    try:
        with _input_errors(path):
            for view, kind in (("{terms}", "row"), ("{places}", "instance")):
                connection.execute(layout.sql(f"CREATE VIRTUAL TABLE {view} USING fts5vocab(main, {{fts}}, {kind})"))
            connection.execute("PRAGMA query_only = 1")
            if wal and state is None:
                connection.execute("BEGIN")
        facts, problems = declared(layout, rows)
        if facts is None:
            raise InputError(_not_assumed(path, layout, problems))
        return Substrate(path, layout, facts.dim, facts.metric, facts.tokenizer, version(rows), connection, state)
    except BaseException:
        connection.close()
        raise


def document_ids(source: str) -> Callable[[str], str]:
    """Maps an eval set's document id to the substrate's, in which all versions of a bill are one; others stay."""
    pattern, form = _IDS.get(source, (r"(?!)", ""))
    matcher = re.compile(pattern)

    def mapped(doc_id: str) -> str:
        match = matcher.fullmatch(doc_id)
        return match.expand(form) if match else doc_id

    return mapped


_BILL = (r"BILLS-(\d+)([a-z]+)(\d+)[a-z]+\d*", r"bill:\1-\2-\3")
_IDS: dict[str, tuple[str, str]] = {
    "bills": _BILL,
    "demo": _BILL,
    "us_code": (r"(usc:[^@]+)@.+", r"\1"),
    "congressional_record": (r"(CREC-\d{4}-\d{2}-\d{2}-.+)", r"crec-granule:\1"),
}


def _database_file(path: Path) -> Path:
    """The file that a path or a symbolic link names; InputErrors for what cannot be a database."""
    if not path.exists():
        raise InputError(f"{display(path)} does not exist. Give the path of the substrate's database file.")
    refuse_special(path)
    if path.stat().st_size == 0:
        raise InputError(f"{display(path)} is empty. Give the path of the substrate's database file.")
    return path.resolve()


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            header = stream.read(100)
    except OSError as error:
        raise InputError(f"{display(path)} cannot be read ({error.strerror}).") from error
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise InputError(f"{display(path)} is not an SQLite database, or an encrypted one. Give one that can be read.")
    return header


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _connect(path: Path, *, immutable: bool) -> apsw.Connection:
    with _input_errors(path):
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


def _rows(connection: apsw.Connection, path: Path, sql: str, bindings: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    with _input_errors(path):
        yield from connection.execute(sql, bindings)


@contextmanager
def _input_errors(path: Path) -> Iterator[None]:
    name = display(path)
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise InputError(
            f"{name} is locked by another program. Run the command again when its writer is done."
        ) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise InputError(
            f"{name} is damaged or encrypted ({printable(str(error))}). Give a sound copy of it."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} holds text that is not UTF-8 ({printable(str(error))}). Give a sound copy."
        ) from error
    except apsw.Error as error:
        raise InputError(
            f"{name} cannot be read as a substrate ({printable(str(error))}). Give a sound copy of it."
        ) from error


def _not_assumed(path: Path, layout: Layout, problems: Sequence[str]) -> str:
    listed = "\n".join(f"  - {problem}" for problem in problems)
    return (
        f"{display(path)} is not a substrate of {layout.source} as this tool reads it:\n{listed}\n"
        "Give the substrate's database and the source that it holds; runner/substrate/tables.py has the schema."
    )
