"""A substrate of fictional documents in the schema of runner/substrate/tables.py, with faults on demand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import apsw
import numpy as np

from runner.base.records import Chunk, Document, Span
from runner.substrate.database import document_id, load_vec0
from runner.substrate.tables import TOKENIZER, table_names

MODEL = ("fictional/encoder", "2")
VERSION = "2026-11"


@dataclass(frozen=True)
class Build:
    """What a substrate is made of; `ids` maps an eval set's document id to the substrate's."""

    documents: Sequence[Document]
    chunks: Sequence[Chunk]
    vectors: np.ndarray
    source: str = "bills"
    metric: str = "cosine"
    tokenizer: str = TOKENIZER
    version: str = VERSION
    journal: str = "delete"
    faults: Sequence[str] = ()
    ids: Callable[[str], str] | None = None


def schema(source: str, dim: int, metric: str = "cosine", tokenizer: str = TOKENIZER) -> str:
    """The statements that make a source's empty tables; `metric` "" declares none."""
    distance, quoted = f" distance_metric={metric}" if metric else "", tokenizer.replace('"', '""')
    statements = f"""
        CREATE TABLE {{chunks}} (
            chunk_id INTEGER PRIMARY KEY, document_id TEXT, chunk_index INTEGER, char_start INTEGER, char_end INTEGER,
            context TEXT, text TEXT, embedded_model_id TEXT, embedded_model_version TEXT, embedded_at TEXT);
        CREATE VIRTUAL TABLE {{vectors}} USING vec0(
            chunk_id integer primary key, embedding float[{dim}]{distance}, embedding_bq bit[{dim}]);
        CREATE VIRTUAL TABLE {{fts}} USING fts5(
            context, text, content='{source}_chunks', content_rowid='chunk_id', tokenize="{quoted}");
        CREATE TABLE {{jobs}} (
            chunk_table TEXT, chunk_id INTEGER, model_id TEXT, model_version TEXT, status TEXT,
            PRIMARY KEY (chunk_table, chunk_id, model_id, model_version));
        CREATE TABLE {{meta}} (key TEXT PRIMARY KEY, value TEXT);
        """
    return statements.format(**table_names(source))


def build(path: Path, made: Build) -> Path:
    """The database at `path`, with every fault of FAULTS that `made` names."""
    connection = writing_connection(path)
    connection.pragma("journal_mode", made.journal)
    tokenizer = FAULTY_TOKENIZER if "FTS tokenizer mismatch" in made.faults else made.tokenizer
    with connection:
        connection.execute(schema(made.source, made.vectors.shape[1], made.metric, tokenizer))
        connection.execute("INSERT INTO substrate_meta VALUES ('version', ?)", (made.version,))
        _fill(connection, made)
        for fault in made.faults:
            FAULTS[fault](connection, made)
    connection.close()
    return path


def edit(path: Path, statement: str, bindings: Sequence[object] = ()) -> None:
    """One change by hand to a substrate that is there."""
    connection = writing_connection(path)
    connection.execute(statement, bindings)
    connection.close()


def fictional(
    n_documents: int, *, seed: int = 1, chunks_each: int = 4, words: int = 60
) -> tuple[list[Document], list[Chunk]]:
    """Bills of made-up words, each cut into 1 to `chunks_each` chunks at any character."""
    generator = np.random.default_rng(np.random.PCG64(seed))
    lexicon = [
        f"{a}{b}{c}" for a in ("bra", "clo", "dre", "fi") for b in ("mon", "ti", "ra", "sku") for c in ("l", "ne")
    ]
    documents, chunks = [], []
    for number in range(1, n_documents + 1):
        text = " ".join(["Section", str(number), *generator.choice(lexicon, words)])
        documents.append(Document(f"BILLS-118hr{number}ih", text, f"Act {number}", "118", f"118-hr-{number}", ""))
        cuts = np.linspace(0, len(text), int(generator.integers(1, chunks_each + 1)) + 1).astype(int).tolist()
        spans = [Span(start, end) for start, end in pairwise(cuts)]
        chunks += [Chunk(documents[-1].doc_id, place, span, f"Act {number}", 20) for place, span in enumerate(spans)]
    return documents, chunks


