"""The rule that decides: criterion 5 on point estimates, what confirms a gain, what bars a decision, and the tier.

A candidate meets criterion 5; it is confirmed if its gain holds up. Without a candidate the baseline is kept, by
criterion 6. templates/sentences/outcome.j2 says the tier in words. Every threshold is compared at the four places that
a page shows.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Self

from runner.base.figures import figure_beside_bar, p_and_bar, round4
from runner.base.records import Verdict
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.paired import PairedTest
from runner.eval_set.shapes.plan import Normal, Rule, ScoredPlan
from runner.eval_set.shapes.results import Bar, CellResult, NoiseFloor, Tier
from runner.score.gain_test import GainTest
from runner.score.recall_bound import recall_state
from runner.score.sign_flip import Side

MIN_CONFIRMED = 50
"""Queries that `confirmed` takes: with fewer, skewed differences pass the test too often (docs/statistics.md)."""

CHOSEN: tuple[Tier, ...] = ("confirmed", "confirmed by one model's grades", "candidate")
"""Tiers in which a person chooses."""


class CellFigures(NamedTuple):
    """What the rule looks at: differences to the baseline over so many queries, their test, gate, and Judged@10.

    A cell that was not preregistered has no test.
    """

    gain: float
    recall: float
    n_queries: float
    test: GainTest | None
    gate: Verdict
    judged: float

    @classmethod
    def of(cls, row: CellResult, n_queries: float) -> Self:
        """Return the figures of a tested cell over so many effective queries; ValueError for the baseline."""
        if row.test is None:
            raise ValueError(f"{row.cell} is the baseline, which is held against nothing")
        p, bar = row.test.p_gain, row.test.bar
        return cls(
            row.differences["ndcg@10"].mean,
            row.differences["recall@10"].mean,
            n_queries,
            None if p is None or bar is None else GainTest(p, bar),
            row.gate.verdict,
            row.scores["judged@10"].mean,
        )


class Criterion(NamedTuple):
    """A condition of a cell: `figure` as it was compared with `bound`, and whether it is met, None if that is open.

    `lacks` is what "it" does or is if the condition is not met.
    """

    name: Literal["gain", "chance", "recall", "gate", "judged", "queries"]
    met: bool | None
    figure: float | str | None
    bound: float | str
    lacks: str


def criterion_5(gain: float, recall_change: float, rule: Rule) -> list[Criterion]:
    """Return the two conditions on point estimates that make a candidate: "gain" and "recall"."""
    bar, loss, gain, change = rule.min_gain, rule.max_recall_loss, round4(gain), round4(recall_change)
    return [
        Criterion("gain", gain >= bar, gain, bar, f"gains less than {bar:g} nDCG@10"),
        Criterion("recall", change >= -loss, change, -loss, f"loses more than {loss:g} Recall@10"),
    ]


def criteria(cell: CellFigures, rule: Rule) -> list[Criterion]:
    """Return every condition of a confirmed cell, in the order of `Criterion.name`.

    Criterion 5, a p of at most the cell's bar, a null gate passed, every hit that counts judged, and queries enough.
    """
    gain, recall = criterion_5(cell.gain, cell.recall, rule)
    chance = Criterion("chance", None, None, "none", "was not preregistered, and so has no p")
    if cell.test is not None:
        p, bar = cell.test
        chance = Criterion(
            "chance", p <= bar, p, bar, f"is not told from chance (p {', bar '.join(p_and_bar(p, bar))})"
        )
    passed = {"pass": True, "insufficient": None, "fail": False}[cell.gate]
    gate = Criterion("gate", passed, cell.gate, "pass", f"does not pass the null gate ({cell.gate})")
    judged, n = round4(cell.judged), cell.n_queries
    few = f"was asked fewer than {MIN_CONFIRMED} queries"
    return [
        gain,
        chance,
        recall,
        gate,
        Criterion("judged", judged >= 1, judged, 1.0, "has unjudged hits"),
        Criterion("queries", n >= MIN_CONFIRMED, n, MIN_CONFIRMED, few),
    ]


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Return whether differences to the baseline make a candidate, by the point estimates alone."""
    return all(one.met for one in criterion_5(gain, recall_change, rule))


def unmet_criteria(cell: CellFigures, rule: Rule) -> list[str]:
    """Return what the cell lacks to be confirmed, most important first; empty if it is confirmed by its scores."""
    return [one.lacks for one in criteria(cell, rule) if not one.met]


def bar(
    cells: Sequence[CellResult],
    controls: Sequence[ControlResult],
    plan: ScoredPlan,
    *,
    noise_floor: NoiseFloor | None = None,
    unjudged: int = 0,
) -> Bar | None:
    """Return why nothing can be decided from these figures; None if something can."""
    if unjudged:
        return "unjudged"
    # A predictor that ignores the query and passes, or an oracle that does not, says that the gate tells nothing here.
    if not all(control.behaves for control in controls):
        return "controls"
    if next(row for row in cells if row.cell == plan.baseline).gate.verdict != "pass":
        return "baseline"
    # Embedding the baseline once more must move it by less than a winner has to gain.
    if noise_floor is not None and abs(round4(noise_floor.difference.mean)) >= plan.rule.min_gain:
        return "noise"
    return None


