"""Candidate and confirmed, cell by cell: criterion 5 on point estimates, and what a gain needs to hold up.

With figures as text for the sentences that say so: no finer than their intervals allow, or than shows their side.
"""

from collections.abc import Sequence

from runner.base.figures import p_beside_alpha, round4
from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.tests import GuardState, PairedTestResult, Verdict
from runner.score.sign_flip import Side


def side_of(simultaneous: Sequence[float], p_skew: float, alpha: float) -> Side:
    """A side where the simultaneous interval lies wholly on it, and skewed differences do not explain that."""
    low, high = map(round4, simultaneous)
    if round4(p_skew) > alpha or low <= 0 <= high:
        return "not told apart"
    return "above" if low > 0 else "below"


def interval_of(test: PairedTestResult) -> Sequence[float]:
    """The simultaneous interval of a tested cell, its own outside of the tested family."""
    return test.simultaneous or test.interval


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Whether differences to the baseline make a candidate, by the point estimates alone."""
    return round4(gain) >= rule.min_gain and round4(recall_change) >= -rule.max_recall_loss


def unmet_criteria(
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
    if round4(gain) < rule.min_gain:
        found.append(f"gains less than {rule.min_gain:g} nDCG@10")
    if p_adjusted is None or p_skew is None:
        found.append("has no p adjusted over the preregistered family")
    elif round4(p_adjusted) > alpha:
        found.append(f"may be chance (adjusted p {p_beside_alpha(p_adjusted, alpha)})")
    elif round4(p_skew) > alpha:
        found.append(f"may be chance, since its differences are skewed (p {p_beside_alpha(p_skew, alpha)})")
    if guard == "inferior":
        found.append(f"loses more than {rule.max_recall_loss:g} Recall@10")
    elif guard == "inconclusive":
        found.append(f"may lose more than {rule.max_recall_loss:g} Recall@10")
    if gate != "pass":
        found.append(f"does not pass the null gate ({gate})")
    if round4(judged) < 1:
        found.append("has unjudged hits")
    return found
