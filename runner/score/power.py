"""What a number of queries can show: power of the one-sided test, and the least gain that shows.

A cell is shown to gain if its mean reaches a bar (what the rule asks for) and runner/score/gain_test.py rejects. That
test looks at the mean over the root mean square alone, as Student's own t does, so it is Student's t over the queries
themselves, held to a higher critical value; with normal differences its power is a tail of the noncentral t. Taken is
the normal approximation of that (Abramowitz & Stegun 26.7.10), within a point of the exact one from 10 queries on;
benchmarks/simulate.py holds it to real differences.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import NormalDist, mean, stdev

from runner.score.student import t_quantile

DEFAULT_SD = 0.25
"""SD of per-query nDCG@10 differences to the baseline, as a plan reckons with them before there are results.

Measured: SciFact, 8 cells against MiniLM over whole documents, .12 to .41, median .29; the demo, 8 cells, median .26.
"""

POWER = 0.8

_Z = NormalDist()


def power(n_queries: float, gain: float, sd: float, alpha: float, *, bar: float = 0.0) -> float:
    """Return the chance that a cell of this true gain is shown: mean at `bar` or above, one-sided test at `alpha`.

    0 if no such number of queries can reject. A sd of 0 leaves no chance in it: 1 or 0.

    >>> [round(power(n, 0.05, 0.2, 0.04, bar=0.02), 2) for n in (25, 50, 100)]
    [0.21, 0.43, 0.73]
    """
    critical = critical_t(n_queries, alpha)
    if math.isinf(critical):
        return 0.0
    if sd <= 0:
        return float(gain >= max(bar, 1e-12))
    shift = gain * math.sqrt(n_queries) / sd
    needed, spread = _as_normal(critical, n_queries - 1)
    # Both conditions are on one mean, so that the harder of them decides.
    return _Z.cdf(min((shift - needed) / spread, shift - bar * math.sqrt(n_queries) / sd))


def least_gain(n_queries: float, sd: float, alpha: float, *, bar: float = 0.0, power: float = POWER) -> float:
    """Return the true mean gain that is shown with this power; infinite if so few queries show none.

    >>> round(least_gain(50, 0.2, 0.04, bar=0.02), 3)
    0.079
    """
    critical = critical_t(n_queries, alpha)
    if math.isinf(critical):
        return math.inf
    needed, spread = _as_normal(critical, n_queries - 1)
    z = _Z.inv_cdf(power)
    # What the test takes to reject, and what the mean takes to reach the bar.
    return max(sd * (needed + z * spread) / math.sqrt(n_queries), bar + z * sd / math.sqrt(n_queries))


def needed_n(gain: float, sd: float, alpha: float, *, bar: float = 0.0, power: float = POWER) -> int:
    """Return the least number of queries that show this true gain with this power; ValueError if none does.

    >>> needed_n(0.05, 0.2, 0.04, bar=0.02), needed_n(0.1, 0.2, 0.05)
    (118, 32)
    """
    if not (bar < gain < math.inf and 0 < sd < math.inf and 0 < power < 1):
        raise ValueError(
            f"no number of queries shows a gain of {gain:g} above a bar of {bar:g} at an SD of {sd:g} with a power of "
            f"{power:g}"
        )
    # What shows falls as queries are added, so that the first number is found by doubling and halving.
    many = 2
    while least_gain(many, sd, alpha, bar=bar, power=power) > gain:
        many *= 2
    return bisect_left(range(many), -gain, key=lambda n: -least_gain(n, sd, alpha, bar=bar, power=power))


def cohens_d(differences: Sequence[float]) -> float:
    """Return the mean of paired differences by their SD (n - 1), Cohen's d_z; ValueError if they are all alike.

    >>> round(cohens_d([0.1, 0.3, -0.1, 0.2]), 3)
    0.732
    """
    if len(set(differences)) < 2:
        raise ValueError("differences that are all alike, or a single one, have no SD to measure their mean by")
    return mean(differences) / stdev(differences)


def critical_t(n_queries: float, alpha: float) -> float:
    """Return what Student's t over the queries alone must reach for the test with its phantom to reject at `alpha`.

    Infinite if differences that are all alike would not do. ValueError unless `alpha` is between 0 and 1.

    >>> round(critical_t(50, 0.05), 3), critical_t(2, 0.05)
    (1.848, inf)
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha:g}, and a chance between 0 and 1 is expected")
    if n_queries < 2:
        return math.inf
    t = t_quantile(1 - alpha, n_queries)
    # Back from the phantom's t to the mean in root mean squares, and from there to the t of the queries.
    u = (1 + (n_queries + 1) * t / math.sqrt(n_queries + t * t)) / n_queries
    return u * math.sqrt((n_queries - 1) / (1 - u * u)) if u < 1 else math.inf


def _as_normal(t: float, df: float) -> tuple[float, float]:
    """Return what a noncentral t is held to, as a normal variable about its shift: the critical value, and its SD."""
    return t * (1 - 1 / (4 * df)), math.sqrt(1 + t * t / (2 * df))
