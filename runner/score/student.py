"""Student's t distribution: its tail and its quantile, without scipy, whose import would lengthen a dry run by half."""

import math
from bisect import bisect_left
from itertools import count


def t_tail(t: float, df: float) -> float:
    """Return the chance that Student's t is `t` or more, to a relative 1e-12; `df` need not be whole.

    >>> round(t_tail(2.0, 10), 6)
    0.036694
    """
    if t < 0:
        return 1 - t_tail(-t, df)
    # Half of the incomplete beta function I_x(df / 2, 1 / 2); y is 1 - x without its rounding.
    x, y = df / (df + t * t), 1 / (1 + df / (t * t)) if t else 0.0
    # Its continued fraction converges fast on one side of the distribution's bulk; on the other I is 1 - I_y(b, a).
    if x < (df + 2) / (df + 5):
        return _beta(df / 2, 0.5, x, y) / 2
    return (1 - _beta(0.5, df / 2, y, x)) / 2


def t_quantile(probability: float, df: float) -> float:
    """Return Student's t quantile, to 1e-12, up to a million."""
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    return bisect_left(range(10**18), True, key=lambda unit: t_tail(unit / 1e12, df) <= 1 - probability) / 1e12


def _beta(a: float, b: float, x: float, y: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), of which a or b is 1/2; `y` is 1 - x."""
    if not x:
        return 0.0
    # DLMF 8.17.22, by the modified method of Lentz (Press et al. 2007, sections 5.2 and 6.4).
    value, above, below = 1.0, 1.0, 0.0
    for step in count(1):
        m = step // 2
        term = -(a + m) * (a + b + m) if step % 2 else m * (b - m)
        term *= x / ((a + step - 1) * (a + step))
        above, below = 1 + term / above or 1e-300, 1 / (1 + term * below or 1e-300)
        value *= above * below
        if abs(above * below - 1) < 3e-16:
            break
    log_front = _log_ratio(max(a, b)) - math.log(math.pi) / 2 + a * math.log(x) + b * math.log(y)
    return math.exp(log_front) / (a * value)


def _log_ratio(a: float) -> float:
    """Return log of Gamma(a + 1/2) / Gamma(a)."""
    if a < 30:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    # Stirling's series of the difference (DLMF 5.11.13): two large logarithms would lose what they share.
    q = 1 / (a * a)
    return math.log(a) / 2 - (1 / 8 - q * (1 / 192 - q * (1 / 640 - q * 17 / 14336))) / a
