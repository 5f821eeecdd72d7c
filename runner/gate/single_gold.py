"""The null gate for benches with one right answer per query, in falsify-eval's call: docs/null-gate.md defines it.

Graded answers, several per query, are for runner.gate.gate.
"""

import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Real
from statistics import NormalDist
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints, Run
from runner.eval_set.shapes.gate import GateVerdict, NullResult
from runner.gate.bench import Bench, Floats, bench_of, stratum_groups
from runner.gate.draws import ROWS_AT_ONCE, draw_documents
from runner.gate.gate import Gate, overall
from runner.gate.nulls import SINGLE_GOLD, Trials
from runner.score.score import units

MEASURES: Mapping[str, Callable[[int], float]] = {
    "ndcg": lambda rank: 1 / math.log2(rank + 1),
    "recall": lambda rank: 1.0,
    "mrr": lambda rank: 1 / rank,
}
"""What a gold counts by rank; with one relevant document the ideal of nDCG has it at rank 1."""

Metric = Callable[[Any, Any, Any], Any]
"""metric(retrieved, gold, rel) -> a number."""

Row = Sequence[Hashable]

_Z = NormalDist().inv_cdf(0.975)
_MOST = 1e6
"""The greatest score that a function may give, so that sums in units of 1e-9 fit into 64 bits."""


