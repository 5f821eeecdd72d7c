"""A set of queries, held to what makes one worth judging: copies, overlap with documents, findability by BM25."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from runner.base.errors import InputError
from runner.base.records import PERSON, Chunk, Document, Run, Span, by_model
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.queries import LITERAL_KINDS, QueryRow
from runner.eval_set.version import Version
from runner.queries.kinds import KINDS, WANTED_HAND, expected
from runner.queries.query_file import counted, origin_counts, read_queries, shown
from runner.queries.wording import (
    MOST_CHARS,
    alike_in_words,
    longest_run,
    overlap,
    quotations,
    reading,
    stems,
    words,
)
from runner.retrieve.bm25 import bm25_run
from samplers.source import QueryKind

MOST_OVERLAP = 0.6
"""Mean overlap of generated queries above which search by words is flattered: 0.746 and, by hand, 0.385 were seen."""

EASY_OVERLAP = 0.75
"""Share of a query's words that its document holds, from which a first place by BM25 says nothing of a retriever."""

COPIED_WORDS = 6
"""Words in a row that a query in the asker's words must not share with the document."""

SAME_QUOTATION = 80
"""rapidfuzz's partial_ratio, of 100: a phrase half remembered is still found."""


class Finding(NamedTuple):
    """One thing to mend (an error) or to look at, by its rule; `queries` are the ids that it is about."""

    rule: str
    queries: list[str]
    message: str
    is_error: bool = False


class CheckedQuery(NamedTuple):
    """A wording beside its source document; None if that cannot be said. A rank of 0 is below BM25's first 100."""

    row: QueryRow
    asked: AskedWording
    title: str = ""
    overlap: float | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class QueryReport:
    """Everything that a check found."""

    source: str
    name: str
    queries: list[CheckedQuery]
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        """What must be mended."""
        return [finding for finding in self.findings if finding.is_error]

    def flags(self, query_id: str) -> list[str]:
        """Return the rules of what was found about a query."""
        return sorted({finding.rule for finding in self.findings if query_id in finding.queries})


def read_files(paths: Sequence[Path]) -> list[QueryRow]:
    """Return the queries of all files in order; an InputError if one does not keep to the schema.

    An id that an earlier file has too comes with the name of its own file before it.
    """
    rows: list[QueryRow] = []
    for path in paths:
        taken = {row.id for row in rows}
        rows += [named(row, path) if row.id in taken else row for row in read_queries(path)]
    return rows


def named(row: QueryRow, path: Path) -> QueryRow:
    """Return the row with the name of its file before its id."""
    return row.model_copy(update={"id": f"{path.name}:{row.id}"})


def check(
    version: Version, documents: Sequence[Document], rows: Sequence[QueryRow], beside: Sequence[QueryRow] = ()
) -> QueryReport:
    """Return the report on some queries; those `beside` them are counted alone."""
    # One BM25 index for all queries, then each query beside its document, then the set as a whole.
    source, by_id = version.source.name, {document.doc_id: document for document in documents}
    wordings = [(row, one) for row in rows for one in asked([row])]
    lexical = lexical_run(documents, [one.text for _, one in wordings])
    queries: list[CheckedQuery] = []
    findings = repeats(rows)
    for number, (row, one) in enumerate(wordings):
        document = by_id.get(row.source_document)
        query = _beside_its_document(row, one, document, lexical, number)
        queries.append(query)
        # The run stops at a document that it cannot have judged.
        findings += [
            Finding(rule, [row.id], f"{one.id}: {what}.", rule == "no document")
            for rule, what in _oddities(query, document)
        ]
    findings += [*_counts([*rows, *beside]), *_leaning(queries), *_spread(version.source.queries, rows)]
    return QueryReport(source, version.number_name, queries, findings)


def lexical_run(documents: Sequence[Document], texts: Sequence[str]) -> Run:
    """Return BM25's first 100 documents for each text, whose number is its query id."""
    chunks = [Chunk(document.doc_id, 0, Span(0, len(document.text)), document.title, 1) for document in documents]
    queries = {str(number): text for number, text in enumerate(texts)}
    return bm25_run("bm25 x whole_doc", "bm25", queries, chunks, [reading(document) for document in documents]).run


def repeats(rows: Sequence[QueryRow]) -> list[Finding]:
    """Return errors for queries that say the same, warnings for those that share most of their words."""
    findings, wordings = [], asked(rows)
    for pair in alike_in_words([one.text for one in wordings]):
        first, second = wordings[pair.first], wordings[pair.second]
        if first.topic == second.topic and not pair.is_same:  # two wordings of one need may share most words
            continue
        rule, says = ("same words", "say the same") if pair.is_same else ("similar words", "share most words")
        message = (
            f"{first.id} and {second.id} {says} ({pair.score:.0f} of 100): {shown(first.text)!r}, "
            f"{shown(second.text)!r}."
        )
        findings.append(Finding(rule, [first.topic, second.topic], message, pair.is_same))
    return findings


def refuse_errors(findings: Iterable[Finding], what: str) -> None:
    """Check that no finding is an error; an InputError names those that are."""
    if errors := [finding.message for finding in findings if finding.is_error]:
        lines = "\n".join(f"  - {message}" for message in errors)
        raise InputError(f"{what}:\n{lines}\nMend the file and run the command again.")


