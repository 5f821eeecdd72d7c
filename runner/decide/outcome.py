"""What a complete result says: the tier, and the sentences that an operator reads.

A candidate meets criterion 5, on point estimates; it is confirmed if its gain holds up (runner/decide/tiers.py).
Without a candidate the baseline is recorded by criterion 6: "baseline kept" if even somebody who knew the best choice
would not be expected to gain more than a switch costs, else "inconclusive".
"""

from collections.abc import Sequence

from runner.base.figures import figure_beside_bar, p_beside_alpha, round4, texts, whole_percent
from runner.decide.outcome_inputs import OutcomeInputs
from runner.decide.sample_size import detectable_of, settling_of, to_confirm
from runner.decide.tiers import (
    cell_in_question,
    interval_of,
    not_ruled_out,
    reaches_gain,
    recall_words,
    recommendation,
    regret_of_keeping,
)
from runner.eval_set.shapes.gate import ControlResult
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, NoiseFloor, Outcome, Tier

CHOSEN: tuple[Tier, ...] = ("confirmed", "candidate")
"""Tiers in which a person chooses."""

_OPEN: tuple[Tier, ...] = ("candidate", "inconclusive")


def outcome(inputs: OutcomeInputs) -> Outcome:
    """The tier, the cells that reach it, and the sentences.

    No decision is possible where pairs are unjudged, where a made-up predictor misbehaves in the gate, where the
    baseline cannot be told from the null systems, or where embedding it once more moves it by as much as the rule
    asks of a winner.
    """
    candidates = [row for row in inputs.cells if row.meets_criterion_5]
    confirmed = [row for row in candidates if row.confirmed]
    tier: Tier
    if barred := blocked(inputs):
        tier, sentences = "no decision", barred
    elif confirmed:
        tier, sentences = "confirmed", _confirmed(inputs, confirmed)
    elif candidates:
        tier, sentences = "candidate", _candidate(inputs, candidates)
    elif inputs.worth_of_knowing > inputs.plan.switching_cost:
        tier, sentences = "inconclusive", _inconclusive(inputs, max(inputs.cells, key=regret_of_keeping))
    else:
        tier, sentences = "baseline kept", _kept(inputs)
    found, not_shown, following = sentences
    told = cell_in_question(inputs.cells)
    settled = settling_of(inputs, told) if told is not None and tier in _OPEN else None
    recommended, why = recommendation(inputs.cells, inputs.plan)
    if tier == "no decision":
        recommended = inputs.plan.baseline
    return Outcome(
        tier=tier,
        candidates=[row.cell for row in candidates],
        confirmed=[row.cell for row in confirmed],
        recommended=recommended,
        sentence=found,
        not_shown=not_shown,
        next_step=f"Recommended: {recommended} ({why}). {following}" if tier in CHOSEN else following,
        false_alarm=inputs.false_alarm,
        queries_needed=None if settled is None else settled.queries or None,
        assurance=None if settled is None else settled.chance,
        detectable=detectable_of(inputs.plan, inputs.n_queries, inputs.cells),
    )


Sentences = tuple[str, str, str]
"""What was found, what it does not show, what to do next."""


def blocked(inputs: OutcomeInputs) -> Sentences | None:
    """Why nothing can be said from these figures; None if something can."""
    plan = inputs.plan
    nothing = "How any cell compares with another: that takes figures that can be relied on."
    if inputs.unjudged:
        pairs = "1 pair of the pool is" if inputs.unjudged == 1 else f"{inputs.unjudged} pairs of the pool are"
        return f"No decision: {pairs} not judged yet.", nothing, "Have the exported batches judged; import the answers."
    if broken := [control for control in inputs.controls if not control.behaves]:
        found = "; ".join(map(_misbehaviour, broken))
        return f"No decision: the null gate's own controls misbehave: {found}.", nothing, _control_advice(broken)
    baseline = inputs.baseline
    if baseline.gate.verdict != "pass":
        named = ", ".join(null.name for null in baseline.gate.nulls if null.verdict == baseline.gate.verdict)
        found = (
            f"No decision: the null gate says {baseline.gate.verdict!r} of the baseline {plan.baseline} ({named}), so "
            "nothing can be measured against it."
        )
        diagnosis = baseline.diagnosis[:1].upper() + baseline.diagnosis[1:]
        return f"{found} {diagnosis}".strip(), nothing, _gate_advice(baseline)
    floor = inputs.noise_floor
    if floor is not None and abs(round4(floor.difference.mean)) >= plan.rule.min_gain:
        found = (
            f"No decision: the baseline embedded once more differs from itself by {_moved(floor, plan)} "
            f"nDCG@10, and {plan.rule.min_gain:g} is all that the rule asks a cell to gain."
        )
        return found, nothing, "Find out why the encoder does not repeat its vectors, then run again."
    return None


