"""Systems that know nothing of the query, on graded qrels: the lists they return and the scores these get."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints
from runner.gate.qrels_table import DEPTH, QrelsTable, discounted, normalised
from runner.score.score import DISCOUNTS

_TICKETS = 16
ROWS_AT_ONCE = 1 << 16
"""Lists that are drawn in one go; each takes some 400 bytes meanwhile."""

_KEYS_AT_ONCE = 1 << 22
_SCORES_AT_ONCE = 1 << 17
"""A megabyte, which stays in the processor's cache."""


def generator_for(seed: int, stream: str) -> np.random.Generator:
    """The random numbers of one purpose: streams of other names share nothing with it."""
    return np.random.default_rng(np.random.PCG64([seed, *stream.encode()]))


def permutation_groups(strata: Sequence[str]) -> list[Ints]:
    """Positions of the queries that exchange their qrels: by stratum, strata in order of name.

    A stratum of one query has nobody to exchange with: all such queries form one group more, and a single one joins
    the largest stratum (of equal ones the first by name).
    """
    found = {name: [i for i, stratum in enumerate(strata) if stratum == name] for name in sorted(set(strata))}
    groups = [positions for positions in found.values() if len(positions) > 1]
    alone = [positions[0] for positions in found.values() if len(positions) == 1]
    if len(alone) == 1 and groups:
        max(groups, key=len).extend(alone)
    elif alone:
        groups.append(alone)
    return [np.array(sorted(group), np.int64) for group in groups]


