"""From cells to runs: chunks, vectors and rankings through the store, then whole into the version's record."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from runner import progress
from runner.bm25 import bm25_description, bm25_run
from runner.canonical import JSON, file_sha256, json_bytes, write_atomic
from runner.chunk_corpus import chunk_corpus, chunk_health, chunks_to_rows, rows_to_chunks
from runner.embed_chunks import Order, embed, probed
from runner.encoder import Encoder
from runner.eval_set import Version, load_cell_file, load_queries
from runner.ranking import Retrieval
from runner.records import BM25Cell, Cell, Chunk, DenseCell, Document, HybridCell, Side, Vectors, parse_cell
from runner.results import NOISE_FLOOR_CELL
from runner.retrieve import dense_run, rerank_run, rrf_run
from runner.run_files import reading_bytes, run_bytes
from runner.schemas import CellFile, Truncation
from runner.store import Store

FORMAT = 1
"""Raised when a run computed from the same inputs would come out otherwise; part of every run's key."""

SPARSE_CHUNKER = "whole_doc"
"""The sparse arm of a hybrid reads whole documents: over chunks BM25 loses what one document says in two places."""

METHODS = {
    DenseCell: "exact cosine over all chunks; a document by its best chunk",
    BM25Cell: "BM25 over all chunks; a document by its best chunk",
    "rerank": "the first 100 documents of BM25 over whole documents, in the order of their best chunk by cosine",
    "rrf": "reciprocal rank fusion (k = 60) of BM25 over whole documents and the dense ranking of documents",
}


