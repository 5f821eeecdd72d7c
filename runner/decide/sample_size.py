"""What a number of queries can show of a cell, and how many more would settle whether it is better.

Every figure on the subject, in the dry run, on the page and in the terminal, is made here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import round4
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.tiers import cell_in_question
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult
from runner.score.power import DEFAULT_SD, POWER, assurance, least_gain, power
from runner.score.winners_curse import Believed

FIRST_SHARE = 0.8

MOST_QUERIES = 1_000
"""Above this many no number is named: nobody judges them."""

_STEPS = (10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 750, MOST_QUERIES)
"""Numbers of further queries that are looked at: a finer one would promise more than a chance can hold."""


_SETTLED = (0.8, 0.5)
"""The chance that is sought for, and the one that is taken if no number of queries gives the first."""


class Settling(NamedTuple):
    """Queries to write, how many then count, and the chance that they confirm the cell.

    `anew` queries are of a new version that names the cell first, and count alone; the others join those that are
    judged.
    """

    more: int
    total: int
    chance: float
    anew: bool


def planned_sd(plan: Plan) -> float:
    """The SD of differences that the plan reckons with."""
    return DEFAULT_SD if plan.planning is None else plan.planning.sd


def error_for(plan: Plan, cell: str) -> float:
    """The error that is left for the one-sided test of one cell of the plan.

    The first challengers share FIRST_SHARE of alpha, the others the rest, by Bonferroni: a little less than max-T and
    its steps leave.
    """
    alpha, n_first = plan.significance.alpha, len(plan.first)
    n_others = len(plan.cells) - 1 - n_first
    if not n_first or n_others < 1:
        return alpha / max(1, n_first + n_others)
    return alpha * (FIRST_SHARE / n_first if cell in plan.first else (1 - FIRST_SHARE) / n_others)


def chance_to_show(plan: Plan, cell: str, n_queries: int, gain: float) -> float:
    """The chance that so many queries confirm a cell that truly gains this, at the planned scatter."""
    return power(n_queries, gain, planned_sd(plan), error_for(plan, cell), bar=plan.rule.min_gain)


def detectable(plan: Plan, cell: str, n_queries: int, sd: float) -> float | None:
    """The true gain that so many queries confirm with POWER at this scatter; None if differences do not scatter."""
    return least_gain(n_queries, sd, error_for(plan, cell), bar=plan.rule.min_gain) if sd else None


def detectable_words(cell: str, n_queries: int, gain: float, sd: float) -> str:
    """The same as a sentence."""
    return (
        f"{n_queries} queries confirm {cell} in {POWER:.0%} of evaluations if it truly gains {gain:.2f} nDCG@10 "
        f"(SD of differences {sd:.2f})"
    )


def settling(plan: Plan, cell: str, n_queries: int, gain: float, sd: float, believed: Believed) -> Settling:
    """What would settle most cheaply whether a cell is better that these queries do not confirm.

    The fewest queries that confirm it with a chance of 80 %, else of 50 %, else what gives the greatest chance. A cell
    that is not among the plan's first may be named so in a new version, on queries that nobody saw when it was picked.
    """
    bar, alpha = plan.rule.min_gain, plan.significance.alpha
    tried = []
    for more in _STEPS:
        if cell in plan.cells:
            chance = assurance(n_queries, more, gain, believed, sd, error_for(plan, cell), bar=bar)
            tried.append(Settling(more, n_queries + more, chance, anew=False))
        if cell not in plan.first:
            chance = assurance(0, more, gain, believed, sd, FIRST_SHARE * alpha, bar=bar)
            tried.append(Settling(more, more, chance, anew=True))
    enough = [one for wanted in _SETTLED for one in tried if one.chance >= wanted]
    return enough[0] if enough else max(tried, key=lambda one: one.chance)


def first_challenger(plan: Plan) -> str:
    """The cell whose gain is tested first; without one, the first beside the baseline."""
    return next(cell for cell in (*plan.first, *plan.cells) if cell != plan.baseline)


def planned_words(plan: Plan, n_queries: int) -> str:
    """What so many queries show of the first challenger, by the plan's SD."""
    cell, sd = first_challenger(plan), planned_sd(plan)
    return detectable_words(cell, n_queries, detectable(plan, cell, n_queries, sd) or 0.0, sd)


def shown_of(plan: Plan, n_queries: int, cells: Sequence[CellResult]) -> str:
    """What the queries of an evaluation show of the cell in question; "" if there is none, or it does not scatter."""
    told = cell_in_question(cells, plan.rule) or next((row for row in cells if row.test is not None), None)
    if told is None or told.test is None:
        return ""
    gain = detectable(plan, told.cell, n_queries, told.test.sd)
    return "" if gain is None else detectable_words(told.cell, n_queries, gain, told.test.sd)
