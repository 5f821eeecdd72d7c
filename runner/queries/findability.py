"""At which rank plain retrieval finds the document that a query was written from, over the whole sample."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.canonical import file_sha256
from runner.base.errors import EvalError
from runner.base.records import Chunk, Document, Query, Run, Span
from runner.base.store import Store
from runner.embed.backends import Backend
from runner.embed.embed_chunks import embed
from runner.embed.encoder import Matrix
from runner.embed.probe import probed
from runner.eval_set.version import Version
from runner.queries.wording import reading
from runner.retrieve.bm25 import bm25_run, lucene_tokens
from runner.retrieve.make_vectors import CellVectors, Embedding
from runner.retrieve.retrieve import DenseArm, dense_run

SENTENCES = "minilm-l6-v2"
"""Tells whether two queries say the same."""

WHOLE = "minilm-static-384"
"""Reads every word of every document in seconds: means of the same weights' token vectors."""

CHUNKER = "fixed_token_512_50"


class EncoderView(NamedTuple):
    """What the packaged encoder says: ranks of the documents, and unit rows (n, dim) of the queries.

    `skipped` says why there is neither, "" where there are both.
    """

    run: Run | None
    rows: Matrix | None
    skipped: str


def lexical_run(documents: Sequence[Document], texts: Sequence[str]) -> Run:
    """BM25's first 100 documents for each text, whose place is its query id."""
    chunks = [Chunk(document.doc_id, 0, Span(0, len(document.text)), document.title, 1) for document in documents]
    queries = {str(place): text for place, text in enumerate(texts)}
    return bm25_run("bm25 x whole_doc", "bm25", queries, chunks, [reading(document) for document in documents]).run


def encoder_view(
    version: Version, documents: Sequence[Document], texts: Sequence[str], backend: Backend
) -> EncoderView:
    """The first 100 documents of each text by the packaged encoders, through the version's cache.

    Chunks and vectors are those that a rehearsal of the version needs too. Where an encoder cannot be had, why not.
    """
    queries = [Query(str(place), text, "", "hand") for place, text in enumerate(texts)]
    store = Store(version.cache)
    try:
        for name in (SENTENCES, WHOLE):
            probed(store, backend.encoder(name))
        rows = embed(store, backend.encoder(SENTENCES), texts, "query").rows
        vectors = CellVectors(store, file_sha256(version.corpus_path), lambda: documents, queries, backend)
        found, asked = vectors.vectors(Embedding(WHOLE, CHUNKER, "forward"))
    except (EvalError, ImportError) as error:
        return EncoderView(None, None, f"the packaged encoder cannot be used: {error}")
    ids = [query.query_id for query in queries]
    arm = DenseArm(ids, asked.rows, vectors.chunks(CHUNKER), found.rows, vectors.table(CHUNKER))
    return EncoderView(dense_run(f"{WHOLE} x {CHUNKER}", arm).run, rows, "")


def has_no_word(text: str, document: Document) -> bool:
    """Whether a document has no word of a text as BM25 counts words, so that it never finds it, at whatever depth."""
    asked, held = lucene_tokens([text, reading(document)])
    return not set(asked) & set(held)


def rank_of(run: Run, place: int, doc_id: str) -> int | None:
    """The rank, from 1, at which a run has a document for a query; None below its depth."""
    for rank, hit in enumerate(run.hits[str(place)], start=1):
        if hit.doc_id == doc_id:
            return rank
    return None
