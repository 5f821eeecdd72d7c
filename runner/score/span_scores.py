"""What a reader with a budget of tokens finds of the passages that judges marked, whatever the chunks are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from runner.base.records import READ_TOKENS, ChunkHit, Ints, Reading, Span, merged, n_characters, n_shared
from runner.eval_set.labels import scored
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.paired import Difference
from runner.eval_set.shapes.pool import SpanBudget, SpanMeasure, SpanResult
from runner.score.comparison import Comparison, mean, paired_differences, planned_intervals
from runner.score.score import units

BUDGETS = (512, 2_048, READ_TOKENS)
"""Tokens that are read down a cell's ranked chunks."""

Gold = Mapping[str, Mapping[str, tuple[Span, ...]]]
"""query_id -> relevant doc_id -> its marked characters as disjoint spans, () if none was marked."""


class Found(NamedTuple):
    """Marked characters of one query: those that were read, and `gold`, all of them."""

    marked: int
    gold: int

    @property
    def recall(self) -> float | None:
        """Marked characters read by all marked ones; None if nothing is marked."""
        return self.marked / self.gold if self.gold else None


def gold_spans(labels: Iterable[Label], relevant_grade: int) -> Gold:
    """The marks of the scored labels that say relevant."""
    gold: dict[str, dict[str, tuple[Span, ...]]] = {}
    for (query_id, doc_id), label in scored(labels).items():
        if label.grade >= relevant_grade:
            gold.setdefault(query_id, {})[doc_id] = merged(Span(start, end) for start, end in label.spans)
    return gold


def characters_read(chunks: Iterable[ChunkHit], budget: int) -> dict[str, tuple[Span, ...]]:
    """Each document's characters, as disjoint spans, that the first `budget` tokens of ranked chunks reach.

    The last chunk is cut in proportion: of its characters the first part, rounded down. Tokens of the context that is
    embedded before a chunk cost like others. A character in two chunks is read once and paid for twice.
    """
    spans: dict[str, list[Span]] = {}
    left = budget
    for chunk in chunks:
        length = chunk.span.end - chunk.span.start
        if chunk.n_tokens > left:
            length = length * left // chunk.n_tokens
        if length:
            spans.setdefault(chunk.doc_id, []).append(Span(chunk.span.start, chunk.span.start + length))
        left -= chunk.n_tokens
        if left <= 0:
            break
    return {doc_id: merged(found) for doc_id, found in spans.items()}


def found_of(chunks: Iterable[ChunkHit], budget: int, gold: Mapping[str, tuple[Span, ...]]) -> Found:
    """Return what reading so far finds of one query's marked passages; `gold` is by document."""
    read = characters_read(chunks, budget)
    return Found(
        marked=sum(n_shared(spans, gold.get(doc_id, ())) for doc_id, spans in read.items()),
        gold=sum(n_characters(spans) for spans in gold.values()),
    )


def span_scores(comparison: Comparison, labels: Iterable[Label], readings: Mapping[str, Reading]) -> SpanResult:
    """Return span recall of every cell that has a reading list, at every budget."""
    gold = gold_spans(labels, comparison.plan.relevant_grade)
    marked = {query_id: spans for query_id, spans in gold.items() if any(spans.values())}
    budgets = {budget: _at_budget(comparison, gold, readings, budget) for budget in BUDGETS} if marked else {}
    documents = [spans for by_document in gold.values() for spans in by_document.values()]
    return SpanResult(
        queries=len(marked),
        documents=sum(spans != () for spans in documents),
        unmarked=sum(spans == () for spans in documents),
        cells={cell: [budgets[budget][cell] for budget in BUDGETS] for cell in readings} if marked else {},
    )


def _at_budget(
    comparison: Comparison, gold: Gold, readings: Mapping[str, Reading], budget: int
) -> dict[str, SpanBudget]:
    found = {
        cell: [found_of(reading[query_id], budget, gold.get(query_id, {})).recall for query_id in comparison.query_ids]
        for cell, reading in readings.items()
    }
    return {cell: SpanBudget(tokens=budget, recall=recall) for cell, recall in _measures(comparison, found).items()}


def _measures(comparison: Comparison, values: Mapping[str, Sequence[float | None]]) -> dict[str, SpanMeasure]:
    """Each cell's measure over the queries for which every cell has one, so that all means are of the same queries."""
    table = np.array(list(values.values()), np.float64)
    defined = np.isnan(table).sum(axis=0) == 0
    if not defined.any():
        return dict.fromkeys(values, SpanMeasure(queries=0, mean=None, low=None, high=None, difference=None))
    whole = units(table[:, defined])
    intervals = planned_intervals(whole, comparison.plan)
    differences = _differences(comparison, list(values), whole)
    return {
        cell: SpanMeasure(
            queries=int(defined.sum()),
            mean=mean(whole[row]),
            low=intervals[row].low,
            high=intervals[row].high,
            difference=differences[row],
        )
        for row, cell in enumerate(values)
    }


def _differences(comparison: Comparison, cells: Sequence[str], values: Ints) -> Sequence[Difference | None]:
    """Every row less the baseline's; None throughout where the baseline has no row."""
    if comparison.plan.baseline not in cells:
        return [None] * len(cells)
    return paired_differences(values, cells.index(comparison.plan.baseline), comparison.plan)
