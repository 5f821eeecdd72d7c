"""The substrate's schema as this tool assumes it, and what a database must declare to be one.

The tables' names, the vector columns and the job queue's key are documented for the substrate. All else stated here is
an assumption that `open_substrate` holds every database to before anything is read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from runner.base.given_files import printable

Metric = Literal["l2", "l1", "cosine"]
"""How a vec0 column declares its distance; l2 if it declares none."""

Rows = Callable[..., Iterator[tuple[Any, ...]]]

CHUNK_COLUMNS = (
    "chunk_id",
    "document_id",
    "chunk_index",
    "char_start",
    "char_end",
    "context",
    "text",
    "embedded_model_id",
    "embedded_model_version",
    "embedded_at",
)
"""chunk_id is the INTEGER PRIMARY KEY; char_start and char_end count code points of the document's text, half open."""

VECTOR_COLUMNS = ("chunk_id", "embedding", "embedding_bq")
"""vec0: chunk_id integer primary key, embedding float[D], embedding_bq bit[D] from vec_quantize_binary(embedding)."""

FTS_COLUMNS = ("context", "text")
"""FTS5 with the chunk table as its external content, its rows' ids the chunk_ids."""

JOB_COLUMNS = ("chunk_table", "chunk_id", "model_id", "model_version", "status")
"""The first four are the key; status is pending, running, done or failed."""

JOBS = "chunk_embedding_jobs"
META = "substrate_meta"
"""key and value; the row of key "version" names the substrate's version. Without the table: PRAGMA user_version."""

TERMS = "terms"
PLACES = "places"
"""Views of the full-text index that a connection makes for itself."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of one source's tables."""

    source: str

    @property
    def chunks(self) -> str:
        """The chunk table."""
        return f"{self.source}_chunks"

    @property
    def vectors(self) -> str:
        """The vec0 table."""
        return f"{self.source}_chunks_vec0"

    @property
    def fts(self) -> str:
        """The FTS5 table."""
        return f"{self.source}_fts"

    @property
    def docsize(self) -> str:
        """FTS5's own table of the rows that it holds."""
        return f"{self.source}_fts_docsize"

    def sql(self, statement: str) -> str:
        """The statement with the tables' quoted names for {chunks}, {vectors}, {fts}, {docsize}, {jobs} and {meta}.

        {terms} and {places} are what the full-text index holds: a row a term and a row a place.
        """
        tables = {"chunks": self.chunks, "vectors": self.vectors, "fts": self.fts, "docsize": self.docsize}
        names = {key: quoted_name(name) for key, name in (tables | {"jobs": JOBS, "meta": META}).items()}
        return statement.format(**names, terms=f"temp.{TERMS}", places=f"temp.{PLACES}")


class Declared(NamedTuple):
    """What a database says of its own indexes; `tokenizer` is FTS5's default if none is declared."""

    dim: int
    metric: Metric
    tokenizer: str


def declared(layout: Layout, rows: Rows) -> tuple[Declared | None, list[str]]:
    """What the source's tables declare, and every way in which they are not the ones assumed; None if one is."""
    found = {name: sql or "" for name, sql in rows("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")}
    problems = [
        problem for table, wanted in _wanted(layout, found).items() for problem in _lacking(table, wanted, found, rows)
    ]
    keys = list(rows("SELECT name, upper(type) FROM pragma_table_xinfo(?) WHERE pk > 0", (layout.chunks,)))
    if layout.chunks in found and keys != [("chunk_id", "INTEGER")]:
        problems.append(f"{layout.chunks}.chunk_id is not its INTEGER PRIMARY KEY")
    vectors, wrong = _vectors(layout.vectors, found.get(layout.vectors))
    tokenizer, wrong_too = _tokenizer(layout, found.get(layout.fts))
    problems += wrong + wrong_too
    return (None if problems or vectors is None else Declared(*vectors, tokenizer)), problems


