"""What systems that read no query score on a single-gold bench: the nulls A to D.

For a named measure their exact moments, and draws of all queries and many trials at once; for a measure that only its
own function knows, everything from draws.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.progress import say
from runner.base.records import Ints
from runner.gate.single_gold.bench import Floats, Inputs, Measure, Metric, Row, gold_matches
from runner.gate.single_gold.verdict import NULLS, Outcome, Reach

_LINES = 10
_NUMBERS_AT_ONCE = 1 << 18


class Progress:
    """Seconds by stage, and lines on stderr where they are asked for."""

    def __init__(self, n_queries: int, *, shown: bool) -> None:
        self.seconds = dict.fromkeys(["real", *(f"null_{null.lower()}" for null in NULLS)], 0.0)
        self._n_queries = n_queries
        self._shown = shown
        self._done = 0

    @contextmanager
    def stage(self, *names: str) -> Iterator[None]:
        """Adds what passes inside to the seconds of the stage, of several an equal share to each."""
        began = time.perf_counter()
        yield
        for name in names:
            self.seconds[name] += (time.perf_counter() - began) / len(names)

    def advance(self, n_queries: int) -> None:
        """So many queries more are through all nulls."""
        before, self._done = self._done, self._done + n_queries
        if self._shown and self._done * _LINES // self._n_queries > before * _LINES // self._n_queries:
            spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self.seconds.items())
            say(f"null gate: {self._done:,} of {self._n_queries:,} queries; {spent}")


Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stratum:
    """Queries whose labels are exchanged among themselves, and what each of their rows would score under each label.

    `gold` (queries,) numbers labels from 0 within the stratum, `counts` (labels,) how many queries have each. Row
    `query[i]` scores `value[i]` where its gold is label `label[i]`; under every other label it scores 0.
    `relevant` (queries,) is false where a query scores 0 whatever it retrieves. `by_rank` (cutoff,) is what a gold
    counts by rank.
    """

    gold: Ints
    counts: Ints
    query: Ints
    label: Ints
    value: Floats
    relevant: Mask
    by_rank: Floats
    n_pool: int

    def real(self) -> Floats:
        """Each query's score under its own gold (queries,)."""
        own = self.label == self.gold[self.query]
        return _sums(self.query[own], self.value[own], len(self.gold))


class Moments(NamedTuple):
    """The nulls A to D: expected score of each query (4, queries), variance of their sum (4,)."""

    expected: Floats
    variance: Floats


def stratified(inputs: Inputs, measure: Measure) -> list[Stratum]:
    """The bench's strata in order of name.

    nDCG scores 0 for a query whose relevance is not positive; recall and reciprocal rank do not read it.
    """
    divisors = measure.divisors()
    grade = np.array(inputs.rels, float) if measure.name == "ndcg" else np.ones(len(inputs.rels))
    found = gold_matches(inputs.numbers, np.fromiter(map(len, inputs.rows), np.int64, len(inputs.rows)))
    # A lone grade cancels out of nDCG but for the last bit, in which means are to agree with falsify-eval's.
    own = np.where(grade > 0, grade, 1.0)[found.row]
    value = own / divisors[found.place] / own * (grade > 0)[found.row]
    strata = []
    for positions, places in zip(inputs.strata.values(), _places(inputs, found.row), strict=True):
        labels, gold, counts = np.unique(inputs.gold[positions], return_inverse=True, return_counts=True)
        label = np.minimum(np.searchsorted(labels, found.label[places]), len(labels) - 1)
        known = labels[label] == found.label[places]
        query = np.searchsorted(positions, found.row[places[known]])
        strata.append(
            Stratum(
                gold,
                counts,
                query,
                label[known],
                value[places[known]],
                grade[positions] > 0,
                1 / divisors,
                len(inputs.pool),
            )
        )
    return strata


