"""A single-gold bench for the null gate, checked, without repeats, gold labels numbered; and its measures."""

import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice, repeat
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints

MEASURE_NAMES = ("ndcg", "recall", "mrr")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of MEASURE_NAMES, read down to rank `cutoff`."""

    name: str
    cutoff: int

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}"

    def divisors(self) -> Floats:
        """What a gold's gain is divided by at ranks 1 to `cutoff`; further down it counts 0.

        With one relevant item the ideal of nDCG has it at rank 1 (Jarvelin & Kekalainen 2002).
        """
        ranks = range(1, self.cutoff + 1)
        if self.name == "ndcg":
            return np.array([math.log2(rank + 1) for rank in ranks])
        if self.name == "mrr":
            return np.array(ranks, float)
        return np.ones(self.cutoff)


def parse_measure(text: str) -> Measure:
    """The measure that "ndcg@10", "recall@5" or "mrr@10" names; a ValueError says what is wrong with other text."""
    name, _, cutoff = text.partition("@")
    if name not in MEASURE_NAMES:
        raise ValueError(f"unknown metric {name!r}; choices: {list(MEASURE_NAMES)}")
    if not re.fullmatch("[1-9][0-9]{0,8}", cutoff):
        raise ValueError(f"metric must be 'name@K' (e.g. 'ndcg@5'), got {text!r}")
    return Measure(name, int(cutoff))


class Matches(NamedTuple):
    """Where rows hold a gold label, one entry a place: the row, the label's number, the rank less 1."""

    row: Ints
    label: Ints
    place: Ints


def gold_matches(numbers: Ints, lengths: Ints) -> Matches:
    """The places that hold a gold label, by row and rank.

    `numbers` are the rows end to end, each id as its label's number or below 0 where it is no label; `lengths` (rows,)
    are the rows' lengths.
    """
    found = np.flatnonzero(numbers >= 0)
    row = np.repeat(np.arange(len(lengths)), lengths)[found]
    starts = np.cumsum(lengths) - lengths
    return Matches(row, numbers[found], found - starts[row])


Metric = Callable[[Any, Any, Any], Any]
"""metric(retrieved, gold, rel) -> a number."""

