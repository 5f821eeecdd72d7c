"""The four nulls without a draw: for named measures their exact moments, for all what labels and pool allow.

What the null gate's stages hand on: scores of queries under their own golds and under the nulls A to D.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.progress import say
from runner.base.records import Ints
from runner.gate.single_gold.bench import Inputs
from runner.gate.single_gold.rank_measures import Floats, Measure, gold_matches

NULLS = ("A", "B", "C", "D")
"""A: gold labels exchanged by a permutation of the distinct ones. B: each query's gold drawn from the distinct labels.

C: each query's list drawn from the pool. D: each query's gold drawn from the golds as often as they occur.
"""

_LINES = 10


@dataclass(frozen=True, slots=True)
class Reach:
    """What the best conceivable engine could do against each null (4,), whatever this one did.

    `log_chance` is the natural logarithm of the probability that a draw equals the golds there are (C: that every
    random list has its gold at the best rank); `delta` the greatest sum over the queries of score less null score;
    `signal` the greatest square of such a sum divided by the null's variance.
    """

    log_chance: Floats
    delta: Floats
    signal: Floats


@dataclass(frozen=True, slots=True)
class Outcome:
    """`real` (queries,) are scores, `expected` (4, queries) what each null scores on average.

    `variance` (4,) is that of a null's sum over the queries, `draws` (4, trials) are such sums, None where p is to
    come from the moments. `one_label` is true where no stratum has two different golds.
    """

    real: Floats
    expected: Floats
    variance: Floats
    draws: Floats | None
    reach: Reach
    one_label: bool


def pooled(outcomes: Sequence[Outcome]) -> Outcome:
    """All strata as one bench, in which golds stay within their stratum."""
    draws = [outcome.draws for outcome in outcomes if outcome.draws is not None]
    reaches = [outcome.reach for outcome in outcomes]
    return Outcome(
        np.concatenate([outcome.real for outcome in outcomes]),
        np.concatenate([outcome.expected for outcome in outcomes], axis=1),
        np.sum([outcome.variance for outcome in outcomes], axis=0),
        np.sum(draws, axis=0) if draws else None,
        Reach(
            np.sum([reach.log_chance for reach in reaches], axis=0),
            np.sum([reach.delta for reach in reaches], axis=0),
            np.sum([reach.signal for reach in reaches], axis=0),
        ),
        all(outcome.one_label for outcome in outcomes),
    )


class Progress:
    """Seconds by stage, and lines on stderr where they are asked for."""

    def __init__(self, n_queries: int, *, shown: bool) -> None:
        self.seconds = dict.fromkeys(["real", *(f"null_{null.lower()}" for null in NULLS)], 0.0)
        self._n_queries = n_queries
        self._shown = shown
        self._done = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds what passes inside to the stage's seconds."""
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began

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
    """For each stratum, which of `rows` are its queries'."""
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
