"""How small a difference a number of queries can show."""

import math
from statistics import NormalDist

DEFAULT_SD = 0.15
"""SD of per-query nDCG@10 differences where nothing was measured yet: the middle of .10-.20 seen between cells."""


def t_quantile(probability: float, df: int) -> float:
    """Student's t quantile by the Cornish-Fisher expansion (Abramowitz & Stegun 26.7.5); within 0.2 % for df >= 5."""
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(df) ** power for power, term in enumerate(terms, start=1))


def minimum_detectable_effect(n_queries: int, sd: float = DEFAULT_SD) -> float:
    """The mean paired difference that a two-sided 5 % test shows with 80 % power.

    (t_.975 + t_.80) sd / sqrt(n) with n - 1 degrees of freedom; infinite below 3 queries.
    """
    if n_queries < 3:
        return math.inf
    return (t_quantile(0.975, n_queries - 1) + t_quantile(0.8, n_queries - 1)) * sd / math.sqrt(n_queries)
