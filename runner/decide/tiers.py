"""The rule: criterion 5 on point estimates, and the criteria by which a gain is confirmed.

Every threshold is compared at the four places that a page shows.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Self

from runner.base.figures import p_beside_alpha, round4
from runner.base.records import GuardState, Verdict
from runner.eval_set.shapes.paired import ExpectedLoss, PairedTestResult
from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.results import CellResult
from runner.score.sign_flip import Side


class CellFigures(NamedTuple):
    """What the rule looks at: differences to the baseline, p over the tested family, guard, gate, and Judged@10.

    A cell outside of the family has no p.
    """

    gain: float
    recall: float
    p_adjusted: float | None
    p_skew: float | None
    guard: GuardState
    gate: Verdict
    judged: float

    @classmethod
    def of(cls, row: CellResult) -> Self:
        """The figures of a tested cell; ValueError for the baseline."""
        if row.test is None or row.guard is None:
            raise ValueError(f"{row.cell} is the baseline, which is held against nothing")
        return cls(
            row.differences["ndcg@10"].mean,
            row.differences["recall@10"].mean,
            row.test.p_adjusted,
            row.test.p_skew,
            row.guard.state,
            row.gate.verdict,
            row.scores["judged@10"].mean,
        )


class Criterion(NamedTuple):
    """A condition of a cell: `figure` as it was compared with `bound`, and whether it is met, None if that is open.

    `lacks` is what "it" does or is if the condition is not met.
    """

    name: Literal["gain", "chance", "skew", "recall", "guard", "gate", "judged"]
    met: bool | None
    figure: float | str | None
    bound: float | str
    lacks: str


def criterion_5(gain: float, recall_change: float, rule: Rule) -> list[Criterion]:
    """The two conditions on point estimates that make a candidate: "gain" and "recall"."""
    bar, loss, gain, change = rule.min_gain, rule.max_recall_loss, round4(gain), round4(recall_change)
    return [
        Criterion("gain", gain >= bar, gain, bar, f"gains less than {bar:g} nDCG@10"),
        Criterion("recall", change >= -loss, change, -loss, f"loses more than {loss:g} Recall@10"),
    ]


def criteria(cell: CellFigures, rule: Rule, alpha: float) -> list[Criterion]:
    """Every condition of a confirmed cell, in the order of `Criterion.name`.

    Criterion 5, an adjusted p of at most `alpha` by both statistics, Recall@10 shown not to fall by more than the rule
    allows, a null gate passed, and every hit that counts judged.
    """
    gain, recall = criterion_5(cell.gain, cell.recall, rule)
    may = "may lose" if cell.guard == "inconclusive" else "loses"
    return [
        gain,
        *_beyond_chance(cell.p_adjusted, cell.p_skew, alpha),
        recall,
        Criterion(
            "guard",
            {"non-inferior": True, "inconclusive": None, "inferior": False}[cell.guard],
            cell.guard,
            "non-inferior",
            f"{may} more than {rule.max_recall_loss:g} Recall@10",
        ),
        Criterion(
            "gate",
            {"pass": True, "insufficient": None, "fail": False}[cell.gate],
            cell.gate,
            "pass",
            f"does not pass the null gate ({cell.gate})",
        ),
        Criterion("judged", round4(cell.judged) >= 1, round4(cell.judged), 1.0, "has unjudged hits"),
    ]


def _beyond_chance(p_adjusted: float | None, p_skew: float | None, alpha: float) -> list[Criterion]:
    return [
        _by_p("chance", p_adjusted, alpha, "may be chance (adjusted p {})"),
        _by_p("skew", p_skew, alpha, "may be chance, since its differences are skewed (p {})"),
    ]


def _by_p(name: Literal["chance", "skew"], p: float | None, alpha: float, lacks: str) -> Criterion:
    if p is None:
        return Criterion(name, None, None, alpha, "has no p adjusted over the preregistered family")
    return Criterion(name, round4(p) <= alpha, round4(p), alpha, lacks.format(p_beside_alpha(p, alpha)))


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Whether differences to the baseline make a candidate, by the point estimates alone."""
    return all(one.met for one in criterion_5(gain, recall_change, rule))


def unmet_criteria(cell: CellFigures, rule: Rule, alpha: float) -> list[str]:
    """What the cell lacks to be confirmed, most important first; empty if it is confirmed by its scores.

    Of two conditions on one figure one speaks: the guard for the mean of Recall@10, which it covers, and the p that
    allows for skewed differences only if the other one is met.
    """
    gain, chance, skew, _, *others = criteria(cell, rule, alpha)
    return [one.lacks for one in (gain, skew if chance.met else chance, *others) if not one.met]


def may_gain(row: CellResult, rule: Rule) -> bool:
    """Whether a gain of the size asked for is not ruled out, and the cell could be chosen for it."""
    able = row.guard is not None and row.guard.state != "inferior" and row.gate.verdict != "fail"
    return able and reaches_gain(row, rule)


def reaches_gain(row: CellResult, rule: Rule) -> bool:
    """Whether the interval of a tested cell's difference reaches the gain asked for; False for the baseline."""
    return row.test is not None and round4(interval_of(row.test)[1]) >= rule.min_gain


def least_loss(baseline: str, eligible: Mapping[str, ExpectedLoss]) -> str:
    """The choice that is expected to lose least: of the cells that may be chosen the one of greatest expected gain.

    The baseline if none may be chosen, or if switching to that one is not expected to lose less than keeping it.
    """
    best = max(sorted(eligible), key=lambda cell: eligible[cell].gain, default=baseline)
    if best == baseline or round4(eligible[best].switching) >= round4(eligible[best].keeping):
        return baseline
    return best


def cell_in_question(cells: Sequence[CellResult], rule: Rule) -> CellResult | None:
    """The best confirmed cell, else the best candidate, else the best that may gain enough, else the best tested one.

    `cells` are ranked, best first. None if the baseline stands alone.
    """
    tested = [row for row in cells if row.test is not None]
    confirmed = [row for row in tested if row.confirmed]
    candidates = [row for row in tested if row.meets_criterion_5]
    hopeful = [row for row in tested if may_gain(row, rule)]
    return next(iter(confirmed or candidates or hopeful or tested), None)


class Stand(NamedTuple):
    """Where a cell stands to the baseline, all cells compared.

    `despite` is why a difference may be chance though its interval does not reach 0, to follow "it"; "" if nothing is.
    """

    side: Side
    despite: str


def stand_of(simultaneous: Sequence[float], p_adjusted: float, p_skew: float, alpha: float) -> Stand:
    """A side if the simultaneous interval lies wholly on it, and neither p says that it may be chance."""
    low, high = map(round4, simultaneous)
    if low <= 0 <= high:
        return Stand("not told apart", "")
    if despite := next((one.lacks for one in _beyond_chance(p_adjusted, p_skew, alpha) if not one.met), ""):
        return Stand("not told apart", despite)
    return Stand("above" if low > 0 else "below", "")


def stand(row: CellResult, alpha: float) -> Stand | None:
    """The same of a row of results.json; None for the baseline, and for a cell outside of the tested family."""
    test = row.test
    if test is None or test.simultaneous is None or test.p_adjusted is None or test.p_skew is None:
        return None
    return stand_of(test.simultaneous, test.p_adjusted, test.p_skew, alpha)


def interval_of(test: PairedTestResult) -> Sequence[float]:
    """The simultaneous interval of a tested cell, its own outside of the tested family."""
    return test.simultaneous or test.interval
