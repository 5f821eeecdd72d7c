"""The cell that the verdict is about, criterion by criterion, with figures that show their side of a bar."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import figure_beside_bar, p_beside_alpha, round4
from runner.base.records import GuardState
from runner.decide.tiers import CellFigures, cell_in_question, criteria, interval_of
from runner.eval_set.shapes.paired import GuardResult, PairedTestResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results

MINUS = "\u2212"


class Criterion(NamedTuple):
    """One criterion of "confirmed" with its figure; `met` is None if that is open."""

    what: str
    figure: str
    met: bool | None


class Challenger(NamedTuple):
    """What the verdict says of its cell; gain and recall are a mean and both ends, `alone` those of one cell.

    `criteria` are those of "confirmed", none if nothing is decided; `doubts` are what else keeps the cell from being
    confirmed. `could_be_chance` is None for a cell without an adjusted p; `p` is the adjusted one, or that of the cell
    alone, or, if only skewed differences make it chance (`skewed`), the one that allows for them.
    """

    cell: str
    gain: Sequence[str]
    alone: bool
    recall: Sequence[str]
    p: str
    skewed: bool
    could_be_chance: bool | None
    price: str
    criteria: Sequence[Criterion]
    doubts: Sequence[str]


class Tested(NamedTuple):
    """A cell beside the baseline: its row, and what every such row has."""

    row: CellResult
    test: PairedTestResult
    guard: GuardResult

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
    return [Tested(row, row.test, row.guard) for row in results.cells if row.test is not None and row.guard is not None]


def challenger(results: Results) -> Challenger | None:
    """The best confirmed cell, else the best candidate, else the best that may yet gain enough, else the best.

    None if no cell stands beside the baseline.
    """
    plan = results.plan
    question = cell_in_question(results.cells, plan.rule)
    one = next((each for each in tested(results) if each.row is question), None)
    if one is None:
        return None
    row, test, guard = one
    alpha, loss = plan.significance.alpha, plan.rule.max_recall_loss
    (low, high), adjusted, skew = interval_of(test), test.p_adjusted, test.p_skew
    met = {each.name: each.met for each in criteria(CellFigures.of(row), plan.rule, alpha)}
    skewed = bool(met["chance"]) and met["skew"] is False
    marked = [] if row.role == "compared" else _marked(one, plan)
    return Challenger(
        cell=row.cell,
        gain=texts(one.gain, low, high, plan.rule.min_gain),
        alone=test.simultaneous is None,
        recall=texts(one.recall, guard.low, guard.high, -loss),
        p=p_beside_alpha(skew if skewed and skew is not None else test.p if adjusted is None else adjusted, alpha),
        skewed=skewed,
        could_be_chance=None if adjusted is None else skewed or not met["chance"],
        price=price(guard, loss),
        criteria=marked,
        doubts=row.short_of if all(criterion.met for criterion in marked) else [],
    )


def guard_words(state: GuardState, loss: float) -> str:
    """What the Recall guard says of a cell that may lose `loss`."""
    says = {"non-inferior": "loses at most", "inconclusive": "may lose more than", "inferior": "loses more than"}
    return f"{says[state]} {loss:g}"


def price(guard: GuardResult, loss: float) -> str:
    """What choosing a cell costs in Recall@10: nothing if its lower bound shows no loss, else as the guard says."""
    return "none: it is shown not to fall" if round4(guard.low) >= 0 else guard_words(guard.state, loss)


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """A mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [told(each, bar, low, high) for each in (mean, low, high)]


def told(value: float, bar: float, low: float, high: float) -> str:
    """As runner.base.figures.figure_beside_bar, with a true minus."""
    return figure_beside_bar(value, bar, low, high).replace("-", MINUS)


def _marked(one: Tested, plan: Plan) -> list[Criterion]:
    """The conditions of a confirmed cell in words, each with its figure and its mark."""
    (row, test, guard), rule, alpha = one, plan.rule, plan.significance.alpha
    change, lower = (told(each, -rule.max_recall_loss, guard.low, guard.high) for each in (one.recall, guard.low))
    words = {
        "gain": (f"gains at least {rule.min_gain:g} nDCG@10", told(one.gain, rule.min_gain, *interval_of(test))),
        "chance": ("is beyond chance, all cells compared", _p("adjusted p", test.p_adjusted, alpha)),
        "skew": ("is so with skewed differences allowed for, too", _p("p", test.p_skew, alpha)),
        "recall": (f"loses at most {rule.max_recall_loss:g} Recall@10 by its mean", change),
        "guard": (
            f"Recall@10 does not fall by more than {rule.max_recall_loss:g}",
            f"lower bound {lower}, {guard.state}",
        ),
        "gate": ("passes the null gate", row.gate.verdict),
        "judged": ("has every hit of its top ten judged", f"{100 * row.scores['judged@10'].mean:.4g}\u202f%"),
    }
    return [Criterion(*words[each.name], each.met) for each in criteria(CellFigures.of(row), rule, alpha)]


def _p(name: str, p: float | None, alpha: float) -> str:
    return "none: outside of the preregistered family" if p is None else f"{name} {p_beside_alpha(p, alpha)}"
