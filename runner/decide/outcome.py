"""The tier of a complete result; templates/sentences/outcome.j2 says it in words.

A candidate meets criterion 5, on point estimates; it is confirmed if its gain holds up (runner/decide/tiers.py).
Without a candidate the baseline is recorded by criterion 6: "baseline kept".
"""

from collections.abc import Sequence

from runner.base.figures import round4
from runner.decide.sample_size import detectable
from runner.decide.tiers import recommendation
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.results import Bar, CellResult, NoiseFloor, Outcome, Tier
from runner.score.comparison import Comparison

CHOSEN: tuple[Tier, ...] = ("confirmed", "candidate")
"""Tiers in which a person chooses."""


def outcome(
    comparison: Comparison,
    cells: Sequence[CellResult],
    controls: Sequence[ControlResult],
    *,
    noise_floor: NoiseFloor | None = None,
    unjudged: int = 0,
) -> Outcome:
    """Return the tier and the figures of the cell in question; `cells` are ranked, best nDCG@10 first.

    Published judgments decide nothing: no cell is a candidate, and none but the baseline is recommended.
    """
    plan = comparison.plan
    candidates = [row for row in cells if row.meets_criterion_5]
    barred_by = bar(comparison, cells, controls, noise_floor, unjudged)
    tier: Tier = "baseline kept"
    if barred_by:
        tier = "no decision"
    elif comparison.published:
        tier = "compared"
    elif candidates:
        tier = "confirmed" if any(row.confirmed for row in candidates) else "candidate"
    return Outcome(
        tier=tier,
        barred_by=barred_by,
        recommended=plan.baseline if barred_by else recommendation(cells, plan)[0],
        false_alarm=comparison.false_alarm(),
        detectable=detectable(plan, len(comparison.queries), cells),
    )


def bar(
    comparison: Comparison,
    cells: Sequence[CellResult],
    controls: Sequence[ControlResult],
    noise_floor: NoiseFloor | None,
    unjudged: int,
) -> Bar | None:
    """Return why nothing can be decided from these figures; None if something can."""
    plan = comparison.plan
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
