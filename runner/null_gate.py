"""Would a system that knows nothing of the query have scored as well? Null systems by Monte Carlo, on graded qrels.

Two nulls. "permuted qrels": each ranking is scored against another query's whole qrels, within the stratum, so that a
list which is good for everybody gains nothing. "random retrieval": documents drawn by their number of chunks, since
a longer document has more chances to hold the best chunk.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.ranking import Ints
from runner.records import SCORE_UNIT, Run
from runner.result_schemas import GateVerdict, Null, NullResult, Verdict
from runner.score import DISCOUNTS, Qrels, ideal_gains, units

_DEPTH = len(DISCOUNTS)
_TICKETS = 20
_ROWS_AT_ONCE = 1 << 17
_KEYS_AT_ONCE = 1 << 22


def null_gate(
    run: Run,
    query_ids: Sequence[str],
    qrels: Qrels,
    strata: Mapping[str, str],
    document_chunks: Mapping[str, int],
    *,
    draws: int,
    tau: float,
    alpha: float,
    seed: int,
) -> GateVerdict:
    """The run's mean nDCG@10 against each null's distribution of it.

    A null is passed with p <= alpha and delta >= tau. It is "insufficient" where no outcome could have reached alpha:
    too few queries with distinct qrels, too few draws, or nothing relevant at all. The whole is "fail" where a null
    fails, else "insufficient" where one is, else "pass". Unjudged documents count 0. `strata` names each query's
    stratum; `document_chunks` holds every document of the cell's corpus.
    """
    cross = cross_scores(run, query_ids, qrels)
    groups = permutation_groups([strata[query_id] for query_id in query_ids])
    generator = np.random.default_rng(np.random.PCG64(seed))
    permuted = permuted_totals(cross, groups, draws, generator)
    drawn = random_totals(query_ids, qrels, document_chunks, draws, generator)
    floor = 1 / (1 + draws)
    relevant = [_relevant(qrels, query_id) for query_id in query_ids]
    real, whole = int(np.trace(cross)), len(query_ids) * SCORE_UNIT
    nulls = [
        _result("permuted qrels", real, permuted, whole, max(floor, 1 / _assignments(relevant, groups)), tau, alpha),
        _result("random retrieval", real, drawn, whole, floor if any(relevant) else 1.0, tau, alpha),
    ]
    return GateVerdict(
        cell=run.cell,
        measure="ndcg@10",
        real=real / whole,
        draws=draws,
        tau=tau,
        alpha=alpha,
        nulls=nulls,
        verdict=_overall(nulls),
    )


def cross_scores(run: Run, query_ids: Sequence[str], qrels: Qrels) -> Ints:
    """nDCG@10 of each query's ranking (rows) under each query's qrels (columns), in units of 1e-9."""
    postings: dict[str, list[tuple[int, int]]] = {}
    for column, query_id in enumerate(query_ids):
        for doc_id, grade in _relevant(qrels, query_id):
            postings.setdefault(doc_id, []).append((column, grade))
    columns = {doc_id: np.array(found).T for doc_id, found in postings.items()}
    gains = np.zeros((len(query_ids), len(query_ids)))
    for row, query_id in enumerate(query_ids):
        for hit, discount in zip(run.hits[query_id], DISCOUNTS.tolist(), strict=False):
            if hit.doc_id in columns:
                where, grades = columns[hit.doc_id]
                gains[row, where] += grades * discount
    return _normalised(gains, ideal_gains(query_ids, qrels))


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


def permuted_totals(cross: Ints, groups: Sequence[Ints], draws: int, generator: np.random.Generator) -> Ints:
    """Sums over the queries (draws,), each ranking under the qrels that a random permutation gives it.

    All permutations of a group are equally likely, those that leave qrels in place included: only so is the real
    assignment one of the draws, and p a valid one (Phipson & Smyth 2010).
    """
    totals = np.zeros(draws, np.int64)
    for group in groups:
        assigned = generator.permuted(np.tile(group, (draws, 1)), axis=1)
        totals += cross[group, assigned].sum(axis=1)
    return totals


def random_totals(
    query_ids: Sequence[str],
    qrels: Qrels,
    document_chunks: Mapping[str, int],
    draws: int,
    generator: np.random.Generator,
) -> Ints:
    """Sums of nDCG@10 over the queries (draws,) of documents drawn by chunk count, without replacement."""
    doc_ids = sorted(doc_id for doc_id, n_chunks in document_chunks.items() if n_chunks > 0)
    weights = np.array([document_chunks[doc_id] for doc_id in doc_ids], np.int64)
    grades = _grade_table(query_ids, qrels, doc_ids)
    ideal = ideal_gains(query_ids, qrels)
    totals = np.zeros(draws, np.int64)
    turn = max(1, _ROWS_AT_ONCE // max(1, len(query_ids)))
    for start in range(0, draws, turn):
        n_draws = min(turn, draws - start)
        drawn = draw_documents(weights, n_draws * len(query_ids), generator)
        found = np.take_along_axis(grades[:, None, :], drawn.reshape(len(query_ids), n_draws, -1), axis=2)
        gains = (found * DISCOUNTS[: found.shape[2]]).sum(axis=2)
        totals[start : start + n_draws] = _normalised(gains.T, ideal).sum(axis=1)
    return totals


def draw_documents(weights: Ints, rows: int, generator: np.random.Generator) -> Ints:
    """Ten documents a row, or all there are, drawn one after another by weight without replacement, in that order.

    Drawing with replacement and skipping repeats is the same law and needs one random number a draw: a ticket, of
    which a document has as many as it has chunks. Rows that are still short after _TICKETS draws are completed by an
    exponential race among the documents they do not have, which is that law again.
    """
    tickets = np.repeat(np.arange(len(weights)), weights)
    depth = min(_DEPTH, len(weights))
    drawn = tickets[generator.integers(len(tickets), size=(_TICKETS, rows))]
    fresh = np.ones(drawn.shape, bool)
    for i in range(1, _TICKETS):
        fresh[i] = (drawn[:i] != drawn[i]).all(axis=0)
    places = np.cumsum(fresh, axis=0) - 1
    taken = fresh & (places < depth)
    documents = np.full((rows, depth), -1, np.int64)
    documents[np.nonzero(taken)[1], places[taken]] = drawn[taken]
    short = np.flatnonzero(documents[:, -1] < 0)
    turn = max(1, _KEYS_AT_ONCE // len(weights))
    for start in range(0, len(short), turn):
        part = short[start : start + turn]
        documents[part] = _raced(documents[part], weights, generator)
    return documents


def _raced(documents: Ints, weights: Ints, generator: np.random.Generator) -> Ints:
    """The rows with their missing places (-1, at the end) filled."""
    keys = generator.exponential(size=(len(documents), len(weights))) / weights
    row, place = np.nonzero(documents >= 0)
    keys[row, documents[row, place]] = np.inf
    winners = np.argsort(keys, axis=1, kind="stable")
    had = (documents >= 0).sum(axis=1, keepdims=True)
    later = np.maximum(np.arange(documents.shape[1]) - had, 0)
    return np.where(documents >= 0, documents, np.take_along_axis(winners, later, axis=1))


def _grade_table(query_ids: Sequence[str], qrels: Qrels, doc_ids: Sequence[str]) -> NDArray[np.int16]:
    number = {doc_id: i for i, doc_id in enumerate(doc_ids)}
    table = np.zeros((len(query_ids), len(doc_ids)), np.int16)
    for row, query_id in enumerate(query_ids):
        for doc_id, grade in _relevant(qrels, query_id):
            if doc_id in number:
                table[row, number[doc_id]] = grade
    return table


def _relevant(qrels: Qrels, query_id: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((doc_id, grade) for doc_id, grade in qrels.get(query_id, {}).items() if grade > 0))


def _normalised(gains: NDArray[np.float64], ideal: NDArray[np.float64]) -> Ints:
    """Gains (any, queries) by each query's ideal, in units of 1e-9; 0 where the ideal is 0."""
    return units(np.divide(gains, ideal, out=np.zeros_like(gains), where=ideal > 0))


