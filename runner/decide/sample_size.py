"""What a number of queries can show of a cell, and how many more would settle whether it is better.

Every figure on the subject, in the dry run, on the page and in the terminal, is made here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import round4, whole_percent
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.tiers import cell_in_question
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult
from runner.score.expected_loss import Gain, believed
from runner.score.gain_test import FIRST_SHARE
from runner.score.power import DEFAULT_SD, POWER, assurance, least_gain

_STEPS = (25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 750, 1000)
"""Numbers of new queries that are looked at: a finer one would promise more than a chance can hold."""

_SETTLED = ((0.8, 200), (0.5, 1000))
"""The chance that is sought for with so many new queries at most, and the one that is taken if they do not do."""


class Settling(NamedTuple):
    """Queries of a new version that names a cell first, and the chance that they confirm it.

    0 queries if no number gives it a chance that is worth it; the chance is the greatest one then.
    """

    queries: int
    chance: float


def error_for(plan: Plan, cell: str) -> float:
    """The error that is left for the one-sided test of one cell of the plan.

    The first challengers share FIRST_SHARE of it, the others the rest, by Bonferroni: a little less than max-T and
    its steps leave.
    """
    alpha, n_first = plan.significance.alpha, len(plan.first)
    n_others = len(plan.cells) - 1 - n_first
    if not n_first or n_others < 1:
        return alpha / max(1, n_first + n_others)
    return alpha * (FIRST_SHARE / n_first if cell in plan.first else (1 - FIRST_SHARE) / n_others)


def first_challenger(plan: Plan) -> str:
    """The cell whose gain is tested first; without one, the first beside the baseline."""
    return next(cell for cell in (*plan.first, *plan.cells) if cell != plan.baseline)


def detectable(plan: Plan, cell: str, n_queries: int, sd: float) -> float | None:
    """The true gain that so many queries confirm with POWER at this scatter; None if differences do not scatter."""
    return least_gain(n_queries, sd, error_for(plan, cell), bar=plan.rule.min_gain) if sd else None


def detectable_of(plan: Plan, n_queries: int, cells: Sequence[CellResult]) -> float | None:
    """The same for the cell in question of an evaluation, at its own scatter; None if there is none."""
    told = cell_in_question(cells)
    return None if told is None or told.test is None else detectable(plan, told.cell, n_queries, told.test.sd)


def shown_by(plan: Plan, n_queries: int, cells: Sequence[CellResult] = ()) -> str:
    """What so many queries show, in words: of the cell in question, before there are results of the first challenger.

    Without results, at the plan's scatter. "" if the baseline stands alone, or differences do not scatter.
    """
    if len(plan.cells) < 2:
        return ""
    cell, sd = first_challenger(plan), DEFAULT_SD
    told = cell_in_question(cells)
    if told is not None and told.test is not None:
        cell, sd = told.cell, told.test.sd
    gain = detectable(plan, cell, n_queries, sd)
    if gain is None:
        return ""
    return (
        f"{n_queries} queries show a true gain of {gain:.2f} nDCG@10 of {cell} with {100 * POWER:.0f} % power (SD of "
        f"differences {sd:.2f})"
    )


def settling(plan: Plan, sd: float, gain: Gain) -> Settling:
    """What would settle most cheaply whether a cell is better that these queries do not confirm.

    New queries: this evening has spent its error on the ones that it judged, and a cell that was picked on them looks
    better there than it is. The fewest that confirm it with a chance of 80 %, if these are 200 or fewer, else of 50 %.
    """
    bar, alpha = plan.rule.min_gain, FIRST_SHARE * plan.significance.alpha
    tried = [Settling(n, assurance(n, gain, sd, alpha, bar=bar)) for n in _STEPS]
    enough = [one for wanted, most in _SETTLED for one in tried if one.chance >= wanted and one.queries <= most]
    return enough[0] if enough else Settling(0, max(one.chance for one in tried))


def settling_of(inputs: OutcomeInputs, row: CellResult) -> Settling | None:
    """The same for a cell of an evaluation; None if nothing is open that queries settle.

    That is so if its gain holds up, if it does not pass the null gate, or if differences do not scatter.
    """
    if row.test is None or not row.test.sd or row.gate.verdict != "pass" or _gain_holds(inputs.plan, row):
        return None
    return settling(inputs.plan, row.test.sd, _believed(inputs, row))


def _believed(inputs: OutcomeInputs, row: CellResult) -> Gain:
    """By the cell's own scores: new queries test it first, whatever the others are worth."""
    assert row.test is not None
    return believed(row.differences["ndcg@10"].mean, row.test.sd / inputs.n_queries**0.5, inputs.plan.prior).gain


def to_confirm(inputs: OutcomeInputs, row: CellResult) -> str:
    """A sentence on what would settle most cheaply whether the cell can be confirmed."""
    if row.gate.verdict != "pass":
        return f"Find out first why {row.cell} does not pass the null gate ({row.gate.verdict})."
    if _gain_holds(inputs.plan, row):
        return _to_clear_doubts(row)
    found = settling_of(inputs, row)
    if found is None:
        return f"Try other cells: {row.cell} differs from the baseline alike on every query."
    if not found.queries:
        return (
            f"Try other cells, or keep the baseline: no number of new queries is likely to confirm {row.cell} "
            f"({whole_percent(found.chance)} at most)."
        )
    return (
        f"Open a new version that names {row.cell} first, with about {found.queries:,} queries of its own: they "
        f"confirm it with a chance of {whole_percent(found.chance)}."
    )


def _to_clear_doubts(row: CellResult) -> str:
    """What no further query settles: hits that nobody judged, or else judges who do not uphold the scores."""
    if row.unjudged:
        return f"Have the unjudged hits of {row.cell} judged."
    return (
        f"Have more pairs read by a second judge (labels double --share PART): by its scores {row.cell} would be "
        f"confirmed, but it {' and '.join(row.short_of)}."
    )


def _gain_holds(plan: Plan, row: CellResult) -> bool:
    test, gain = row.test, row.differences["ndcg@10"].mean
    if test is None or test.p_gain is None:
        return False
    return round4(gain) >= plan.rule.min_gain and round4(test.p_gain) <= plan.significance.alpha
