"""What chance makes of a bench: judgments exchanged between queries, documents drawn, lists shuffled."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints
from runner.gate.bench import Bench, normalised
from runner.score.score import units

_TICKETS = 16
ROWS_AT_ONCE = 1 << 16
"""Lists that are drawn in one go; each takes some 400 bytes meanwhile."""

_KEYS_AT_ONCE = 1 << 22


def generator_for(seed: int, stream: str) -> np.random.Generator:
    """Return the random numbers of one purpose: streams of other names share nothing with it."""
    return np.random.default_rng(np.random.PCG64([seed, *stream.encode()]))


def permutations(groups: Sequence[Ints], draws: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Return whose judgments each query gets (queries, draws), by random permutations of each group.

    All permutations of a group are equally likely, those that leave judgments in place included: only so is the real
    assignment one of the draws, and p a valid one (Phipson & Smyth 2010).
    """
    assigned = np.zeros((sum(map(len, groups)), draws), np.int32)
    for group in groups:
        assigned[group] = generator.permuted(np.tile(group.astype(np.int32), (draws, 1)), axis=1).T
    return assigned


def random_totals(bench: Bench, weights: Ints, draws: int, generator: np.random.Generator) -> Ints:
    """Return sums over the queries (draws,), in units, if each is given documents drawn by weight, no two alike."""
    totals = np.zeros(draws, np.int64)
    n_queries = len(bench.query_ids)
    at_once = max(1, ROWS_AT_ONCE // draws)
    for start in range(0, n_queries, at_once):
        n_now = min(at_once, n_queries - start)
        drawn = draw_documents(weights, n_now * draws, bench.depth, generator).reshape(n_now, draws, -1)
        for query, lists in enumerate(drawn, start):
            totals += units(bench.scores_for(query, lists)) * bench.weights[query]
    return totals


def shuffled_totals(bench: Bench, rankings: Ints, draws: int, generator: np.random.Generator) -> Ints:
    """Return sums over the queries (draws,), in units, of each ranking's own documents in random order.

    Of an order of all ranks a ranking of fewer documents takes those of its own ranks, in their order.
    """
    totals = np.zeros(draws, np.int64)
    ranks = np.tile(np.arange(bench.depth, dtype=np.int8), (draws, 1))
    lengths = (rankings >= 0).sum(axis=1).tolist()
    for query, grades in enumerate(bench.own_grades(rankings)):
        orders = generator.permuted(ranks, axis=1).T
        # The order of the ranks that a shorter list has.
        if lengths[query] < bench.depth:
            orders = orders[: lengths[query]].argsort(axis=0).argsort(axis=0)
        gains = np.zeros(draws)
        for rank in np.flatnonzero(grades).tolist():
            gains += grades[rank] * bench.by_rank[orders[rank]]
        totals += units(normalised(gains, bench.ideal[query])) * bench.weights[query]
    return totals


def most_retrieved(rankings: Ints) -> Ints:
    """Return the documents that most rankings hold, as many as fit one; of equal ones the higher ranked, then by id."""
    row, rank = np.nonzero(rankings >= 0)
    documents, which = np.unique(rankings[row, rank], return_inverse=True)
    # By count, then by the sum of ranks, then by number, which is by id.
    order = np.lexsort((np.bincount(which, weights=rank), -np.bincount(which)))
    return documents[order[: rankings.shape[1]]]


def greatest(values: Ints, depth: int) -> Ints:
    """Return the documents with the greatest value above 0, greatest first; of equal ones the first by doc_id."""
    first = np.argsort(-values, kind="stable")[:depth]
    return first[values[first] > 0]


def draw_documents(weights: Ints, rows: int, depth: int, generator: np.random.Generator) -> Ints:
    """Return `depth` documents per row, or all with a weight, drawn one by one by weight, no two alike, in order.

    Drawing with replacement and skipping repeats is the same law and needs one random number per draw: a ticket, of
    which a document has as many as its weight. Rows that are still short after _TICKETS draws are completed by an
    exponential race among the documents they do not have, which is that law again.
    """
    candidates = np.flatnonzero(weights > 0)
    if not len(candidates):
        return np.empty((rows, 0), np.int64)
    weights = weights[candidates]
    depth = min(depth, len(weights))
    tickets = np.repeat(np.arange(len(weights), dtype=np.int32), weights)
    # The first tickets of all rows at once; a ticket for a document that the row has is skipped.
    drawn = tickets[generator.integers(len(tickets), size=(_TICKETS, rows))]
    documents = np.full((depth, rows), -1, np.int32)
    n_drawn = np.zeros(rows, np.int64)
    for ticket in drawn:
        fresh = np.flatnonzero((documents != ticket).all(axis=0) & (n_drawn < depth))
        documents[n_drawn[fresh], fresh] = ticket[fresh]
        n_drawn[fresh] += 1
    documents = np.ascontiguousarray(documents.T)
    # A few rows drew the same few documents again and again.
    short = np.flatnonzero(n_drawn < depth)
    rows_at_once = max(1, _KEYS_AT_ONCE // len(weights))
    for start in range(0, len(short), rows_at_once):
        part = short[start : start + rows_at_once]
        documents[part] = _raced(documents[part], weights, generator)
    return candidates[documents]


def _raced(documents: NDArray[np.int32], weights: Ints, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows with their missing places (-1, at the end) filled."""
    keys = generator.exponential(size=(len(documents), len(weights))) / weights
    row, rank = np.nonzero(documents >= 0)
    # What a row has already finishes last.
    keys[row, documents[row, rank]] = np.inf
    winners = np.argsort(keys, axis=1, kind="stable")
    n_had = (documents >= 0).sum(axis=1, keepdims=True)
    later = np.maximum(np.arange(documents.shape[1]) - n_had, 0)
    return np.where(documents >= 0, documents, np.take_along_axis(winners, later, axis=1))
