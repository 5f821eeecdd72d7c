"""What a number of queries can show: power of the one-sided test, and the least gain that shows.

A cell is confirmed if its mean gain reaches a bar (what the rule asks for) and a one-sided paired t test at `alpha`
rejects, which counts one more query than was asked, a loss of one standard deviation (runner/score/gain_test.py). Power
is that of the noncentral t in its normal approximation (Abramowitz & Stegun 26.7.10), within a point of the exact one
from 10 queries on; benchmarks/simulate_planning.py holds it to sign flips on real differences.
"""

import math
from statistics import NormalDist

DEFAULT_SD = 0.25
"""SD of per-query nDCG@10 differences to the baseline, as a plan reckons with them before there are results.

Measured: SciFact, 8 cells against MiniLM over whole documents, .12 to .41, median .29; the demo, 8 cells, median .26.
"""

POWER = 0.8

_Z = NormalDist()


def power(n_queries: int, gain: float, sd: float, alpha: float, *, bar: float = 0.0) -> float:
    """Return the chance that a cell of this true gain is confirmed: mean at `bar` or above, one-sided test at `alpha`.

    0 below 3 queries. A sd of 0 leaves no chance in it: 1 or 0.

    >>> [round(power(n, 0.05, 0.2, 0.04, bar=0.02), 2) for n in (25, 50, 100)]
    [0.23, 0.43, 0.73]
    """
    if n_queries < 3:
        return 0.0
    if sd <= 0:
        return float(gain >= max(bar, 1e-12))
    critical, spread = _critical(n_queries + 1, alpha)
    shift = (n_queries * gain / sd - 1) / math.sqrt(n_queries + 1)
    # Both conditions are on one mean, so that the harder of them decides.
    return _Z.cdf(min((shift - critical) / spread, (gain - bar) * math.sqrt(n_queries) / sd))


def least_gain(
    n_queries: int, sd: float, alpha: float, *, bar: float = 0.0, power: float = POWER, losses: int = 1
) -> float:
    """Return the true mean gain that is confirmed with this power; infinite below 3 queries.

    For a two-sided test give half its alpha, and no `losses` that it counts beside the queries.

    >>> round(least_gain(50, 0.2, 0.04, bar=0.02), 3)
    0.079
    """
    if n_queries < 3:
        return math.inf
    critical, spread = _critical(n_queries + losses, alpha)
    z, error = _Z.inv_cdf(power), sd / math.sqrt(n_queries)
    shown = sd * (losses + math.sqrt(n_queries + losses) * (critical + z * spread)) / n_queries
    # What the test takes to reject, and what the mean takes to reach the bar.
    return max(shown, bar + z * error)


def _critical(n_queries: int, alpha: float) -> tuple[float, float]:
    """Return what a shifted t statistic is held to, as a normal variable: its critical value and its SD."""
    df = n_queries - 1
    t = t_quantile(1 - alpha, df)
    return t * (1 - 1 / (4 * df)), math.sqrt(1 + t * t / (2 * df))


def t_quantile(probability: float, df: int) -> float:
    """Return Student's t quantile, to about 1e-12.

    Newton's method from the normal quantile: for positive t it lies below the t quantile and the distribution is
    concave, so every step goes up and none too far.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    t = NormalDist().inv_cdf(probability)
    for _ in range(100):
        density = math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = (t_tails(t, df) / 2 - (1 - probability)) / density
        t += step
        if step <= 1e-13 * t:
            break
    return t


def t_tails(t: float, df: int) -> float:
    """Return the chance that Student's t lies at least |t| from 0, to about 1e-15; takes time in proportion to `df`.

    The finite series for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4). Not scipy.special, whose
    import alone would lengthen a dry run by half.
    """
    angle = math.atan(abs(t) / math.sqrt(df))
    cosine, odd = math.cos(angle), df % 2
    total, term = 0.0, cosine if odd else 1.0
    for exponent in range(odd, df - 1, 2):
        total += term
        term *= cosine * cosine * (exponent + 1) / (exponent + 2)
    within = math.sin(angle) * total
    if odd:
        within = (angle + within) * 2 / math.pi
    return max(0.0, 1 - within)
