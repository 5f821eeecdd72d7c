"""The index in the production schema: tables of `runner.substrate.tables`, and one of the documents that it holds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from chunkers.whole_doc import whole_doc
from runner.base.canonical import json_line, parse_json
from runner.base.errors import BackendError, InputError
from runner.base.given_files import display, printable
from runner.base.schema import checked
from runner.substrate.database import BUSY_MS, Bindings, input_errors, load_vec0
from runner.substrate.index import Change, Embedded, Fingerprint, Held, document_key, keys_of
from runner.substrate.tables import TOKENIZER, table_names

SCHEMA = """
CREATE TABLE {chunks} (
    chunk_id INTEGER PRIMARY KEY, document_id TEXT NOT NULL, chunk_index INTEGER NOT NULL, char_start INTEGER NOT NULL,
    char_end INTEGER NOT NULL, context TEXT NOT NULL, text TEXT NOT NULL, embedded_model_id TEXT,
    embedded_model_version TEXT, embedded_at TEXT);
CREATE INDEX {chunks}_of_document ON {chunks}(document_id);
CREATE VIRTUAL TABLE {fts} USING fts5(
    context, text, content='{chunks}', content_rowid='chunk_id', tokenize='{tokenizer}');
CREATE TABLE {documents} (
    document_key INTEGER PRIMARY KEY, document_id TEXT NOT NULL, sha256 TEXT NOT NULL, vanished INTEGER NOT NULL,
    context TEXT, text TEXT);
"""
OF_VECTORS = """
CREATE VIRTUAL TABLE {vectors} USING vec0(
    chunk_id integer primary key, embedding float[{dim}] distance_metric=cosine, embedding_bq bit[{dim}]{int8});
"""
OF_DOCUMENTS = """
CREATE VIRTUAL TABLE {documents_fts} USING fts5(
    context, text, content='{documents}', content_rowid='document_key', tokenize='{tokenizer}');
"""
SHARED = """
CREATE TABLE IF NOT EXISTS {jobs} (
    chunk_table TEXT, chunk_id INTEGER, model_id TEXT, model_version TEXT, status TEXT,
    PRIMARY KEY (chunk_table, chunk_id, model_id, model_version));