def _places(inputs: Inputs, rows: Ints) -> list[Ints]:
    stratum = np.empty(len(inputs.rows), np.int64)
    for number, positions in enumerate(inputs.strata.values()):
        stratum[positions] = number
    order = np.argsort(stratum[rows], kind="stable")
    return np.split(order, np.searchsorted(stratum[rows], np.arange(1, len(inputs.strata)), sorter=order))


def moments(stratum: Stratum) -> Moments:
    """Exact expectations and variances of the four nulls.

    B, C and D draw each query by itself. A's variance is that of a permutation statistic (Hoeffding 1951).
    """
    n, n_labels = len(stratum.gold), len(stratum.counts)
    uniform, uniform_variance = _independent(stratum, np.full(n_labels, 1 / n_labels))
    marginal, marginal_variance = _independent(stratum, stratum.counts / n)
    hit, spread = _random_moments(stratum.by_rank, stratum.n_pool)
    random = np.where(stratum.relevant, hit, 0.0)
    variances = [_permutation_variance(stratum), uniform_variance, stratum.relevant.sum() * spread, marginal_variance]
    return Moments(np.stack([uniform, uniform, random, marginal]), np.maximum(variances, 0.0))


def _independent(stratum: Stratum, chance: Floats) -> tuple[Floats, float]:
    """Expected score of each query whose gold is label l with probability chance[l], and the variance of their sum."""
    weight = chance[stratum.label]
    mean = _sums(stratum.query, weight * stratum.value, len(stratum.gold))
    return mean, float((weight * stratum.value**2).sum() - (mean**2).sum())


def _permutation_variance(stratum: Stratum) -> float:
    """Variance of the sum over labels l of C[l, pi(l)], where C[l, m] sums label l's queries under label m."""
    n_labels = len(stratum.counts)
    if n_labels == 1:
        return 0.0
    own = stratum.gold[stratum.query]
    _, cell = np.unique(own * n_labels + stratum.label, return_inverse=True)
    cells = _sums(cell, stratum.value, 1)
    rows = _sums(own, stratum.value, n_labels)
    columns = _sums(stratum.label, stratum.value, n_labels)
    squares = (cells**2).sum() - ((rows**2).sum() + (columns**2).sum()) / n_labels
    return float(squares + (rows.sum() / n_labels) ** 2) / (n_labels - 1)


def reach(gold: Ints, relevant: Mask, by_rank: Floats, n_pool: int) -> Reach:
    """The limits that gold labels (numbers from 0), pool and relevance set.

    A's greatest signal is (labels - 1)^2, by Cauchy and Schwarz over what its variance sums; that of B and of D,
    added up over the queries, is queries x (labels - 1).
    """
    own, counts = gold[relevant], np.bincount(gold)
    n, n_labels, n_placed = len(own), len(counts), len(np.unique(own))
    share = counts[own] / len(gold)
    best, (hit, spread) = float(by_rank[0]), _random_moments(by_rank, n_pool)
    apart = 1 - 1 / n_labels
    chance = [
        math.lgamma(n_labels - n_placed + 1) - math.lgamma(n_labels + 1),
        -n * math.log(n_labels),
        n * math.log((by_rank == best).sum() / n_pool),
        np.log(share).sum(),
    ]
    delta = [n * apart, n * apart, n * (best - hit), (1 - share).sum()]
    random = n * (best - hit) ** 2 / spread if spread > 0 else 0
    signal = [(n_labels - 1) ** 2 if n else 0, n * (n_labels - 1), random, ((1 - share) / share).sum()]
    return Reach(np.array(chance), np.array(delta), np.array(signal, float))


def _random_moments(by_rank: Floats, n_pool: int) -> tuple[float, float]:
    """Mean and variance of one query's score where its gold's rank is uniform on 1 to n_pool."""
    mean = float(by_rank.sum()) / n_pool
    return mean, float((by_rank**2).sum()) / n_pool - mean**2


def _sums(numbers: Ints, values: Floats, size: int) -> Floats:
    """Values added up by number (size,), or more where a number is greater."""
    return np.bincount(numbers, values, size).astype(np.float64, copy=False)


