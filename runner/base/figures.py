"""Figures as text: fixed places, signs and shares."""

import re

from runner.base.canonical import JSON
from runner.base.records import SCORE_UNIT

PLACES = 3
"""Of every score and difference, so that levels subtract to the differences beside them."""

MOST_PLACES = 4
"""What thresholds compare."""


def round4(value: float) -> float:
    """Return a figure at the four places that the page shows and that every threshold compares.

    The page reads results.json, which holds nine places: 0.01995000004 is 0.0199 there, not 0.0200.
    """
    return round(round(value, 9), 4)


def p_text(p: float) -> str:
    """Return a p-value at four places; one that would round to zero says so, since none is zero."""
    return "<0.0001" if p < 0.00005 else f"{p:.4f}"


def p_beside_alpha(p: float, alpha: float) -> str:
    """Return a p-value at two digits, and as many more as show on which side of `alpha` it lies; at most four places.

    >>> [p_beside_alpha(p, 0.05) for p in (0.2072, 0.0504, 0.0031, 0.00001)]
    ['0.21', '0.0504', '0.0031', '<0.0001']
    """
    for digits in (2, 3):
        # Two places from 0.1 up, three from 0.01 up, if they show the true side of alpha; else all four.
        shown = round(p, digits)
        if shown >= 10.0 ** (1 - digits) and (shown > alpha) == (round4(p) > alpha):
            return f"{p:.{digits}f}"
    return p_text(p)


def p_and_bar(p: float, bar: float) -> tuple[str, str]:
    """Return a p-value and the bar that it may reach, at two digits each and at as many more as show its side.

    >>> p_and_bar(0.012, 0.04), p_and_bar(0.00143, 0.01 / 7), p_and_bar(0.00000012, 0.05)
    (('0.012', '0.04'), ('0.00143', '0.001429'), ('<0.0001', '0.05'))
    """
    shown = ("", "")
    for digits in range(2, 10):
        shown = (f"{p:.{digits}g}", f"{bar:.{digits}g}")
        if (float(shown[0]) > float(shown[1])) == (p > bar):
            break
    return (shown[0] if p >= 0.0001 else "<0.0001"), shown[1]


def whole_percent(share: float) -> str:
    """Return a share as whole per cent; one that is not whole but would be printed as 0 or 100 % says so."""
    if 0 < share < 0.005:
        return "less than 1 %"
    return "more than 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def gain_text(value: float) -> str:
    """Return a difference at four places with its sign; none is printed as -0.0000."""
    return f"{round4(value) + 0.0:+.4f}"


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """Return a mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [figure_beside_bar(each, bar) for each in (mean, low, high)]


def figure_beside_bar(value: float, bar: float, fewest: int = PLACES) -> str:
    """Return a difference with its sign, at `fewest` places and as many more as show its side.

    Its side of 0 and of `bar`, at no more than the four places that are compared. A value at the bar reads as the bar.

    >>> [figure_beside_bar(value, 0.02) for value in (0.0372, 0.0194, 0.01996, -0.0004)]
    ['+0.037', '+0.019', '+0.020', '-0.0004']
    """
    sides = _sides(round4(value), bar)
    digits = next((n for n in range(fewest, MOST_PLACES) if _sides(round(value, n), bar) == sides), MOST_PLACES)
    shown = round(round4(value) if digits == MOST_PLACES else value, digits)
    return f"{shown:+.{digits}f}" if shown else f"{0:.{digits}f}"


def _sides(value: float, bar: float) -> tuple[bool, ...]:
    return value > 0, value < 0, value > bar, value < bar


WHOLE = 2.0**53
"""Up to here a float holds every whole number."""

_HYPHEN_SIGN = re.compile(r"(?<![^ (\[])-(?=\d)")


def places(value: float, digits: int = 4) -> str:
    """Return a figure at fixed places with a true minus sign, which screen readers speak; never a negative zero."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "\u2212" if float(text) else "")


def signed(value: float, digits: int = 4) -> str:
    """Return a difference with its sign as text; none if it rounds to zero."""
    text = places(value, digits)
    return f"+{text}" if float(f"{value:.{digits}f}") > 0 else text


def percent(share: float) -> str:
    """Return a share as per cent at two places; what would round to 0.00 but is not zero says so."""
    if 0 < share < 0.00005:
        return "<\u20090.01\u202f%"
    return f"{100 * share:.2f}\u202f%"


def dollars(value: float) -> str:
    """Return US dollars at two places; what would round to 0.00 but is not zero says so."""
    return "<\u20090.01" if 0 < value < 0.005 else places(value, 2)


def figure(value: JSON) -> str:
    """Return any scalar of a JSON file as a reader expects it: whole numbers grouped, six digits of others, yes and no.

    >>> figure(2821632.0), figure(61.2512345), figure(-3), figure(True), figure("")
    ('2,821,632', '61.2512', '−3', 'yes', 'empty')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < WHOLE):
        return f"{int(value):,}".replace("-", "\u2212")
    if isinstance(value, float):
        return f"{value:,.6g}".replace("-", "\u2212")
    return str(value) or "empty"


def said(sentence: str) -> str:
    """Return a sentence whose differences have a hyphen for a sign with a minus that screen readers speak.

    >>> said("gains -0.0271 [-0.05, +0.01] as e5-small x fixed-512 does")
    'gains −0.0271 [−0.05, +0.01] as e5-small x fixed-512 does'
    """
    return type(sentence)(_HYPHEN_SIGN.sub("\u2212", sentence))  # markup stays markup


def per_query(value: int) -> str:
    """Return a per-query score, an integer of 1e-9, at two places."""
    return places(value / SCORE_UNIT, 2)
