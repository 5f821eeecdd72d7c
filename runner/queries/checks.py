"""A set of queries, held to what makes one worth judging: the report of `queries check`."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from runner.base.errors import InputError
from runner.base.records import PEOPLE, Document, by_model
from runner.embed.backends import Backend
from runner.eval_set import catalog
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.version import Version
from runner.queries.check_schemas import CheckedQuery, Finding, KindCount, OriginMeans, QueryReport, Rule
from runner.queries.findability import EncoderView, Sample, checked_query, encoder_view, lexical_run
from runner.queries.kinds import KINDS, LITERAL_KINDS, WANTED_HAND, expected
from runner.queries.query_file import counted, origin_counts, plain, read_queries, shown
from runner.queries.wording import Alike, alike_in_meaning, alike_in_words

MOST_OVERLAP = 0.6
"""Mean overlap of generated queries above which search by words is flattered: 0.746 and, by hand, 0.385 were seen."""

NOT_ASKED_FOR = "the encoder's checks were left out"


@dataclass(frozen=True, slots=True)
class FileRow:
    """A query and the file that it stands in."""

    file: str
    row: QueryRow


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


def check(
    version: Version, documents: Sequence[Document], rows: Sequence[FileRow], backend: Backend | None
) -> QueryReport:
    """The report on the queries; without a backend the encoder's part is left out."""
    texts = [each.row.text for each in rows]
    sample = Sample(documents)
    lexical = lexical_run(documents, texts)
    view = encoder_view(version, documents, texts, backend) if backend and rows else EncoderView(None, None, "")
    queries, findings = [], [*repeats(rows), *_alike(rows, texts, view)]
    for place, each in enumerate(rows):
        query, found = checked_query(each.file, each.row, place, sample, lexical, view.run)
        queries.append(query)
        findings += found
    origins = _origins(queries)
    findings += _set_findings(version.source.name, rows, origins, _beside(version, rows))
    return QueryReport(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        files=sorted({each.file for each in rows}),
        queries=_flagged(queries, findings),
        origins=origins,
        kinds=_kinds(version.source.name, rows),
        findings=findings,
        skipped=view.skipped if backend else NOT_ASKED_FOR,
    )


def repeats(rows: Sequence[FileRow]) -> list[Finding]:
    """Errors for ids that a file has twice and for texts that there are twice; harvested texts may repeat."""
    ids = Counter((each.file, each.row.id) for each in rows)
    texts: dict[str, list[QueryRow]] = defaultdict(list)
    for each in rows:
        if each.row.origin != "harvested":
            texts[plain(each.row.text)].append(each.row)
    found = [_error("same id", [one], f"{file} has the id {one} {n} times.") for (file, one), n in ids.items() if n > 1]
    return found + [
        _error("same text", names, f"{', '.join(names)} are one text: {shown(same[0].text)!r}.")
        for same in texts.values()
        if len(same) > 1 and (names := [row.id for row in same])
    ]


def likeness_findings(rows: Sequence[FileRow], pairs: Iterable[Alike]) -> list[Finding]:
    """Errors for queries that ask the same in the same words, warnings for those that may ask the same."""
    found = []
    for pair in pairs:
        first, second = rows[pair.first].row, rows[pair.second].row
        if plain(first.text) == plain(second.text):
            continue  # said by `repeats`; harvested ones may
        rule: Rule = "same meaning" if pair.how == "meaning" else "same words" if pair.is_same else "similar words"
        says = {"same words": "say the same", "similar words": "share most words", "same meaning": "may ask the same"}
        message = (
            f"{first.id} and {second.id} {says[rule]} ({pair.score:.0f} of 100): {shown(first.text)!r}, "
            f"{shown(second.text)!r}."
        )
        is_error = pair.is_same and "harvested" not in (first.origin, second.origin)
        found.append((_error if is_error else _warning)(rule, [first.id, second.id], message))
    return found


def _alike(rows: Sequence[FileRow], texts: Sequence[str], view: EncoderView) -> list[Finding]:
    in_words = alike_in_words(texts)
    known = {(pair.first, pair.second) for pair in in_words}
    in_meaning = [] if view.rows is None else alike_in_meaning(texts, view.rows)
    further = [pair for pair in in_meaning if (pair.first, pair.second) not in known]
    return likeness_findings(rows, [*in_words, *further])