def tier(
    cells: Sequence[CellResult], barred_by: Bar | None, *, published: bool = False, by_one_model: bool = False
) -> Tier:
    """Return what the rule says of scored cells; published judgments decide nothing.

    Grades that are `by_one_model` alone confirm no more than that.
    """
    if barred_by:
        return "no decision"
    if published:
        return "compared"
    candidates = [row for row in cells if row.meets_criterion_5]
    if not candidates:
        return "baseline kept"
    if not any(row.confirmed for row in candidates):
        return "candidate"
    return "confirmed by one model's grades" if by_one_model else "confirmed"


def not_ruled_out(row: CellResult, rule: Rule) -> bool:
    """Return whether a challenger neither is shown to lose Recall@10 nor fails the null gate."""
    bound, margin = row.recall_bound, rule.max_recall_loss
    return bound is not None and recall_state(bound, margin) != "shown to fall" and row.gate.verdict != "fail"


def reaches_gain(row: CellResult, rule: Rule) -> bool:
    """Return whether the interval of a tested cell's difference reaches the gain asked for; False for the baseline."""
    return row.test is not None and round4(interval_of(row.test)[1]) >= rule.min_gain


def greatest_gain(eligible: Collection[str], gains: Mapping[str, Normal], plan: ScoredPlan) -> str:
    """Return the eligible cell of the greatest gain over the one in place, if that is more than a switch costs.

    Else the one in place: the incumbent, or the baseline. If no cell is eligible, the incumbent neither, the baseline.
    """
    if not eligible:
        return plan.baseline
    # Sorted by name first, so that of equal gains the first name wins everywhere.
    others = sorted(cell for cell in eligible if cell in gains)
    best = max(others, key=lambda cell: gains[cell].mean, default="")
    return best if best and round4(gains[best].mean) > plan.switching_cost else plan.in_place


def recommendation(cells: Sequence[CellResult], plan: ScoredPlan) -> tuple[str, str]:
    """Return what `recommended` stands for under the plan's prior and cost, and a sentence on why.

    Eligible are preregistered cells that meet criterion 5, pass the null gate and have no unjudged hit.
    """
    candidates = [row for row in cells if row.meets_criterion_5]
    eligible = [row for row in candidates if row.registered and row.gate.verdict == "pass" and not row.unjudged]
    gains = {row.cell: row.switch_gain for row in eligible if row.switch_gain and row.cell != plan.incumbent}
    if not candidates:
        return plan.baseline, "no cell met criterion 5"
    if not eligible:
        return plan.baseline, "no preregistered candidate passes the null gate with every hit judged"
    chosen, cost = greatest_gain([row.cell for row in eligible], gains, plan), plan.switching_cost
    if not gains:
        return chosen, "no other cell is a candidate that passes the null gate with every hit judged"
    over, more = " over the incumbent" if plan.incumbent else "", "more" if chosen in gains else "no more"
    told = figure_beside_bar(gains[chosen].mean if chosen in gains else max(gain.mean for gain in gains.values()), cost)
    return chosen, f"the expected {told}{over} is {more} than the {cost:g} that a switch costs"


def expected_text(gain: float, cost: float) -> str:
    """Return an expected gain as a sentence says it, at two places, unless the cost is nearer."""
    return figure_beside_bar(gain, cost, fewest=2)


def cell_in_question(cells: Sequence[CellResult]) -> CellResult | None:
    """Return the best confirmed cell, else the best candidate, else the best challenger.

    `cells` are ranked, best first. None if there is no challenger.
    """
    tested = [row for row in cells if row.is_challenger]
    confirmed = [row for row in tested if row.confirmed]
    candidates = [row for row in tested if row.meets_criterion_5]
    return next(iter(confirmed or candidates or tested), None)


def beside_baseline(cells: Sequence[CellResult], plan: ScoredPlan) -> list[str]:
    """Return the names of the baseline and of the cell in question, whose hits a page shows side by side."""
    one = cell_in_question(cells)
    return [plan.baseline, *([one.cell] if one is not None else [])]


def stand(row: CellResult) -> Side | None:
    """Return where a cell stands to the baseline, all cells compared; None for it, and outside of the family."""
    return None if row.test is None or row.test.simultaneous is None else side_of(row.test.simultaneous)


def side_of(simultaneous: Sequence[float]) -> Side:
    """Return the side on which a simultaneous interval wholly lies."""
    low, high = map(round4, simultaneous)
    return "not told apart" if low <= 0 <= high else "above" if low > 0 else "below"


def interval_of(test: PairedTest) -> Sequence[float]:
    """Return the simultaneous interval of a tested cell, its own outside of the tested family."""
    return test.simultaneous or test.interval


def recall_words(row: CellResult, n_queries: int, rule: Rule) -> str:
    """Return what is known of a fall of a tested cell's Recall@10, to stand after it."""
    bound, losses = row.recall_bound, row.differences["recall@10"].losses
    assert bound is not None
    lost = f"it falls in {losses} of {n_queries} queries" if losses else f"no loss seen in {n_queries} queries"
    state = recall_state(bound, rule.max_recall_loss)
    if state == "open":
        return f"{lost}; a mean loss up to {-bound[0]:.2f} cannot be excluded"
    return f"{lost}; {state} by more than {rule.max_recall_loss:g}"
