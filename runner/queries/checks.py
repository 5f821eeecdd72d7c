"""A set of queries, held to what makes one worth judging: no copies, riddles or giveaways, and not too many answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.base.records import ASKED, PERSON, Chunk, Document, Run, Span
from runner.eval_set.asked import AskedWording, asked
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import asked_again, asked_before
from runner.eval_set.shapes.queries import LITERAL_KINDS, QueryRow
from runner.eval_set.version import Version
from runner.queries.kinds import KINDS, WANTED_HAND, expected
from runner.queries.query_file import counted, plain, read_queries, shown
from runner.queries.wording import (
    MOST_CHARS,
    Vocabulary,
    alike_in_words,
    content_words,
    longest_run,
    quotations,
    reading,
    stems,
    words,
)
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.words import unspaced
from samplers.source import QueryKind

EASY_WORDS = 3
"""Rare words of its document in a single wording, from which a first place by BM25 says nothing of a retriever."""

TELLING_WORDS = 2
"""Rare words of its document in a paraphrased wording. One is often a household word, such as "census" or "dam"."""

MOST_HOLDERS = 8
"""Sampled documents that may hold all words of a query: of eight sources' topical ones four have more, 10 to 51."""

COPIED_WORDS = 6
"""Words in a row that a query in the asker's words must not share with the document."""

SAME_QUOTATION = 80
"""rapidfuzz's partial_ratio, of 100: a phrase half remembered is still found."""


class Finding(NamedTuple):
    """One thing to mend (an error) or to look at, by its rule; `queries` are the wordings or topics it is about."""

    rule: str
    queries: list[str]
    message: str
    is_error: bool = False


class CheckedQuery(NamedTuple):
    """A wording beside its source document, and the rare words of that which it has; None if that cannot be said.

    A rank of 0 is below BM25's first 100.
    """

    row: QueryRow
    asked: AskedWording
    title: str = ""
    rare: list[str] | None = None
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

    def flags(self, one: AskedWording) -> list[str]:
        """Return the rules of what was found about a wording, or about its topic."""
        return sorted({finding.rule for finding in self.findings if {one.id, one.topic} & {*finding.queries}})


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
    """Return the report on some queries; those `beside` them, the version's, are counted and not to be repeated."""
    # One index and one vocabulary for all wordings, then each beside its document, then the set as a whole.
    source, by_id = version.source.name, {document.doc_id: document for document in documents}
    wordings = [(row, one) for row in rows for one in asked([row])]
    lexical, vocabulary = lexical_run(documents, [one.text for _, one in wordings]), Vocabulary(documents)
    queries: list[CheckedQuery] = []
    earlier = [named(row, version.queries_path) for row in beside]
    findings = [*repeats(rows), *_repeated(unasked(rows, earlier), earlier), *stood_before(version, rows)]
    for number, (row, one) in enumerate(wordings):
        document = by_id.get(row.source_document)
        query = CheckedQuery(row, one)
        if document is not None:
            ranks = {hit.doc_id: rank for rank, hit in enumerate(lexical.hits[str(number)], start=1)}
            rare = vocabulary.shared(one.text, document.doc_id)
            query = CheckedQuery(row, one, document.title, rare, ranks.get(document.doc_id, 0))
        queries.append(query)
        holders = vocabulary.holders(one.text)
        oddities = [*_alone(query, holders, len(documents)), *_beside(query, document)]
        findings += [Finding(rule, [one.id], f"{one.id}: {what}.", rule == "no document") for rule, what in oddities]
    findings += [*_counts([*rows, *beside]), *_one_wording(rows), *_spread(version.source.queries, rows)]
    if unspaced(one.text for _, one in wordings):
        message = "Most queries are in a script without spaces between words: BM25 takes a phrase for a word there."
        findings.append(Finding("script", [], message))
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
        findings.append(Finding(rule, [first.id, second.id], message, pair.is_same))
    return findings


def unasked(rows: Sequence[QueryRow], earlier: Sequence[QueryRow]) -> list[QueryRow]:
    """Return the rows without those that earlier ones ask word for word, which `queries add` passes over."""
    texts = {plain(one.text) for one in asked(earlier)}
    return [row for row in rows if not all(plain(text) in texts for text in row.wordings.values())]