def _assignments(relevant: Sequence[tuple[tuple[str, int], ...]], groups: Sequence[Ints]) -> int:
    """How many different ways there are to hand a group's qrels around, over all groups."""
    ways = 1
    for group in groups:
        alike = Counter(relevant[position] for position in group.tolist())
        ways *= math.factorial(len(group)) // math.prod(math.factorial(count) for count in alike.values())
    return ways


def _result(name: Null, real: int, totals: Ints, whole: int, smallest_p: float, tau: float, alpha: float) -> NullResult:
    """The verdict on one null; like every threshold, tau and alpha are compared at the four places a page shows."""
    draws = len(totals)
    p = (1 + int((totals >= real).sum())) / (1 + draws)
    mean = int(totals.sum()) / (draws * whole)
    delta = real / whole - mean
    verdict: Verdict = "pass" if round(p, 4) <= alpha and round(delta, 4) >= tau else "fail"
    if round(smallest_p, 4) > alpha:
        verdict = "insufficient"
    ordered = np.sort(totals) / whole
    outside = draws // 40
    low, median, high = ordered[[outside, (draws - 1) // 2, draws - 1 - outside]].tolist()
    return NullResult(
        name=name,
        mean=mean,
        sd=float(ordered.std()),
        low=low,
        median=median,
        high=high,
        delta=delta,
        p=p,
        smallest_p=smallest_p,
        verdict=verdict,
    )


def _overall(nulls: Sequence[NullResult]) -> Verdict:
    verdicts = {null.verdict for null in nulls}
    return "fail" if "fail" in verdicts else "insufficient" if "insufficient" in verdicts else "pass"