def _moved(floor: NoiseFloor, plan: Plan) -> str:
    again, bar = floor.difference, plan.rule.min_gain
    return figure_beside_bar(again.mean, bar if again.mean > 0 else -bar, again.low, again.high)


def _misbehaviour(control: ControlResult) -> str:
    if control.expected == "pass":
        return f"the oracle does not pass (mean nDCG@10 {control.mean:.4f})"
    if control.draws == 1:
        return f"the {control.name} predictor passes, though it ignores the query"
    return (
        f"the {control.name} predictor, which ignores the query, passes {control.passes} of {control.draws} times, "
        f"where chance explains at most {control.bound}"
    )


def _control_advice(broken: Sequence[ControlResult]) -> str:
    if all(control.expected == "fail" for control in broken):
        return "Run doctor: a gate that lets a predictor pass which ignores the query is broken."
    return (
        "Look at the labels first: queries whose judgments are alike, or too few queries with a relevant document, let "
        "no gate tell a search engine from a guess."
    )


def _gate_advice(baseline: CellResult) -> str:
    if baseline.gate.verdict == "insufficient":
        return "Add queries whose relevant documents differ; with these no outcome could have shown anything."
    return "Check that labels, queries and runs belong together, then the encoder and the chunker of the baseline."


def _confirmed(inputs: OutcomeInputs, confirmed: Sequence[CellResult]) -> Sentences:
    plan = inputs.plan
    best, top = confirmed[0], inputs.best
    test, bound = best.test, best.recall_bound
    assert test is not None
    assert test.p_gain is not None
    assert bound is not None
    rule, p = plan.rule, p_beside_alpha(test.p_gain, plan.significance.alpha)
    named = f"Confirmed: {best.cell}"
    if len(confirmed) > 1:
        named = f"{len(confirmed)} cells are confirmed; the best, {best.cell},"
    found = (
        f"{named} gains {_gain(best, plan)} over the baseline on {inputs.n_queries} queries, p {p}, and passes the "
        f"null gate. Recall@10 changes by {_recall_text(best, plan)}: {recall_words(bound, inputs.n_queries, rule)}."
    )
    not_shown = [_optimism(inputs, best)]
    if round4(interval_of(test)[0]) < rule.min_gain:
        not_shown.append(f"That its gain is {rule.min_gain:g} or more: beyond chance is that there is one.")
    if top is not None and not top.confirmed:
        not_shown.append(
            f"What {top.cell} is worth: it gains {_gain_texts(top, plan)[0]} but is not confirmed, as it {_lacks(top)}."
        )
    not_shown.append("Cost, latency and the production database: they are no part of the rule.")
    return found, " ".join(filter(None, not_shown)), "Choose it, or keep the baseline and say why."


def _candidate(inputs: OutcomeInputs, candidates: Sequence[CellResult]) -> Sentences:
    best, others = candidates[0], len(inputs.cells) - 1
    which = "it" if others == 1 else f"each of the {others} cells"
    alarm = (
        f"If {which} equalled the baseline, there would still be a candidate in "
        f"{whole_percent(inputs.false_alarm or 0.0)} of such evaluations"
    )
    named = f"Candidate: {best.cell}"
    if len(candidates) > 1:
        named = f"{len(candidates)} candidates; the best, {best.cell},"
    found = f"{named} gains {_gain(best, inputs.plan)} over the baseline on {inputs.n_queries} queries. {alarm}."
    not_shown = f"That {best.cell} is better than the baseline: it {_lacks(best)}. {_optimism(inputs, best)}".strip()
    return found, not_shown, to_confirm(inputs, best)