def permutations(groups: Sequence[Ints], draws: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Whose qrels each query gets (queries, draws), by random permutations of each group.

    All permutations of a group are equally likely, those that leave qrels in place included: only so is the real
    assignment one of the draws, and p a valid one (Phipson & Smyth 2010).
    """
    assigned = np.zeros((sum(map(len, groups)), draws), np.int32)
    for group in groups:
        assigned[group] = generator.permuted(np.tile(group.astype(np.int32), (draws, 1)), axis=1).T
    return assigned


def permuted_totals(table: QrelsTable, rankings: Ints, assigned: NDArray[np.int32]) -> Ints:
    """Sums over the queries (draws,) of nDCG@10 under the qrels assigned."""
    totals = np.zeros(assigned.shape[1], np.int64)
    turn = max(1, _SCORES_AT_ONCE // len(rankings))
    for start in range(0, len(rankings), turn):
        for query, scores in enumerate(table.scores(rankings[start : start + turn]), start):
            totals += scores.take(assigned[query])
    return totals


def random_totals(table: QrelsTable, weights: Ints, draws: int, generator: np.random.Generator) -> Ints:
    """Sums over the queries (draws,) if each is given documents drawn by weight, without replacement."""
    totals = np.zeros(draws, np.int64)
    n_queries = len(table.query_ids)
    turn = max(1, ROWS_AT_ONCE // draws)
    for start in range(0, n_queries, turn):
        n_now = min(turn, n_queries - start)
        drawn = draw_documents(weights, n_now * draws, generator).reshape(n_now, draws, -1)
        for query, documents in enumerate(drawn, start):
            totals += normalised(discounted(table.grades_for(query, documents)), table.ideal[query])
    return totals


def shuffles(n_queries: int, draws: int, generator: np.random.Generator) -> NDArray[np.int8]:
    """Random orders of ten places (queries, 10, draws)."""
    places = np.tile(np.arange(DEPTH, dtype=np.int8), (draws, 1))
    return np.array([generator.permuted(places, axis=1).T for _ in range(n_queries)])


def shuffled_totals(table: QrelsTable, rankings: Ints, shuffles: NDArray[np.int8]) -> Ints:
    """Sums over the queries (draws,) of each ranking's own documents in random order.

    Of an order of ten places a ranking of fewer documents takes those of its own places, in their order.
    """
    totals = np.zeros(shuffles.shape[2], np.int64)
    lengths = (rankings >= 0).sum(axis=1).tolist()
    for query, grades in enumerate(table.own_grades(rankings)):
        orders = shuffles[query]
        if lengths[query] < DEPTH:
            orders = orders[: lengths[query]].argsort(axis=0).argsort(axis=0)
        gains = np.zeros(len(totals))
        for place in np.flatnonzero(grades).tolist():
            gains += grades[place] * DISCOUNTS[orders[place]]
        totals += normalised(gains, table.ideal[query])
    return totals


def most_retrieved(rankings: Ints) -> Ints:
    """The ten documents that most of the rankings hold; of equal ones the higher ranked, then the first by doc_id."""
    row, place = np.nonzero(rankings >= 0)
    documents, which = np.unique(rankings[row, place], return_inverse=True)
    order = np.lexsort((np.bincount(which, weights=place), -np.bincount(which)))
    return documents[order[:DEPTH]]


def greatest(values: Ints) -> Ints:
    """The ten documents with the greatest value above 0, greatest first; of equal ones the first by doc_id."""
    first = np.argsort(-values, kind="stable")[:DEPTH]
    return first[values[first] > 0]


def draw_documents(weights: Ints, rows: int, generator: np.random.Generator) -> Ints:
    """Ten documents per row, or all with a weight above 0, drawn one by one by weight without replacement, in order.

    Drawing with replacement and skipping repeats is the same law and needs one random number per draw: a ticket, of
    which a document has as many as its weight. Rows that are still short after _TICKETS draws are completed by an
    exponential race among the documents they do not have, which is that law again.
    """
    candidates = np.flatnonzero(weights > 0)
    if not len(candidates):
        return np.empty((rows, 0), np.int64)
    weights = weights[candidates]
    documents = _by_ticket(weights, rows, generator)
    short = np.flatnonzero(documents[:, -1] < 0)
    rows_at_once = max(1, _KEYS_AT_ONCE // len(weights))
    for start in range(0, len(short), rows_at_once):
        part = short[start : start + rows_at_once]
        documents[part] = _raced(documents[part], weights, generator)
    return candidates[documents]


def _by_ticket(weights: Ints, rows: int, generator: np.random.Generator) -> NDArray[np.int32]:
    """Rows of ten places or as many as there are weights, in order of the draws; -1 if these did not suffice."""
    tickets = np.repeat(np.arange(len(weights), dtype=np.int32), weights)
    drawn = generator.integers(len(tickets), size=(_TICKETS, rows))
    depth = min(DEPTH, len(weights))
    places = np.full((depth, rows), -1, np.int32)
    places[:_TICKETS] = tickets[drawn[:depth]]
    repeats = np.zeros(rows, bool)
    for turn in range(1, depth):
        repeats |= (places[:turn] == places[turn]).any(axis=0)
    again = np.flatnonzero(repeats)
    places[:, again] = _without_repeats(tickets[drawn[:, again]], depth)
    return np.ascontiguousarray(places.T)


def _without_repeats(drawn: NDArray[np.int32], depth: int) -> NDArray[np.int32]:
    """The first `depth` different ones of each column's draws (turns, columns), -1 if there are fewer."""
    places = np.full((depth, drawn.shape[1]), -1, np.int32)
    filled = np.zeros(drawn.shape[1], np.int64)
    for turn, found in enumerate(drawn):
        fresh = np.flatnonzero((places[:turn] != found).all(axis=0) & (filled < depth))
        places[filled[fresh], fresh] = found[fresh]
        filled[fresh] += 1
    return places


def _raced(documents: NDArray[np.int32], weights: Ints, generator: np.random.Generator) -> NDArray[np.int64]:
    """The rows with their missing places (-1, at the end) filled."""
    keys = generator.exponential(size=(len(documents), len(weights))) / weights
    row, place = np.nonzero(documents >= 0)
    keys[row, documents[row, place]] = np.inf
    winners = np.argsort(keys, axis=1, kind="stable")
    had = (documents >= 0).sum(axis=1, keepdims=True)
    later = np.maximum(np.arange(documents.shape[1]) - had, 0)
    return np.where(documents >= 0, documents, np.take_along_axis(winners, later, axis=1))


_WORD = re.compile(r"\w+")


def nearest(texts: Sequence[str]) -> Ints:
    """For each text the place of the other one that is most like it, -1 if no other shares a word that tells.

    Likeness is the cosine of the sets of words, each weighted by log(texts / texts that have it); of equal ones the
    first is taken.
    """
    words = [set(_WORD.findall(text.casefold())) for text in texts]
    places_of: dict[str, list[int]] = {}
    for place, found in enumerate(words):
        for word in found:
            places_of.setdefault(word, []).append(place)
    holders = {word: np.array(places) for word, places in places_of.items()}
    weights = {word: math.log(len(texts) / len(places)) ** 2 for word, places in holders.items()}
    lengths = np.sqrt([sum(weights[word] for word in sorted(found)) for found in words])
    return np.array([_nearest(place, words[place], holders, weights, lengths) for place in range(len(texts))], np.int64)


def _nearest(
    place: int,
    found: set[str],
    holders: Mapping[str, Ints],
    weights: Mapping[str, float],
    lengths: NDArray[np.float64],
) -> int:
    shared = np.zeros(len(lengths))
    for word in sorted(found):
        shared[holders[word]] += weights[word]
    shared[place] = 0.0
    likeness = np.divide(shared, lengths, out=np.zeros_like(shared), where=lengths > 0)
    best = int(likeness.argmax())
    return best if likeness[best] > 0 else -1