Row = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the nulls are drawn from.

    `rows` hold no id twice and, for a named measure, nothing below its cutoff. `labels` are the distinct golds in
    order of first appearance, so that renaming ids changes nothing; `gold` (queries,) and `numbers` (all rows end to
    end) are places in it, `numbers` below 0 for an id that is no gold. `pool` holds each id once. `strata` names the
    positions of each stratum's queries, all of them "" if there are no strata.
    """

    rows: list[Row]
    numbers: Ints
    labels: list[Hashable]
    gold: Ints
    rels: list[Any]
    pool: list[Hashable]
    metric: Measure | Metric
    k: int
    n_trials: int
    strata: dict[str, Ints]
    warnings: list[str]


def checked_inputs(
    retrieved_lists: Sequence[Row],
    gold_list: Sequence[Hashable],
    rel_list: Sequence[Any],
    metric_fn: str | Metric,
    *,
    item_pool: Iterable[Hashable] | None,
    k: int | None,
    n_trials: int,
    tau: float,
    seed: int,
    alpha: float,
    strata: Sequence[str] | None,
) -> Inputs:
    """The bench, ready to be drawn from; a ValueError names the first thing that is wrong with it.

    What falsify-eval 0.2.0 refuses is refused in its order and, but for a missing pool, in its words.
    """
    _check_lengths(len(retrieved_lists), len(gold_list), len(rel_list))
    metric = parse_measure(metric_fn) if isinstance(metric_fn, str) else metric_fn
    depth = _depth(metric, k)
    _check_settings(depth, n_trials, tau, seed, alpha)
    warnings: list[str] = []
    labels = _labels(gold_list)
    pool, known = _checked_pool(item_pool, labels, depth, warnings)
    rels = _checked_rels(rel_list, metric, warnings)
    rows = _checked_rows(retrieved_lists, metric.cutoff if isinstance(metric, Measure) else None, warnings)
    _warn_of_foreign_ids(rows, known, warnings)
    number = {label: place for place, label in enumerate(labels)}
    numbers = np.fromiter(map(number.get, chain.from_iterable(rows), repeat(-1)), np.int64, sum(map(len, rows)))
    gold = np.fromiter(map(number.__getitem__, gold_list), np.int64, len(gold_list))
    groups = _positions(strata, len(gold_list))
    return Inputs(rows, numbers, labels, gold, rels, pool, metric, depth, n_trials, groups, warnings)


def check_types(inputs: Inputs) -> None:
    """A ValueError if no retrieved id could equal a gold for its type; for benches in which every score is 0."""
    golds = {type(label) for label in inputs.labels}
    found = {type(item) for item in chain.from_iterable(inputs.rows)}
    if found and not {_kind(each) for each in golds} & {_kind(each) for each in found}:
        raise ValueError(
            f"every score is 0, and gold labels are {_listed(golds)} where retrieved ids are {_listed(found)}: "
            "no id can equal a label; convert one side"
        )


def _kind(of: type) -> type:
    """One type for all that can be equal: numbers of any width, strings of any library."""
    return next((kind for kind in (Number, str, bytes, tuple) if issubclass(of, kind)), of)


def _check_lengths(n_rows: int, n_golds: int, n_rels: int) -> None:
    if not n_rows == n_golds == n_rels:
        raise ValueError(
            f"length mismatch: retrieved_lists={n_rows}, gold_list={n_golds}, rel_list={n_rels}; "
            "all three must have one entry per query"
        )
    if n_golds == 0:
        raise ValueError("gold_list is empty — need at least one query")


def _depth(metric: Measure | Metric, k: int | None) -> int:
    if isinstance(metric, Measure):
        if k is not None and k != metric.cutoff and _whole(k, 1):
            raise ValueError(f"k={k} differs from the cutoff of {metric}; leave k out or make them agree")
        return metric.cutoff if k is None else k
    if not callable(metric):
        raise ValueError(f"metric_fn must be a name such as 'ndcg@10' or a function, got {metric!r}")
    return 5 if k is None else k


def _check_settings(k: int, n_trials: int, tau: float, seed: int, alpha: float) -> None:
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


def _labels(gold_list: Sequence[Hashable]) -> list[Hashable]:
    for position, label in enumerate(gold_list):
        try:
            hash(label)
        except TypeError as error:
            raise ValueError(
                f"the gold of query {position} is a {type(label).__name__}, which cannot be an id: one label a query "
                "is expected; judgments of several documents are for graded_gate"
            ) from error
        if label != label:  # NaN
            raise ValueError(f"the gold of query {position} is {label!r}, which equals no id")
    return list(dict.fromkeys(gold_list))


def _checked_pool(
    item_pool: Iterable[Hashable] | None, labels: Iterable[Hashable], k: int, warnings: list[str]
) -> tuple[list[Hashable], set[Hashable]]:
    if item_pool is None:
        raise ValueError(
            "null_c_random_retrieval requires item_pool: the gold labels alone would be a far smaller collection than "
            "the engine searches. Pass item_pool=<the ids of all that could be retrieved> explicitly."
        )
    pool, known = _distinct_pool(item_pool, warnings)
    if not pool:
        raise ValueError("item_pool is empty")
    if k > len(pool):
        raise ValueError(
            f"k={k} > len(item_pool)={len(pool)}; Null C samples k items "
            f"without replacement from item_pool, so k must be ≤ pool size"
        )
    missing = _sorted(label for label in labels if label not in known)
    if missing:
        more = "" if len(missing) <= 5 else f" (+{len(missing) - 5} more)"
        raise ValueError(
            f"{len(missing)} gold label(s) not present in item_pool: {missing[:5]}{more}; "
            "check label-set alignment between bench and pool"
        )
    return pool, known


def _distinct_pool(item_pool: Iterable[Hashable], warnings: list[str]) -> tuple[list[Hashable], set[Hashable]]:
    if isinstance(item_pool, str | bytes):
        raise ValueError("item_pool is a string; a list of ids is expected")
    # A set of strings has another order in every process; what is drawn from it must not.
    items = _sorted(item_pool) if isinstance(item_pool, Set) else list(item_pool)
    try:
        known = set(items)
    except TypeError as error:
        raise ValueError(f"item_pool holds something that cannot be an id ({error})") from error
    if len(known) < len(items):
        warnings.append(f"item_pool holds {len(items)} entries but {len(known)} different ids; each counts once")
        items = list(dict.fromkeys(items))
    return items, known


def _sorted(items: Iterable[Hashable]) -> list[Hashable]:
    listed = list(items)
    try:
        return sorted(listed)  # type: ignore[type-var]  # ids need have no order: that is the TypeError
    except TypeError:
        return sorted(listed, key=lambda item: (type(item).__name__, repr(item)))


def _checked_rels(rel_list: Sequence[Any], metric: Measure | Metric, warnings: list[str]) -> list[Any]:
    rels = list(rel_list)
    types = set(map(type, rels))
    if not isinstance(metric, Measure):
        if any(issubclass(kind, Mapping) for kind in types):
            warnings.append(
                "rel_list holds mappings: if they are qrels, nulls A, B and D leave them in place and cannot test this "
                "engine; graded_gate can"
            )
        return rels
    numeric = all(issubclass(kind, Real) for kind in types)
    for position, rel in enumerate(rels):
        if not ((numeric or isinstance(rel, Real)) and abs(rel) <= sys.float_info.max):
            raise ValueError(
                f"rel_list[{position}] is {_short(rel)}; {metric} takes one finite number a query; judgments of "
                "several documents are for graded_gate"
            )
    return rels


def _checked_rows(retrieved_lists: Sequence[Row], depth: int | None, warnings: list[str]) -> list[Row]:
    rows: list[Row] = []
    repeats = empty = 0
    for position, given in enumerate(retrieved_lists):
        row = given if isinstance(given, list | tuple) else _listed_row(position, given)
        head = row if depth is None or len(row) <= depth else row[:depth]
        try:
            repeated = len(set(head)) < len(head)
        except TypeError as error:
            raise ValueError(f"retrieved_lists[{position}] holds something that cannot be an id ({error})") from error
        repeats += repeated
        empty += not head
        rows.append(list(islice(dict.fromkeys(row), depth)) if repeated else head)
    if repeats:
        warnings.append(f"{repeats} row(s) hold an id more than once; it counts once, at its first place")
    if empty:
        warnings.append(f"{empty} row(s) are empty: nothing was retrieved for these queries, and they stay in the mean")
    return rows


def _listed_row(position: int, row: Row) -> Row:
    if isinstance(row, Sequence) and not isinstance(row, str | bytes | bytearray):
        return list(row)
    if isinstance(row, np.ndarray) and row.ndim == 1:
        return row.tolist()
    raise ValueError(f"retrieved_lists[{position}] is {_short(row)}; a list of ids, best first, is expected")


def _warn_of_foreign_ids(rows: Sequence[Row], known: set[Hashable], warnings: list[str]) -> None:
    if known.issuperset(chain.from_iterable(rows)):
        return
    foreign = [item for item in chain.from_iterable(rows) if item not in known]
    warnings.append(
        f"{len(foreign)} place(s) hold an id that is not in item_pool, the first of them {_short(foreign[0])}: null C "
        "draws from another collection than the engine retrieves from"
    )


def _positions(strata: Sequence[str] | None, n_queries: int) -> dict[str, Ints]:
    if strata is None:
        return {"": np.arange(n_queries)}
    if isinstance(strata, str) or len(strata) != n_queries:
        raise ValueError(f"strata must name the stratum of each of the {n_queries} queries")
    found: dict[str, list[int]] = {}
    for position, name in enumerate(strata):
        if not (isinstance(name, str) and name):
            raise ValueError(f"strata[{position}] is {_short(name)}; a stratum's name is expected")
        found.setdefault(name, []).append(position)
    return {name: np.array(found[name], np.int64) for name in sorted(found)}


def _listed(types: Iterable[type]) -> str:
    return " and ".join(sorted(each.__name__ for each in types))


def _short(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text[:40]}{'…' if len(text) > 40 else ''}"