def unit_rows(n: int, dim: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(np.random.PCG64(seed)).standard_normal((n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def writing_connection(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    load_vec0(connection)
    return connection


def _fill(connection: apsw.Connection, made: Build) -> None:
    source, documents = made.source, {document.doc_id: document for document in made.documents}
    ids = made.ids or partial(document_id, source)
    rows, jobs = [], []
    for number, chunk in enumerate(made.chunks, start=1):
        text = documents[chunk.doc_id].text[chunk.span.start : chunk.span.end]
        place = (number, ids(chunk.doc_id), chunk.index, chunk.span.start, chunk.span.end)
        rows.append((*place, chunk.context, text, *MODEL, "2026-11-01T00:00:00Z"))
        jobs.append((f"{source}_chunks", number, *MODEL, "done"))
    vectors = [(number, row.tobytes(), row.tobytes()) for number, row in enumerate(made.vectors.astype("<f4"), start=1)]
    connection.executemany(f"INSERT INTO {source}_chunks VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
    connection.executemany(f"INSERT INTO {source}_chunks_vec0 VALUES (?,?,vec_quantize_binary(?))", vectors)
    connection.executemany("INSERT INTO chunk_embedding_jobs VALUES (?,?,?,?,?)", jobs)
    connection.execute(f"INSERT INTO {source}_fts({source}_fts) VALUES ('rebuild')")


# Each plants one fault and no other.

REBUILD = "INSERT INTO bills_fts(bills_fts) VALUES ('rebuild')"

FAULTY_TOKENIZER = "unicode61 tokenchars '-–'"

Plant = Callable[[apsw.Connection, Build], None]


def _sql(*statements: str) -> Plant:
    """Runs statements, in which {c} is the table of chunks, {v} that of vectors and {f} the full-text table."""

    def plant(connection: apsw.Connection, made: Build) -> None:
        for statement in statements:
            connection.execute(
                statement.format(c=f"{made.source}_chunks", v=f"{made.source}_chunks_vec0", f=f"{made.source}_fts")
            )

    return plant


_REBUILD = "INSERT INTO {f}({f}) VALUES ('rebuild')"
_OF_FIRST = "WHERE chunk_id IN (SELECT chunk_id FROM {c} WHERE document_id = (SELECT min(document_id) FROM {c}))"


def _repeated_chunks(connection: apsw.Connection, made: Build) -> None:
    """Every chunk is there twice, with its vector and its job."""
    chunks, jobs, more = f"{made.source}_chunks", "chunk_embedding_jobs", 1_000_000
    columns = "document_id, chunk_index, char_start, char_end, context, text, embedded_model_id, embedded_model_version"
    connection.execute(f"INSERT INTO {chunks} SELECT chunk_id + {more}, {columns}, embedded_at FROM {chunks}")
    connection.execute(
        f"INSERT INTO {jobs} SELECT chunk_table, chunk_id + {more}, model_id, model_version, status FROM {jobs}"
    )
    for number in range(1, len(made.chunks) + 1):
        _copy_vector(connection, made, number, number + more)
    _sql(_REBUILD)(connection, made)


def _quantisation_differs(connection: apsw.Connection, made: Build) -> None:
    """Every third vector has the bits of the one before it: a quantisation that lost what it is to find."""
    vectors = made.vectors.astype("<f4")
    for row in range(2, len(vectors), 3):
        replace_vector(connection, made.source, row + 1, vectors[row], vectors[row - 1])


def _quantisation_loss(connection: apsw.Connection, made: Build) -> None:
    """Every vector carries one large offset: cosines keep their order, and the signs of all vectors are the same."""
    for number, vector in enumerate(made.vectors, start=1):
        shifted = vector + 3 / np.sqrt(len(vector))
        replace_vector(connection, made.source, number, shifted / np.linalg.norm(shifted))


def _fts_stale(connection: apsw.Connection, made: Build) -> None:
    """The index holds other words for every chunk than the chunk table."""
    rows = connection.execute(f"SELECT chunk_id, context, text FROM {made.source}_chunks ORDER BY 1").fetchall()
    _, context, text = rows[0]
    for number, _, _ in rows:
        _leave_fts(connection, made, number)
        connection.execute(
            f"INSERT INTO {made.source}_fts(rowid, context, text) VALUES (?, ?, ?)",
            (number, context, text + " superseded wording"),
        )


def _leave_fts(connection: apsw.Connection, made: Build, number: int) -> None:
    row = connection.execute(f"SELECT context, text FROM {made.source}_chunks WHERE chunk_id = ?", (number,)).fetchone()
    connection.execute(
        f"INSERT INTO {made.source}_fts({made.source}_fts, rowid, context, text) VALUES ('delete', ?, ?, ?)",
        (number, *row),
    )


def replace_vector(
    connection: apsw.Connection, source: str, number: int, vector: np.ndarray, of_bits: np.ndarray | None = None
) -> None:
    """Another vector for one chunk, with its own bits or with those of a third."""
    data, bits = (row.astype("<f4").tobytes() for row in (vector, vector if of_bits is None else of_bits))
    connection.execute(f"DELETE FROM {source}_chunks_vec0 WHERE chunk_id = ?", (number,))
    connection.execute(f"INSERT INTO {source}_chunks_vec0 VALUES (?, ?, vec_quantize_binary(?))", (number, data, bits))


def _copy_vector(connection: apsw.Connection, made: Build, number: int, to: int) -> None:
    replace_vector(connection, made.source, to, made.vectors[number - 1])


FAULTS: dict[str, Plant] = {
    "stale model": _sql("UPDATE {c} SET embedded_model_version = '1' WHERE chunk_id % 5 = 0"),
    "missing vectors": _sql(
        "DELETE FROM {v} WHERE chunk_id = 1", "DELETE FROM chunk_embedding_jobs WHERE chunk_id = 1"
    ),
    "orphan vectors": lambda connection, made: _copy_vector(connection, made, 1, 1_000_000),
    "other chunks, a document gone": _sql(
        f"DELETE FROM {{v}} {_OF_FIRST}",
        f"DELETE FROM chunk_embedding_jobs {_OF_FIRST}",
        "DELETE FROM {c} WHERE document_id = (SELECT min(document_id) FROM {c})",
        _REBUILD,
    ),
    "changed documents": _sql("UPDATE {c} SET text = 'amended ' || text WHERE chunk_id = 2", _REBUILD),
    # The first chunk of a document reaches as far as the one after it.
    "other chunks": _sql(
        "UPDATE {c} AS own SET (char_end, text) = "
        "(SELECT char_end, own.text || substr(text, own.char_end - char_start + 1) FROM {c} "
        "WHERE chunk_id = own.chunk_id + 1) WHERE chunk_id = (SELECT min(chunk_id) - 1 FROM {c} WHERE chunk_index = 1)",
        _REBUILD,
    ),
    "other chunks, repeated": _repeated_chunks,
    "missing vectors, jobs left": _sql(
        "UPDATE chunk_embedding_jobs SET status = "
        "CASE chunk_id WHEN 1 THEN 'pending' WHEN 2 THEN 'running' ELSE 'failed' END WHERE chunk_id < 4"
    ),
    "quantisation differs": _quantisation_differs,
    "quantisation loss": _quantisation_loss,
    "vectors not unit": lambda connection, made: replace_vector(connection, made.source, 3, made.vectors[2] * 2),
    "FTS index stale, a row missing": lambda connection, made: _leave_fts(connection, made, 4),
    "FTS tokenizer mismatch": _sql(),  # the table was declared with FAULTY_TOKENIZER
    "FTS index stale": _fts_stale,
    "substrate version": _sql("UPDATE substrate_meta SET value = 'another'"),
}
"""By the name of the finding that must show it, before a comma; quantisation loss shows in the index recall alone."""
