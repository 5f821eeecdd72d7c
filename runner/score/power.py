"""How small a difference a number of queries can show, and how many queries show a difference."""

import math
from bisect import bisect_left
from statistics import NormalDist

DEFAULT_SD = 0.15
"""SD of per-query nDCG@10 differences if nothing was measured yet: the middle of .10-.20 seen between cells."""

MOST_QUERIES = 10_000
"""Above this many no number is named: nobody judges them."""


def minimum_detectable_effect(
    n_queries: int, sd: float = DEFAULT_SD, alpha: float = 0.05, *, power: float = 0.8
) -> float:
    """The mean paired difference that a two-sided test at `alpha` shows with this power.

    (t_{1-alpha/2} + t_power) sd / sqrt(n) with n - 1 degrees of freedom; infinite below 3 queries.

    >>> round(minimum_detectable_effect(25, 0.15), 3)
    0.088
    """
    if n_queries < 3:
        return math.inf
    df = n_queries - 1
    return (t_quantile(1 - alpha / 2, df) + t_quantile(power, df)) * sd / math.sqrt(n_queries)


def queries_needed(gain: float, sd: float, *, alpha: float, power: float = 0.8) -> int | None:
    """The fewest queries, 3 or more, whose minimum detectable effect is at most `gain`.

    None if that takes more than MOST_QUERIES, as a gain of 0 always does. ValueError for a negative gain or sd.

    >>> queries_needed(0.02, 0.15, alpha=0.05)
    444
    """
    if gain < 0 or sd < 0:
        raise ValueError(f"gain {gain} and sd {sd} must not be negative")
    if gain == 0:
        return None
    numbers = range(3, MOST_QUERIES + 1)
    place = bisect_left(numbers, True, key=lambda n: minimum_detectable_effect(n, sd, alpha, power=power) <= gain)
    return numbers[place] if place < len(numbers) else None


def t_quantile(probability: float, df: int) -> float:
    """Student's t quantile, to about 1e-12.

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
    """Probability that Student's t lies at least |t| from 0, to about 1e-15; takes time in proportion to `df`.

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
