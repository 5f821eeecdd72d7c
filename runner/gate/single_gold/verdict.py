"""From scores and null laws to p-values, verdicts and the sentences that explain them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from runner.base.records import Verdict
from runner.gate.single_gold.bench import Floats

NULLS = ("A", "B", "C", "D")
"""A: gold labels exchanged by a permutation of the distinct ones. B: each query's gold drawn from the distinct labels.

C: each query's list drawn from the pool. D: each query's gold drawn from the golds as often as they occur.
"""

_SAME = 1e-9
"""What differs by no more is equal: means, thresholds, p-values. Far above rounding, far below a query's weight."""

_Z = NormalDist().inv_cdf(0.975)

_EXCHANGED = {
    "A": "exchanging labels",
    "B": "drawing labels evenly",
    "C": "drawing random lists",
    "D": "drawing labels by frequency",
}


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

    `variance` (4,) is that of a null's sum over the queries, `draws` (4, trials) are such sums, None if p is to
    come from the moments. `one_label` is true if no stratum has two different golds.
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


@dataclass(frozen=True, slots=True)
class NullFinding:
    """One null against the real mean.

    `sd` is that of the null's mean over the queries; `interval` holds the ends of delta's 95 % interval over queries
    by the normal approximation, None for a single query; `decides` is true if some engine could have passed.
    `reason` is a sentence, "" on a pass.
    """

    mean: float
    delta: float
    sd: float
    p: float
    smallest_p: float
    interval: list[float] | None
    decides: bool
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The four nulls by letter; `verdict` is "fail" where one fails, else "insufficient" where one is, else "pass"."""

    n_queries: int
    real_mean: float
    nulls: dict[str, NullFinding]
    verdict: Verdict

    @property
    def decides(self) -> bool:
        """Whether some engine could have passed every null."""
        return all(null.decides for null in self.nulls.values())

    @property
    def reasons(self) -> list[str]:
        """A sentence for every null that is not passed."""
        return [null.reason for null in self.nulls.values() if null.reason]


def findings(outcome: Outcome, tau: float, alpha: float) -> Findings:
    """Every null's verdict: "pass" with p <= alpha and delta >= tau.

    What is not passed is "insufficient" if no engine could have passed it, for want of draws, queries or labels,
    or where p is a bound alone and delta is large enough; it is "fail" elsewhere.
    """
    nulls = {null: _finding(outcome, number, tau, alpha) for number, null in enumerate(NULLS)}
    verdicts = [null.verdict for null in nulls.values()]
    overall: Verdict = "fail" if "fail" in verdicts else "insufficient" if "insufficient" in verdicts else "pass"
    return Findings(len(outcome.real), float(np.mean(outcome.real)), nulls, overall)


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """The level at which each p is tested (Holm 1979): alpha / m for the least, alpha / (m - 1) for the next, ...

    From the first p that misses its level on, all are tested at that level, which they miss as well.
    """
    levels = [0.0] * len(p_values)
    left = len(p_values)
    for position in sorted(range(len(p_values)), key=p_values.__getitem__):
        levels[position] = alpha / left
        left -= at_most(p_values[position], levels[position])
    return levels


def unsettled(null: NullFinding, n_trials: int, tau: float, alpha: float, *, sampled: bool) -> str:
    """What another seed could change about this null, as a clause; "" where it could change nothing."""
    if not (null.decides and n_trials):
        return ""
    exceeded = null.p - (1 - null.p) / n_trials
    doubtful = abs(exceeded - alpha) <= _Z * math.sqrt(alpha * (1 - alpha) / n_trials)
    if at_most(tau, null.delta) and doubtful and cantelli(null.sd**2, null.delta) > alpha:
        return f"p {null.p:.4g} is too near {alpha:.4g} for {n_trials} draws"
    if sampled and at_most(null.p, alpha) and abs(null.delta - tau) <= _Z * null.sd / math.sqrt(n_trials):
        return f"delta {_shown(null.delta)} is too near tau {tau:g} for {n_trials} draws"
    return ""


def at_most(value: float, limit: float) -> bool:
    """Whether value <= limit, rounding errors aside."""
    return value <= limit + _SAME


def cantelli(variance: float, delta: float) -> float:
    """The most that any law with this variance can have at or beyond its mean plus delta (Cantelli 1928)."""
    if delta <= _SAME:
        return 1.0
    return variance / (variance + delta**2)


class _Tail(NamedTuple):
    """The p of a null, the least that any engine could have had, and what a perfect engine can expect."""

    p: float
    smallest: float
    perfect: float


def _finding(outcome: Outcome, number: int, tau: float, alpha: float) -> NullFinding:
    n = len(outcome.real)
    real, mean = float(np.mean(outcome.real)), float(np.mean(outcome.expected[number]))
    delta, sd = real - mean, math.sqrt(outcome.variance[number]) / n
    tail, best = _tail(outcome, number), float(outcome.reach.delta[number]) / n
    decides = at_most(tail.perfect, alpha) and at_most(tau, best)
    # A bound above alpha proves nothing, since the true p may be below; nor do draws that fail a perfect engine.
    open_question = at_most(tau, delta) and (outcome.draws is None or at_most(best, delta))
    if at_most(tail.p, alpha) and at_most(tau, delta):
        verdict: Verdict = "pass"
        reason = ""
    elif decides and not open_question:
        verdict = "fail"
        reason = _why_failed(NULLS[number], delta, tail.p, tau, alpha)
    else:
        verdict = "insufficient"
        reason = _why_undecided(outcome, number, tail.perfect, best, tau, alpha)
    interval = _interval(outcome, number)
    return NullFinding(mean, delta, sd, tail.p, tail.smallest, interval, decides, verdict, reason)


def _tail(outcome: Outcome, number: int) -> _Tail:
    """From draws with the real outcome among them (Phipson & Smyth 2010), or Cantelli's bound without draws.

    Even a perfect engine is equalled by the draws that happen to repeat its golds.
    """
    n, total = len(outcome.real), float(outcome.real.sum())
    if outcome.draws is None:
        delta = (total - float(outcome.expected[number].sum())) / n
        least = float(1 / (1 + outcome.reach.signal[number]))
        return _Tail(cantelli(float(outcome.variance[number]) / n**2, delta), least, least)
    draws, chance = outcome.draws[number], math.exp(outcome.reach.log_chance[number])
    tie = _SAME * n * max(1.0, float(np.abs(outcome.real).max()))
    reached, trials = int((draws >= total - tie).sum()), len(draws)
    p = max(chance, (1 + reached) / (1 + trials))
    return _Tail(p, max(chance, 1 / (1 + trials)), (1 + chance * trials) / (1 + trials))


def _shown(delta: float) -> str:
    """In six places at most, so that nothing below a threshold looks equal to it."""
    return f"{round(delta, 6) + 0.0:g}"


def _interval(outcome: Outcome, number: int) -> list[float] | None:
    differences = outcome.real - outcome.expected[number]
    n = len(differences)
    if n == 1:
        return None
    mean, half = float(differences.mean()), _Z * float(differences.std(ddof=1)) / math.sqrt(n)
    return [mean - half, mean + half]


def _why_failed(null: str, delta: float, p: float, tau: float, alpha: float) -> str:
    if at_most(p, alpha):
        return f"null {null}: beats it (p {p:.4g}), but by {_shown(delta)}, less than tau {tau:g}"
    if at_most(tau, delta):
        return f"null {null}: above it by {_shown(delta)}, but p {p:.4g} is more than {alpha:.4g}"
    return f"null {null}: does not beat it (delta {_shown(delta)}, p {p:.4g})"


def _why_undecided(outcome: Outcome, number: int, perfect: float, best: float, tau: float, alpha: float) -> str:
    null, chance = NULLS[number], outcome.reach.log_chance[number]
    if chance == 0 and outcome.one_label and null != "C":
        return f"null {null}: no two different gold labels, so {_EXCHANGED[null]} changes nothing"
    if chance == 0:
        return f"null {null}: {_EXCHANGED[null]} cannot change any score"
    if not at_most(tau, best):
        return f"null {null}: a perfect engine would beat it by {_shown(best)} only, less than tau {tau:g}"
    if not at_most(perfect, alpha):
        more = ""
        if outcome.draws is not None and math.exp(chance) < alpha:
            more = f"; n_trials={math.ceil((1 - alpha) / (alpha - math.exp(chance)) - _SAME)} or more would do"
        return f"null {null}: a perfect engine could not expect p below {perfect:.4g}, more than {alpha:.4g}{more}"
    if outcome.draws is None:
        return f"null {null}: its variance alone does not show p <= {alpha:.4g}; draws would settle it"
    return f"null {null}: no engine could do better, and yet so few draws do not show p <= {alpha:.4g}; raise n_trials"
