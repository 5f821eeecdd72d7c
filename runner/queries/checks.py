"""A set of queries, held to what makes one worth judging: copies, overlap with documents, findability by BM25."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from runner.base.errors import InputError
from runner.base.records import PERSON, Chunk, Document, Run, Span, by_model
from runner.eval_set import catalog
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version
from runner.queries.kinds import KINDS, LITERAL_KINDS, WANTED_HAND, expected
from runner.queries.query_file import counted, origin_counts, plain, read_queries, shown
from runner.queries.wording import (
    MOST_CHARS,
    Alike,
    alike_in_words,
    longest_run,
    overlap,
    quotations,
    reading,
    stems,
    words,
)
from runner.retrieve.bm25 import bm25_run

MOST_OVERLAP = 0.6
"""Mean overlap of generated queries above which search by words is flattered: 0.746 and, by hand, 0.385 were seen."""

EASY_OVERLAP = 0.75
"""Share of a query's words that its document holds, from which a first place by BM25 says nothing of a retriever."""

COPIED_WORDS = 6
"""Words in a row that a query in the asker's words must not share with the document."""

SAME_QUOTATION = 80
"""rapidfuzz's partial_ratio, of 100: a phrase half remembered is still found."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A query and the file that it stands in."""

    file: str
    row: QueryRow


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend (an error) or to look at, by its rule; `queries` are the ids that it is about."""

    rule: str
    queries: list[str]
    message: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """One query beside its source document; None if that cannot be said. A rank of 0 is below BM25's first 100."""

    row: QueryRow
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
        """The rules of what was found about a query."""
        return sorted({finding.rule for finding in self.findings if query_id in finding.queries})


def read_files(paths: Sequence[Path]) -> list[FileRow]:
    """The queries of all files in order; an InputError if one does not keep to the schema.

    An id that an earlier file has too comes with the name of its own file before it.
    """
    found: list[FileRow] = []
    for path in paths:
        taken = {each.row.id for each in found}
        for row in read_queries(path):
            name = f"{path.name}:{row.id}" if row.id in taken else row.id
            found.append(FileRow(str(path), row.model_copy(update={"id": name})))
    return found


def check(version: Version, documents: Sequence[Document], rows: Sequence[FileRow]) -> QueryReport:
    """Return the report on the queries of some files."""
    source, texts = version.source.name, [each.row.text for each in rows]
    by_id, lexical = {document.doc_id: document for document in documents}, lexical_run(documents, texts)
    queries, findings = [], [*repeats(rows), *likeness_findings(rows, alike_in_words(texts))]
    for place, each in enumerate(rows):
        query, found = _checked(each.row, by_id.get(each.row.source_document), lexical, place)
        queries.append(query)
        findings += found
    findings += [*_counts(rows, _beside(version, rows)), *_leaning(queries), *_spread(source, rows)]
    return QueryReport(source, version.number_name, queries, findings)


def lexical_run(documents: Sequence[Document], texts: Sequence[str]) -> Run:
    """BM25's first 100 documents for each text, whose place is its query id."""
    chunks = [Chunk(document.doc_id, 0, Span(0, len(document.text)), document.title, 1) for document in documents]
    queries = {str(place): text for place, text in enumerate(texts)}
    return bm25_run("bm25 x whole_doc", "bm25", queries, chunks, [reading(document) for document in documents]).run


def repeats(rows: Sequence[FileRow]) -> list[Finding]:
    """Errors for ids that a file has twice and for texts that there are twice; harvested texts may repeat."""
    ids = Counter((each.file, each.row.id) for each in rows)
    texts: dict[str, list[QueryRow]] = defaultdict(list)
    for each in rows:
        if each.row.origin != "harvested":
            texts[plain(each.row.text)].append(each.row)
    found = []
    for (file, one), count in ids.items():
        if count > 1:
            found.append(Finding("same id", [one], f"{file} has the id {one} {count} times.", is_error=True))
    for same in texts.values():
        if len(same) > 1:
            named = [row.id for row in same]
            message = f"{', '.join(named)} are one text: {shown(same[0].text)!r}."
            found.append(Finding("same text", named, message, is_error=True))
    return found


def likeness_findings(rows: Sequence[FileRow], pairs: Iterable[Alike]) -> list[Finding]:
    """Errors for queries that ask the same in the same words, warnings for those that share most of them."""
    found = []
    for pair in pairs:
        first, second = rows[pair.first].row, rows[pair.second].row
        if plain(first.text) == plain(second.text):
            continue  # said by `repeats`; harvested ones may
        says = "say the same" if pair.is_same else "share most words"
        message = (
            f"{first.id} and {second.id} {says} ({pair.score:.0f} of 100): {shown(first.text)!r}, "
            f"{shown(second.text)!r}."
        )
        is_error = pair.is_same and "harvested" not in (first.origin, second.origin)
        rule = "same words" if pair.is_same else "similar words"
        found.append(Finding(rule, [first.id, second.id], message, is_error))
    return found


def refuse_errors(findings: Iterable[Finding], what: str) -> None:
    """Check that no finding is an error; an InputError names those that are."""
    if errors := [finding.message for finding in findings if finding.is_error]:
        lines = "\n".join(f"  - {message}" for message in errors)
        raise InputError(f"{what}:\n{lines}\nMend the file and run the command again.")


