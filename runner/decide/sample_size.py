"""How many more queries would settle whether a cell is better, and what so many can show."""

from runner.base.figures import round4
from runner.decide.outcome_inputs import OutcomeInputs
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult
from runner.score.power import MOST_QUERIES, minimum_detectable_effect, queries_needed

POWER = 0.8


def to_confirm(inputs: OutcomeInputs, row: CellResult) -> str:
    """A sentence on what would settle most cheaply whether the cell can be confirmed."""
    assert row.test is not None
    if row.gate.verdict != "pass":
        return f"Find out first why {row.cell} does not pass the null gate ({row.gate.verdict})."
    head, n_have = f"The next cheapest experiment for {row.cell}", inputs.n_queries
    if row.test.p_gain is None:
        head, n_have = f"Name {row.cell} in the plan of a new version, with queries of its own", 0
    if _gain_holds(inputs.plan, row):
        return _to_clear_doubts(row)
    return f"{head}: {_to_show_gain(inputs, row, n_have)} ({100 * POWER:.0f} % power)."


def queries_to_show(inputs: OutcomeInputs, row: CellResult) -> int | None:
    """How many queries show the gain worth showing, with POWER, at this cell's scatter.

    None if nobody could judge so many, and where differences do not scatter, from which nothing follows.
    """
    assert row.test is not None
    if not row.test.sd:
        return None
    alpha = _alpha_a_cell(inputs.plan.significance.alpha, len(inputs.cells))
    return queries_needed(_target(inputs, row), row.test.sd, alpha=alpha, power=POWER)


def detectable(inputs: OutcomeInputs, row: CellResult) -> float | None:
    """The gain that these queries show with POWER at this cell's scatter; None if there is none."""
    assert row.test is not None
    return least_gain(inputs.n_queries, row.test.sd, inputs.plan.significance.alpha, len(inputs.cells))


def least_gain(n_queries: int, sd: float, alpha: float, n_cells: int) -> float | None:
    """The gain that so many queries show with POWER in one of `n_cells`, the baseline among them, all compared.

    None if differences do not scatter.
    """
    if not sd:
        return None
    return minimum_detectable_effect(n_queries, sd, _alpha_a_cell(alpha, n_cells), power=POWER)


def _to_show_gain(inputs: OutcomeInputs, row: CellResult, n_have: int) -> str:
    needed, shows = queries_to_show(inputs, row), detectable(inputs, row)
    said = f"{_number(needed, n_have)} to show a gain of {_target(inputs, row):.2g}"
    return said if shows is None else f"{said}, where these {inputs.n_queries} show one of {shows:.2g}"


def _to_clear_doubts(row: CellResult) -> str:
    """What no further query settles: hits that nobody judged, or else judges who do not uphold the scores."""
    if row.unjudged:
        return f"Have the unjudged hits of {row.cell} judged."
    return (
        f"Have more pairs read by a second judge (labels double --share PART): by its scores {row.cell} would be "
        f"confirmed, but it {' and '.join(row.short_of)}."
    )


def _number(needed: int | None, n_have: int) -> str:
    if needed is None:
        return f"more than {MOST_QUERIES:,} queries"
    return f"about {needed:,} queries in all" if needed > n_have else f"more than these {n_have} queries"


def _gain_holds(plan: Plan, row: CellResult) -> bool:
    test, gain = row.test, row.differences["ndcg@10"].mean
    if test is None or test.p_gain is None:
        return False
    return round4(gain) >= plan.rule.min_gain and round4(test.p_gain) <= plan.significance.alpha


def _target(inputs: OutcomeInputs, row: CellResult) -> float:
    """The gain worth showing: what the rule asks for, or what is left of the best cell's where that is more."""
    corrected = inputs.best_gain_corrected if row == inputs.best else None
    return max(inputs.plan.rule.min_gain, corrected or 0.0)


def _alpha_a_cell(alpha: float, n_cells: int) -> float:
    """The error left for one of the cells, by Bonferroni: a little less than max-T leaves."""
    return alpha / max(1, n_cells - 1)