def _inconclusive(inputs: OutcomeInputs, best: CellResult) -> Sentences:
    plan = inputs.plan
    found = (
        f"Inconclusive: no cell is a candidate on {inputs.n_queries} queries, so the baseline "
        f"{plan.baseline} is recorded. But one may be worth a switch, {best.cell} most of all: {_worth(inputs)}, more "
        f"than the {plan.switching_cost:g} that it costs."
    )
    not_shown = (
        f"That the baseline is as good as {best.cell}, whose difference to it is {_gain(best, plan)}, with "
        f"{_recall_text(best, plan)} Recall@10."
    )
    return found, not_shown, to_confirm(inputs, best)


def _kept(inputs: OutcomeInputs) -> Sentences:
    plan = inputs.plan
    others = [row for row in inputs.cells if row.test is not None]
    not_shown = "How other cells than these compare, and how these do on other documents or other kinds of query."
    if not others:
        return f"Baseline kept: no cell stands beside {plan.baseline}.", not_shown, "Name other cells in the plan."
    found = (
        f"Baseline kept: no cell is a candidate on {inputs.n_queries} queries, and none is worth a switch from "
        f"{plan.baseline}: {_worth(inputs)}, within the {plan.switching_cost:g} that it costs."
    )
    reaching = [row for row in others if reaches_gain(row, plan.rule)]
    if ruled_out := [f"{row.cell} {_bar(row, plan)}" for row in reaching if not not_ruled_out(row)]:
        found += f" Ruled out: {'; '.join(ruled_out)}."
    if left := sum(map(not_ruled_out, reaching)):
        which = "the other cell" if len(others) == 1 else f"{left} of {len(others)} other cells"
        not_shown = f"That none gains {plan.rule.min_gain:g} nDCG@10: the interval of {which} reaches it. {not_shown}"
    return found, not_shown, "Try other cells: more queries on these are expected to be worth less than a switch."


def _worth(inputs: OutcomeInputs) -> str:
    worth = inputs.worth_of_knowing
    said = f"{worth:.2g}" if worth else "less than 0.0001"
    return f"if one knew the best choice, it would be expected to gain {said} nDCG@10"


def _bar(row: CellResult, plan: Plan) -> str:
    failed = row.gate.verdict == "fail"
    return "fails the null gate" if failed else f"is shown to lose more than {plan.rule.max_recall_loss:g} Recall@10"


def _gain(row: CellResult, plan: Plan) -> str:
    assert row.test is not None
    kind = "simultaneous " if row.test.simultaneous else ""
    gain, *ends = _gain_texts(row, plan)
    return f"{gain} nDCG@10 ({kind}{100 * (1 - plan.significance.alpha):g} % interval {' to '.join(ends)})"


def _gain_texts(row: CellResult, plan: Plan) -> list[str]:
    assert row.test is not None
    low, high = interval_of(row.test)
    return texts(row.differences["ndcg@10"].mean, low, high, plan.rule.min_gain)


def _recall_text(row: CellResult, plan: Plan) -> str:
    assert row.recall_bound is not None
    low, high = row.recall_bound.low, row.recall_bound.high
    change = row.differences["recall@10"].mean
    return figure_beside_bar(change, -plan.rule.max_recall_loss, low, high)


def _lacks(row: CellResult) -> str:
    *before, last = row.short_of
    return f"{', '.join(before)} and {last}" if before else last


def _optimism(inputs: OutcomeInputs, row: CellResult) -> str:
    """That the best of several cells looks better than it is; "" for a cell that is not the best."""
    if len(inputs.cells) < 3 or row != inputs.best:
        return ""
    others = len(inputs.cells) - 1
    return f"That it gains as much on other queries: picking the best of {others} cells flatters its gain."