CREATE TABLE IF NOT EXISTS {meta} (key TEXT PRIMARY KEY, value TEXT);
"""


MOST_ROWS = 2**31 - 1
"""Chunks of a source: sqlite-vec compares the ids of `chunk_id IN (...)` as 32-bit numbers, and loses larger ones."""


class SqliteIndex:
    """One source's index in a database, which may hold those of other sources; `day` goes into `embedded_at`."""

    def __init__(self, path: Path, source: str, day: str = "") -> None:
        self.path, self.source, self.day = path, source, day
        documents = f"{source}_documents"
        self._names = {**table_names(source), "documents": documents, "documents_fts": f"{documents}_fts"}
        self._connection: apsw.Connection | None = None
        self._made: Fingerprint | None = None

    def fingerprint(self) -> Fingerprint | None:
        """Return the source's fingerprint; None if there is no file, or nothing of the source in it."""
        if not self.path.exists():
            return None
        with self._writing():
            tables = {name for (name,) in self._rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            key = f"fingerprint of {self.source}"
            meta = "SELECT value FROM {meta} WHERE key = ?"
            said = list(self._rows(meta, (key,))) if self._names["meta"] in tables else []
        if said:
            self._made = checked(Fingerprint, parse_json(said[0][0]), f"{display(self.path)}: {key}")
        elif self._names["chunks"] in tables:
            raise InputError(
                f"{display(self.path)} holds {self._names['chunks']} and not what made it, so `embed` did not write it "
                "and adds nothing to it. Give --to another place."
            )
        return self._made

    def begin(self, fingerprint: Fingerprint) -> None:
        """Make the source's empty tables."""
        self._made = fingerprint
        statements = [SCHEMA, SHARED]
        statements += [OF_VECTORS] if fingerprint.dim else []
        statements += [OF_DOCUMENTS] if fingerprint.reads_documents else []
        int8 = (
            f", embedding_int8 int8[{fingerprint.dim}] distance_metric=cosine" if fingerprint.variant == "int8" else ""
        )
        settings = {"tokenizer": TOKENIZER, "dim": fingerprint.dim, "int8": int8}
        facts = [
            ("version", fingerprint.decision_sha256[:16]),
            (f"fingerprint of {self.source}", json_line(fingerprint.model_dump())),
        ]
        with self._writing() as connection:
            connection.execute("".join(statements).format(**self._names, **settings))
            connection.executemany(self._sql("INSERT OR IGNORE INTO {meta} VALUES (?, ?)"), facts)

    def held(self, bucket: int) -> Mapping[str, Held]:
        """Return a bucket's documents by id."""
        said = "SELECT document_id, sha256, vanished FROM {documents} WHERE document_key BETWEEN ? AND ?"
        with self._writing():
            return {name: Held(digest, bool(gone)) for name, digest, gone in self._rows(said, keys_of(bucket))}

    def write(self, changes: Sequence[Change]) -> None:
        """Carry the changes out in one transaction."""
        with self._writing() as connection:
            mark = self._sql("UPDATE {documents} SET vanished = ? WHERE document_key = ?")
            for change in changes:
                for document in (*change.removed, *(each.document.doc_id for each in change.written)):
                    self._remove(connection, document_key(document))
                for embedded in change.written:
                    self._add(connection, embedded)
                marks = [(int(gone), document_key(doc_id)) for doc_id, gone in change.vanished.items()]
                connection.executemany(mark, marks)

    def _remove(self, connection: apsw.Connection, key: int) -> None:
        """Remove what there is of a document."""
        named = list(self._rows("SELECT document_id FROM {documents} WHERE document_key = ?", (key,)))
        if not named:
            return
        assert self._made is not None
        ids = list(self._rows("SELECT chunk_id FROM {chunks} WHERE document_id = ?", named[0]))
        # An index of another table's content has to be told what it held.
        indexed = [("fts", "chunks", "chunk_id")]
        indexed += [("documents_fts", "documents", "document_key")] if self._made.reads_documents else []
        for fts, table, column in indexed:
            told = self._sql(
                f"INSERT INTO {{{fts}}}({{{fts}}}, rowid, context, text) SELECT 'delete', {column}, context, text "
                f"FROM {{{table}}} WHERE document_id = ?"
            )
            connection.execute(told, named[0])
        if self._made.dim:
            connection.executemany(self._sql("DELETE FROM {vectors} WHERE chunk_id = ?"), ids)
        connection.execute(self._sql("DELETE FROM {chunks} WHERE document_id = ?"), named[0])
        connection.execute(self._sql("DELETE FROM {documents} WHERE document_key = ?"), (key,))

    def _add(self, connection: apsw.Connection, embedded: Embedded) -> None:
        """Add a document that is not there."""
        made, document, rows = self._made, embedded.document, embedded.rows
        assert made is not None
        key, spec = document_key(document.doc_id), made.row
        model = (None, None, None) if spec is None else (spec.model, spec.revision, self.day)
        (last,) = next(self._rows("SELECT coalesce(max(chunk_id), 0) FROM {chunks}"))
        if last + len(embedded.chunks) > MOST_ROWS:
            raise InputError(f"{display(self.path)} has no ids left for chunks. Make the index anew, in another file.")
        chunks = [
            (last + 1 + number, document.doc_id, chunk.index, chunk.span.start, chunk.span.end, chunk.context, text)
            for number, chunk in enumerate(embedded.chunks)
            for text in [document.text[chunk.span.start : chunk.span.end]]
        ]
        connection.executemany(
            self._sql("INSERT INTO {chunks} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"), ((*row, *model) for row in chunks)
        )
        words = self._sql("INSERT INTO {fts}(rowid, context, text) VALUES (?, ?, ?)")
        connection.executemany(words, ((row[0], *row[5:]) for row in chunks))
        if rows is not None:
            int8 = ", vec_quantize_int8(?2, 'unit')" if made.variant == "int8" else ""
            vectors = self._sql(f"INSERT INTO {{vectors}} VALUES (?1, ?2, vec_quantize_binary(?2){int8})")
            pairs = zip((row[0] for row in chunks), rows.astype("<f4"), strict=True)
            connection.executemany(vectors, ((chunk_id, row.tobytes()) for chunk_id, row in pairs))
        (whole,) = whole_doc(document) if made.reads_documents else (None,)
        read = (None, None) if whole is None else (whole.context, document.text[whole.span.start : whole.span.end])
        connection.execute(
            self._sql("INSERT INTO {documents} VALUES (?, ?, ?, 0, ?, ?)"),
            (key, document.doc_id, document.sha256, *read),
        )
        if whole is not None:
            words = self._sql("INSERT INTO {documents_fts}(rowid, context, text) VALUES (?, ?, ?)")
            connection.execute(words, (key, *read))

    def _sql(self, statement: str) -> str:
        return statement.format(**self._names)

    def _rows(self, statement: str, bindings: Bindings = ()) -> Iterator[tuple[Any, ...]]:
        assert self._connection is not None
        yield from self._connection.execute(self._sql(statement), bindings)

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """Give the connection inside a transaction; of a full or failing disk make a BackendError with the way out."""
        with input_errors(self.path):
            try:
                if self._connection is None:
                    self._connection = apsw.Connection(str(self.path))
                    self._connection.set_busy_timeout(BUSY_MS)
                    load_vec0(self._connection)
                with self._connection:
                    yield self._connection
            except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError) as error:
                raise BackendError(
                    f"{display(self.path)} could not be written ({printable(str(error))}). Free some space, or make "
                    "the place writable, and run the command again; what was finished is kept."
                ) from error
