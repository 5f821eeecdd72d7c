"""One query held to the document that it was written from: how much of it it copies, and whether it can be found."""

from collections.abc import Sequence
from functools import cache

from runner.base.records import Document, Run
from runner.eval_set.shapes.plan import QueryRow
from runner.queries.check_schemas import CheckedQuery, Finding, Rule
from runner.queries.draft_answers import COPIED_WORDS, quotations
from runner.queries.draft_asks import MOST_CHARS
from runner.queries.findability import has_no_word, rank_of
from runner.queries.kinds import LITERAL_KINDS
from runner.queries.wording import DistinctiveWords, SampleWords, longest_run, overlap, reading, stems, words
from runner.retrieve.ranking import RUN_DEPTH

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
        self._distinctive = cache(lambda doc_id: self._words().distinctive(self.documents[doc_id]))

    def distinctive(self, doc_id: str) -> DistinctiveWords:
        """What gives a document away."""
        return self._distinctive(doc_id)


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
    """A warning where BM25 does not find the document and the encoder has it in the lower half of the sample."""
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
