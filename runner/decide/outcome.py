"""The tier of a complete result; templates/sentences/outcome.j2 says it in words.

A candidate meets criterion 5, on point estimates; it is confirmed if its gain holds up (runner/decide/tiers.py).
Without a candidate the baseline is recorded by criterion 6: "baseline kept" if even somebody who knew the best choice
would not be expected to gain more than a switch costs, else "inconclusive".
"""

from runner.base.figures import round4
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.sample_size import detectable_of, settling_of
from runner.decide.tiers import cell_in_question, recommendation
from runner.eval_set.shapes.results import Bar, Outcome, Tier

CHOSEN: tuple[Tier, ...] = ("confirmed", "candidate")
"""Tiers in which a person chooses."""

_OPEN: tuple[Tier, ...] = ("candidate", "inconclusive")


def outcome(inputs: OutcomeInputs) -> Outcome:
    """Return the tier, the cells that reach it, and the figures of the cell in question."""
    candidates = [row.cell for row in inputs.cells if row.meets_criterion_5]
    confirmed = [row.cell for row in inputs.cells if row.meets_criterion_5 and row.confirmed]
    barred_by = bar(inputs)
    tier: Tier = "baseline kept"
    if barred_by:
        tier = "no decision"
    elif candidates:
        tier = "confirmed" if confirmed else "candidate"
    elif inputs.worth_of_knowing > inputs.plan.switching_cost:
        tier = "inconclusive"
    question = cell_in_question(inputs.cells)
    settled = settling_of(inputs, question) if question is not None and tier in _OPEN else None
    return Outcome(
        tier=tier,
        barred_by=barred_by,
        candidates=candidates,
        confirmed=confirmed,
        recommended=inputs.plan.baseline if barred_by else recommendation(inputs.cells, inputs.plan)[0],
        worth_of_knowing=inputs.worth_of_knowing,
        false_alarm=inputs.false_alarm,
        queries_needed=None if settled is None else settled.queries or None,
        assurance=None if settled is None else settled.chance,
        detectable=detectable_of(inputs.plan, inputs.n_queries, inputs.cells),
    )


def bar(inputs: OutcomeInputs) -> Bar | None:
    """Return why nothing can be decided from these figures; None if something can."""
    if inputs.unjudged:
        return "unjudged"
    # A predictor that ignores the query and passes, or an oracle that does not, says that the gate tells nothing here.
    if not all(control.behaves for control in inputs.controls):
        return "controls"
    if inputs.baseline.gate.verdict != "pass":
        return "baseline"
    # Embedding the baseline once more must move it by less than a winner has to gain.
    floor = inputs.noise_floor
    if floor is not None and abs(round4(floor.difference.mean)) >= inputs.plan.rule.min_gain:
        return "noise"
    return None
