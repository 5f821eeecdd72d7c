"""The lists that a sceptic looks up: what every cell returned for every query, beside what judges said of it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from runner.base.records import ArmLists, Hit, Qrels, Run, Span
from runner.base.schema import part
from runner.decide.misses import Unread, cause, joined, same_texts
from runner.eval_set.labels import scored
from runner.eval_set.shapes.corpus import CorpusRow
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.lists import Cause, FurtherReading, ListedDocument, PairShown, QueryLists, RankedLists

MOST_HITS = 30_000
"""Hits of all cells and queries above which lists are cut at SHORT_DEPTH; pages of more would take seconds to open."""

SHORT_DEPTH = 10


def ranked_lists(
    query_ids: Sequence[str],
    runs: Mapping[str, Run],
    qrels: Qrels,
    labels: Iterable[Label],
    corpus: Sequence[CorpusRow],
    *,
    depth: int,
    relevant_grade: int,
    unread: Mapping[str, Unread] = MappingProxyType({}),
    arms: Mapping[str, ArmLists] = MappingProxyType({}),
    topics: Mapping[str, str] = MappingProxyType({}),
) -> RankedLists:
    """Return every cell's list down to `depth`, SHORT_DEPTH if there are too many hits, without a document's text.

    Documents stand in the order of the corpus. Of a query they are those that some cell lists and those graded
    relevant: highest grade first, unjudged last, then by the best place that any cell gives them, then by id.
    `unread` are the characters that each cell's encoder did not read, `arms` what the sums among the cells joined.
    `topics` name what a judge was asked, where that is not what retrieval was asked.
    """
    if len(query_ids) * len(runs) * depth > MOST_HITS:
        depth = min(depth, SHORT_DEPTH)
    wanted = {query_id: _wanted(query_id, runs, qrels, depth, relevant_grade) for query_id in query_ids}
    listed = {doc_id for doc_ids in wanted.values() for doc_id in doc_ids}
    documents = [ListedDocument(doc_id=row.doc_id, url=row.url, title="") for row in corpus if row.doc_id in listed]
    numbers = {document.doc_id: number for number, document in enumerate(documents)}
    readings, queries = _readings(labels), []
    lists_of, text_of = {cell: joined(cell, runs, arms) for cell in runs}, same_texts(corpus)
    for query_id, doc_ids in wanted.items():
        judged = qrels.get(query_id, {})
        # Published judgments may name documents that their collection does not have.
        shown = [doc_id for doc_id in doc_ids if doc_id in numbers]
        places = {doc_id: place for place, doc_id in enumerate(shown)}
        hits = {
            cell: [[places[hit.doc_id], *_ends(hit)] for hit in run.hits[query_id][:depth]]
            for cell, run in runs.items()
        }
        pairs = [
            _pair(numbers[name], judged.get(name), readings.get((topics.get(query_id, query_id), name), ()))
            for name in shown
        ]
        relevant = sum(grade >= relevant_grade for grade in judged.values())
        missed: dict[str, dict[Cause, list[int]]] = {}
        for place, (doc_id, pair) in enumerate(zip(shown, pairs, strict=True)):
            if pair.grade is None or pair.grade < relevant_grade:
                break  # the relevant ones come first
            marks = [Span(start, end) for start, end in pair.spans]
            for cell, run in runs.items():
                why = cause(
                    doc_id, query_id, run, lists_of[cell], text_of=text_of, marks=marks, unread=unread.get(cell, {})
                )
                if why:
                    missed.setdefault(cell, {}).setdefault(why, []).append(place)
        halves = {
            cell: [[each.words or 0.0, each.meaning or 0.0] for each in found[query_id][:depth]]
            for cell, found in arms.items()
        }
        queries.append(
            QueryLists(id=query_id, relevant=relevant, documents=pairs, hits=hits, missed=missed, halves=halves)
        )
    return RankedLists(depth=depth, texts=False, documents=documents, queries=queries)


def _ends(hit: Hit) -> list[int]:
    return [hit.span.start, hit.span.end] if hit.span else []


def _readings(labels: Iterable[Label]) -> dict[tuple[str, str], list[Label]]:
    """Return every reading of a pair by query and document, the scored one first."""
    rows = list(labels)
    counted = scored(rows)
    readings: dict[tuple[str, str], list[Label]] = {pair: [label] for pair, label in counted.items()}
    for label in rows:
        if counted.get((label.query_id, label.doc_id)) != label:
            readings.setdefault((label.query_id, label.doc_id), []).append(label)
    return readings


def _wanted(query_id: str, runs: Mapping[str, Run], qrels: Qrels, depth: int, relevant_grade: int) -> list[str]:
    judged = qrels.get(query_id, {})
    best = {doc_id: depth for doc_id, grade in judged.items() if grade >= relevant_grade}
    for run in runs.values():
        for place, hit in enumerate(run.hits[query_id][:depth]):
            best[hit.doc_id] = min(place, best.get(hit.doc_id, depth))
    unjudged = min(judged.values(), default=0) - 1
    return sorted(best, key=lambda doc_id: (-judged.get(doc_id, unjudged), best[doc_id], doc_id))


def _pair(number: int, grade: int | None, readings: Sequence[Label]) -> PairShown:
    first = readings[:1] if grade is not None else ()
    return PairShown(
        document=number,
        grade=grade,
        judge=first[0].judge if first else "",
        reason=first[0].reason if first else "",
        spans=[list(span) for span in first[0].spans] if first else [],
        readings=[part(FurtherReading, label) for label in readings[len(first) :]],
        passages=[],
    )


def with_scores(
    lists: RankedLists, runs: Mapping[str, Run], qrels: Qrels, cells: Sequence[str], first: int
) -> RankedLists:
    """Return the lists with what the `first` hits of these `cells` scored, and what nDCG counts that nothing lists."""

    def scored(query: QueryLists) -> QueryLists:
        listed = {lists.documents[pair.document].doc_id for pair in query.documents}
        judged = sorted(qrels.get(query.id, {}).items())
        return query.model_copy(
            update={
                "scores": {cell: [hit.score for hit in runs[cell].hits[query.id][:first]] for cell in cells},
                "unlisted": {doc_id: grade for doc_id, grade in judged if grade > 0 and doc_id not in listed},
            }
        )

    return lists.model_copy(update={"queries": [scored(query) for query in lists.queries]})