class CellRuns:
    """Makes the runs of one version's cells; documents, chunks and vectors are loaded when a cell first needs them."""

    def __init__(
        self,
        version: Version,
        documents: Callable[[], Sequence[Document]],
        encoder_for: Callable[[str], Encoder],
    ) -> None:
        self.version = version
        self.store = Store(version.cache)
        self.queries = load_queries(version.queries_path)
        self.corpus_sha256 = file_sha256(version.corpus_path)
        self.queries_sha256 = file_sha256(version.queries_path)
        self.documents = cache(documents)
        self.encoder_for = cache(encoder_for)
        self.measured: dict[str, dict[str, float]] = {}
        self._chunks: dict[str, list[Chunk]] = {}

    def record(self, cell: str, *, noise_floor: bool = False) -> None:
        """Put the cell's runs and its cells/ file into the record, unless they lie there for these inputs already.

        `noise_floor` makes the A/A run instead: the same cell over vectors embedded once more, in other batches.
        """
        name = NOISE_FLOOR_CELL if noise_floor else cell
        done = self.version.cell_path(cell) if not noise_floor else self.version.run_path(name)
        if done.exists() and (noise_floor or self._is_current(load_cell_file(done))):
            return
        folder = self.store.ensure(
            "run", self._key(parse_cell(cell), noise_floor), partial(self._build, cell, noise_floor)
        )
        if not noise_floor:
            write_atomic(self.version.chunk_run_path(cell), (folder / "chunks.tsv").read_bytes())
        write_atomic(self.version.run_path(name), (folder / "run.tsv").read_bytes())
        if not noise_floor:
            write_atomic(done, (folder / "cell.json").read_bytes())

    def _is_current(self, facts: CellFile) -> bool:
        return (facts.corpus_sha256, facts.queries_sha256) == (self.corpus_sha256, self.queries_sha256)

    def _key(self, cell: Cell, noise_floor: bool) -> JSON:
        return {
            "format": FORMAT,
            "cell": str(cell),
            "corpus": self.corpus_sha256,
            "queries": self.queries_sha256,
            "encoder": None if isinstance(cell, BM25Cell) else self.encoder_for(cell.encoder).identity(),
            "bm25": None if isinstance(cell, DenseCell) else bm25_description(cell.variant),
            "order": "reversed" if noise_floor else "forward",
        }

    def _build(self, name: str, noise_floor: bool, folder: Path) -> None:
        started = time.perf_counter()
        cell = parse_cell(name)
        order: Order = "reversed" if noise_floor else "forward"
        vectors = None if isinstance(cell, BM25Cell) else self._vectors(cell.encoder, cell.chunker, order)
        embedded = time.perf_counter()
        found = self._retrieve(cell, vectors, order)
        finished = time.perf_counter()
        write_atomic(folder / "run.tsv", run_bytes(found.run))
        write_atomic(folder / "chunks.tsv", reading_bytes(found.reading))
        write_atomic(folder / "cell.json", json_bytes(self._facts(cell, vectors).model_dump()))
        self.measured[NOISE_FLOOR_CELL if noise_floor else name] = {
            "embed_seconds": round(embedded - started, 3),
            "retrieve_seconds": round(finished - embedded, 3),
        }

    def _retrieve(self, cell: Cell, vectors: Vectors | None, order: Order) -> Retrieval:
        name = str(cell)
        if isinstance(cell, BM25Cell):
            return self._sparse(name, cell.variant, cell.chunker)
        assert vectors is not None
        query_ids = [query.query_id for query in self.queries]
        asked = self._embed(cell.encoder, [query.text for query in self.queries], "query", order)
        arms = (query_ids, asked.rows, self.chunks(cell.chunker), vectors.rows)
        if isinstance(cell, DenseCell):
            return dense_run(name, *arms)
        sparse = self._sparse(name, cell.variant, SPARSE_CHUNKER).run
        return (rerank_run if cell.method == "rerank" else rrf_run)(name, sparse, *arms)

    def _sparse(self, name: str, variant: str, chunker: str) -> Retrieval:
        chunks = self.chunks(chunker)
        queries = {query.query_id: query.text for query in self.queries}
        return bm25_run(name, variant, queries, chunks, self._readings(chunks))

    def _vectors(self, encoder: str, chunker: str, order: Order) -> Vectors:
        return self._embed(encoder, self._readings(self.chunks(chunker)), "document", order, f"{encoder} x {chunker}")

    def _embed(self, encoder: str, texts: Sequence[str], side: Side, order: Order, label: str = "") -> Vectors:
        report = partial(progress.bar, f"embedding {label}") if label else None
        return embed(self.store, self.encoder_for(encoder), texts, side, order=order, progress=report)

    def _readings(self, chunks: Sequence[Chunk]) -> list[str]:
        documents = {document.doc_id: document for document in self.documents()}
        return [chunk.reading(documents[chunk.doc_id]) for chunk in chunks]

    def chunks(self, chunker: str) -> list[Chunk]:
        """The chunks of every document, in document order."""
        if chunker not in self._chunks:

            def build(folder: Path) -> None:
                write_atomic(folder / "chunks.tsv", chunks_to_rows(chunk_corpus(self.documents(), chunker)))

            inputs = {"format": FORMAT, "chunker": chunker, "corpus": self.corpus_sha256}
            self._chunks[chunker] = rows_to_chunks(
                (self.store.ensure("chunks", inputs, build) / "chunks.tsv").read_bytes()
            )
        return self._chunks[chunker]

    def _facts(self, cell: Cell, vectors: Vectors | None) -> CellFile:
        chunks = self.chunks(cell.chunker)
        encoder = None if isinstance(cell, BM25Cell) else self.encoder_for(cell.encoder)
        return CellFile(
            schema_version=1,
            cell=str(cell),
            queries_sha256=self.queries_sha256,
            corpus_sha256=self.corpus_sha256,
            chunks={**chunk_health(chunks, self.documents()), "per_document": _per_document(chunks)},
            encoder=None if encoder is None else encoder.identity(),
            probe=None if encoder is None else probed(self.store, encoder),
            truncation=None if vectors is None else _truncation(vectors),
            bm25=None if isinstance(cell, DenseCell) else bm25_description(cell.variant),
            method=METHODS[cell.method if isinstance(cell, HybridCell) else type(cell)],
        )


def _per_document(chunks: Sequence[Chunk]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for chunk in chunks:
        counts[chunk.doc_id] = counts.get(chunk.doc_id, 0) + 1
    return counts


def _truncation(vectors: Vectors) -> Truncation:
    tokens, lost = int(vectors.n_tokens.sum()), int(vectors.n_lost.sum())
    return Truncation(
        tokens=tokens,
        lost=lost,
        share=lost / max(tokens, 1),
        chunks=len(vectors.n_lost),
        chunks_cut=int((vectors.n_lost > 0).sum()),
    )
