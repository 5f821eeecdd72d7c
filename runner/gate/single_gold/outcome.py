"""What the null gate's stages hand on: scores of queries under their own golds and under the nulls A to D."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from runner.base.progress import say
from runner.gate.single_gold.rank_measures import Floats

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