def version(rows: Rows) -> str:
    """The substrate's version: its row in META, else PRAGMA user_version."""
    if list(rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (META,))):
        for (value,) in rows("SELECT value FROM {meta} WHERE key = 'version'"):
            return str(value)
    return str(next(rows("PRAGMA user_version"))[0])


def quoted_name(name: str) -> str:
    """An identifier as SQL reads it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _wanted(layout: Layout, found: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    tables: dict[str, tuple[str, ...]] = {
        layout.chunks: CHUNK_COLUMNS,
        layout.vectors: VECTOR_COLUMNS,
        layout.fts: FTS_COLUMNS,
        layout.docsize: ("id", "sz"),
        JOBS: JOB_COLUMNS,
    }
    return tables | ({META: ("key", "value")} if META in found else {})


def _lacking(table: str, wanted: tuple[str, ...], found: Mapping[str, str], rows: Rows) -> list[str]:
    if table not in found:
        return [f"there is no table {table}"]
    columns = {name for (name,) in rows("SELECT name FROM pragma_table_xinfo(?)", (table,))}
    return [f"{table} has no column {column}" for column in wanted if column not in columns]


def _vectors(table: str, sql: str | None) -> tuple[tuple[int, Metric] | None, list[str]]:
    if sql is None:
        return None, []
    arguments = _arguments(sql, "vec0")
    if arguments is None:
        return None, [f"{table} is not a vec0 table"]
    columns = {argument.split()[0].strip("\"'[]`").lower(): argument for argument in arguments if argument.split()}
    floats = _column(columns.get("embedding", ""), "float|f32")
    bits = _column(columns.get("embedding_bq", ""), "bit")
    if floats is not None and bits is not None:
        if floats[0] == bits[0]:
            return floats, []
        return None, [f"{table} has embedding float[{floats[0]}] and embedding_bq bit[{bits[0]}]"]
    return None, [
        f"{table}.{name} is {printable(' '.join(columns[name].split()[1:]))!r}, not {kind}[D]"
        for name, kind, parsed in (("embedding", "float", floats), ("embedding_bq", "bit", bits))
        if name in columns and parsed is None
    ]


def _column(argument: str, kind: str) -> tuple[int, Metric] | None:
    """Dimension and metric of a vector column of the kind; None for anything else."""
    pattern = rf"\S+\s+(?:{kind})\s*\[\s*(\d{{1,6}})\s*\]\s*(?:distance_metric\s*=\s*(l2|l1|cosine))?\s*"
    match = re.fullmatch(pattern, argument, re.I)
    return (int(match[1]), cast("Metric", (match[2] or "l2").lower())) if match else None


def _tokenizer(layout: Layout, sql: str | None) -> tuple[str, list[str]]:
    if sql is None:
        return "", []
    arguments = _arguments(sql, "fts5")
    if arguments is None:
        return "", [f"{layout.fts} is not an FTS5 table"]
    options = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if separator:
            options[name.strip().lower()] = _unquoted(value.strip())
    wrong = [
        f"{layout.fts} has {option}={printable(options.get(option, ''))!r}, not {wanted!r}"
        for option, wanted in (("content", layout.chunks), ("content_rowid", "chunk_id"))
        if options.get(option, "") != wanted
    ]
    return options.get("tokenize", "unicode61"), wrong


def _arguments(sql: str, module: str) -> list[str] | None:
    """What stands between the commas of a CREATE VIRTUAL TABLE statement; None for another module's or no such."""
    match = re.search(rf"\bUSING\s+{module}\s*\((.*)\)\s*;?\s*$", sql, re.I | re.S)
    if not match or not re.match(r"\s*CREATE\s+VIRTUAL\s+TABLE\b", sql, re.I):
        return None
    return [part.strip() for part in re.findall(r"(?:[^,'\"]|'[^']*'|\"[^\"]*\")+", match[1])]


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace(value[0] * 2, value[0])
    return value
