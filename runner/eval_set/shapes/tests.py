"""The shape of a cell's measures, paired tests and null gates in results.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.records import GuardState, Verdict
from runner.base.schema import Count, Ends, FrozenModel, Share

SingleGoldNull = Literal["permuted gold", "uniform gold", "random retrieval", "marginal-matched gold"]


class MeasureResult(FrozenModel):
    """A cell's mean of a measure with its interval, and the per-query values in units of 1e-9."""

    mean: float
    low: float
    high: float
    per_query: list[int]


class Difference(FrozenModel):
    """Cell minus baseline, paired by query."""

    mean: float
    low: float
    high: float
    wins: Count
    ties: Count
    losses: Count


class PairedTestResult(FrozenModel):
    """Cell minus baseline in nDCG@10, tested by flipping signs query by query; two-sided, intervals at 1 - alpha.

    `interval` inverts the test of this cell alone; `simultaneous`, `p_adjusted` (max-T), `p_skew` (max-T with a
    statistic that skewed differences do not mislead) and `p_holm` hold over all preregistered cells at once and are
    null for a cell outside of that family. `p_t` is the paired t test's.
    `left_out` is the least and the greatest mean that leaving one query out gives, `influential` the query whose
    absence moves it most.
    """

    p: float
    exact: bool
    p_t: float
    p_adjusted: float | None
    p_skew: float | None
    p_holm: float | None
    interval: Ends
    simultaneous: Ends | None
    cohens_d: float
    sd: float
    left_out: Ends
    influential: str


class GuardResult(FrozenModel):
    """Whether Recall@10 falls by more than the rule allows: one-sided bounds at 1 - alpha, and p of "it does"."""

    state: GuardState
    low: float
    high: float
    p: float


class NullResult(FrozenModel):
    """One null (a row of runner/gate/nulls.py) against the real score, all in [0, 1].

    `low`, `median` and `high` are the 2.5, 50 and 97.5 % quantiles of the draws (order statistics); `delta` is real
    less mean; `p` is (1 + draws at least as good) / (1 + draws), and `smallest_p` the least it could have been,
    below which it is never given. A
    constant list ("most retrieved", "length sorted") is one system without a distribution: sd is 0, low, median and
    high are its mean, and p is that of flipping the signs of the differences to it. `dots` stand for the draws in equal
    parts, ascending; a constant list has none.
    """

    name: str
    mean: float
    sd: float
    low: float
    median: float
    high: float
    dots: list[float]
    delta: float
    p: float
    smallest_p: float
    verdict: Verdict


class GateVerdict(FrozenModel):
    """A cell's score against every null; `verdict` is "pass" if no null stands against it."""

    cell: str
    measure: Literal["ndcg@10"]
    real: float
    draws: Count
    tau: Share
    alpha: float
    nulls: Annotated[list[NullResult], Field(min_length=1)]
    verdict: Verdict


class SingleGoldNullResult(FrozenModel):
    """One null of the single-gold gate: its exact expectation, and p from draws."""

    name: SingleGoldNull
    mean: float
    delta: float
    p: float
    smallest_p: float
    passed: bool


class SingleGoldVerdict(FrozenModel):
    """A cell against nulls A to D, if each query's only right answer is its highest-graded document."""

    measure: Literal["recall@10", "mrr@10"]
    n_queries: Count
    real: float
    nulls: Annotated[list[SingleGoldNullResult], Field(min_length=1)]
    verdict: Verdict
    reasons: list[str]
