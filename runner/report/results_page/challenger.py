"""The cell that the verdict is about, criterion by criterion, with figures that show their side of a bar."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import figure_beside_bar, p_beside_alpha
from runner.base.records import SCORE_UNIT
from runner.decide.tiers import (
    CellFigures,
    cell_in_question,
    criteria,
    interval_of,
    meets_criterion_5,
    recall_words,
)
from runner.eval_set.shapes.paired import PairedTest, RecallBound
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results

MINUS = "\u2212"


class Criterion(NamedTuple):
    """One criterion of "confirmed" with its figure; `met` is None if that is open."""

    what: str
    figure: str
    met: bool | None


class Challenger(NamedTuple):
    """What the verdict says of its cell; `gain` is a mean and both ends.

    `criteria` are those of "confirmed", none if nothing is decided; `doubts` are what else keeps the cell from being
    confirmed. `could_be_chance` is None for a cell that was not preregistered; `p` is that of a gain, or, of such a
    cell, the two-sided one of the cell alone. `p_alone` is p by the cells of its own step alone, "" if that is `p`.
    """

    cell: str
    gain: Sequence[str]
    p: str
    p_alone: str
    could_be_chance: bool | None
    criteria: Sequence[Criterion]
    doubts: Sequence[str]


class Tested(NamedTuple):
    """A cell beside the baseline: its row, and what every such row has."""

    row: CellResult
    test: PairedTest
    bound: RecallBound

    @property
    def gain(self) -> float:
        """The mean difference in nDCG@10."""
        return self.row.differences["ndcg@10"].mean

    @property
    def recall(self) -> float:
        """The mean difference in Recall@10."""
        return self.row.differences["recall@10"].mean


def tested(results: Results) -> list[Tested]:
    """The cells beside the baseline, in the order of the ranking."""
    return [
        Tested(row, row.test, row.recall_bound)
        for row in results.cells
        if row.test is not None and row.recall_bound is not None
    ]


def challenger(results: Results) -> Challenger | None:
    """The best confirmed cell, else the best candidate, else the best that may yet gain enough, else the best.

    None if no cell stands beside the baseline.
    """
    plan = results.plan
    question = cell_in_question(results.cells)
    one = next((each for each in tested(results) if each.row is question), None)
    if one is None:
        return None
    row, test, _ = one
    alpha = plan.significance.alpha
    low, high = interval_of(test)
    met = {each.name: each.met for each in criteria(CellFigures.of(row), plan.rule, alpha)}
    marked = [] if row.role == "compared" else _marked(one, plan, len(results.queries))
    return Challenger(
        cell=row.cell,
        gain=texts(one.gain, low, high, plan.rule.min_gain),
        p=p_beside_alpha(test.p if test.p_gain is None else test.p_gain, alpha),
        p_alone="" if test.p_step is None else p_beside_alpha(test.p_step, alpha),
        could_be_chance=None if test.p_gain is None else not met["chance"],
        criteria=marked,
        doubts=row.short_of if all(criterion.met for criterion in marked) else [],
    )


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """A mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [told(each, bar, low, high) for each in (mean, low, high)]


def told(value: float, bar: float, low: float, high: float) -> str:
    """As runner.base.figures.figure_beside_bar, with a true minus."""
    return figure_beside_bar(value, bar, low, high).replace("-", MINUS)


class LeftOut(NamedTuple):
    """A cell, and the queries of which any one, left out, would change whether it is a candidate."""

    cell: str
    queries: Sequence[str]


def left_out(results: Results) -> list[LeftOut]:
    """The cells that one query makes or unmakes candidates, by the means of all others; nothing is tested again."""
    base = next((row for row in results.cells if row.test is None), None)
    if base is None or len(results.queries) < 2:
        return []
    found = [LeftOut(one.row.cell, _turning(one.row, base, results)) for one in tested(results)]
    return [one for one in found if one.queries]


def _turning(row: CellResult, base: CellResult, results: Results) -> list[str]:
    def is_candidate(left: int | None) -> bool:
        return meets_criterion_5(*_means(row, base, left), results.plan.rule)

    now = is_candidate(None)
    return [query.id for place, query in enumerate(results.queries) if is_candidate(place) != now]


def _means(row: CellResult, base: CellResult, left: int | None) -> tuple[float, float]:
    """The mean differences in nDCG@10 and Recall@10, without the query at the place `left`."""
    found = []
    for measure in ("ndcg@10", "recall@10"):
        values, others = (each.scores[measure].per_query for each in (row, base))
        without = 0 if left is None else values[left] - others[left]
        found.append((sum(values) - sum(others) - without) / (len(values) - (left is not None)) / SCORE_UNIT)
    return found[0], found[1]


def _marked(one: Tested, plan: Plan, n_queries: int) -> list[Criterion]:
    """The conditions of a confirmed cell in words, each with its figure and its mark."""
    (row, test, bound), rule, alpha = one, plan.rule, plan.significance.alpha
    change = told(one.recall, -rule.max_recall_loss, bound.low, bound.high)
    words = {
        "gain": (f"gains at least {rule.min_gain:g} nDCG@10", told(one.gain, rule.min_gain, *interval_of(test))),
        "chance": ("gains beyond chance, all cells compared", _p(test, alpha)),
        "recall": (
            f"loses at most {rule.max_recall_loss:g} Recall@10 by its mean",
            f"{change}; {recall_words(row, n_queries, rule)}",
        ),
        "gate": ("passes the null gate", row.gate.verdict),
        "judged": ("has every hit of its top ten judged", f"{100 * row.scores['judged@10'].mean:.4g}\u202f%"),
    }
    return [Criterion(*words[each.name], each.met) for each in criteria(CellFigures.of(row), rule, alpha)]


def _p(test: PairedTest, alpha: float) -> str:
    if test.p_gain is None:
        return "none: not preregistered"
    alone = "" if test.p_step is None else f"; {p_beside_alpha(test.p_step, alpha)} in its step of the plan's order"
    return f"p {p_beside_alpha(test.p_gain, alpha)}{alone}"
