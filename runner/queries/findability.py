"""A query held to the document that it was written from: how much it copies, and where plain retrieval finds it."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from runner.base.canonical import file_sha256
from runner.base.errors import EvalError
from runner.base.records import RUN_DEPTH, Chunk, Document, Query, Run, Span
from runner.base.store import Store
from runner.embed.backends import Backend
from runner.embed.embed_chunks import embed
from runner.embed.encoder import Matrix
from runner.embed.probe import probed
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version
from runner.queries.check_schemas import CheckedQuery, Finding, Rule
from runner.queries.draft_answers import COPIED_WORDS, quotations
from runner.queries.draft_asks import MOST_CHARS
from runner.queries.kinds import LITERAL_KINDS
from runner.queries.wording import SampleWords, longest_run, overlap, reading, stems, words
from runner.retrieve.bm25 import bm25_run, lucene_tokens
from runner.retrieve.make_vectors import CellVectors, Embedding
from runner.retrieve.retrieve import DenseArm, dense_run

SENTENCES = "minilm-l6-v2"
"""Tells whether two queries say the same."""

WHOLE = "minilm-static-384"
"""Reads every word of every document in seconds: means of the same weights' token vectors."""

CHUNKER = "fixed_token_512_50"


class EncoderView(NamedTuple):
    """The packaged encoder's run and its unit rows (n, dim) of the queries; `skipped` says why there is neither."""

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
    """The first 100 documents of each text by the packaged encoders, through the version's cache, or why not.

    Chunks and vectors are those that a rehearsal of the version needs too.
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
    """Whether a document has no word of a text as BM25 counts words, which then never finds it."""
    asked, held = lucene_tokens([text, reading(document)])
    return not set(asked) & set(held)


def rank_of(run: Run, place: int, doc_id: str) -> int | None:
    """The rank, from 1, at which a run has a document for a query; None below its depth."""
    return next((rank for rank, hit in enumerate(run.hits[str(place)], start=1) if hit.doc_id == doc_id), None)


EASY_OVERLAP = 0.75
"""Share of a query's words that its document holds, from which a first place by BM25 says nothing of a retriever."""

SAME_QUOTATION = 80
"""rapidfuzz's partial_ratio, of 100: a phrase half remembered is still found."""


class Sample:
    """The documents by id; the words of each are read when a query first needs them."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = {document.doc_id: document for document in documents}
        self._words = cache(lambda: SampleWords(documents))
        self.stems = cache(lambda doc_id: stems(reading(self.documents[doc_id])))
        self.distinctive = cache(lambda doc_id: self._words().distinctive(self.documents[doc_id]))


def checked_query(
    file: str, row: QueryRow, place: int, sample: Sample, lexical: Run, dense: Run | None
) -> tuple[CheckedQuery, list[Finding]]:
    """The query's figures, and what is to be looked at; `place` is its query id in both runs."""
    document = sample.documents.get(row.source_document)
    found = _wording(row)
    bm25_rank = encoder_rank = near = given_away = None
    no_word = False
    shared: list[str] = []
    if document is not None:
        asked = stems(row.text)
        distinctive = sample.distinctive(document.doc_id)
        near, given_away = overlap(asked, sample.stems(document.doc_id)), overlap(asked, distinctive.stems)
        shared = distinctive.used_in(row.text)
        bm25_rank = rank_of(lexical, place, document.doc_id) or 0
        encoder_rank = None if dense is None else rank_of(dense, place, document.doc_id) or 0
        no_word = not bm25_rank and has_no_word(row.text, document)
        found += _held_to(row, document, near, bm25_rank)
        found += _out_of_reach(row, no_word, bm25_rank, encoder_rank, len(sample.documents))
    elif row.source_document:
        found.append(_warning("no document", row, f"{row.source_document!r} is not in the sample"))
    query = CheckedQuery(
        file=file,
        id=row.id,
        text=row.text,
        kind=row.kind,
        origin=row.origin,
        source_document=row.source_document,
        title=document.title if document else "",
        url=document.url if document else "",
        overlap=near,
        distinctive=given_away,
        shared=shared,
        bm25_rank=bm25_rank,
        no_word=no_word,
        encoder_rank=encoder_rank,
        flags=[],
    )
    return query, found


def _wording(row: QueryRow) -> list[Finding]:
    found = []
    if not row.text.isprintable():
        found.append(_warning("wording", row, "has a line break or a character that is not shown"))
    if len(row.text) > MOST_CHARS:
        found.append(_warning("wording", row, f"has {len(row.text)} characters; nobody types more than {MOST_CHARS}"))
    if not stems(row.text):
        found.append(_warning("wording", row, "has no word with content"))
    return found


def _out_of_reach(
    row: QueryRow, no_word: bool, bm25_rank: int, encoder_rank: int | None, n_documents: int
) -> list[Finding]:
    """A warning if BM25 does not find the document and the encoder has it in the lower half of the sample."""
    if bm25_rank or encoder_rank is None or 0 < 2 * encoder_rank <= n_documents + 1:
        return []
    lexical = "has no word of it, so that BM25 cannot find it" if no_word else f"is below BM25's first {RUN_DEPTH}"
    place = f"at {encoder_rank} of {n_documents}" if encoder_rank else f"below its first {RUN_DEPTH}"
    what = f"{row.source_document} {lexical}, and the packaged encoder has it {place}: see that it serves the query"
    return [_warning("impossible", row, what)]


def _held_to(row: QueryRow, document: Document, near: float | None, bm25_rank: int) -> list[Finding]:
    found = []
    if document.status:
        found.append(_warning("status", row, f"was written from {document.doc_id}, which is {document.status}"))
    if row.kind == "quote":
        found += [
            _warning("quotation", row, f"{phrase!r} does not stand in {document.doc_id}")
            for phrase in quotations(row.text)
            if not _stands_in(phrase, document)
        ]
    if row.kind in LITERAL_KINDS:
        return found
    if easy := _too_easy(row.text, document, near, bm25_rank):
        found.append(_warning("too easy", row, easy))
    if (run := longest_run(row.text, document.text)) >= COPIED_WORDS:
        found.append(_warning("copied", row, f"has {run} words in a row from {document.doc_id}"))
    return found


def _too_easy(text: str, document: Document, near: float | None, bm25_rank: int) -> str:
    """Why any search by words would find the document, or ""."""
    asked, title = stems(text), stems(document.title)
    if len(title) > 1 and title <= asked:
        return f"holds the title of {document.doc_id}; ask without it, or make it a citation"
    if bm25_rank == 1 and near is not None and near >= EASY_OVERLAP:
        return (
            f"{near:.2f} of its words are in {document.doc_id}, which BM25 ranks first; say it in words that the "
            "document does not use"
        )
    return ""


def _stands_in(phrase: str, document: Document) -> bool:
    from rapidfuzz import fuzz

    return fuzz.partial_ratio(" ".join(words(phrase)), " ".join(words(reading(document)))) >= SAME_QUOTATION


def _warning(rule: Rule, row: QueryRow, what: str) -> Finding:
    return Finding(severity="warning", rule=rule, queries=[row.id], message=f"{row.id}: {what}.")
