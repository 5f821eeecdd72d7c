"""From cells to runs: chunk, embed and retrieve through the store, then whole into the version's record."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chunkers import registry
from runner.base.canonical import JSON, file_sha256, json_bytes, sha256, write_atomic
from runner.base.progress import bars, say
from runner.base.records import (
    WITHOUT_VECTORS,
    BM25Cell,
    CrossCell,
    DenseCell,
    Document,
    HybridCell,
    OwnCell,
    Run,
    Span,
    Vectors,
)
from runner.base.store import Store
from runner.embed.backends import Backend
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.chunk_health import chunk_health, unread_spans
from runner.embed.cost.estimate import Total
from runner.embed.probe import probed
from runner.embed.reranker import pair_scores, reranker_for
from runner.eval_set.asked import asked
from runner.eval_set.collection import own_documents
from runner.eval_set.runs import arms_bytes, reading_bytes, run_bytes
from runner.eval_set.shapes.cell import BackendRecord, CellFile, Truncation
from runner.eval_set.version import NOISE_FLOOR_CELL, Version, is_made, load_queries
from runner.retrieve.bm25 import bm25_description, bm25_run
from runner.retrieve.make_vectors import CellVectors, Embedding
from runner.retrieve.ranking import Retrieval, quantised, retrieval, without_own
from runner.retrieve.retrieve import DenseArm, dense_run, rerank_run, rrf_run
from runner.retrieve.sums import sum_run
from runner.retrieve.variants import CANDIDATES, variant_run

FORMAT = 11
"""Raised when a run of the same inputs, or the file that describes it, would come out otherwise; part of its key."""

SPARSE_CHUNKER = "whole_doc"
"""What BM25 reads for `bm25>E` and `rrf`; for a sum it reads the chunks that are embedded."""

METHODS = {
    "dense": "exact cosine over all chunks; a document by its best chunk",
    "bm25": "BM25 over all chunks; a document by its best chunk",
    "cross": "the first 100 documents of BM25 over all chunks, as a cross-encoder scores the best chunk of each",
    "rerank": "the first 100 documents of BM25 over whole documents, in the order of their best chunk by cosine",
    "rrf": "reciprocal rank fusion (k = 60) of BM25 over whole documents and the dense ranking of documents",
    "sum": (
        "half the sum of two parts over all chunks, a document by its best one: BM25, as a share of the most that it "
        "could give, and cosine, as the room that it takes above the 100th document's"
    ),
    "int8": "exact cosine of int8 codes (vec_quantize_int8, 'unit') over all chunks; a document by its best chunk",
    "bit": (
        f"the {CANDIDATES} chunks nearest by Hamming distance of the vectors' signs, in the exact order of their "
        "float32 cosines; a document by its best chunk among them"
    ),
}


def method_of(cell: OwnCell) -> str:
    """Return how a cell ranks, in words."""
    if isinstance(cell, HybridCell):
        return METHODS[cell.method]
    if isinstance(cell, DenseCell) and cell.variant.isdigit():
        first = f"exact cosine of the first {cell.variant} dimensions over all chunks"
        return f"{first}; a document by its best chunk"
    if isinstance(cell, DenseCell):
        return METHODS[cell.variant or "dense"]
    return METHODS["bm25" if isinstance(cell, BM25Cell) else "cross"]


def sparse_description(cell: OwnCell) -> dict[str, str | float] | None:
    """Return the settings of a cell's full-text search, None for a cell without one."""
    return None if isinstance(cell, DenseCell) else bm25_description(cell.variant)


class Wanted(NamedTuple):
    """A run to make: a cell's own, or its A/A run, over vectors that are embedded once more in other batches."""

    cell: OwnCell
    noise_floor: bool = False

    @property
    def name(self) -> str:
        """What the record calls the run."""
        return NOISE_FLOOR_CELL if self.noise_floor else str(self.cell)

    @property
    def embedding(self) -> Embedding | None:
        """What the cell needs of its encoder, None for a cell without one."""
        if isinstance(self.cell, WITHOUT_VECTORS):
            return None
        return Embedding(self.cell.encoder, self.cell.chunker, "reversed" if self.noise_floor else "forward")


