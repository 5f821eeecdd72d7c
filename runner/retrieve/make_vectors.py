"""Chunks of a version and their vectors, through the store; on other machines several encoders at the same time."""

import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import write_atomic
from runner.base.errors import BackendError
from runner.base.progress import Dollars, Progress, Report, bars, duration
from runner.base.records import Chunk, Document, Vectors
from runner.base.store import Store
from runner.base.threads import side_by_side
from runner.embed.backends import Backend, Work
from runner.embed.batches import Order
from runner.embed.chunk_corpus import ROWS, STAGE, chunk_corpus, chunk_inputs, chunks_to_rows, rows_to_chunks
from runner.embed.cost.estimate import Total, size
from runner.embed.cost.ledger import BudgetError
from runner.embed.embed_chunks import Embeddable
from runner.embed.vectors import described
from runner.eval_set.asked import AskedWording
from runner.retrieve.ranking import chunk_table


class Embedding(NamedTuple):
    """What a dense cell needs of its encoder: the vectors of a chunker's chunks, and those of the queries."""

    encoder: str
    chunker: str
    order: Order


class CellVectors:
    """Makes chunks and vectors of one version once each, and remembers how long the vectors took."""

    def __init__(
        self,
        store: Store,
        corpus_sha256: str,
        documents: Callable[[], Sequence[Document]],
        queries: Sequence[AskedWording],
        backend: Backend,
    ) -> None:
        self.store = store
        self.corpus_sha256 = corpus_sha256
        self.documents = cache(documents)
        self.queries = queries
        self.backend = backend
        self.encoder = cache(backend.encoder)
        self.seconds: dict[Embedding, float] = {}
        """Of what was embedded here from its first text on: what an earlier run left makes the rest no measurement."""
        self.failed: dict[str, None] = {}
        """Encoders that could not be had, or failed on a text, in the order in which they did."""
        self.names: dict[Embedding, str] = {}
        """What progress calls an embedding: which cell's it is."""
        self._left = ""
        self._new: dict[Embedding, float] = {}
        """The share of each embedding's tokens that no earlier run had embedded."""
        self._chunks: dict[str, list[Chunk]] = {}
        self.table = cache(lambda chunker: chunk_table(self.chunks(chunker)))
        """The chunks of a chunker by document, as retrieval takes them."""

    def embed(self, embeddings: Sequence[Embedding], judging: Total | None = None) -> None:
        """Make these vectors, each encoder's in its own thread if the backend is concurrent and lets the work begin.

        `judging` is what the same ceiling has to hold afterwards.
        """
        if not embeddings and judging is None:
            return
        # A model is loaded once, for all chunkers that it embeds.
        by_encoder: dict[str, list[Embedding]] = {}
        for embedding in dict.fromkeys(embeddings):
            by_encoder.setdefault(embedding.encoder, []).append(embedding)
        work = [
            self._work(encoder, wanted)
            for encoder, wanted in by_encoder.items()
            if self.backend.concurrent or self.encoder(encoder).spec.api  # counting tokens takes a local one's time
        ]
        self.backend.prepare(work, judging)
        if not self.backend.concurrent:
            self._one_by_one(list(dict.fromkeys(embeddings)))
            return
        with bars() as bar:
            side_by_side([partial(self._embed_all, by_encoder[left.encoder], bar) for left in work if left.texts])

    def _embed_all(self, embeddings: Sequence[Embedding], bar: Callable[[str, Dollars], Report]) -> None:
        for embedding in embeddings:
            self._vectors(embedding, bar)

    def _one_by_one(self, embeddings: Sequence[Embedding]) -> None:
        """Embed one after the other; once something was embedded, say how long all that is left will take."""
        left = {each: self._gflop(each) for each in embeddings}
        done, started = 0.0, time.perf_counter()
        for each in embeddings:
            if done:  # the pace of what was embedded says how long the others take
                self._left = f", {duration((time.perf_counter() - started) / done * sum(left.values()))} left in all"
            self.vectors(each)
            # What an earlier run left says nothing of this one's pace.
            done += left.pop(each) * self._new.get(each, 0.0)
        self._left = ""

    def _gflop(self, wanted: Embedding) -> float:
        """Return what reading the chunks takes, from characters: more than it takes for an encoder that truncates."""
        is_elsewhere = bool(self.encoder(wanted.encoder).spec.api)
        flop = 0.0 if is_elsewhere else size(wanted.encoder).gflop_per_token
        return sum(map(len, self.readings(wanted.chunker))) * (0.01 + flop)

    def vectors(self, wanted: Embedding) -> tuple[Vectors, Vectors]:
        """Return the vectors of the chunks and of the queries; a BackendError if they were made in two places."""
        with bars() as bar:
            return self._vectors(wanted, bar)

    def _vectors(self, wanted: Embedding, bar: Callable[[str, Dollars], Report]) -> tuple[Vectors, Vectors]:
        started = time.perf_counter()
        label = f"{self.names.get(wanted, 'embedding')}: {wanted.encoder} x {wanted.chunker}{self._left}:"
        show = bar(label, partial(self.backend.dollars, wanted.encoder))

        def report(at: Progress) -> None:
            # The first report says what earlier runs left.
            self._new.setdefault(wanted, 1 - at.tokens / max(at.all_tokens, 1))
            show(at)

        try:
            documents, queries = self._of_chunks(wanted), self._of_queries(wanted.encoder, wanted.order)
            is_begun = documents.is_begun
            of_chunks, of_queries = documents.vectors(report), queries.vectors()
        except BackendError as error:
            if not isinstance(error, BudgetError):
                self.failed[wanted.encoder] = None
            raise
        # Rounding differs between devices, so a query is compared with chunks of its own device alone.
        if of_chunks.facts != of_queries.facts:
            raise BackendError(
                f"{wanted.encoder}: the chunks were embedded by {described(of_chunks.facts)}, the queries by "
                f"{described(of_queries.facts)}. Vectors of two backends are never compared; run again where the first "
                f"is to be had, or delete {self.store.root / 'vectors'} to embed anew."
            )
        if not is_begun:
            self.seconds.setdefault(wanted, time.perf_counter() - started)
        return of_chunks, of_queries

    def chunks(self, chunker: str) -> list[Chunk]:
        """Return the chunks of every document, in document order."""
        if chunker not in self._chunks:

            def build(folder: Path) -> None:
                write_atomic(folder / ROWS, chunks_to_rows(chunk_corpus(self.documents(), chunker)))

            folder = self.store.ensure(STAGE, chunk_inputs(chunker, self.corpus_sha256), build)
            self._chunks[chunker] = rows_to_chunks((folder / ROWS).read_bytes())
        return self._chunks[chunker]

    def readings(self, chunker: str) -> list[str]:
        """Return what encoders and BM25 read of every chunk."""
        documents = {document.doc_id: document for document in self.documents()}
        return [chunk.reading(documents[chunk.doc_id]) for chunk in self.chunks(chunker)]

    def _of_chunks(self, wanted: Embedding) -> Embeddable:
        return Embeddable(
            self.store, self.encoder(wanted.encoder), self.readings(wanted.chunker), "document", wanted.order
        )

    def _of_queries(self, encoder: str, order: Order) -> Embeddable:
        return Embeddable(self.store, self.encoder(encoder), [query.text for query in self.queries], "query", order)

    def _work(self, encoder: str, wanted: Sequence[Embedding]) -> Work:
        """Return what is outstanding of one encoder, texts that several chunkers share counted with each."""
        counts = [self._of_chunks(each).outstanding() for each in wanted]
        for order in dict.fromkeys(each.order for each in wanted):
            counts.append(self._of_queries(encoder, order).outstanding())
        return Work(encoder, sum(texts for texts, _ in counts), sum(tokens for _, tokens in counts))
