"""Candidate and confirmed, cell by cell: criterion 5 on point estimates, and what a gain needs to hold up.

With figures as text for the sentences that say so: no finer than their intervals allow, or than shows their side.
"""

import math
from collections.abc import Sequence
from typing import Literal

from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.results import GuardState, PairedTestResult, Verdict

MOST_PLACES = 4
"""What thresholds compare."""


def shown(value: float) -> float:
    """A figure at the four places that the page shows and that every threshold compares.

    The page reads results.json, which holds nine places: 0.01995000004 is 0.0199 there, not 0.0200.
    """
    return round(round(value, 9), 4)


def p_text(p: float) -> str:
    """A p-value at four places; one that would round to zero says so, since none is zero."""
    return "<0.0001" if p < 0.00005 else f"{p:.4f}"


def p_telling(p: float, alpha: float) -> str:
    """A p-value at two digits, and as many more as show on which side of `alpha` it lies; at most four places.

    >>> p_telling(0.2072, 0.05), p_telling(0.0504, 0.05), p_telling(0.0031, 0.05), p_telling(0.00001, 0.05)
    ('0.21', '0.0504', '0.0031', '<0.0001')
    """
    for digits in (2, 3):
        told = round(p, digits)
        if told >= 10.0 ** (1 - digits) and (told > alpha) == (shown(p) > alpha):
            return f"{p:.{digits}f}"
    return p_text(p)


def whole_percent(share: float) -> str:
    """A share that is not whole but would be printed as 0 or 100 % says so."""
    if 0 < share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


Side = Literal["above", "below", "not told apart"]
"""Where a cell stands to the baseline, once every cell compared was allowed for."""


def side_of(simultaneous: Sequence[float], p_skew: float, alpha: float) -> Side:
    """A side where the simultaneous interval lies wholly on it, and skewed differences do not explain that."""
    low, high = map(shown, simultaneous)
    if shown(p_skew) > alpha or low <= 0 <= high:
        return "not told apart"
    return "above" if low > 0 else "below"


def gain_text(value: float) -> str:
    """A difference at four places with its sign; none is printed as -0.0000."""
    return f"{shown(value) + 0.0:+.4f}"


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """A mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [telling(each, bar, low, high) for each in (mean, low, high)]


def telling(value: float, bar: float, low: float, high: float) -> str:
    """A difference with its sign, at the places that its interval allows and as many more as show its side.

    Its side of 0 and of `bar`, at no more than the four places that are compared. A value at the bar reads as the bar.

    >>> telling(0.0372, 0.02, -0.01, 0.08), telling(0.0194, 0.02, -0.03, 0.07), telling(-0.004, 0.02, -0.03, 0.07)
    ('+0.04', '+0.019', '-0.004')
    """
    sides = _sides(shown(value), bar)
    fitting = range(places_allowed(low, high), MOST_PLACES)
    digits = next((number for number in fitting if _sides(round(value, number), bar) == sides), MOST_PLACES)
    told = round(shown(value) if digits == MOST_PLACES else value, digits)
    return f"{told:+.{digits}f}" if told else f"{0:.{digits}f}"


def _sides(value: float, bar: float) -> tuple[bool, ...]:
    return value > 0, value < 0, value > bar, value < bar


def places_allowed(low: float, high: float) -> int:
    """How many places of a figure its interval allows: two digits of the half width, one from 3.55 of the first.

    At least one place and at most four; of an interval without width two where that is all of it.
    """
    half = abs(high - low) / 2
    if half < 10.0**-MOST_PLACES:
        return 2 if low == high == round(low, 2) else MOST_PLACES
    exponent = math.floor(math.log10(half))
    first = half / 10.0**exponent
    return max(1, min(MOST_PLACES, -exponent + (1 if first < 3.55 else 0)))


def interval_of(test: PairedTestResult) -> Sequence[float]:
    """The simultaneous interval of a tested cell, its own outside of the tested family."""
    return test.simultaneous or test.interval


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Whether differences to the baseline make a candidate, by the point estimates alone."""
    return shown(gain) >= rule.min_gain and shown(recall_change) >= -rule.max_recall_loss


def shortfalls(
    gain: float,
    p_adjusted: float | None,
    p_skew: float | None,
    guard: GuardState,
    gate: Verdict,
    judged: float,
    rule: Rule,
    alpha: float,
) -> list[str]:
    """What "it" does or is that keeps a cell from being confirmed, most telling first; empty where it is confirmed.

    Confirmed takes a gain of `min_gain`, an adjusted p of at most `alpha` by both statistics, Recall@10 shown not
    to fall by more than the rule allows, a null gate passed, and every hit that counts judged. A cell outside of
    the preregistered family has no adjusted p and is never confirmed.
    """
    found = []
    if shown(gain) < rule.min_gain:
        found.append(f"gains less than {rule.min_gain:g} nDCG@10")
    if p_adjusted is None or p_skew is None:
        found.append("has no p adjusted over the preregistered family")
    elif shown(p_adjusted) > alpha:
        found.append(f"may be chance (adjusted p {p_telling(p_adjusted, alpha)})")
    elif shown(p_skew) > alpha:
        found.append(f"may be chance, since its differences are skewed (p {p_telling(p_skew, alpha)})")
    if guard == "inferior":
        found.append(f"loses more than {rule.max_recall_loss:g} Recall@10")
    elif guard == "inconclusive":
        found.append(f"may lose more than {rule.max_recall_loss:g} Recall@10")
    if gate != "pass":
        found.append(f"does not pass the null gate ({gate})")
    if shown(judged) < 1:
        found.append("has unjudged hits")
    return found
