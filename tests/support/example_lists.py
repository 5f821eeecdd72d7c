"""Results of 25 queries and four cells with lists to look up, for tests of what a reader opens."""

from dataclasses import dataclass

from runner.eval_set.shapes.lists import (
    Cause,
    FurtherReading,
    ListedDocument,
    PairShown,
    QueryLists,
    RankedLists,
    ShownPassage,
)
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import Results
from tests.support.example_results import BASELINE, BETTER, HYBRID, PLAN, SPARSE, results, row

DEPTH = 5
CELLS = (BETTER, BASELINE, HYBRID, SPARSE)
"""In the order of the ranking."""

GRADES = (3, 2, 1, 0, 0, None, 0, 1)
TEXT = "The levee board shall inspect every levee before the spring flood and publish what it found."


@dataclass(frozen=True)
class Invented:
    """What the page is given to show, where a test wants it to be odd."""

    query: str = "Who inspects levees before a flood?"
    note: str = ""
    doc_id: str = "d1"
    title: str = "Levee Inspection Act"
    reason: str = "It orders the inspection."
    passage: str = TEXT
    url: str = "https://example.org/d1"


def listed_results(invented: Invented | None = None, *, texts: bool = True) -> tuple[Results, RankedLists]:
    """Return results and lists: every query finds the same eight documents in another order.

    q01 and the first document are as `invented`.
    """
    made = invented or Invented()
    bare = results(row(BASELINE), row(BETTER, 0.05, p=0.01), row(HYBRID, -0.05), row(SPARSE, -0.1, role="exploratory"))
    rows = []
    for place, cell in enumerate(bare.cells):
        measure = cell.scores["ndcg@10"].model_copy(update={"per_query": [score(place, n) for n in range(25)]})
        scores = dict.fromkeys(("ndcg@10", "recall@10", "recall@100", "mrr", "mrr@10", "judged@10"), measure)
        differences = {**cell.differences, "mrr": cell.differences["ndcg@10"]}
        rows.append(cell.model_copy(update={"scores": scores, "differences": differences}))
    assert tuple(cell.cell for cell in rows) == CELLS
    queries = [_query(number, made) for number in range(25)]
    return bare.model_copy(update={"cells": rows, "queries": queries}), _lists(made, texts=texts)


def score(cell: int, query: int) -> int:
    """nDCG@10 in units of 1e-9; the cells agree on every fifth query."""
    return 10**7 * ((query * 37 + cell * (query % 5) * 7) % 101)


def _query(number: int, made: Invented) -> QueryRow:
    return QueryRow(
        id=f"q{number + 1:02d}",
        text=made.query if number == 0 else f"need number {number + 1}",
        kind=("topic", "citation", "paraphrase")[number % 3],
        origin=("person", "claude")[number % 2],
        note=made.note if number == 0 else "",
    )


def _lists(made: Invented, *, texts: bool) -> RankedLists:
    names = (made.doc_id, *(f"d{number}" for number in range(2, 9)))
    documents = [
        ListedDocument(
            doc_id=name,
            url=made.url if not number else f"https://example.org/{name}",
            title=(made.title if not number else f"Act {number + 1}") if texts else "",
        )
        for number, name in enumerate(names)
    ]
    queries = [_query_lists(number, made, texts=texts) for number in range(25)]
    return RankedLists(depth=DEPTH, texts=texts, documents=documents, queries=queries)


def _query_lists(number: int, made: Invented, *, texts: bool) -> QueryLists:
    pairs = [_pair(document, GRADES[(document - number) % 8], made, texts=texts) for document in range(8)]
    pairs.sort(key=lambda pair: (-(-1 if pair.grade is None else pair.grade), pair.document))
    place = {pair.document: index for index, pair in enumerate(pairs)}
    hits = {
        cell: [[place[(number + 2 * index + rank) % 8], 10 * rank, 2000 + index] for rank in range(DEPTH)]
        for index, cell in enumerate(CELLS[:3])
    }
    relevant = sum(pair.grade is not None and pair.grade >= PLAN.relevant_grade for pair in pairs)
    # Both relevant documents are missed by whatever does not list them.
    absent = {
        cell: [each for each in range(relevant) if each not in {hit[0] for hit in hits.get(cell, [])}] for cell in CELLS
    }
    missed: dict[str, dict[Cause, list[int]]] = {
        cell: {"below" if number % 2 else "fusion": places} for cell, places in absent.items() if places
    }
    return QueryLists(
        id=f"q{number + 1:02d}", relevant=relevant, documents=pairs, hits={**hits, SPARSE: []}, missed=missed
    )


def _pair(document: int, grade: int | None, made: Invented, *, texts: bool) -> PairShown:
    judged = grade is not None
    second = FurtherReading(judge="reader-b", model="reader-b", round=2, grade=1, reason="It only touches levees.")
    text = made.passage if not document else TEXT
    return PairShown(
        document=document,
        grade=grade,
        judge=("reader-b" if document == 2 else "reader-a") if judged else "",
        reason=(made.reason if not document else f"Reason {document + 1}.") if judged else "",
        spans=[[4, 40], [50, 1060]] if grade == 3 else [],
        readings=[second] if grade == 2 else [],
        passages=[ShownPassage(start=1000, end=1000 + len(text), text=text)] if texts else [],
    )
