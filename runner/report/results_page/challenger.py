"""The cell that the verdict is about, criterion by criterion, with figures that show their side of a bar."""

from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import p_telling, shown, telling
from runner.decide.tiers import interval_of, meets_criterion_5, shortfalls
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.shapes.tests import GuardResult, GuardState, PairedTestResult, Verdict

MINUS = "\u2212"


class Criterion(NamedTuple):
    """One criterion of "confirmed" with its figure; `met` is None where that is open."""

    what: str
    figure: str
    met: bool | None


class Challenger(NamedTuple):
    """What the verdict says of its cell; gain and recall are a mean and both ends, `alone` those of one cell.

    `criteria` are those of "confirmed", none where nothing is decided; `doubts` are what else keeps the cell from being
    confirmed. `could_be_chance` is None for a cell without an adjusted p; `p` is the adjusted one, or that of the cell
    alone, or, where only skewed differences make it chance (`skewed`), the one that allows for them.
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

    None where no cell stands beside the baseline.
    """
    rows, plan = tested(results), results.plan
    if not rows:
        return None
    found = max(rows, key=lambda one: _standing(one, plan))
    row, test, guard = found
    alpha, loss = plan.significance.alpha, plan.rule.max_recall_loss
    (low, high), adjusted, skew = interval_of(test), test.p_adjusted, test.p_skew
    by_chance = adjusted is not None and not _holds(plan, p_adjusted=adjusted)
    skewed = adjusted is not None and not by_chance and not _holds(plan, p_skew=skew)
    criteria = [] if row.role == "compared" else _criteria(found, plan)
    return Challenger(
        cell=row.cell,
        gain=texts(found.gain, low, high, plan.rule.min_gain),
        alone=test.simultaneous is None,
        recall=texts(found.recall, guard.low, guard.high, -loss),
        p=p_telling(skew if skewed and skew is not None else test.p if adjusted is None else adjusted, alpha),
        skewed=skewed,
        could_be_chance=None if adjusted is None else skewed or by_chance,
        price=price(guard, loss),
        criteria=criteria,
        doubts=row.short_of if all(criterion.met for criterion in criteria) else [],
    )


def guard_words(state: GuardState, loss: float) -> str:
    """What the Recall guard says of a cell that may lose `loss`."""
    says = {"non-inferior": "loses at most", "inconclusive": "may lose more than", "inferior": "loses more than"}
    return f"{says[state]} {loss:g}"


def price(guard: GuardResult, loss: float) -> str:
    """What choosing a cell costs in Recall@10: nothing where its lower bound shows no loss, else as the guard says."""
    return "none: it is shown not to fall" if shown(guard.low) >= 0 else guard_words(guard.state, loss)


def texts(mean: float, low: float, high: float, bar: float) -> list[str]:
    """A mean and the ends of its interval, each so that it shows its side of 0 and of the bar."""
    return [told(each, bar, low, high) for each in (mean, low, high)]


def told(value: float, bar: float, low: float, high: float) -> str:
    """As runner.base.figures.telling, with a true minus."""
    return telling(value, bar, low, high).replace("-", MINUS)


def _standing(one: Tested, plan: Plan) -> int:
    """3 if confirmed, 2 for a candidate, 1 if a gain of the size asked for is open and the cell could be chosen."""
    if one.row.confirmed or one.row.meets_criterion_5:
        return 3 if one.row.confirmed else 2
    able = one.guard.state != "inferior" and one.row.gate.verdict != "fail"
    return able and meets_criterion_5(interval_of(one.test)[1], 0.0, plan.rule)


def _holds(
    plan: Plan,
    *,
    gain: float = 1.0,
    p_adjusted: float | None = 0.0,
    p_skew: float | None = 0.0,
    guard: GuardState = "non-inferior",
    gate: Verdict = "pass",
    judged: float = 1.0,
) -> bool:
    """Whether the rule would confirm a cell of which only what is given could be in doubt."""
    return not shortfalls(gain, p_adjusted, p_skew, guard, gate, judged, plan.rule, plan.significance.alpha)


def _criteria(one: Tested, plan: Plan) -> list[Criterion]:
    row, test, guard = one
    rule, judged, verdict = plan.rule, row.scores["judged@10"].mean, row.gate.verdict
    change, lower = (told(each, -rule.max_recall_loss, guard.low, guard.high) for each in (one.recall, guard.low))
    return [
        Criterion(
            f"gains at least {rule.min_gain:g} nDCG@10",
            told(one.gain, rule.min_gain, *interval_of(test)),
            _holds(plan, gain=one.gain),
        ),
        _by_p("is beyond chance, all cells compared", "adjusted p", test.p_adjusted, plan),
        _by_p("is so with skewed differences allowed for, too", "p", test.p_skew, plan),
        Criterion(
            f"loses at most {rule.max_recall_loss:g} Recall@10 by its mean",
            change,
            meets_criterion_5(1.0, one.recall, rule),
        ),
        Criterion(
            f"Recall@10 does not fall by more than {rule.max_recall_loss:g}",
            f"lower bound {lower}, {guard.state}",
            None if guard.state == "inconclusive" else _holds(plan, guard=guard.state),
        ),
        Criterion("passes the null gate", verdict, None if verdict == "insufficient" else _holds(plan, gate=verdict)),
        Criterion("has every hit of its top ten judged", f"{100 * judged:.4g}\u202f%", _holds(plan, judged=judged)),
    ]


def _by_p(what: str, name: str, p: float | None, plan: Plan) -> Criterion:
    """A criterion that p is at most alpha; open for a cell outside of the tested family, which has none."""
    if p is None:
        return Criterion(what, "none: outside of the preregistered family", None)
    return Criterion(what, f"{name} {p_telling(p, plan.significance.alpha)}", _holds(plan, p_adjusted=p))