def named_outcomes(
    inputs: Inputs, measure: Measure, progress: Progress, generator: np.random.Generator | None
) -> dict[str, Outcome]:
    """Every stratum's outcome by name: exact moments, and with a generator also draws."""
    with progress.stage("real"):
        strata = stratified(inputs, measure)
    outcomes = {}
    for name, stratum in zip(inputs.strata, strata, strict=True):
        expected, variance = moments(stratum)
        draws = None if generator is None else _draws(stratum, inputs.n_trials, progress, generator)
        limits = reach(stratum.gold, stratum.relevant, stratum.by_rank, stratum.n_pool)
        outcomes[name] = Outcome(stratum.real(), expected, variance, draws, limits, len(stratum.counts) == 1)
        progress.advance(len(stratum.gold))
    return outcomes


def _draws(stratum: Stratum, trials: int, progress: Progress, generator: np.random.Generator) -> Floats:
    """Sums over the queries of the nulls A to D (4, trials)."""
    totals = []
    for null, drawn in zip(NULLS, (permuted_totals, uniform_totals, random_totals, marginal_totals), strict=True):
        with progress.stage(f"null_{null.lower()}"):
            totals.append(drawn(stratum, trials, generator))
    return np.stack(totals)


def permuted_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null A: the sum over the queries (trials,), labels exchanged by a permutation, which may leave them in place."""
    labels = np.arange(len(stratum.counts))
    totals = []
    for turn in _turns(stratum, trials):
        permuted = generator.permuted(np.tile(labels, (turn, 1)), axis=1)
        totals.append(_totals(stratum, permuted[:, stratum.gold]))
    return np.concatenate(totals)


def uniform_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null B: the sum over the queries (trials,), every label equally likely for each."""
    shape = len(stratum.counts), len(stratum.gold)
    return np.concatenate(
        [_totals(stratum, generator.integers(shape[0], size=(turn, shape[1]))) for turn in _turns(stratum, trials)]
    )


def marginal_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null D: the sum over the queries (trials,), each given the gold of a query drawn at random."""
    n = len(stratum.gold)
    return np.concatenate(
        [_totals(stratum, stratum.gold[generator.integers(n, size=(turn, n))]) for turn in _turns(stratum, trials)]
    )


def random_totals(stratum: Stratum, trials: int, generator: np.random.Generator) -> Floats:
    """Null C: the sum over the queries (trials,) of lists drawn from the pool without replacement.

    The gold's rank in such a list, were it as long as the pool, is uniform on 1 to the pool's size: one number a list.
    """
    by_rank = np.append(stratum.by_rank, 0.0)
    n = int(stratum.relevant.sum())
    totals = []
    for turn in _turns(stratum, trials):
        places = generator.integers(stratum.n_pool, size=(turn, n))
        totals.append(by_rank[np.minimum(places, len(stratum.by_rank))].sum(axis=1))
    return np.concatenate(totals)


def _totals(stratum: Stratum, assigned: Ints) -> Floats:
    """Sums over the queries (trials,) where `assigned` (trials, queries) are their golds."""
    hits: NDArray[np.bool_] = assigned[:, stratum.query] == stratum.label
    totals: Floats = hits @ stratum.value
    return totals


def _turns(stratum: Stratum, trials: int) -> Iterator[int]:
    """Numbers of trials that add up to `trials`, few enough at a time for memory."""
    most = max(1, _NUMBERS_AT_ONCE // max(len(stratum.gold), len(stratum.query)))
    for start in range(0, trials, most):
        yield min(most, trials - start)


def real_scores(inputs: Inputs, metric: Metric) -> Floats:
    """Each query's score (queries,); a ValueError names the query for which `metric` gives no finite number."""
    return _scored(inputs, metric, list(range(len(inputs.rows))), inputs.gold.tolist())