def _checked(row: QueryRow, document: Document | None, lexical: Run, place: int) -> tuple[CheckedQuery, list[Finding]]:
    """The query's figures, and what is to be looked at; `place` is its query id in the run."""
    found = []
    if not row.text.isprintable():
        found.append(("wording", "has a line break or a character that is not shown"))
    if len(row.text) > MOST_CHARS:
        found.append(("wording", f"has {len(row.text)} characters; nobody types more than {MOST_CHARS}"))
    if not stems(row.text):
        found.append(("wording", "has no word with content"))
    query = CheckedQuery(row)
    if document is not None:
        ranked = [hit.doc_id for hit in lexical.hits[str(place)]]
        rank = ranked.index(document.doc_id) + 1 if document.doc_id in ranked else 0
        query = CheckedQuery(row, document.title, overlap(stems(row.text), stems(reading(document))), rank)
        found += _held_to(query, document)
    elif row.source_document:
        found.append(("no document", f"{row.source_document!r} is not in the sample"))
    return query, [Finding(rule, [row.id], f"{row.id}: {what}.") for rule, what in found]


def _held_to(query: CheckedQuery, document: Document) -> list[tuple[str, str]]:
    """What is odd about a query beside its document: rule and words."""
    found, row = [], query.row
    if document.status:
        found.append(("status", f"was written from {document.doc_id}, which is {document.status}"))
    if row.kind == "quote":
        missing = [phrase for phrase in quotations(row.text) if not _stands_in(phrase, document)]
        found += [("quotation", f"{phrase!r} does not stand in {document.doc_id}") for phrase in missing]
    if row.kind in LITERAL_KINDS:
        return found
    asked, title = stems(row.text), stems(document.title)
    if len(title) > 1 and title <= asked:
        found.append(("too easy", f"holds the title of {document.doc_id}; ask without it, or make it a citation"))
    elif query.rank == 1 and query.overlap is not None and query.overlap >= EASY_OVERLAP:
        what = f"{query.overlap:.2f} of its words are in {document.doc_id}, which BM25 ranks first"
        found.append(("too easy", f"{what}; say it in words that the document does not use"))
    if (run := longest_run(row.text, document.text)) >= COPIED_WORDS:
        found.append(("copied", f"has {run} words in a row from {document.doc_id}"))
    return found


def _stands_in(phrase: str, document: Document) -> bool:
    from rapidfuzz import fuzz

    return fuzz.partial_ratio(" ".join(words(phrase)), " ".join(words(reading(document)))) >= SAME_QUOTATION


def mean_overlap(queries: Iterable[CheckedQuery]) -> float | None:
    """The mean over the queries whose overlap is known; None for none of them."""
    known = [query.overlap for query in queries if query.overlap is not None]
    return fmean(known) if known else None


def _leaning(queries: Sequence[CheckedQuery]) -> list[Finding]:
    """A warning for each model whose queries share too many words with their documents."""
    found = []
    for origin in filter(by_model, origin_counts(query.row.origin for query in queries)):
        mean = mean_overlap(q for q in queries if q.row.origin == origin and q.row.kind not in LITERAL_KINDS)
        if mean is not None and mean > MOST_OVERLAP:
            message = (
                f"Queries of the origin {origin} share {mean:.2f} of their words with their documents, citations and "
                f"quotes left out; above {MOST_OVERLAP:g} they favour retrieval by words."
            )
            found.append(Finding("close to documents", [], message))
    return found


def _beside(version: Version, rows: Sequence[FileRow]) -> list[QueryRow]:
    """The version's own queries, unless they are among those that are checked."""
    own = version.queries_path
    return [] if not own.exists() or str(own) in {each.file for each in rows} else read_queries(own)


def _counts(rows: Sequence[FileRow], beside: Sequence[QueryRow]) -> list[Finding]:
    """What is missing of the queries wanted, and of a person's own."""
    every, found = [*(each.row for each in rows), *beside], []
    hand = sum(row.origin == PERSON for row in every)
    if len(every) < MIN_QUERIES:
        now = counted(len(every), "query", "queries")
        found.append(Finding("too few", [], f"{now}; at least {MIN_QUERIES} are needed."))
    if hand < WANTED_HAND:
        found.append(Finding("too few", [], f"{hand} queries are a person's own; {WANTED_HAND} are wanted."))
    return found


def _spread(source: str, rows: Sequence[FileRow]) -> list[Finding]:
    """Kinds that nobody of the source would leave out, or ask so often, and kinds that are not known."""
    wanted = expected(source, len(rows))
    ids: dict[str, list[str]] = {kind: [] for kind in wanted}
    for each in rows:
        ids.setdefault(each.row.kind, []).append(each.row.id)
    found = []
    for kind, named in ids.items():
        share = wanted.get(kind, 0)
        if kind not in KINDS:
            found.append(Finding("unknown kind", named, f"{kind!r} is not a known kind. Known: {', '.join(KINDS)}."))
        elif share >= 2 and not named:
            found.append(Finding("spread", [], f"No query is of the kind {kind}; the source's share is {share:.0f}."))
        elif len(named) > 2 * share + 2 and catalog.source(source).queries:
            message = f"{len(named)} queries are of the kind {kind}; the source's share is {share:.0f}."
            found.append(Finding("spread", [], message))
    return found
