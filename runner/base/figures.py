"""Figures as text: fixed places, signs, shares, and no finer than an interval allows."""

import re

from runner.base.canonical import JSON
from runner.base.records import SCORE_UNIT
from runner.decide.tiers import places_allowed

SHADES = 5

WHOLE = 2.0**53
"""Up to here a float holds every whole number."""

_HYPHEN_SIGN = re.compile(r"(?<![^ (\[])-(?=\d)")


def places(value: float, digits: int = 4) -> str:
    """A figure at fixed places with a true minus sign, which screen readers speak; never a negative zero."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "\u2212" if float(text) else "")


def signed(value: float, digits: int = 4) -> str:
    """A difference with its sign as text; none where it rounds to zero."""
    text = places(value, digits)
    return f"+{text}" if float(f"{value:.{digits}f}") > 0 else text


def percent(share: float) -> str:
    """A share as per cent at two places; what would round to 0.00 but is not zero says so."""
    if 0 < share < 0.00005:
        return "<\u20090.01\u202f%"
    return f"{100 * share:.2f}\u202f%"


def dollars(value: float) -> str:
    """US dollars at two places; what would round to 0.00 but is not zero says so."""
    return "<\u20090.01" if 0 < value < 0.005 else places(value, 2)


def figure(value: JSON) -> str:
    """Any scalar of a JSON file as a reader expects it: whole numbers grouped, six digits of others, yes and no.

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
    """A sentence of the results, whose differences have a hyphen for a sign, with a minus that screen readers speak.

    >>> said("gains -0.0271 [-0.05, +0.01] as e5-small x fixed-512 does")
    'gains −0.0271 [−0.05, +0.01] as e5-small x fixed-512 does'
    """
    return _HYPHEN_SIGN.sub("\u2212", sentence)


def per_query(value: int) -> str:
    """A per-query score, an integer of 1e-9, at two places."""
    return places(value / SCORE_UNIT, 2)


def shade(value: int) -> int:
    """The step of the tint behind a per-query score: 0 for the lowest fifth to SHADES - 1 for the highest."""
    return min(value * SHADES // SCORE_UNIT, SHADES - 1)


def fitting(value: float, low: float, high: float) -> str:
    """A figure at the places that its interval allows: two digits of the half width, one where it is 3.55 or more.

    3.55 is of its leading digit, so 0.0355 too. At least one place and at most four; of an interval without width two
    where its ends take no more, else four.

    >>> fitting(0.5234, 0.41, 0.63), fitting(0.5234, 0.52, 0.53), fitting(0.5, 0.5, 0.5), fitting(0.125, 0.125, 0.125)
    ('0.52', '0.523', '0.50', '0.1250')
    """
    return places(value, places_allowed(low, high))


def fitting_signed(value: float, low: float, high: float) -> str:
    """As `fitting`, with the sign as text; none where it rounds to zero."""
    return signed(value, places_allowed(low, high))
