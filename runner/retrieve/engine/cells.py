"""Engine cells: the sample in a database as production has it, searched by SQLite's FTS5 and by sqlite-vec itself."""

import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from runner.base.records import BM25Cell, Chunk, HybridCell, Ints, OwnCell, Run
from runner.embed.vectors import Matrix, blocks
from runner.retrieve.engine.database import CACHE_KIB, Substrate, load_vec0
from runner.retrieve.engine.search import fused, match_expression
from runner.retrieve.engine.searches import Found, Indexes, Places
from runner.retrieve.engine.tables import TOKENIZER, Layout, schema
from runner.retrieve.ranking import ChunkTable, Retrieval, read_down, retrieval
from runner.retrieve.retrieve import DenseArm
from runner.retrieve.variants import CANDIDATES

Texts = Iterable[tuple[str, str]]
"""Context and text of every chunk."""

_LAYOUT = Layout("sample")
_AT_ONCE = 1024


def engine_run(
    cell: str,
    queries: Mapping[str, str],
    chunks: Sequence[Chunk],
    table: ChunkTable,
    texts: Texts | None,
    arm: DenseArm | None,
) -> Retrieval:
    """What SQLite finds in a temporary database of the chunks: by `texts`, by the arm's vectors, or by both, fused.

    Scores are SQLite's own, in float32 for vectors, so that another processor may move them by a step of 1e-5.
    `index_bytes` are the pages of the indexes in the database, without the chunks' table.
    """
    connection = apsw.Connection("")  # a file that SQLite removes, since vectors can outgrow memory
    try:
        load_vec0(connection)
        connection.execute(f"PRAGMA journal_mode = OFF; PRAGMA cache_size = -{CACHE_KIB}")
        size = _filled(connection, chunks, texts, arm)
        dim = 8 if arm is None else arm.chunk_vectors.shape[1]
        substrate = Substrate(Path("sample"), _LAYOUT, dim, "cosine", TOKENIZER, "", connection)
        indexes = Indexes(substrate, Places(substrate, {}), None)
        scored = [_by_words(indexes, queries)] if texts is not None else []
        scored += [_by_vectors(indexes, arm)] if arm is not None else []
        found = [retrieval(cell, chunks, table, each, size) for each in scored]
        return found[0] if len(found) == 1 else _fused(found[0], found[1], chunks, table)
    except (apsw.FullError, apsw.IOError) as error:
        raise OSError(errno.ENOSPC, f"SQLite's temporary file: {error}") from error
    finally:
        connection.close()


def fts5_description() -> dict[str, str | float]:
    """FTS5's way to search, as BM25's variants are described."""
    return {
        "library": "SQLite FTS5",
        "formula": "idf = ln((N - df + 0.5) / (df + 0.5)), at least 1e-6; over context and text, weighted alike",
        "k1": 1.2,
        "b": 0.75,
        "stemmer": "Porter",
        "stop words": "none",
        "tokenizer": f"{TOKENIZER}; a query is its words, quoted and joined by OR",
        "version": apsw.sqlite_lib_version(),
    }


def engine_method(cell: OwnCell) -> str:
    """How an engine cell ranks, with the versions that did."""
    keyword = f"SQLite {apsw.sqlite_lib_version()}'s FTS5 over all chunks, any word of the query, by bm25()"
    vectors = (
        f"sqlite-vec {sqlite_vec.__version__}: {CANDIDATES} chunks nearest by Hamming distance of bits, by the cosine "
        "of their float32 vectors"
    )
    best = "a document by its best chunk"
    if isinstance(cell, HybridCell):
        return f"reciprocal rank fusion (k = 60) of two rankings of documents. {keyword}. {vectors}; {best}"
    return f"{keyword if isinstance(cell, BM25Cell) else vectors}; {best}"


def _filled(connection: apsw.Connection, chunks: Sequence[Chunk], texts: Texts | None, arm: DenseArm | None) -> int:
    """Write chunks and indexes; the bytes that the indexes take."""
    dim = 8 if arm is None else arm.chunk_vectors.shape[1]
    read = ((None, None) for _ in chunks) if texts is None else texts
    rows = (
        (number, chunk.doc_id, chunk.index, chunk.span.start, chunk.span.end, *text)
        for number, (chunk, text) in enumerate(zip(chunks, read, strict=True), start=1)
    )
    connection.execute(
        f"{schema(_LAYOUT, dim)} BEGIN"
    )  # no context manager: a full disk ends the transaction by itself
    connection.executemany(_LAYOUT.sql("INSERT INTO {chunks} VALUES (?,?,?,?,?,?,?,NULL,NULL,NULL)"), rows)
    before = _pages(connection)
    if texts is not None:
        connection.execute(_LAYOUT.sql("INSERT INTO {fts} ({fts}) VALUES ('rebuild')"))
    if arm is not None:
        vectors = ((number, data, data) for number, data in _numbered(arm.chunk_vectors))
        connection.executemany(_LAYOUT.sql("INSERT INTO {vectors} VALUES (?,?,vec_quantize_binary(?))"), vectors)
    connection.execute("COMMIT")
    return (_pages(connection) - before) * int(connection.pragma("page_size"))


def _pages(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count"))


def _numbered(vectors: Matrix) -> Iterator[tuple[int, bytes]]:
    for start, block in blocks(vectors, _AT_ONCE):
        for number, row in enumerate(block.astype("<f4"), start=start + 1):
            yield number, row.tobytes()


def _by_words(indexes: Indexes, queries: Mapping[str, str]) -> Iterator[tuple[str, Ints, Ints]]:
    for query_id, text in queries.items():
        expression = match_expression(text)
        yield query_id, *_columns(list(indexes.matching(expression)) if expression else [])


def _by_vectors(indexes: Indexes, arm: DenseArm) -> Iterator[tuple[str, Ints, Ints]]:
    for query_id, vector in zip(arm.query_ids, arm.query_vectors.astype("<f4"), strict=True):
        yield query_id, *_columns([indexes.rescored(vector.tobytes(), CANDIDATES)])


def _columns(found: Sequence[Found]) -> tuple[Ints, Ints]:
    """Rows of the chunks, and their scores."""
    rows = np.array([chunk_id for each in found for chunk_id in each.ids], np.int64) - 1
    return rows, np.array([score for each in found for score in each.scores], np.int64)


def _fused(keyword: Retrieval, dense: Retrieval, chunks: Sequence[Chunk], table: ChunkTable) -> Retrieval:
    """Both rankings of documents by reciprocal rank; one reads the chunk that stands for each, the dense one if any."""
    rows = {(chunk.doc_id, chunk.span): row for row, chunk in enumerate(chunks)}
    hits = {query_id: fused(found, dense.run.hits[query_id]) for query_id, found in keyword.run.hits.items()}
    reading = {
        query_id: read_down(chunks, table, np.array([rows[hit.doc_id, hit.span] for hit in found], np.int64))
        for query_id, found in hits.items()
    }
    return Retrieval(Run(keyword.run.cell, hits), reading, keyword.index_bytes)