class CellRuns:
    """Makes a version's runs in three stages; each takes from the store what was made before, and loads what it needs
    late.
    """

    def __init__(self, version: Version, documents: Callable[[], Sequence[Document]], backend: Backend) -> None:
        self.version = version
        self.store = Store(version.cache)
        self.queries = asked(load_queries(version.queries_path))
        self.corpus_sha256 = file_sha256(version.corpus_path)
        self.queries_sha256 = file_sha256(version.queries_path)
        self.documents = cache(documents)
        self.vectors = CellVectors(self.store, self.corpus_sha256, self.documents, self.queries, backend)
        self.own = own_documents(version)
        """Queries whose own document is left out of their lists."""
        self.reranker = cache(reranker_for)
        self.sparse = cache(self._sparse)
        """BM25's run by variant and chunker, which every cell of both shares."""
        self.read_seconds: dict[str, float | None] = {}
        """Of re-ranking, by cell; None where an earlier run had begun."""
        self.measured: dict[str, dict[str, float]] = {}

    def missing(self, wanted: Iterable[Wanted]) -> list[Wanted]:
        """Return the runs that the record does not hold for the present inputs."""
        return [each for each in wanted if not is_made(self.version, str(each.cell), each.name)]

    def announced(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Return the missing runs, once it is said how many there are, how many are kept, and which place each has."""
        missing = self.missing(wanted)
        # What the cache holds needs no embedding, only copying into the record.
        unmade = self.unmade(missing)
        n_cells = sum(not each.noise_floor for each in wanted)
        if missing:
            again = " and the baseline once more (A/A)" if len(wanted) > n_cells else ""
            kept = f"{len(wanted) - len(missing)} in the record, {len(missing) - len(unmade)} in the cache"
            say(f"{n_cells} cells{again}: {kept}, {len(unmade)} to make, from kept vectors where there are any")
        for place, each in enumerate(wanted, start=1):
            if each.embedding is not None and each in unmade:
                called = "A/A, the baseline once more" if each.noise_floor else f"cell {place} of {n_cells}"
                self.vectors.names.setdefault(each.embedding, called)
        return missing

    def check(self, wanted: Iterable[Wanted]) -> None:
        """Raise BackendError if the backend would refuse to embed for these runs: asked before anything long."""
        unmade = self.unmade(wanted)
        for model in self.rerankers(unmade):
            self.reranker(model).check()
        embeddings = [each.embedding for each in unmade]
        self.vectors.backend.check(sorted({embedding.encoder for embedding in embeddings if embedding is not None}))

    def rerankers(self, unmade: Iterable[Wanted]) -> list[str]:
        """Return the cross-encoders that these runs need."""
        return sorted({each.cell.model for each in unmade if isinstance(each.cell, CrossCell)})

    def chunk(self, wanted: Iterable[Wanted]) -> None:
        """Chunk the documents by every chunker that a run still needs."""
        for each in self.unmade(wanted):
            self.vectors.chunks(each.cell.chunker)

    def embed(self, wanted: Iterable[Wanted], judging: Total | None = None) -> None:
        """Embed what the runs still need, encoders side by side if the backend can; `judging` is paid afterwards."""
        embeddings = [each.embedding for each in self.unmade(wanted)]
        self.vectors.embed([embedding for embedding in embeddings if embedding is not None], judging)

    def retrieve(self, wanted: Iterable[Wanted]) -> None:
        """Rank every query's documents, and put each run and its cells/ file into the record."""
        for each in wanted:
            folder = self._made(each)
            # The cell's file comes last: if it exists, the others are there.
            write_atomic(self.version.chunk_run_path(each.name), (folder / "chunks.tsv.bz2").read_bytes())
            write_atomic(self.version.run_path(each.name), (folder / "run.tsv.bz2").read_bytes())
            write_atomic(self.version.cell_path(each.name), (folder / "cell.json").read_bytes())

    def make(self, wanted: Iterable[Wanted]) -> None:
        """Take the runs that the record lacks through all three stages."""
        missing = self.announced(list(wanted))
        self.check(missing)
        self.chunk(missing)
        self.embed(missing)
        self.retrieve(missing)

    def unmade(self, wanted: Iterable[Wanted]) -> list[Wanted]:
        """Return those that the store does not hold."""
        return [each for each in wanted if not self.store.holds("run", self._key(each))]

    def _made(self, wanted: Wanted) -> Path:
        return self.store.ensure("run", self._key(wanted), partial(self._build, wanted))

    def _key(self, wanted: Wanted) -> JSON:
        cell = wanted.cell
        return {
            **({"own documents": sorted(self.own)} if self.own else {}),
            "format": FORMAT,
            "cell": str(cell),
            "corpus": self.corpus_sha256,
            "chunkers": chunkers_sha256(cell.chunker),
            "queries": self.queries_sha256,
            "encoder": self._identity(cell),
            "bm25": sparse_description(cell),
            "order": "reversed" if wanted.noise_floor else "forward",
        }

    def _identity(self, cell: OwnCell) -> dict[str, JSON] | None:
        """Return the identity of the model that the cell ranks by, None for one without."""
        if isinstance(cell, BM25Cell):
            return None
        if isinstance(cell, CrossCell):
            return self.reranker(cell.model).identity()
        return self.vectors.encoder(cell.encoder).identity()

    def _build(self, wanted: Wanted, folder: Path) -> None:
        cell, embedding = wanted.cell, wanted.embedding
        embedded = None if embedding is None else self.vectors.vectors(embedding)
        started = time.perf_counter()
        vectors = None if embedded is None else embedded[0]
        if isinstance(cell, CrossCell):
            retrieved, vectors = self._cross(cell)
        else:
            retrieved = self._retrieve(cell, embedded)
        if self.own:
            left = Run(retrieved.run.cell, without_own(retrieved.run.hits, self.own))
            arms = None if retrieved.arms is None else without_own(retrieved.arms, self.own)
            retrieved = retrieved._replace(run=left, reading=without_own(retrieved.reading, self.own), arms=arms)
        measured = {"retrieve_seconds": round(time.perf_counter() - started, 3)}
        ranked = run_bytes(retrieved.run) if retrieved.arms is None else arms_bytes(retrieved.arms)
        files = {"run.tsv.bz2": ranked, "chunks.tsv.bz2": reading_bytes(retrieved.reading)}
        for name, content in files.items():
            write_atomic(folder / name, content)
        facts = self._facts(cell, vectors, {name: sha256(content) for name, content in files.items()}, retrieved)
        write_atomic(folder / "cell.json", json_bytes(facts.model_dump()))
        took = self.read_seconds.get(str(cell), 0.0) if embedding is None else self.vectors.seconds.get(embedding)
        if took is not None:
            measured["embed_seconds"] = round(took, 3)
        self.measured[wanted.name] = measured

    def _cross(self, cell: CrossCell) -> tuple[Retrieval, Vectors | None]:
        """Return the ranking, and the pairs' token counts as vectors without coordinates; None without a pair."""
        name, model = str(cell), self.reranker(cell.model)
        sparse = self.sparse(cell.variant, cell.chunker)
        chunks, readings = self.vectors.chunks(cell.chunker), self.vectors.readings(cell.chunker)
        # BM25 names its evidence by span; the cross-encoder reads the chunk of that row.
        places: dict[tuple[str, Span | None], int] = {(one.doc_id, one.span): row for row, one in enumerate(chunks)}
        picked = {
            query.id: np.array([places[hit.doc_id, hit.span] for hit in sparse.run.hits[query.id]], np.int64)
            for query in self.queries
        }
        pairs = [(query.text, readings[row]) for query in self.queries for row in picked[query.id].tolist()]
        with bars() as bar:
            scored = pair_scores(self.store, model, pairs, bar(f"re-ranking: {name}", lambda: None))
        # Back from one list of pairs to a list a query.
        steps = np.split(quantised(scored.scores), np.cumsum([len(rows) for rows in picked.values()])[:-1])
        ranked = zip(picked, picked.values(), steps, strict=True)
        retrieved = retrieval(name, chunks, self.vectors.table(cell.chunker), ranked, sparse.index_bytes)
        self.read_seconds[name] = scored.seconds
        made = Vectors(np.empty((len(pairs), 0), np.float32), scored.n_tokens, scored.n_lost, {"device": "cpu"})
        return retrieved, made if pairs else None

    def _retrieve(self, cell: DenseCell | BM25Cell | HybridCell, embedded: tuple[Vectors, Vectors] | None) -> Retrieval:
        name = str(cell)
        if isinstance(cell, BM25Cell):
            return self.sparse(cell.variant, cell.chunker)
        assert embedded is not None
        of_chunks, of_queries = embedded
        query_ids, chunks = [query.id for query in self.queries], self.vectors.chunks(cell.chunker)
        arm = DenseArm(query_ids, of_queries.rows, chunks, of_chunks.rows, self.vectors.table(cell.chunker))
        if isinstance(cell, DenseCell):
            if cell.variant:
                return variant_run(name, cell.variant, arm, self.store)
            return dense_run(name, arm)
        if cell.method == "sum":
            return sum_run(name, self.sparse(cell.variant, cell.chunker), arm)
        sparse = self.sparse(cell.variant, SPARSE_CHUNKER)
        fused = (rerank_run if cell.method == "rerank" else rrf_run)(name, sparse.run, arm)
        return fused._replace(index_bytes=fused.index_bytes + sparse.index_bytes)

    def _sparse(self, variant: str, chunker: str) -> Retrieval:
        chunks = self.vectors.chunks(chunker)
        queries = {query.id: query.text for query in self.queries}
        return bm25_run(str(BM25Cell(variant, chunker)), variant, queries, chunks, self.vectors.readings(chunker))

    def _facts(
        self, cell: OwnCell, vectors: Vectors | None, digests: Mapping[str, str], retrieved: Retrieval
    ) -> CellFile:
        chunks = self.vectors.chunks(cell.chunker)
        n_chunks = Counter(chunk.doc_id for chunk in chunks)
        encoder = None if isinstance(cell, WITHOUT_VECTORS) else self.vectors.encoder(cell.encoder)
        identity = self._identity(cell)
        # Of what cannot be probed nobody knows how far it reads.
        read = vectors if encoder is None or encoder.probes else None
        backend = truncation = None
        if identity is not None and vectors is not None:
            fixed = identity["backend"]
            backend = BackendRecord(name=fixed["name"], identity=fixed, served=dict(vectors.facts))
            truncation = None if read is None else _truncation(read)
        return CellFile(
            schema_version=1,
            cell=str(cell),
            queries_sha256=self.queries_sha256,
            corpus_sha256=self.corpus_sha256,
            run_sha256=digests["run.tsv.bz2"],
            chunk_run_sha256=digests["chunks.tsv.bz2"],
            chunks=chunk_health(chunks, self.documents(), registry.limit_of(cell.chunker)),
            chunkers_sha256=chunkers_sha256(cell.chunker),
            index_bytes=retrieved.index_bytes,
            chunks_per_document=[n_chunks[document.doc_id] for document in self.documents()],
            unread=None if read is None or isinstance(cell, CrossCell) else unread_spans(chunks, read),
            encoder=None if identity is None else {name: fact for name, fact in identity.items() if name != "backend"},
            backend=backend,
            probe=None if encoder is None or not encoder.probes else probed(self.store, encoder),
            truncation=truncation,
            bm25=sparse_description(cell),
            imported=None,
            method=method_of(cell),
        )


def _truncation(vectors: Vectors) -> Truncation:
    tokens, lost = int(vectors.n_tokens.sum()), int(vectors.n_lost.sum())
    return Truncation(
        tokens=tokens,
        lost=lost,
        share=lost / max(tokens, 1),
        chunks_cut=int((vectors.n_lost > 0).sum()),
    )