def _beside_its_document(
    row: QueryRow, one: AskedWording, document: Document | None, lexical: Run, number: int
) -> CheckedQuery:
    """Return the figures of one wording; `number` is its query id in the run."""
    if document is None:
        return CheckedQuery(row, one)
    ranked = [hit.doc_id for hit in lexical.hits[str(number)]]
    rank = ranked.index(document.doc_id) + 1 if document.doc_id in ranked else 0
    return CheckedQuery(row, one, document.title, overlap(stems(one.text), stems(reading(document))), rank)


def _oddities(query: CheckedQuery, document: Document | None) -> Iterator[tuple[str, str]]:
    """Yield what is odd about a query, alone and beside its document: rule and words."""
    # The wording alone.
    row, text = query.row, query.asked.text
    held = stems(text)
    if not text.isprintable():
        yield "wording", "has a line break or a character that is not shown"
    if len(text) > MOST_CHARS:
        yield "wording", f"has {len(text)} characters; nobody types more than {MOST_CHARS}"
    if not held:
        yield "wording", "has no word with content"
    if document is None:
        if row.source_document:
            yield "no document", f"{row.source_document!r} is not in the sample"
        return
    # Beside its document.
    if document.status:
        yield "status", f"was written from {document.doc_id}, which is {document.status}"
    if row.kind == "quote":
        for phrase in quotations(text):
            if not _stands_in(phrase, document):
                yield "quotation", f"{phrase!r} does not stand in {document.doc_id}"
    # Whoever cites or quotes knows the document's own words.
    if row.kind in LITERAL_KINDS:
        return
    # Its title, its words or its word order gives the document away.
    title = stems(document.title)
    if len(title) > 1 and title <= held:
        yield "too easy", f"holds the title of {document.doc_id}; ask without it, or make it a citation"
    elif query.rank == 1 and query.overlap is not None and query.overlap >= EASY_OVERLAP:
        what = f"{query.overlap:.2f} of its words are in {document.doc_id}, which BM25 ranks first"
        yield "too easy", f"{what}; say it in words that the document does not use"
    if (run := longest_run(text, document.text)) >= COPIED_WORDS:
        yield "copied", f"has {run} words in a row from {document.doc_id}"


def _stands_in(phrase: str, document: Document) -> bool:
    from rapidfuzz import fuzz

    return fuzz.partial_ratio(" ".join(words(phrase)), " ".join(words(reading(document)))) >= SAME_QUOTATION


def mean_overlap(queries: Iterable[CheckedQuery]) -> float | None:
    """Return the mean over the queries whose overlap is known; None for none of them."""
    known = [query.overlap for query in queries if query.overlap is not None]
    return fmean(known) if known else None


def _leaning(queries: Sequence[CheckedQuery]) -> list[Finding]:
    """Return a warning for each model whose queries share too many words with their documents."""
    findings = []
    for origin in filter(by_model, origin_counts(query.row.origin for query in queries)):
        mean = mean_overlap(q for q in queries if q.row.origin == origin and q.row.kind not in LITERAL_KINDS)
        if mean is not None and mean > MOST_OVERLAP:
            message = (
                f"Queries of the origin {origin} share {mean:.2f} of their words with their documents, citations and "
                f"quotes left out; above {MOST_OVERLAP:g} they favour retrieval by words."
            )
            findings.append(Finding("close to documents", [], message))
    return findings


def _counts(rows: Sequence[QueryRow]) -> list[Finding]:
    """Return what is missing of the queries wanted, and of a person's own."""
    findings = []
    n_own = sum(row.origin == PERSON for row in rows)
    if len(rows) < MIN_QUERIES:
        now = counted(len(rows), "query", "queries")
        findings.append(Finding("too few", [], f"{now}; at least {MIN_QUERIES} are needed."))
    if n_own < WANTED_HAND:
        findings.append(Finding("too few", [], f"{n_own} queries are a person's own; {WANTED_HAND} are wanted."))
    return findings


def _spread(kinds: Sequence[QueryKind], rows: Sequence[QueryRow]) -> list[Finding]:
    """Return kinds that nobody of the source would leave out, or ask so often, and kinds that are not known."""
    wanted = expected(kinds, len(rows))
    ids: dict[str, list[str]] = {kind: [] for kind in wanted}
    for row in rows:
        ids.setdefault(row.kind, []).append(row.id)
    findings = []
    for kind, named in ids.items():
        share = wanted.get(kind, 0)
        if kind not in KINDS:
            findings.append(Finding("unknown kind", named, f"{kind!r} is not a known kind. Known: {', '.join(KINDS)}."))
        # Two too few or two too many: a set of 25 is too small to be held to shares closely.
        elif share >= 2 and not named:
            message = f"No query is of the kind {kind}; the source's share is {share:.0f}."
            findings.append(Finding("spread", [], message))
        elif len(named) > 2 * share + 2 and kinds:
            message = f"{len(named)} queries are of the kind {kind}; the source's share is {share:.0f}."
            findings.append(Finding("spread", [], message))
    return findings
