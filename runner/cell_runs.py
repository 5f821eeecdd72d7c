"""From cells to runs: chunks, vectors and rankings through the store, then whole into the version's record."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np

from chunkers import registry
from runner import progress
from runner.bm25 import bm25_description, bm25_run
from runner.canonical import JSON, digest, file_sha256, json_bytes, sha256, write_atomic
from runner.chunk_corpus import chunk_corpus, chunks_to_rows, rows_to_chunks
from runner.chunk_health import chunk_health
from runner.embed_chunks import Order, embed, probed
from runner.encoder import Encoder
from runner.errors import IntegrityError
from runner.eval_set import NOISE_FLOOR_CELL, Version, load_cell_file, load_queries
from runner.ranking import Retrieval
from runner.records import BM25Cell, Chunk, DenseCell, Document, HybridCell, OwnCell, Run, Side, Vectors, parse_cell
from runner.retrieve import DenseArm, dense_run, rerank_run, rrf_run
from runner.run_files import read_run, reading_bytes, run_bytes
from runner.schemas import CellFile, Truncation
from runner.store import Store
from samplers.readiness import boilerplate_share

FORMAT = 3
"""Raised when a run computed from the same inputs would come out otherwise; part of every run's key."""

SPARSE_CHUNKER = "whole_doc"
"""The sparse arm of a hybrid reads whole documents: over chunks BM25 loses what one document says in two places."""

