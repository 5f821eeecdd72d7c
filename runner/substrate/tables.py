"""The substrate's schema as this tool assumes it, and what a database must declare to be one.

The tables' names, the vector columns and the job queue's key are documented for the substrate. All else stated here is
an assumption that `open_substrate` holds every database to before anything is read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.eval_set.catalog import OWN_NAME
from runner.substrate.shapes import Metric, SubstrateFacts

Rows = Callable[..., Iterator[tuple[Any, ...]]]
"""Answers a statement, whose tables are named by the keys of `table_names` in braces, with its bindings."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    # chunk_id is the INTEGER PRIMARY KEY; char_start and char_end count code points of the document's text, half open.
    "chunks": (
        *("chunk_id", "document_id", "chunk_index", "char_start", "char_end", "context", "text"),
        *("embedded_model_id", "embedded_model_version", "embedded_at"),
    ),
    # vec0: chunk_id integer primary key, embedding float[D], embedding_bq bit[D] by vec_quantize_binary(embedding).
    "vectors": ("chunk_id", "embedding", "embedding_bq"),
    # FTS5 with the chunk table as its external content, its rows' ids the chunk_ids.
    "fts": ("context", "text"),
    # FTS5's own table of the rows that it holds.
    "docsize": ("id", "sz"),
    # The first four are the key; status is pending, running, done or failed.
    "jobs": ("chunk_table", "chunk_id", "model_id", "model_version", "status"),
    # The row of key "version" names the substrate's version. Without the table it is PRAGMA user_version.
    "meta": ("key", "value"),
}

TOKENIZER = "porter unicode61"
"""What cuts the full-text index, and queries with it."""


def table_names(source: str) -> dict[str, str]:
    """Return the source's tables by the word for each.

    InputError for a name that no source can have, which would come into statements.
    """
    if not OWN_NAME.fullmatch(source):
        raise InputError(f"there is no source {source!r}: `sources` lists them")
    own = {"chunks": "chunks", "vectors": "chunks_vec0", "fts": "fts", "docsize": "fts_docsize"}
    shared = {"jobs": "chunk_embedding_jobs", "meta": "substrate_meta"}
    return {word: f"{source}_{end}" for word, end in own.items()} | shared


def declared(names: Mapping[str, str], rows: Rows) -> tuple[SubstrateFacts | None, list[str]]:
    """Return the facts of a substrate, and every way in which its tables are not the ones assumed; None if one is."""
    schema = {name: sql or "" for name, sql in rows("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")}
    # Tables and columns first, then what the three indexes declare of themselves.
    problems = []
    for word, wanted in COLUMNS.items():
        table = names[word]
        held = {name for (name,) in rows("SELECT name FROM pragma_table_xinfo(?)", (table,))}
        if table in schema:
            problems += [f"{table} has no column {column}" for column in wanted if column not in held]
        elif word != "meta":
            problems.append(f"there is no table {table}")
    chunks, vectors, fts = (names[word] for word in ("chunks", "vectors", "fts"))
    keys = list(rows("SELECT name, upper(type) FROM pragma_table_xinfo(?) WHERE pk > 0", (chunks,)))
    if chunks in schema and keys != [("chunk_id", "INTEGER")]:
        problems.append(f"{chunks}.chunk_id is not its INTEGER PRIMARY KEY")
    dim, metric, of_vectors = _vectors(vectors, schema[vectors]) if vectors in schema else (0, "l2", [])
    tokenizer, of_fts = _tokenizer(fts, chunks, schema[fts]) if fts in schema else ("", [])
    problems += of_vectors + of_fts
    if problems:
        return None, problems
    # The substrate's version is its row among the facts, else PRAGMA user_version.
    versions = rows("SELECT value FROM {meta} WHERE key = 'version'") if names["meta"] in schema else iter(())
    version = next(versions, None) or next(rows("PRAGMA user_version"))
    ((count,),) = rows("SELECT count(*) FROM {chunks}")
    metric = cast("Metric", metric)
    return SubstrateFacts(version=str(version[0]), chunks=count, dim=dim, metric=metric, tokenizer=tokenizer), []


def _vectors(table: str, sql: str) -> tuple[int, str, list[str]]:
    """Return dimension and distance of the vec0 table, and what is wrong with its two columns of vectors."""
    arguments = _arguments(sql, "vec0")
    if arguments is None:
        return 0, "", [f"{table} is not a vec0 table"]
    columns = {words[0].strip("\"'[]`").lower(): words[1:] for words in map(str.split, arguments) if words}
    dims: dict[str, int] = {}
    metric, problems = "l2", []
    for name, kind, spellings in (("embedding", "float", "float|f32"), ("embedding_bq", "bit", "bit")):
        if name not in columns:
            continue  # said by name already
        column = " ".join(columns[name])
        pattern = rf"(?:{spellings})\s*\[\s*(\d{{1,6}})\s*\]\s*(?:distance_metric\s*=\s*(l2|l1|cosine))?"
        match = re.fullmatch(pattern, column, re.I)
        if match is None:
            problems.append(f"{table}.{name} is {printable(column)!r}, not {kind}[D]")
            continue
        dims[kind] = int(match[1])
        if kind == "float":
            metric = (match[2] or "l2").lower()
    if len(set(dims.values())) > 1:
        problems.append(f"{table} has embedding float[{dims['float']}] and embedding_bq bit[{dims['bit']}]")
    return dims.get("float", 0), metric, problems


def _tokenizer(table: str, chunks: str, sql: str) -> tuple[str, list[str]]:
    """Return what cuts the full-text index, and what is wrong with where it says that its content lies."""
    arguments = _arguments(sql, "fts5")
    if arguments is None:
        return "", [f"{table} is not an FTS5 table"]
    pairs = [argument.partition("=") for argument in arguments]
    options = {name.strip().lower(): _unquoted(value.strip()) for name, separator, value in pairs if separator}
    wrong = [
        f"{table} has {option}={printable(options.get(option, ''))!r}, not {wanted!r}"
        for option, wanted in (("content", chunks), ("content_rowid", "chunk_id"))
        if options.get(option, "") != wanted
    ]
    return options.get("tokenize", "unicode61"), wrong


def _arguments(sql: str, module: str) -> list[str] | None:
    """Return what stands between the commas of a CREATE VIRTUAL TABLE statement; None for another module's."""
    match = re.search(rf"\bUSING\s+{module}\s*\((.*)\)\s*;?\s*$", sql, re.I | re.S)
    if not match or not re.match(r"\s*CREATE\s+VIRTUAL\s+TABLE\b", sql, re.I):
        return None
    # A comma within quotes, as in tokenchars ',', parts nothing.
    return [part.strip() for part in re.findall(r"(?:[^,'\"]|'[^']*'|\"[^\"]*\")+", match[1])]


def _unquoted(value: str) -> str:
    """Return an option's value without the quotes around it, and without the doubling of those within."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace(value[0] * 2, value[0])
    return value
