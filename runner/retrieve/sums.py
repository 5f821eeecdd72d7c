"""Words and meaning in one sum: a bounded half of each, over the same chunks, without weight or router."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from runner.base.records import READ_TOKENS, SCORE_UNIT, Arms, ChunkHit, Hit, Span, arms_run
from runner.embed.vectors import Matrix
from runner.retrieve.ranking import Retrieval, read_down
from runner.retrieve.retrieve import DenseArm, ExactScores, dense_run, in_rounds


def summed(words: Sequence[Hit], bound: float, meaning: Sequence[Hit]) -> tuple[Arms, ...]:
    """Return the documents of two rankings by half the sum of what each says of them, in whole steps of 1e-9.

    Of words: the share of `bound`, the most that BM25 could give any text for this query. Of meaning: the room between
    the last document's cosine, the floor, and 1 that a document's cosine takes. A document that one ranking lacks has
    0 there. Both rankings must be of the same chunks and go to RUN_DEPTH. Of equal sums the greater id comes first.

    The evidence is the best chunk by meaning, or by words if they alone found the document.
    """
    floor = meaning[-1].score if meaning else 1.0
    shares = {hit.doc_id: _in_steps(min(1.0, max(0.0, hit.score / bound)) if bound > 0 else 0.0) for hit in words}
    rooms = {
        hit.doc_id: _in_steps(max(0.0, (hit.score - floor) / (1 - floor)) if floor < 1 else 0.0) for hit in meaning
    }
    evidence = {hit.doc_id: hit.span for hit in (*words, *meaning)}
    found = [Arms(doc_id, shares.get(doc_id), rooms.get(doc_id), span) for doc_id, span in evidence.items()]
    return tuple(sorted(found, key=lambda arms: (arms.hit.score, arms.doc_id), reverse=True))


def sum_run(cell: str, sparse: Retrieval, arm: DenseArm) -> Retrieval:
    """Return the sum of BM25 and dense retrieval over the same chunks, with both arms.

    The reading list has every document's evidence in the sum's order, then their other chunks in rounds by cosine.
    """
    dense, exact = dense_run(cell, arm).run, ExactScores(arm.chunk_vectors)
    arms = {
        query_id: summed(sparse.run.hits[query_id], sparse.bounds[query_id], dense.hits[query_id])
        for query_id in arm.query_ids
    }
    run = arms_run(cell, arms)
    reading = {
        query_id: _reading(arm, exact, query, run.hits[query_id])
        for query_id, query in zip(arm.query_ids, arm.query_vectors, strict=True)
    }
    return Retrieval(run, reading, arm.index_bytes + sparse.index_bytes, arms=arms)


def _in_steps(value: float) -> float:
    return round(value * SCORE_UNIT) / SCORE_UNIT


def _reading(arm: DenseArm, exact: ExactScores, query: Matrix, hits: Sequence[Hit]) -> tuple[ChunkHit, ...]:
    table = arm.table
    documents = np.array([table.numbers[hit.doc_id] for hit in hits], np.int64)
    rows = np.array([_row(arm, document, hit.span) for document, hit in zip(documents, hits, strict=True)], np.int64)
    # Most often the evidence alone fills the budget, and no other chunk need be scored.
    if table.n_tokens[rows].sum() < READ_TOKENS:
        others = in_rounds(query, table, exact, documents)
        rows = np.concatenate([rows, others[~np.isin(others, rows)]])
    return read_down(arm.chunks, table, rows)


def _row(arm: DenseArm, document: int, span: Span | None) -> int:
    """Return the row of a document's chunk by its span; a document's chunks are in text order."""
    assert span is not None  # of a run that was just made
    rows: list[int] = arm.table.order[arm.table.starts[document] : arm.table.starts[document + 1]].tolist()
    return rows[bisect_left(rows, span, key=lambda row: arm.chunks[row].span)]