def check_cutoff(inputs: Inputs, metric: Metric, real: Floats) -> None:
    """A ValueError if `metric` reads below place k of a row, since null C's lists end there.

    Only a row whose gold stands below place k can show it; the first that does is enough.
    """
    for position, row in enumerate(inputs.rows):
        gold = inputs.labels[inputs.gold[position]]
        if len(row) <= inputs.k or gold not in row[inputs.k :]:
            continue
        cut = _finite([metric(row[: inputs.k], gold, inputs.rels[position])], [position])
        if cut[0] != real[position]:
            raise ValueError(
                f"metric_fn reads below place k={inputs.k} (query {position}), where null C's random lists end: the "
                "engine's lists would be longer than its rival's. Pass k=the measure's cutoff"
            )


def sampled_outcomes(
    inputs: Inputs, metric: Metric, progress: Progress, generator: np.random.Generator
) -> dict[str, Outcome]:
    """Every stratum's outcome by name, all of it from draws."""
    with progress.stage("real"):
        real = real_scores(inputs, metric)
        check_cutoff(inputs, metric, real)
    pool = np.fromiter(inputs.pool, object, len(inputs.pool))
    return {
        name: _sampled(inputs, metric, pool, real, positions, progress, generator)
        for name, positions in inputs.strata.items()
    }