WINDOW_CHUNKER = "fixed_token_256_25"
"""Passages for judges: a cell over whole documents has none to show, so BM25 finds them in windows of this chunker."""

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
        if self.is_current(cell, noise_floor=noise_floor):
            return
        key = self._key(parse_cell(cell), noise_floor)
        folder = self.store.ensure("run", key, partial(self._build, cell, noise_floor))
        # The cell's file comes last: where it exists, the two others are there.
        write_atomic(self.version.chunk_run_path(name), (folder / "chunks.tsv").read_bytes())
        write_atomic(self.version.run_path(name), (folder / "run.tsv").read_bytes())
        write_atomic(self.version.cell_path(name), (folder / "cell.json").read_bytes())

    def lexical_windows(self) -> Run:
        """BM25's best window of every document, for judges to read; no cell and never scored."""
        cell = f"bm25 x {WINDOW_CHUNKER}"
        folder = self.store.ensure("run", self._key(parse_cell(cell), False), partial(self._build, cell, False))
        return read_run(folder / "run.tsv", cell, [query.query_id for query in self.queries])

    def is_current(self, cell: str, *, noise_floor: bool = False) -> bool:
        """Whether the record holds the cell for the present inputs; an edited or exchanged run is an IntegrityError."""
        name = NOISE_FLOOR_CELL if noise_floor else cell
        path = self.version.cell_path(name)
        if not path.exists():
            return False
        facts = load_cell_file(path)
        if (facts.corpus_sha256, facts.queries_sha256) != (self.corpus_sha256, self.queries_sha256):
            return False
        if noise_floor and facts.cell != cell:
            return False  # made for another baseline, before the plan was frozen
        runs = {
            self.version.run_path(name): facts.run_sha256,
            self.version.chunk_run_path(name): facts.chunk_run_sha256,
        }
        for run, digest_then in runs.items():
            if facts.cell != cell or not run.exists() or file_sha256(run) != digest_then:
                raise IntegrityError(
                    f"{run} is not the run of {cell} that {path} should name. Restore both from git, or delete {path} "
                    "to make the cell again."
                )
        return True

    def _key(self, cell: OwnCell, noise_floor: bool) -> JSON:
        return {
            "format": FORMAT,
            "cell": str(cell),
            "corpus": self.corpus_sha256,
            "chunkers": chunkers_sha256(),
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
        run, chunk_run = run_bytes(found.run), reading_bytes(found.reading)
        write_atomic(folder / "run.tsv", run)
        write_atomic(folder / "chunks.tsv", chunk_run)
        facts = self._facts(cell, vectors, sha256(run), sha256(chunk_run))
        write_atomic(folder / "cell.json", json_bytes(facts.model_dump()))
        self.measured[NOISE_FLOOR_CELL if noise_floor else name] = {
            "embed_seconds": round(embedded - started, 3),
            "retrieve_seconds": round(finished - embedded, 3),
        }

    def _retrieve(self, cell: OwnCell, vectors: Vectors | None, order: Order) -> Retrieval:
        name = str(cell)
        if isinstance(cell, BM25Cell):
            return self._sparse(name, cell.variant, cell.chunker)
        assert vectors is not None
        query_ids = [query.query_id for query in self.queries]
        asked = self._embed(cell.encoder, [query.text for query in self.queries], "query", order)
        arm = DenseArm(query_ids, asked.rows, self.chunks(cell.chunker), vectors.rows)
        if isinstance(cell, DenseCell):
            return dense_run(name, arm)
        sparse = self._sparse(name, cell.variant, SPARSE_CHUNKER).run
        return (rerank_run if cell.method == "rerank" else rrf_run)(name, sparse, arm)

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

    @cached_property
    def _boilerplate(self) -> float:
        """Of the documents, so the same for every chunker."""
        return boilerplate_share(self.documents())

    def chunks(self, chunker: str) -> list[Chunk]:
        """The chunks of every document, in document order."""
        if chunker not in self._chunks:

            def build(folder: Path) -> None:
                write_atomic(folder / "chunks.tsv", chunks_to_rows(chunk_corpus(self.documents(), chunker)))

            inputs = {
                "format": FORMAT,
                "chunker": chunker,
                "chunkers": chunkers_sha256(),
                "corpus": self.corpus_sha256,
            }
            self._chunks[chunker] = rows_to_chunks(
                (self.store.ensure("chunks", inputs, build) / "chunks.tsv").read_bytes()
            )
        return self._chunks[chunker]

    def _facts(self, cell: OwnCell, vectors: Vectors | None, run_sha256: str, chunk_run_sha256: str) -> CellFile:
        chunks = self.chunks(cell.chunker)
        encoder = None if isinstance(cell, BM25Cell) else self.encoder_for(cell.encoder)
        return CellFile(
            schema_version=2,
            cell=str(cell),
            queries_sha256=self.queries_sha256,
            corpus_sha256=self.corpus_sha256,
            run_sha256=run_sha256,
            chunk_run_sha256=chunk_run_sha256,
            chunks=chunk_health(chunks, self.documents(), registry.limit_of(cell.chunker), self._boilerplate),
            chunkers_sha256=chunkers_sha256(),
            chunks_per_document=dict(Counter(chunk.doc_id for chunk in chunks)),
            encoder=None if encoder is None else encoder.identity(),
            probe=None if encoder is None else probed(self.store, encoder),
            truncation=None if vectors is None else _truncation(vectors),
            bm25=None if isinstance(cell, DenseCell) else bm25_description(cell.variant),
            method=METHODS[cell.method if isinstance(cell, HybridCell) else type(cell)],
        )


@cache
def chunkers_sha256() -> str:
    """Digest of the chunkers' source, so that whoever changes a chunker under its old name sees its new scores."""
    sources = sorted(Path(registry.__file__).parent.glob("*.py"))
    return digest({path.name: file_sha256(path) for path in sources})


def _truncation(vectors: Vectors) -> Truncation:
    tokens, lost = int(vectors.n_tokens.sum()), int(vectors.n_lost.sum())
    p50, p95 = np.percentile(vectors.n_tokens, [50, 95], method="inverted_cdf").astype(int).tolist()
    return Truncation(
        tokens=tokens,
        tokens_p50=p50,
        tokens_p95=p95,
        tokens_max=int(vectors.n_tokens.max()),
        lost=lost,
        share=lost / max(tokens, 1),
        chunks=len(vectors.n_lost),
        chunks_cut=int((vectors.n_lost > 0).sum()),
    )
