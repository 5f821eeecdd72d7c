"""From cells to runs: chunks, vectors and rankings through the store, then whole into the version's record."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np

from chunkers import registry
from runner.base.canonical import JSON, file_sha256, json_bytes, sha256, write_atomic
from runner.base.errors import IntegrityError
from runner.base.records import BM25Cell, DenseCell, Document, HybridCell, OwnCell, Run, Vectors, parse_cell
from runner.base.store import Store
from runner.embed.backends import Backend
from runner.embed.batches import Order
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.chunk_health import chunk_health, lengths
from runner.embed.probe import probed
from runner.eval_set.runs import read_run, reading_bytes, run_bytes
from runner.eval_set.shapes.cell import BackendRecord, CellFile, Truncation
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, load_cell_file, load_queries
from runner.retrieve.bm25 import bm25_description, bm25_run
from runner.retrieve.make_vectors import CellVectors, Embedding
from runner.retrieve.ranking import Retrieval
from runner.retrieve.retrieve import DenseArm, dense_run, rerank_run, rrf_run
from samplers.corpus.readiness import boilerplate_share

FORMAT = 6
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
        backend: Backend,
    ) -> None:
        self.version = version
        self.store = Store(version.cache)
        self.queries = load_queries(version.queries_path)
        self.corpus_sha256 = file_sha256(version.corpus_path)
        self.queries_sha256 = file_sha256(version.queries_path)
        self.documents = cache(documents)
        self.vectors = CellVectors(self.store, self.corpus_sha256, self.documents, self.queries, backend)
        self.measured: dict[str, dict[str, float]] = {}

    def embed_ahead(self, cells: Sequence[str], *, noise_floor: str = "") -> None:
        """Embed what the cells that are not in the record yet need, side by side where the backend can.

        `noise_floor` is the cell that will be embedded once more, "" for none.
        """
        wanted = [_embedding(cell, "forward") for cell in cells if not self.is_current(cell)]
        if noise_floor and not self.is_current(noise_floor, noise_floor=True):
            wanted.append(_embedding(noise_floor, "reversed"))
        self.vectors.ahead([embedding for embedding in wanted if embedding is not None])

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
            "encoder": None if isinstance(cell, BM25Cell) else self.vectors.encoder(cell.encoder).identity(),
            "bm25": None if isinstance(cell, DenseCell) else bm25_description(cell.variant),
            "order": "reversed" if noise_floor else "forward",
        }

    def _build(self, name: str, noise_floor: bool, folder: Path) -> None:
        cell = parse_cell(name)
        order: Order = "reversed" if noise_floor else "forward"
        embedding = _embedding(name, order)
        embedded = None if embedding is None else self.vectors.vectors(embedding)
        started = time.perf_counter()
        found = self._retrieve(cell, embedded)
        finished = time.perf_counter()
        run, chunk_run = run_bytes(found.run), reading_bytes(found.reading)
        write_atomic(folder / "run.tsv", run)
        write_atomic(folder / "chunks.tsv", chunk_run)
        vectors = None if embedded is None else embedded[0]
        facts = self._facts(cell, vectors, sha256(run), sha256(chunk_run), found.index_bytes)
        write_atomic(folder / "cell.json", json_bytes(facts.model_dump()))
        measured = {"retrieve_seconds": round(finished - started, 3)}
        if embedding is None or embedding in self.vectors.seconds:
            measured["embed_seconds"] = round(0.0 if embedding is None else self.vectors.seconds[embedding], 3)
        self.measured[NOISE_FLOOR_CELL if noise_floor else name] = measured

    def _retrieve(self, cell: OwnCell, embedded: tuple[Vectors, Vectors] | None) -> Retrieval:
        name = str(cell)
        if isinstance(cell, BM25Cell):
            return self._sparse(name, cell.variant, cell.chunker)
        assert embedded is not None
        found, asked = embedded
        query_ids = [query.query_id for query in self.queries]
        arm = DenseArm(
            query_ids, asked.rows, self.vectors.chunks(cell.chunker), found.rows, self.vectors.table(cell.chunker)
        )
        if isinstance(cell, DenseCell):
            return dense_run(name, arm)
        sparse = self._sparse(name, cell.variant, SPARSE_CHUNKER)
        fused = (rerank_run if cell.method == "rerank" else rrf_run)(name, sparse.run, arm)
        return fused._replace(index_bytes=fused.index_bytes + sparse.index_bytes)

    def _sparse(self, name: str, variant: str, chunker: str) -> Retrieval:
        chunks = self.vectors.chunks(chunker)
        queries = {query.query_id: query.text for query in self.queries}
        return bm25_run(name, variant, queries, chunks, self.vectors.readings(chunker))

    @cached_property
    def _boilerplate(self) -> float:
        """Of the documents, so the same for every chunker."""
        return boilerplate_share(self.documents())

    def _facts(
        self, cell: OwnCell, vectors: Vectors | None, run_sha256: str, chunk_run_sha256: str, index_bytes: int
    ) -> CellFile:
        chunks = self.vectors.chunks(cell.chunker)
        encoder = None if isinstance(cell, BM25Cell) else self.vectors.encoder(cell.encoder)
        identity = None if encoder is None else encoder.identity()
        return CellFile(
            schema_version=4,
            cell=str(cell),
            queries_sha256=self.queries_sha256,
            corpus_sha256=self.corpus_sha256,
            run_sha256=run_sha256,
            chunk_run_sha256=chunk_run_sha256,
            chunks=chunk_health(chunks, self.documents(), registry.limit_of(cell.chunker), self._boilerplate),
            chunkers_sha256=chunkers_sha256(),
            index_bytes=index_bytes,
            chunks_per_document=dict(Counter(chunk.doc_id for chunk in chunks)),
            encoder=None if identity is None else {name: fact for name, fact in identity.items() if name != "backend"},
            backend=None if identity is None or vectors is None else _backend(identity, vectors),
            probe=None if encoder is None else probed(self.store, encoder),
            truncation=None if vectors is None or identity is None else _truncation(vectors, identity["max_tokens"]),
            bm25=None if isinstance(cell, DenseCell) else bm25_description(cell.variant),
            method=METHODS[cell.method if isinstance(cell, HybridCell) else type(cell)],
        )


def _embedding(cell: str, order: Order) -> Embedding | None:
    """What the cell needs of its encoder, None for one without."""
    parsed = parse_cell(cell)
    return None if isinstance(parsed, BM25Cell) else Embedding(parsed.encoder, parsed.chunker, order)


def _backend(identity: dict[str, JSON], vectors: Vectors) -> BackendRecord:
    """Where the vectors were made."""
    fixed = identity["backend"]
    return BackendRecord(name=fixed["name"], identity=fixed, served=dict(vectors.facts))


def _truncation(vectors: Vectors, limit: int) -> Truncation:
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
        lengths=lengths(vectors.n_tokens, limit),
    )