def _sampled(
    inputs: Inputs,
    metric: Metric,
    pool: NDArray[np.object_],
    real: Floats,
    positions: Ints,
    progress: Progress,
    generator: np.random.Generator,
) -> Outcome:
    """All trials of the queries at `positions`, block by block; in a block no list is scored twice under a label."""
    labels, gold = np.unique(inputs.gold[positions], return_inverse=True)
    trials, n = inputs.n_trials, len(positions)
    permuted = generator.permuted(np.tile(np.arange(len(labels)), (trials, 1)), axis=1)
    totals, expected, steady = np.zeros((4, trials)), np.empty((4, n)), np.ones(4, bool)
    size = max(1, min(_NUMBERS_AT_ONCE // (trials * (inputs.k + 3)), 8 * _NUMBERS_AT_ONCE // len(inputs.labels)))
    for start in range(0, n, size):
        block = slice(start, start + size)
        n_block = len(gold[block])
        drawn = np.empty((n_block, 3, trials), np.int64)
        places = np.empty((n_block, trials, inputs.k), np.int64)
        drawn[:, 0] = permuted[:, gold[block]].T
        for query in range(n_block):  # one by one: the order of the draws is part of the result
            drawn[query, 1] = generator.integers(len(labels), size=trials)
            drawn[query, 2] = gold[generator.integers(n, size=trials)]
            places[query] = random_places(len(pool), trials, inputs.k, generator)
        values = np.empty((n_block, 4, trials))
        with progress.stage("null_a", "null_b", "null_d"):
            values[:, [0, 1, 3]] = _relabelled_scores(inputs, metric, positions[block], labels[drawn], real)
        with progress.stage("null_c"):
            values[:, 2] = _random_scores(inputs, metric, positions[block], pool[places])
        for of_query in values:
            totals += of_query
        expected[:, block] = values.mean(axis=2).T
        steady &= (values == real[positions[block], None, None]).all(axis=(0, 2))
        progress.advance(n_block)
    variance = totals.var(axis=1, ddof=1) if trials > 1 else np.zeros(4)
    limits = _limits(gold, len(inputs.pool), real, steady & (expected != 0).any(axis=1))
    return Outcome(real[positions], expected, variance, totals, limits, len(labels) == 1)


def _limits(gold: Ints, n_pool: int, real: Floats, blind: Mask) -> Reach:
    """As for a measure that counts the first place alone.

    No limit on delta where scores are not between 0 and 1. `blind` (4,) are the nulls whose draws never changed a
    score, in a bench where not all are 0: the measure does not depend on what they draw.
    """
    limits = reach(gold, np.ones(len(gold), bool), np.ones(1), n_pool)
    delta = limits.delta if ((real >= 0) & (real <= 1)).all() else np.full(4, np.inf)
    return Reach(np.where(blind, 0.0, limits.log_chance), delta, limits.signal)


def _relabelled_scores(inputs: Inputs, metric: Metric, positions: Ints, drawn: Ints, real: Floats) -> Floats:
    """Scores of the queries at `positions` under labels drawn for them, both (queries, nulls, trials)."""
    first: dict[object, int] = {}
    same = [first.setdefault(_asked(inputs, position), place) for place, position in enumerate(positions.tolist())]
    pairs = np.array(same)[:, None, None] * len(inputs.labels) + drawn
    is_drawn = np.zeros(len(positions) * len(inputs.labels), bool)
    is_drawn[pairs] = True
    place, label = np.divmod(np.flatnonzero(is_drawn), len(inputs.labels))
    query = positions[place]
    values = real[query]
    new = label != inputs.gold[query]
    values[new] = _scored(inputs, metric, query[new].tolist(), label[new].tolist())
    by_pair = np.empty(len(is_drawn))
    by_pair[is_drawn] = values
    return by_pair[pairs]


def _asked(inputs: Inputs, position: int) -> object:
    """What two queries share that have one list and one relevance; the position where that cannot be told."""
    try:
        key = tuple(inputs.rows[position]), type(inputs.rels[position]), inputs.rels[position]
        hash(key)
    except TypeError:
        return position
    return key


def _random_scores(inputs: Inputs, metric: Metric, positions: Ints, lists: NDArray[np.object_]) -> Floats:
    """Scores of lists drawn for the queries at `positions` (queries, trials, k) under their own golds."""
    asked = np.repeat(positions, lists.shape[1]).tolist()
    own = inputs.gold[asked].tolist()
    return _scored(inputs, metric, asked, own, lists.reshape(-1, lists.shape[2]).tolist()).reshape(lists.shape[:2])


def _scored(
    inputs: Inputs, metric: Metric, asked: list[int], labels: list[int], lists: Iterable[Row] | None = None
) -> Floats:
    """What `metric` gives queries with labels in place of their golds, and with lists in place of theirs."""
    rows: Iterable[Row] = map(inputs.rows.__getitem__, asked) if lists is None else lists
    golds, rels = map(inputs.labels.__getitem__, labels), map(inputs.rels.__getitem__, asked)
    return _finite(list(map(metric, rows, golds, rels)), asked)


def random_places(n_pool: int, rows: int, k: int, generator: np.random.Generator) -> Ints:
    """Rows of k different places below `n_pool` (rows, k), every ordered choice equally likely.

    Repeats are drawn again until there are none. No place is treated otherwise than another, so whatever comes out
    is uniform over ordered choices. From a pool of few places, where that takes long, each row is a shuffle's head.
    """
    if n_pool < 4 * k:
        return generator.permuted(np.tile(np.arange(n_pool), (rows, 1)), axis=1)[:, :k]
    places = generator.integers(n_pool, size=(rows, k))
    if rows * k * k < 2 * n_pool:  # repeats are rare, and a sort that finds none costs a third of the rest
        in_order = np.sort(places, axis=1)
        if (in_order[:, 1:] != in_order[:, :-1]).all():
            return places
    while True:
        order = np.argsort(places, axis=1, kind="stable")
        ranked = np.take_along_axis(places, order, axis=1)
        row, later = np.nonzero(ranked[:, 1:] == ranked[:, :-1])
        if not len(row):
            return places
        places[row, order[row, later + 1]] = generator.integers(n_pool, size=len(row))


def _finite(values: Sequence[object], asked: Sequence[int]) -> Floats:
    if all(issubclass(kind, Real | np.bool_) for kind in set(map(type, values))):
        found = np.fromiter(values, float, len(values))
        if np.isfinite(found).all():
            return found
    wrong = (not (isinstance(value, Real | np.bool_) and math.isfinite(value)) for value in values)
    position, value = next((asked[place], values[place]) for place, is_wrong in enumerate(wrong) if is_wrong)
    raise ValueError(f"metric_fn gave {value!r} for query {position}; one finite number is expected")
