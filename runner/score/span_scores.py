"""What a reader with a budget of tokens finds of the passages that judges marked, whatever the chunks are."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from runner.base.records import READ_TOKENS, ChunkHit, Reading, Span, merged, n_characters, n_shared
from runner.eval_set.labels import scored
from runner.eval_set.shapes.labels import Label
from runner.eval_set.shapes.paired import Difference, SpanRecall, SpanResult
from runner.score.comparison import Comparison, mean, planned_intervals, summarised
from runner.score.score import units

BUDGETS = (512, 2_048, READ_TOKENS)
"""Tokens that are read down a cell's ranked chunks."""

Gold = Mapping[str, Mapping[str, tuple[Span, ...]]]
"""query_id -> relevant doc_id -> its marked characters as disjoint spans, () if none was marked."""


def gold_spans(labels: Iterable[Label], relevant_grade: int) -> Gold:
    """Return the marks of the scored labels that say relevant."""
    gold: dict[str, dict[str, tuple[Span, ...]]] = {}
    for (query_id, doc_id), label in scored(labels).items():
        if label.grade >= relevant_grade:
            gold.setdefault(query_id, {})[doc_id] = merged(Span(start, end) for start, end in label.spans)
    return gold


def characters_read(chunks: Iterable[ChunkHit], budget: int) -> dict[str, tuple[Span, ...]]:
    """Return each document's characters, as disjoint spans, that the first `budget` tokens of ranked chunks reach.

    The last chunk is cut in proportion: of its characters the first part, rounded down. Tokens of the context that is
    embedded before a chunk cost like others. A character in two chunks is read once and paid for twice.
    """
    spans: dict[str, list[Span]] = {}
    left = budget
    for chunk in chunks:
        length = chunk.span.end - chunk.span.start
        if chunk.n_tokens > left:
            # A reader stops within this chunk.
            length = length * left // chunk.n_tokens
        if length:
            spans.setdefault(chunk.doc_id, []).append(Span(chunk.span.start, chunk.span.start + length))
        left -= chunk.n_tokens
        if left <= 0:
            break
    return {doc_id: merged(found) for doc_id, found in spans.items()}


def span_recall(chunks: Iterable[ChunkHit], budget: int, gold: Mapping[str, tuple[Span, ...]]) -> float:
    """Return the share of one query's marked characters that reading so far finds; `gold`, by document, has some."""
    read = characters_read(chunks, budget)
    marked = sum(n_shared(spans, gold.get(doc_id, ())) for doc_id, spans in read.items())
    return marked / sum(map(n_characters, gold.values()))


def span_scores(comparison: Comparison, labels: Iterable[Label], readings: Mapping[str, Reading]) -> SpanResult:
    """Return span recall of every cell that has a reading list, at every budget, over the queries with a mark."""
    gold = gold_spans(labels, comparison.plan.relevant_grade)
    topics = zip(comparison.query_ids, comparison.weighing.topics, strict=True)
    marked = {query_id: weight for query_id, weight in topics if any(gold.get(query_id, {}).values())}
    documents = [spans for by_document in gold.values() for spans in by_document.values()]
    cells: dict[str, list[SpanRecall]] = {cell: [] for cell in readings} if marked else {}
    for budget in BUDGETS if cells else ():
        shares = [
            [_of_topic(comparison, query_id, reading, budget, gold[query_id]) for query_id in marked]
            for reading in readings.values()
        ]
        values, weights = units(np.array(shares, np.float64)), [*marked.values()]
        # A baseline without a reading list has nothing to take a difference to.
        baseline = list(cells).index(comparison.plan.baseline) if comparison.plan.baseline in cells else None
        drawn = comparison.plan.bootstrap
        differences: Sequence[Difference | None] = [None] * len(cells)
        if baseline is not None:
            differences = summarised(values - values[baseline], drawn, weights)
        intervals = planned_intervals(values, drawn, weights)
        for cell, row, ends, difference in zip(cells, values, intervals, differences, strict=True):
            cells[cell].append(
                SpanRecall(tokens=budget, mean=mean(row, weights), low=ends.low, high=ends.high, difference=difference)
            )
    return SpanResult(
        queries=len(marked),
        documents=sum(spans != () for spans in documents),
        unmarked=sum(spans == () for spans in documents),
        cells=cells,
    )


def _of_topic(
    comparison: Comparison, topic: str, reading: Reading, budget: int, gold: Mapping[str, tuple[Span, ...]]
) -> float:
    """Return the weighted mean of the span recall of a topic's wordings."""
    wordings = comparison.weighing.wordings
    shares = [
        (wordings[one.wording], span_recall(reading[one.id], budget, gold))
        for one in comparison.asked
        if one.topic == topic
    ]
    return sum(weight * share for weight, share in shares) / sum(weight for weight, _ in shares)
