"""The lists that a sceptic looks up: what every cell returned for every query, beside what judges said of it."""

from collections.abc import Iterable, Mapping, Sequence

from runner.base.records import Qrels, Run
from runner.base.schema import shaped
from runner.eval_set.labels import scored
from runner.eval_set.shapes.corpus import CorpusRow
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.lists import FurtherReading, ListedDocument, PairShown, QueryLists, RankedLists

MOST_HITS = 30_000
"""Hits of all cells and queries above which lists are cut at SHORT_DEPTH; pages of more would take seconds to open."""

SHORT_DEPTH = 10


def ranked_lists(
    query_ids: Sequence[str],
    runs: Mapping[str, Run],
    qrels: Qrels,
    labels: Iterable[Label],
    corpus: Iterable[CorpusRow],
    *,
    depth: int,
    relevant_grade: int,
) -> RankedLists:
    """Every cell's list down to `depth`, SHORT_DEPTH if there are too many hits, without any text of a document.

    Documents stand in the order of the corpus. Of a query they are those that some cell lists and those graded
    relevant: highest grade first, unjudged last, then by the best place that any cell gives them, then by id.
    """
    if len(query_ids) * len(runs) * depth > MOST_HITS:
        depth = min(depth, SHORT_DEPTH)
    said = _by_query(labels)
    found = {query_id: _wanted(query_id, runs, qrels, depth, relevant_grade) for query_id in query_ids}
    listed = {doc_id for doc_ids in found.values() for doc_id in doc_ids}
    documents = [ListedDocument(doc_id=row.doc_id, url=row.url, title="") for row in corpus if row.doc_id in listed]
    numbers = {document.doc_id: number for number, document in enumerate(documents)}
    return RankedLists(
        depth=depth,
        texts=False,
        documents=documents,
        queries=[
            _query(
                query_id, doc_ids, runs, qrels.get(query_id, {}), said.get(query_id, {}), numbers, depth, relevant_grade
            )
            for query_id, doc_ids in found.items()
        ],
    )


def _by_query(labels: Iterable[Label]) -> dict[str, dict[str, list[Label]]]:
    kept = list(labels)
    said: dict[str, dict[str, list[Label]]] = {}
    counted = scored(kept)
    further = [label for label in kept if counted.get((label.query_id, label.doc_id)) != label]
    for label in (*counted.values(), *further):
        said.setdefault(label.query_id, {}).setdefault(label.doc_id, []).append(label)
    return said


def with_scores(
    lists: RankedLists, runs: Mapping[str, Run], qrels: Qrels, cells: Sequence[str], first: int
) -> RankedLists:
    """The lists with what the `first` hits of these `cells` scored, and what nDCG counts though nothing lists it."""

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


def _wanted(query_id: str, runs: Mapping[str, Run], qrels: Qrels, depth: int, relevant_grade: int) -> list[str]:
    judged = qrels.get(query_id, {})
    best = dict.fromkeys(_relevant(judged, relevant_grade), depth)
    for run in runs.values():
        for place, hit in enumerate(run.hits[query_id][:depth]):
            best[hit.doc_id] = min(place, best.get(hit.doc_id, depth))
    unjudged = min(judged.values(), default=0) - 1
    return sorted(best, key=lambda doc_id: (-judged.get(doc_id, unjudged), best[doc_id], doc_id))


def _relevant(judged: Mapping[str, int], relevant_grade: int) -> list[str]:
    return [doc_id for doc_id, grade in judged.items() if grade >= relevant_grade]


def _query(
    query_id: str,
    doc_ids: Sequence[str],
    runs: Mapping[str, Run],
    judged: Mapping[str, int],
    said: Mapping[str, Sequence[Label]],
    numbers: Mapping[str, int],
    depth: int,
    relevant_grade: int,
) -> QueryLists:
    # Published judgments may name documents that their collection does not have.
    shown = [doc_id for doc_id in doc_ids if doc_id in numbers]
    places = {doc_id: place for place, doc_id in enumerate(shown)}
    return QueryLists(
        id=query_id,
        relevant=len(_relevant(judged, relevant_grade)),
        documents=[_pair(numbers[doc_id], judged.get(doc_id), said.get(doc_id, ())) for doc_id in shown],
        hits={
            cell: [[places[hit.doc_id], hit.span.start, hit.span.end] for hit in run.hits[query_id][:depth]]
            for cell, run in runs.items()
        },
    )


def _pair(number: int, grade: int | None, said: Sequence[Label]) -> PairShown:
    first = [label for label in said[:1] if label.round == 1]
    return PairShown(
        document=number,
        grade=grade,
        judge=first[0].judge if first else "",
        reason=first[0].reason if first else "",
        spans=[list(span) for span in first[0].spans] if first else [],
        readings=[shaped(FurtherReading, label) for label in said[len(first) :]],
        passages=[],
    )