def _flagged(queries: Sequence[CheckedQuery], findings: Iterable[Finding]) -> list[CheckedQuery]:
    """The queries, each with the rules of what was found about it."""
    rules: Mapping[str, list[Rule]] = defaultdict(list)
    for finding in findings:
        for one in finding.queries:
            rules[one].append(finding.rule)
    return [query.model_copy(update={"flags": sorted(set(rules[query.id]))}) for query in queries]


def _origins(queries: Sequence[CheckedQuery]) -> list[OriginMeans]:
    found = []
    for origin in origin_counts(query.origin for query in queries):
        own = [query for query in queries if query.origin == origin]
        freely = [query for query in own if query.kind not in LITERAL_KINDS]
        means = OriginMeans(
            origin=origin,
            queries=len(own),
            overlap=_mean(query.overlap for query in own),
            overlap_asked_freely=_mean(query.overlap for query in freely),
            distinctive=_mean(query.distinctive for query in own),
        )
        found.append(means)
    return found


def _kinds(source: str, rows: Sequence[FileRow]) -> list[KindCount]:
    counts = Counter(each.row.kind for each in rows)
    wanted = expected(source, len(rows))
    return [KindCount(kind=kind, queries=counts[kind], expected=wanted.get(kind)) for kind in {**wanted, **counts}]


def _beside(version: Version, rows: Sequence[FileRow]) -> list[QueryRow]:
    """The version's own queries, unless they are among those that are checked."""
    own = version.queries_path
    return [] if not own.exists() or str(own) in {each.file for each in rows} else read_queries(own)


def _set_findings(
    source: str, rows: Sequence[FileRow], origins: Sequence[OriginMeans], beside: Sequence[QueryRow]
) -> list[Finding]:
    hand = sum(means.queries for means in origins if means.origin in PEOPLE)
    hand += sum(row.origin in PEOPLE for row in beside)
    n_queries, found = len(rows) + len(beside), []
    if n_queries < MIN_QUERIES:
        now = counted(n_queries, "query", "queries")
        found.append(_warning("too few", [], f"{now}; at least {MIN_QUERIES} are needed. {_missing(n_queries, hand)}"))
    if hand < WANTED_HAND:
        found.append(_warning("too few", [], f"{hand} queries are a person's own; {WANTED_HAND} are wanted."))
    for means in origins:
        mean = means.overlap_asked_freely
        if by_model(means.origin) and mean is not None and mean > MOST_OVERLAP:
            message = (
                f"Queries of the origin {means.origin} share {mean:.2f} of their words with their "
                f"documents, citations and quotes left out; above {MOST_OVERLAP:g} they favour retrieval by words."
            )
            found.append(_warning("close to documents", [], message))
    return found + _spread(source, rows)


def _missing(n_queries: int, hand: int) -> str:
    """What still has to be written, by whom."""
    own = max(0, WANTED_HAND - hand)
    others = max(0, MIN_QUERIES - n_queries - own)
    parts = [f"{count} {origin}" for count, origin in ((others, "drafted"), (own, "by a person")) if count]
    return f"{' and '.join(parts)} {'is' if others + own == 1 else 'are'} still missing."


def _spread(source: str, rows: Sequence[FileRow]) -> list[Finding]:
    """Kinds that nobody of the source would leave out, or ask so often, and kinds that are not known."""
    found = []
    for count in _kinds(source, rows):
        if count.kind not in KINDS:
            ids = [each.row.id for each in rows if each.row.kind == count.kind]
            known = ", ".join(KINDS)
            found.append(_warning("unknown kind", ids, f"{count.kind!r} is no known kind. Known: {known}."))
        elif count.expected is not None and count.expected >= 2 and not count.queries:
            message = f"No query is of the kind {count.kind}; the source's share would be {count.expected:.0f}."
            found.append(_warning("spread", [], message))
        elif count.queries > 2 * (count.expected or 0) + 2 and catalog.source(source).queries:
            message = (
                f"{count.queries} queries are of the kind {count.kind}; the share would be {count.expected or 0:.0f}."
            )
            found.append(_warning("spread", [], message))
    return found


def refuse_errors(findings: Iterable[Finding], what: str) -> None:
    """Check that no finding is an error; an InputError names those that are."""
    if errors := [finding.message for finding in findings if finding.severity == "error"]:
        lines = "\n".join(f"  - {message}" for message in errors)
        raise InputError(f"{what}:\n{lines}\nMend the file and run the command again.")


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _error(rule: Rule, queries: list[str], message: str) -> Finding:
    return Finding(severity="error", rule=rule, queries=queries, message=message)


def _warning(rule: Rule, queries: list[str], message: str) -> Finding:
    return Finding(severity="warning", rule=rule, queries=queries, message=message)
