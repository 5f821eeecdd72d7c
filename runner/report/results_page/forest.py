"""Where the marks of the forest plot stand: each cell's difference to the baseline, and Recall@10 beside it."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.decide.tiers import interval_of, stand
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.chart import Axis, Bar, Whisker, axis_over
from runner.report.page_frame import inert, rendered
from runner.report.results_page.challenger import Challenger, Tested, challenger, tested, texts

STANDINGS = {
    "baseline": "line",
    "confirmed": "diamond",
    "candidate": "disc",
    "late candidate": "disc",
    "exploratory": "square",
    "other": "ring",
    "above": "diamond",
    "below": "ring",
    "not told apart": "ring",
    "not passed": "cross",
}
"""The shape of a cell's mark by what the rule says of it; the last four if nothing is decided."""


class Mark(NamedTuple):
    """A difference with its interval, `alone` if that is of one cell; of Recall@10 what is known of a fall."""

    place: Whisker
    texts: Sequence[str]
    alone: bool = False
    says: str = ""


class ForestRow(NamedTuple):
    """A cell; the baseline has no marks."""

    cell: str
    standing: str
    shape: str
    ndcg: Mark | None = None
    recall: Mark | None = None


class Forest(NamedTuple):
    """Rows in the order of the ranking, with places in per cent of two strips' widths, and the axes of both.

    `asked`, the gain that the rule asks for, is None if nothing is decided; `alone` says whether some interval is that
    of one cell.
    """

    rows: Sequence[ForestRow]
    ndcg: Axis
    asked: Bar | None
    recall: Axis
    allowed: Bar
    alone: bool
    challenger: Challenger | None


def forest(results: Results) -> Forest:
    """The plot of #differences, and the cell that the verdict is about."""
    ones, rule = tested(results), results.plan.rule
    ndcg = _gain_axis(results, ones)
    bounds = [value for one in ones for value in (one.recall, one.bound.low, one.bound.high)]
    recall = axis_over(bounds, include=(0.0, -rule.max_recall_loss))
    by_cell = {one.row.cell: one for one in ones}
    rows = [_row(row, by_cell.get(row.cell), results, ndcg, recall) for row in results.cells]
    return Forest(
        rows=rows,
        ndcg=ndcg,
        asked=None if results.kind == "external" else ndcg.bar(rule.min_gain),
        recall=recall,
        allowed=Bar(recall.at(-rule.max_recall_loss), rule.max_recall_loss),
        alone=any(one.test.simultaneous is None for one in ones),
        challenger=challenger(results),
    )


def forest_svg(results: Results) -> str:
    """The differences in nDCG@10 as a drawing that needs no page around it, for a notebook or a document."""
    shown = inert(results)
    level = f"{100 * (1 - results.plan.significance.alpha):g}"
    page = rendered("forest.svg.j2", drawn=forest(shown), baseline=shown.plan.baseline, level=level)
    return page.decode().strip()


def standing(row: CellResult) -> str:
    """What the rule says of a cell, or, if nothing is decided, its side of the baseline: a key of STANDINGS."""
    if row.test is None:
        return "baseline"
    if row.role == "compared":
        if row.gate.verdict != "pass":
            return "not passed"
        found = stand(row)
        assert found is not None  # all cells of a collection are one family
        return found
    if row.confirmed:
        return "confirmed"
    late = row.role == "exploratory"
    if row.meets_criterion_5:
        return "late candidate" if late else "candidate"
    return "exploratory" if late else "other"


def _row(row: CellResult, one: Tested | None, results: Results, ndcg: Axis, recall: Axis) -> ForestRow:
    plan = results.plan
    name = standing(row)
    found = ForestRow(row.cell, name, STANDINGS[name])
    if one is None:
        return found
    test, bound = one.test, one.bound
    low, high = interval_of(test)
    gained = texts(one.gain, low, high, plan.rule.min_gain)
    changed = texts(one.recall, bound.low, bound.high, -plan.rule.max_recall_loss)
    bounds = recall.whisker(one.recall, bound.low, bound.high)
    return found._replace(
        ndcg=Mark(ndcg.whisker(one.gain, low, high), gained, test.simultaneous is None),
        recall=Mark(bounds, changed, says=bound.state),
    )


def _gain_axis(results: Results, ones: Sequence[Tested]) -> Axis:
    """Over all intervals, with 0 and what the rule asks for."""
    values = [value for one in ones for value in (*interval_of(one.test), one.gain)]
    return axis_over(values, include=(0.0, results.plan.rule.min_gain))