def four_null_gate(
    retrieved_lists: Sequence[Row],
    gold_list: Sequence[Hashable],
    rel_list: Sequence[Any],
    metric_fn: str | Metric,
    *,
    item_pool: Iterable[Hashable] | None = None,
    k: int | None = None,
    n_trials: int = 50,
    tau: float = 0.05,
    seed: int = 2026,
    strata: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> dict[str, Any]:
    """Return the mean score of retrieved lists against nulls A to D, as a dict that json.dumps takes.

    `metric_fn` is "ndcg@10", "recall@5", "mrr@10" or the like, or a function of (retrieved, gold, rel) that depends
    on nothing else. `k`, the length of null C's lists, is a name's cutoff; for a function pass the function's own (5
    if left out). `item_pool` holds all that could be retrieved. With `strata`, one name a query, gold labels are
    exchanged and drawn among the queries of a stratum. ValueError on anything that cannot be tested.

    >>> rows = [["b", "x"], ["a", "y"], ["x", "c"], ["d", "z"], ["e", "x"], ["f", "b"]]
    >>> found = four_null_gate(rows, list("bacdef"), [1] * 6, "recall@2", item_pool=list("abcdefuvwxyz"), n_trials=999)
    >>> found["verdict"], found["real_mean"], round(found["deltas"]["D"], 3), found["p_values"]["D"] <= 0.05
    ('pass', 1.0, 0.806, True)
    """
    _check_lengths(len(retrieved_lists), len(gold_list), len(rel_list))
    depth = _depth(metric_fn, k)
    _check_settings(depth, n_trials, tau, seed, alpha)
    warnings: list[str] = []
    golds = _checked_golds(gold_list)
    pool = _checked_pool(item_pool, golds, depth, warnings)
    rels = _checked_rels(rel_list, metric_fn, warnings)
    rows = _checked_rows(retrieved_lists, warnings)
    names = _checked_strata(strata, len(golds))
    given = _Given(rows, golds, rels, pool, metric_fn, depth, n_trials, float(tau), seed)
    whole = _graded(given, names, alpha)
    warnings += _foreign(given, whole["real_mean"])
    return {
        **whole,
        "metric": metric_fn if isinstance(metric_fn, str) else getattr(metric_fn, "__name__", type(metric_fn).__name__),
        "k": depth,
        "n_trials": n_trials,
        "tau": float(tau),
        "alpha": float(alpha),
        "seed": seed,
        "warnings": [*warnings, *_doubts(given, whole, alpha)],
    }


def single_gold_verdict(
    run: Run,
    gold: Mapping[str, str],
    strata: Mapping[str, str],
    lengths: Mapping[str, int],
    measure: str,
    *,
    draws: int,
    tau: float,
    alpha: float,
    seed: int,
) -> GateVerdict:
    """Return a run's verdict if each query has one right answer, its gold; `lengths` holds every document."""
    name, _, cutoff = measure.partition("@")
    by_rank = np.array([MEASURES[name](rank) for rank in range(1, int(cutoff) + 1)])
    groups = stratum_groups([strata[query_id] for query_id in gold])
    qrels = {query_id: {doc_id: 1} for query_id, doc_id in gold.items()}
    trials = Trials(bench_of([*gold], qrels, lengths, groups, by_rank), draws, seed)
    return Gate(trials, [*SINGLE_GOLD.values()], tau=tau, alpha=alpha, spare=0).judge(run, {})


@dataclass(frozen=True)
class _Given:
    """A checked bench and its settings."""

    rows: list[Row]
    golds: list[Hashable]
    rels: list[Any]
    pool: list[Hashable]
    metric: str | Metric
    k: int
    n_trials: int
    tau: float
    seed: int


@dataclass(frozen=True)
class _FunctionBench(Bench):
    """A bench whose scores a function alone knows; it is asked for every list and label that is drawn.

    A ranking's numbers are positions in `names`; `engine` (queries, depth) are the lists in question.
    """

    metric: Metric
    names: list[Hashable]
    golds: list[Hashable]
    rels: list[Any]
    k: int
    engine: Ints

    def perfect(self) -> Ints:
        """Return the engine's lists with the golds first: a function may read what follows."""
        golds = (self.documents[rows].tolist() for rows in self.rows_of)
        rows = zip(golds, self.engine.tolist(), strict=True)
        return np.array([[*gold, *(item for item in row if item not in gold), -1][: self.depth] for gold, row in rows])

    def own_scores(self, rankings: Ints) -> Floats:
        """Return the score of each query's list (queries,) under its own gold."""
        return np.array([self._score(query, row, self.golds[query]) for query, row in enumerate(self._rows(rankings))])

    def exchanged(
        self, rankings: Ints, assigned: NDArray[np.int32], among: Sequence[Ints] | None = None
    ) -> tuple[Ints, Floats]:
        """Return sums over the queries (draws,) under the golds of the queries assigned, and means of the draws."""
        totals, expected = np.zeros(assigned.shape[1], np.int64), np.empty(len(rankings))
        for query, row in enumerate(self._rows(rankings)):
            golds = [self.golds[other] for other in assigned[query].tolist()]
            # Each label once a query, however often it was drawn.
            scores = {gold: self._score(query, row, gold) for gold in dict.fromkeys(golds)}
            values = np.array([scores[gold] for gold in golds])
            totals += units(values)
            expected[query] = values.mean()
        return totals, expected

    def random_lists(self, draws: int, generator: np.random.Generator) -> tuple[Ints, Floats]:
        """Return the same of `k` items per list, drawn from the pool."""
        totals, expected = np.zeros(draws, np.int64), np.empty(len(self.golds))
        evenly = np.ones(len(self.corpus), np.int64)
        at_once = max(1, ROWS_AT_ONCE // draws)
        for start in range(0, len(self.golds), at_once):
            block = self.golds[start : start + at_once]
            lists = draw_documents(evenly, len(block) * draws, self.k, generator).reshape(len(block), draws, -1)
            for query, gold in enumerate(block, start):
                values = np.array([self._score(query, row, gold) for row in self._rows(lists[query - start])])
                totals += units(values)
                expected[query] = values.mean()
        return totals, expected

    def check_cutoff(self, rankings: Ints) -> None:
        """Raise ValueError if the function reads below place k of a list, where null C's lists end."""
        for query, row in enumerate(self._rows(rankings)):
            gold = self.golds[query]
            if gold in row[self.k :] and self._score(query, row, gold) != self._score(query, row[: self.k], gold):
                raise ValueError(
                    f"metric_fn reads below place k={self.k} (query {query}), where null C's random lists end: the "
                    "engine's lists would be longer than its rival's. Pass k=the measure's cutoff"
                )

    def _rows(self, rankings: Ints) -> Iterable[list[Hashable]]:
        return ([self.names[item] for item in row if item >= 0] for row in rankings.tolist())

    def _score(self, query: int, row: Row, gold: Hashable) -> float:
        value: Any = self.metric(row, gold, self.rels[query])
        if type(value) is float and abs(value) <= _MOST:  # the common case at a third of the time
            return value
        if not isinstance(value, Real | np.bool_) or not abs(cast(float, value)) <= _MOST:
            raise ValueError(
                f"metric_fn gave {value!r} for query {query}; one finite number of at most a million is expected"
            )
        return float(value)


def _graded(given: _Given, strata: Sequence[str], alpha: float) -> dict[str, Any]:
    """Return the fields of the verdict, over all strata at once."""
    bench, rankings = _bench(given, stratum_groups(strata))
    gate = Gate(Trials(bench, given.n_trials, given.seed), [*SINGLE_GOLD.values()], tau=given.tau, alpha=alpha)
    own, no_chunks = bench.own_scores(rankings), np.zeros(len(bench.numbers), np.int64)
    results = dict(zip(SINGLE_GOLD, gate.results(rankings, own, no_chunks), strict=True))
    nulls = {letter: null for letter, (null, _) in results.items()}
    verdict = overall(nulls.values(), spare=0)
    return {
        "real_mean": float(own.sum()) / len(given.golds),
        "null_means": {letter: null.mean for letter, null in nulls.items()},
        "deltas": {letter: null.delta for letter, null in nulls.items()},
        "intervals": {letter: _interval(differences) for letter, (_, differences) in results.items()},
        "p_values": {letter: null.p for letter, null in nulls.items()},
        "verdicts": {letter: null.verdict for letter, null in nulls.items()},
        "passes": {letter: null.verdict == "pass" for letter, null in nulls.items()},
        "gate_passes": verdict == "pass",
        "verdict": verdict,
        "reasons": [_reason(letter, null, given, alpha) for letter, null in nulls.items() if null.verdict != "pass"],
        "n_queries": len(given.golds),
    }


def _bench(given: _Given, groups: Sequence[Ints]) -> tuple[Bench, Ints]:
    """Return the bench and the rankings of the lists; for a measure by name, what is nobody's gold is nothing (-1)."""
    named = isinstance(given.metric, str)
    names = list(dict.fromkeys(given.golds if named else chain(given.pool, *given.rows)))
    number = {item: position for position, item in enumerate(names)}
    keys = [f"{position:09}" for position in range(len(names))]
    # Without relevance a query scores nothing by nDCG, and it has no label.
    relevant = [not (named and str(given.metric).startswith("ndcg")) or rel > 0 for rel in given.rels]
    qrels = {
        f"{query:09}": {keys[number[gold]]: 1} if relevant[query] else {} for query, gold in enumerate(given.golds)
    }
    depth = given.k if named else max([given.k, *map(len, given.rows)])
    gain = MEASURES[str(given.metric).partition("@")[0]] if named else MEASURES["recall"]
    by_rank = np.array([gain(rank) for rank in range(1, depth + 1)])
    # Of the pool no more than its size is needed, for null C.
    bench = replace(
        bench_of([*qrels], qrels, dict.fromkeys(keys, 1), groups, by_rank), corpus=np.arange(len(given.pool))
    )
    rankings = np.full((len(given.rows), depth), -1, np.int64)
    for query, row in enumerate(given.rows):
        rankings[query, : len(row)] = [number.get(item, -1) for item in row[:depth]]
    if isinstance(given.metric, str):
        return bench, rankings
    function = _FunctionBench(
        **vars(bench),
        metric=given.metric,
        names=names,
        golds=given.golds,
        rels=given.rels,
        k=given.k,
        engine=rankings,
    )
    function.check_cutoff(rankings)
    return function, rankings


def _interval(differences: Floats) -> list[float] | None:
    """Return the ends of delta's 95 % interval over queries by the normal approximation, None for a single query."""
    n = len(differences)
    if n == 1:
        return None
    mean, half = float(differences.mean()), _Z * float(differences.std(ddof=1)) / math.sqrt(n)
    return [mean - half, mean + half]


def _reason(letter: str, null: NullResult, given: _Given, alpha: float) -> str:
    if null.verdict == "insufficient":
        return f"null {letter}: a perfect engine would not pass it either, with {given.n_trials} draws"
    delta = f"{round(null.delta, 6) + 0.0:g}"
    if null.p > alpha:
        return f"null {letter}: does not beat it (delta {delta}, p {null.p:.4g})"
    return f"null {letter}: beats it (p {null.p:.4g}), but by {delta}, less than tau {given.tau:g}"


def _doubts(given: _Given, whole: Mapping[str, Any], alpha: float) -> Iterable[str]:
    """Yield what labels, scale and draws keep the nulls from showing."""
    n_labels = len(set(given.golds))
    if n_labels == 1:
        yield "all queries have the same gold label: nulls A, B and D cannot tell engines apart"
    elif n_labels == len(given.golds):
        yield "every gold label occurs once: nulls A, B and D expect the same score, one test and not three"
    means = [whole["real_mean"], *whole["null_means"].values()]
    if min(means) < 0 or max(means) > 1:
        yield f"mean scores run from {min(means):.4g} to {max(means):.4g}: tau is meant for a measure between 0 and 1"
    near = _Z * math.sqrt(alpha * (1 - alpha) / given.n_trials)
    for letter, p in whole["p_values"].items():
        # With no draw as good as the score, more draws would hardly raise p.
        if 1 / (1 + given.n_trials) < p and abs(p - alpha) <= near and whole["verdicts"][letter] != "insufficient":
            yield (
                f"null {letter}: p {p:.4g} is too near {alpha:.4g} for {given.n_trials} draws; another seed may decide "
                "otherwise, raise n_trials"
            )


def _check_lengths(n_rows: int, n_golds: int, n_rels: int) -> None:
    if not n_rows == n_golds == n_rels:
        raise ValueError(
            f"length mismatch: retrieved_lists={n_rows}, gold_list={n_golds}, rel_list={n_rels}; "
            "all three must have one entry per query"
        )
    if n_golds == 0:
        raise ValueError("gold_list is empty — need at least one query")


def _depth(metric: str | Metric, k: int | None) -> int:
    """Return the length of null C's lists; ValueError for an unknown measure or another cutoff than its own."""
    if not isinstance(metric, str):
        if not callable(metric):
            raise ValueError(f"metric_fn must be a name such as 'ndcg@10' or a function, got {metric!r}")
        return 5 if k is None else k
    name, _, cutoff = metric.partition("@")
    if name not in MEASURES:
        raise ValueError(f"unknown metric {name!r}; choices: {list(MEASURES)}")
    if not re.fullmatch("[1-9][0-9]{0,3}", cutoff):
        raise ValueError(f"metric must be 'name@K' with K below 10,000 (e.g. 'ndcg@5'), got {metric!r}")
    if k is not None and k != int(cutoff) and _whole(k, 1):
        raise ValueError(f"k={k} differs from the cutoff of {metric}; leave k out or make them agree")
    return int(cutoff) if k is None else k


def _check_settings(k: int, n_trials: int, tau: float, seed: int, alpha: float) -> None:
    """Raise ValueError for the first setting that is wrong, in falsify-eval's order and words."""
    if not _whole(k, 1):
        raise ValueError(f"k must be a positive integer, got {k!r}")
    if not _whole(n_trials, 1):
        raise ValueError(f"n_trials must be a positive integer, got {n_trials!r}")
    if not (isinstance(tau, Real) and 0 <= tau <= 1):
        raise ValueError(f"tau must be in [0, 1], got {tau}")
    if not _whole(seed, 0):
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}")
    if not (isinstance(alpha, Real) and 0 < alpha < 1):
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _distinct(items: Iterable[Hashable], where: str) -> list[Hashable]:
    """Return ids, each once, in their order; ValueError for what cannot be one."""
    try:
        return list(dict.fromkeys(items))
    except TypeError as error:
        raise ValueError(
            f"{where} holds something that cannot be an id ({error}); judgments of several documents are for the "
            "graded gate"
        ) from error


def _checked_golds(gold_list: Sequence[Hashable]) -> list[Hashable]:
    golds = list(gold_list)
    if any(label != label for label in _distinct(golds, "gold_list")):
        raise ValueError("gold_list holds NaN, which equals no id")
    return golds


def _checked_pool(
    item_pool: Iterable[Hashable] | None, golds: Iterable[Hashable], k: int, warnings: list[str]
) -> list[Hashable]:
    if item_pool is None:
        raise ValueError(
            "null_c_random_retrieval requires item_pool: the gold labels alone would be a far smaller collection than "
            "the engine searches. Pass item_pool=<the ids of all that could be retrieved> explicitly."
        )
    if isinstance(item_pool, str | bytes):
        raise ValueError("item_pool is a string; a list of ids is expected")
    # A set of strings has another order in every process; what is drawn from it must not.
    items = _sorted(item_pool) if isinstance(item_pool, Set) else list(item_pool)
    pool = _distinct(items, "item_pool")
    if len(pool) < len(items):
        warnings.append(f"item_pool holds {len(items)} entries but {len(pool)} different ids; each counts once")
    if not pool:
        raise ValueError("item_pool is empty")
    if k > len(pool):
        raise ValueError(
            f"k={k} > len(item_pool)={len(pool)}; Null C samples k items "
            f"without replacement from item_pool, so k must be ≤ pool size"
        )
    if missing := _sorted(set(golds) - set(pool)):
        more = "" if len(missing) <= 5 else f" (+{len(missing) - 5} more)"
        raise ValueError(
            f"{len(missing)} gold label(s) not present in item_pool: {missing[:5]}{more}; "
            "check label-set alignment between bench and pool"
        )
    return pool


def _sorted(items: Iterable[Hashable]) -> list[Hashable]:
    return sorted(items, key=lambda item: (type(item).__name__, item if isinstance(item, str) else repr(item)))


def _checked_rels(rel_list: Sequence[Any], metric: str | Metric, warnings: list[str]) -> list[Any]:
    rels = list(rel_list)
    if not isinstance(metric, str):
        if any(isinstance(rel, Mapping) for rel in rels):
            warnings.append(
                "rel_list holds mappings: if they are qrels, nulls A, B and D leave them in place and cannot test this "
                "engine; the graded gate can"
            )
        return rels
    for position, rel in enumerate(rels):
        if not (isinstance(rel, Real) and abs(cast(float, rel)) <= sys.float_info.max):
            raise ValueError(
                f"rel_list[{position}] is {_short(rel)}; {metric} takes one finite number a query; judgments of "
                "several documents are for the graded gate"
            )
    return rels


def _checked_rows(retrieved_lists: Sequence[Row], warnings: list[str]) -> list[Row]:
    """Return the lists with each id once, at its first place."""
    rows: list[Row] = []
    for position, row in enumerate(retrieved_lists):
        is_array = isinstance(row, np.ndarray) and row.ndim == 1
        if not (is_array or (isinstance(row, Sequence) and not isinstance(row, str | bytes | bytearray))):
            raise ValueError(f"retrieved_lists[{position}] is {_short(row)}; a list of ids, best first, is expected")
        rows.append(_distinct(row.tolist() if isinstance(row, np.ndarray) else row, f"retrieved_lists[{position}]"))
    if repeats := sum(len(row) < len(given) for row, given in zip(rows, retrieved_lists, strict=True)):
        warnings.append(f"{repeats} row(s) hold an id more than once; it counts once, at its first place")
    if empty := sum(not row for row in rows):
        warnings.append(f"{empty} row(s) are empty: nothing was retrieved for these queries, and they stay in the mean")
    return rows


def _foreign(given: _Given, real_mean: float) -> Iterable[str]:
    """Yield a warning of retrieved ids that the pool lacks; ValueError if it lacks all, and every score is 0."""
    known, places = set(given.pool), list(chain.from_iterable(given.rows))
    foreign = [item for item in places if item not in known]
    if foreign and len(foreign) == len(places) and not real_mean:
        raise ValueError(
            f"every score is 0, and no retrieved id is in item_pool: the first is {_short(foreign[0])}, and the first "
            f"gold label is {_short(given.golds[0])}; convert one side if they mean the same"
        )
    if foreign:
        yield (
            f"{len(foreign)} place(s) hold an id that is not in item_pool, the first of them {_short(foreign[0])}: "
            "null C draws from another collection than the engine retrieves from"
        )


def _checked_strata(strata: Sequence[str] | None, n_queries: int) -> list[str]:
    if strata is None:
        return [""] * n_queries
    if isinstance(strata, str) or len(strata) != n_queries:
        raise ValueError(f"strata must name the stratum of each of the {n_queries} queries")
    for position, name in enumerate(strata):
        if not (isinstance(name, str) and name):
            raise ValueError(f"strata[{position}] is {_short(name)}; a stratum's name is expected")
    return list(strata)


def _short(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text[:40]}{'…' if len(text) > 40 else ''}"
