"""What a number of queries can show of a cell: the least true gain that they tell from chance with POWER.

Every figure on the subject, in the dry run, on the page and in the terminal, is made here.
"""

from collections.abc import Sequence

from runner.decide.tiers import MIN_CONFIRMED, cell_in_question
from runner.eval_set.kinds import near_copies
from runner.eval_set.shapes.plan import ScoredPlan
from runner.eval_set.shapes.results import CellResult
from runner.retrieve.pool import likely_pairs
from runner.score.gain_test import shares_of_alpha
from runner.score.power import DEFAULT_SD, POWER, least_gain


def error_for(plan: ScoredPlan, cell: str, cells: Sequence[CellResult] = ()) -> float:
    """Return the error that is left for the one-sided test of one challenger of the plan before any cell is shown.

    Lists that `cells` are found to share are one.
    """
    left = {plan.baseline, *near_copies(plan.judged_cells), *(row.cell for row in cells if row.same_as)}
    tested = sorted((one for one in plan.judged_cells if one not in left), key=lambda one: one not in plan.first)
    shares = shares_of_alpha(len(tested), sum(one in plan.first for one in tested))
    # One that was only explored is spoken of as another of the plan would be.
    return plan.significance.alpha * dict(zip(tested, shares, strict=True)).get(cell, shares[-1] if shares else 1.0)


def detectable(plan: ScoredPlan, n_queries: float, cells: Sequence[CellResult]) -> float | None:
    """Return the gain of the cell in question that so many queries confirm, at its scatter; None if they confirm none.

    Also None without such a cell, and if it does not scatter.
    """
    row = cell_in_question(cells)
    if n_queries < MIN_CONFIRMED or row is None or row.test is None or not row.test.sd:
        return None
    return least_gain(n_queries, row.test.sd, error_for(plan, row.cell, cells), bar=plan.rule.min_gain)


def detectable_alone(plan: ScoredPlan, n_queries: int, sd: float) -> float:
    """Return the gain that so many new queries confirm of a cell that their version compares alone.

    New ones alone: an evening has spent its error on the queries that it judged, and a cell that was picked on them
    looks better there than it is.
    """
    return least_gain(n_queries, sd, plan.significance.alpha, bar=plan.rule.min_gain)


def too_few(n_queries: int) -> str:
    """Return that so many queries confirm nothing; "" if they are enough."""
    if n_queries >= MIN_CONFIRMED:
        return ""
    return f"{n_queries} queries are too few to confirm any gain: it takes {MIN_CONFIRMED}"


def shown_by(plan: ScoredPlan, n_queries: int, cells: Sequence[CellResult] = ()) -> str:
    """Return what so many queries confirm, in words: of the cell in question, without results of the first challenger.

    Without results, at the plan's scatter. If they are too few to confirm anything, what the least number would.
    "" if the baseline stands alone, or differences do not scatter.
    """
    if len(plan.cells) < 2:
        return ""
    row = cell_in_question(cells)
    if row is None or row.test is None:
        cell, sd = next(cell for cell in (*plan.first, *plan.cells) if cell != plan.baseline), DEFAULT_SD
    else:
        cell, sd = row.cell, row.test.sd
    if not sd:
        return ""
    few, enough = too_few(n_queries), max(n_queries, MIN_CONFIRMED)
    gain = least_gain(enough, sd, error_for(plan, cell, cells), bar=plan.rule.min_gain)
    shown = (
        f"{enough} queries tell a true gain of {gain:.2f} nDCG@10 of {cell} from chance with {100 * POWER:.0f} % power"
    )
    return "; ".join(filter(None, [few, f"{shown} (SD of differences {sd:.2f})"]))


def to_prove(plan: ScoredPlan, n_queries: int) -> str:
    """Return what the pairs of so many queries confirm where they judge two lists alone; "" for a plan that does so.

    Of the cell that this plan chooses, in a version of its own (`version --confirm`), at the plan's scatter.
    """
    if len(plan.judged_cells) < 3:
        return ""
    pairs = round(n_queries * likely_pairs(plan.pool_depth, len(plan.judged_cells)))
    asked = int(pairs / likely_pairs(plan.pool_depth, 2))
    few = too_few(asked)
    gain = least_gain(max(asked, MIN_CONFIRMED), DEFAULT_SD, plan.significance.alpha, bar=plan.rule.min_gain)
    least = f"; {few}" if few else f", which tell a true gain of {gain:.2f} from chance with {100 * POWER:.0f} % power"
    head = f"to prove what was chosen (version --confirm), the same {pairs:,} pairs judge {asked} queries of two lists"
    return head + least
