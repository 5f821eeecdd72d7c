"""Candidate and confirmed, cell by cell: criterion 5 on point estimates, and what a gain needs to hold up."""

from collections.abc import Sequence
from typing import Literal

from runner.result_schemas import GuardState, Verdict
from runner.schemas import Rule


def shown(value: float) -> float:
    """A figure at the four places that the page shows and that every threshold compares.

    The page reads results.json, which holds nine places: 0.01995000004 is 0.0199 there, not 0.0200.
    """
    return round(round(value, 9), 4)


def p_text(p: float) -> str:
    """A p-value at four places; one that would round to zero says so, since none is zero."""
    return "<0.0001" if p < 0.00005 else f"{p:.4f}"


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

    Confirmed takes a gain of `min_gain`, an adjusted p of at most `alpha` by either statistic, Recall@10 shown not
    to fall by more than the rule allows, a null gate passed, and every hit that counts judged. A cell outside of
    the preregistered family has no adjusted p and is never confirmed.
    """
    found = []
    if shown(gain) < rule.min_gain:
        found.append(f"gains less than {rule.min_gain:g} nDCG@10")
    if p_adjusted is None or p_skew is None:
        found.append("has no p adjusted over the preregistered family")
    elif shown(p_adjusted) > alpha:
        found.append(f"may be chance (adjusted p {p_text(p_adjusted)})")
    elif shown(p_skew) > alpha:
        found.append(f"may be chance, since its differences are skewed (p {p_text(p_skew)})")
    if guard == "inferior":
        found.append(f"loses more than {rule.max_recall_loss:g} Recall@10")
    elif guard == "inconclusive":
        found.append(f"may lose more than {rule.max_recall_loss:g} Recall@10")
    if gate != "pass":
        found.append(f"does not pass the null gate ({gate})")
    if shown(judged) < 1:
        found.append("has unjudged hits")
    return found