def _repeated(rows: Sequence[QueryRow], earlier: Sequence[QueryRow]) -> list[Finding]:
    """Return what `repeats` finds between the two."""
    new, old = ({one.id for one in asked(each)} for each in (rows, earlier))
    return [each for each in repeats([*earlier, *rows]) if new & {*each.queries} and old & {*each.queries}]


def stood_before(version: Version, rows: Sequence[QueryRow]) -> list[Finding]:
    """Return an error if wordings chose the cell which the version confirms."""
    if not (again := asked_again(version, rows)):
        return []
    return [Finding("asked before", again, asked_before(again), is_error=True)]


def _alone(query: CheckedQuery, holders: int, n_documents: int) -> Iterator[tuple[str, str]]:
    """Yield what is odd about a wording by itself: rule and words; `holders` documents hold all its content words."""
    text = query.asked.text
    if not text.isprintable():
        yield "wording", "has a line break or a character that is not shown"
    if len(text) > MOST_CHARS:
        yield "wording", f"has {len(text)} characters; nobody types more than {MOST_CHARS}"
    asks_by = ", ".join(content_words(text).values())
    if not asks_by:
        yield "wording", "has no word with content"
    if query.row.kind not in LITERAL_KINDS and holders > MOST_HOLDERS:
        yield "unbounded", f"{holders} of {n_documents} documents hold all its words ({asks_by}); ask for one thing"


def _beside(query: CheckedQuery, document: Document | None) -> Iterator[tuple[str, str]]:
    """Yield what is odd about a wording beside its source document: rule and words."""
    row, (_, _, wording, text) = query.row, query.asked
    is_first = wording != "paraphrased"
    if document is None or query.rare is None:
        if row.source_document and is_first:
            yield "no document", f"{row.source_document!r} is not in the sample, so nobody could judge it"
        return
    doc_id, rare, asks_by = document.doc_id, ", ".join(query.rare), content_words(text)
    if document.status and is_first:
        yield "status", f"was written from {doc_id}, which is {document.status}"
    if row.kind == "quote":
        for phrase in quotations(text):
            if not _stands_in(phrase, document):
                yield "quotation", f"{phrase!r} does not stand in {doc_id}"
    # Whoever cites or quotes knows the document's own words.
    if row.kind in LITERAL_KINDS:
        return
    # Words that give the document away: names and numbers are welcome in a plain wording.
    title, whose = stems(document.title), f"{doc_id} ({shown(document.title)})"
    if len(title) > 1 and title <= asks_by.keys():
        yield "exact title", f"holds the whole title of {whose}; ask without it, or make it a citation"
    elif not wording and len(query.rare) >= EASY_WORDS and query.rank == 1:
        what = f"has {len(query.rare)} rare words of {doc_id} ({rare}), which BM25 ranks first"
        yield "too easy", f"{what}; keep it as plain, and write a paraphrased wording beside it"
    elif not is_first and len(query.rare) >= TELLING_WORDS:
        yield "rare words", f"has rare words of {doc_id} ({rare}); leave names, numbers and terms to the plain wording"
    if (run := longest_run(text, document.text)) >= COPIED_WORDS:
        yield "copied", f"has {run} words in a row from {doc_id}"
    # Words that leave nothing to find it by.
    if is_first and not rare and not title & asks_by.keys() and query.rank != 1:
        what = f"has no rare word of {whose} and none of its title, only {', '.join(asks_by.values())}"
        yield "riddle", f"{what}; people type names and numbers: write a plain wording"


def _stands_in(phrase: str, document: Document) -> bool:
    from rapidfuzz import fuzz

    return fuzz.partial_ratio(" ".join(words(phrase)), " ".join(words(reading(document)))) >= SAME_QUOTATION


def _one_wording(rows: Sequence[QueryRow]) -> list[Finding]:
    """Return a warning if topical queries have one wording; those that somebody asked are left as they were asked."""
    topical = [row for row in rows if row.kind not in LITERAL_KINDS and row.origin not in ASKED]
    if not (single := [row.id for row in topical if row.text is not None]):
        return []
    message = (
        f"{len(single)} of {len(topical)} topical queries have one wording. Words against vectors then rests on their "
        "author's taste: write plain and paraphrased (draft-queries.md)."
    )
    return [Finding("one wording", [], message)]


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
    if any("paraphrased" in row.wordings for row in rows):
        # A layman's words are then the other wording of a topic, and no kind of their own.
        wanted["topic"] = wanted.get("topic", 0) + wanted.pop("paraphrase", 0)
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
