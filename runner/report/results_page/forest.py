"""Where the marks of the forest plot stand: each cell's difference to the baseline, and Recall@10 beside it."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import p_beside_alpha
from runner.decide.sample_size import detectable
from runner.decide.tiers import interval_of, recall_words, stand
from runner.eval_set.shapes.results import CellResult, Results
from runner.report.chart import Axis, Bar, Whisker, axis_over
from runner.report.results_page.challenger import Challenger, Tested, challenger, tested, texts

STANDINGS = {
    "baseline": ("line", "baseline"),
    "confirmed": ("diamond", "confirmed"),
    "candidate": ("disc", "candidate, not confirmed"),
    "late candidate": ("disc", "candidate, exploratory"),
    "exploratory": ("square", "no candidate, exploratory"),
    "other": ("ring", "no candidate"),
    "above": ("diamond", "above the baseline beyond chance"),
    "below": ("ring", "below the baseline beyond chance"),
    "not told apart": ("ring", "not told apart from the baseline"),
    "not passed": ("cross", "does not pass the null gate, so nothing is said of it"),
}
"""The shape of a cell's mark, and what it is in words; the last four if nothing is decided."""


class Mark(NamedTuple):
    """A difference with its interval, `alone` if that is of one cell; of Recall@10 what is known of a fall."""

    place: Whisker
    texts: Sequence[str]
    alone: bool = False
    says: str = ""


class Unseen(NamedTuple):
    """Where effects lie that these queries hardly show, up to `value` on either side of 0."""

    left: float
    right: float
    width: float
    value: float


class ForestRow(NamedTuple):
    """A cell; the baseline has no marks and no `p`, which is that of a gain as text and None without one.

    `unseen` is what lies within the least gain that these queries show at the scatter of that cell.
    """

    number: int
    cell: str
    standing: str
    shape: str
    words: str
    ndcg: Mark | None = None
    recall: Mark | None = None
    p: str | None = None
    unseen: Unseen | None = None


class Forest(NamedTuple):
    """Rows in the order of the ranking, with places in per cent of two strips' widths, and the axes of both.

    `asked`, the gain that the rule asks for, is None if nothing is decided. `tested` says whether any cell has a
    mark at all, `alone` whether some interval is that of one cell, `shapes` which marks there are.
    """

    tested: bool
    rows: Sequence[ForestRow]
    ndcg: Axis
    asked: Bar | None
    recall: Axis
    allowed: Bar
    alone: bool
    shapes: Sequence[tuple[str, str]]
    challenger: Challenger | None


def forest(results: Results) -> Forest:
    """The plot of #differences, and the cell that the verdict is about."""
    ones, rule = tested(results), results.plan.rule
    ndcg = _gain_axis(results, ones)
    bounds = [value for one in ones for value in (one.recall, one.bound.low, one.bound.high)]
    recall = axis_over(bounds, include=(0.0, -rule.max_recall_loss))
    by_cell = {one.row.cell: one for one in ones}
    rows = [
        _row(number, row, by_cell.get(row.cell), results, ndcg, recall)
        for number, row in enumerate(results.cells, start=1)
    ]
    return Forest(
        tested=bool(ones),
        rows=rows,
        ndcg=ndcg,
        asked=None if results.kind == "external" else ndcg.bar(rule.min_gain),
        recall=recall,
        allowed=Bar(recall.at(-rule.max_recall_loss), rule.max_recall_loss),
        alone=any(one.test.simultaneous is None for one in ones),
        shapes=sorted({(row.shape, row.words) for row in rows}),
        challenger=challenger(results),
    )


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


def _row(number: int, row: CellResult, one: Tested | None, results: Results, ndcg: Axis, recall: Axis) -> ForestRow:
    plan = results.plan
    name = standing(row)
    found = ForestRow(number, row.cell, name, *STANDINGS[name])
    if one is None:
        return found
    test, bound, p = one.test, one.bound, one.test.p_gain
    low, high = interval_of(test)
    gained = texts(one.gain, low, high, plan.rule.min_gain)
    changed = texts(one.recall, bound.low, bound.high, -plan.rule.max_recall_loss)
    bounds = recall.whisker(one.recall, bound.low, bound.high)
    return found._replace(
        ndcg=Mark(ndcg.whisker(one.gain, low, high), gained, test.simultaneous is None),
        recall=Mark(bounds, changed, says=recall_words(bound, len(results.queries), plan.rule)),
        p=None if p is None else p_beside_alpha(p, plan.significance.alpha),
        unseen=_unseen(unseen_below(one, results), ndcg),
    )


def _gain_axis(results: Results, ones: Sequence[Tested]) -> Axis:
    """Over all intervals, with 0, what the rule asks for, and what these queries hardly see."""
    unseen = max((unseen_below(one, results) or 0.0 for one in ones), default=0.0)
    values = [value for one in ones for value in (*interval_of(one.test), one.gain)]
    return axis_over(values, include=(0.0, results.plan.rule.min_gain, unseen, -unseen))


def unseen_below(one: Tested, results: Results) -> float | None:
    """The gain of a cell that these queries show at its own scatter; None if it is more than a difference can be."""
    gain = detectable(results.plan, one.row.cell, len(results.queries), one.test.sd)
    return gain if gain is not None and gain <= 1 else None


def _unseen(effect: float | None, axis: Axis) -> Unseen | None:
    if effect is None:
        return None
    low, high = axis.at(-effect), axis.at(effect)
    return Unseen(low, high, round(high - low, 2), effect)
