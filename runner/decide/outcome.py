"""What a complete result says: the tier, and the sentences that an operator reads.

A cell is a candidate by criterion 5, on point estimates; it is confirmed if its gain holds up
(runner/decide/tiers.py). Without a candidate the baseline is recorded by criterion 6: "baseline kept" where
no cell can gain what the rule asks for, "inconclusive" where that is not known.
"""

from collections.abc import Sequence

from runner.base.figures import figure_beside_bar, p_beside_alpha, round4, texts, whole_percent
from runner.decide.sample_size import Evidence, baseline_of, best_of, detectable, queries_to_show, to_confirm
from runner.decide.tiers import interval_of
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import CellResult, ControlResult, NoiseFloor, Outcome, Tier


def outcome(plan: Plan, evidence: Evidence) -> Outcome:
    """The tier, the cells that reach it, and the sentences.

    No decision is possible where pairs are unjudged, where a made-up predictor misbehaves in the gate, where the
    baseline cannot be told from the null systems, or where embedding it once more moves it by as much as the rule
    asks of a winner.
    """
    candidates = [row for row in evidence.cells if row.meets_criterion_5]
    confirmed = [row for row in candidates if row.confirmed]
    open_cells = [row for row in evidence.cells if _may_gain(row, plan)]
    tier: Tier
    if barred := blocked(plan, evidence):
        tier, sentences = "no decision", barred
    elif confirmed:
        tier, sentences = "confirmed", _confirmed(plan, evidence, confirmed)
    elif candidates:
        tier, sentences = "candidate", _candidate(plan, evidence, candidates)
    elif open_cells:
        tier, sentences = "inconclusive", _inconclusive(plan, evidence, open_cells)
    else:
        tier, sentences = "baseline kept", _kept(plan, evidence)
    told = next(iter(confirmed or candidates or open_cells), best_of(evidence))
    return Outcome(
        tier=tier,
        candidates=[row.cell for row in candidates],
        confirmed=[row.cell for row in confirmed],
        sentence=sentences[0],
        not_shown=sentences[1],
        next_step=sentences[2],
        baseline_gate=baseline_of(plan, evidence).gate.verdict,
        false_alarm=evidence.false_alarm,
        best_gain_corrected=evidence.best_gain_corrected,
        queries_needed=None if told is None else queries_to_show(plan, evidence, told),
        detectable=None if told is None else detectable(plan, evidence, told),
    )


Sentences = tuple[str, str, str]
"""What was found, what it does not show, what to do next."""


def blocked(plan: Plan, evidence: Evidence) -> Sentences | None:
    """Why nothing can be said from these figures; None where something can."""
    nothing = "How any cell compares with another: that takes figures that can be relied on."
    if evidence.unjudged:
        pairs = "1 pair of the pool is" if evidence.unjudged == 1 else f"{evidence.unjudged} pairs of the pool are"
        return f"No decision: {pairs} not judged yet.", nothing, "Have the exported batches judged; import the answers."
    if broken := [control for control in evidence.controls if not control.behaves]:
        found = "; ".join(map(_misbehaviour, broken))
        return f"No decision: the null gate's own controls misbehave: {found}.", nothing, _control_advice(broken)
    baseline = baseline_of(plan, evidence)
    if baseline.gate.verdict != "pass":
        named = ", ".join(null.name for null in baseline.gate.nulls if null.verdict == baseline.gate.verdict)
        found = (
            f"No decision: the null gate says {baseline.gate.verdict!r} of the baseline {plan.baseline} ({named}), so "
            "nothing can be measured against it."
        )
        return f"{found} {_capitalised(baseline.diagnosis)}".strip(), nothing, _gate_advice(baseline)
    floor = evidence.noise_floor
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


def _confirmed(plan: Plan, evidence: Evidence, confirmed: Sequence[CellResult]) -> Sentences:
    best, top = confirmed[0], best_of(evidence)
    test, guard = best.test, best.guard
    assert test is not None
    assert test.p_adjusted is not None
    assert guard is not None
    rule, p = plan.rule, p_beside_alpha(test.p_adjusted, plan.significance.alpha)
    lower = figure_beside_bar(guard.low, -rule.max_recall_loss, guard.low, guard.high)
    named = f"Confirmed: {best.cell}"
    if len(confirmed) > 1:
        named = f"{len(confirmed)} cells are confirmed; the best, {best.cell},"
    found = (
        f"{named} gains {_gain(best, plan)} over the baseline on {evidence.n_queries} queries, adjusted p {p}. It "
        f"loses at most {rule.max_recall_loss:g} Recall@10 (lower bound of the difference {lower}) and passes the null "
        "gate."
    )
    not_shown = [_optimism(evidence, best)]
    if round4(interval_of(test)[0]) < rule.min_gain:
        not_shown.append(f"That its gain is {rule.min_gain:g} or more: beyond chance is that there is one.")
    if top is not None and not top.confirmed:
        not_shown.append(
            f"What {top.cell} is worth: it gains {_gain_texts(top, plan)[0]} but is not confirmed, as it {_lacks(top)}."
        )
    not_shown.append("Cost, latency and the production database: they are no part of the rule.")
    return found, " ".join(filter(None, not_shown)), "Choose it, or keep the baseline and say why."


def _candidate(plan: Plan, evidence: Evidence, candidates: Sequence[CellResult]) -> Sentences:
    best, others = candidates[0], len(evidence.cells) - 1
    alarm = f"If all {others} cells equalled the baseline, criterion 5 would still flag one or more"
    if others == 1:
        alarm = "If it equalled the baseline, criterion 5 would still flag it"
    named = f"Candidate: {best.cell}"
    if len(candidates) > 1:
        named = f"{len(candidates)} candidates; the best, {best.cell},"
    found = (
        f"{named} gains {_gain(best, plan)} over the baseline on {evidence.n_queries} queries. {alarm} in "
        f"{whole_percent(evidence.false_alarm or 0.0)} of such evaluations."
    )
    not_shown = f"{_optimism(evidence, best)} That it is better than the baseline: it {_lacks(best)}.".strip()
    return found, not_shown, to_confirm(plan, evidence, best)


def _inconclusive(plan: Plan, evidence: Evidence, open_cells: Sequence[CellResult]) -> Sentences:
    best, others = open_cells[0], len(evidence.cells) - 1
    which = "the other cell" if others == 1 else f"{len(open_cells)} of {others} other cells"
    found = (
        f"Inconclusive: no cell meets criterion 5 on {evidence.n_queries} queries, so by criterion 6 the baseline "
        f"{plan.baseline} is recorded. A gain of {plan.rule.min_gain:g} nDCG@10 is not ruled out for {which}."
    )
    not_shown = (
        f"That the baseline is as good as {best.cell}, whose difference to it is {_gain(best, plan)}, with "
        f"{_recall_text(best, plan)} Recall@10."
    )
    return found, not_shown, to_confirm(plan, evidence, best)


def _kept(plan: Plan, evidence: Evidence) -> Sentences:
    others = [row for row in evidence.cells if row.test is not None]
    not_shown = "How other cells than these compare, and how these do on other documents or other kinds of query."
    if not others:
        return f"Baseline kept: no cell stands beside {plan.baseline}.", not_shown, "Name other cells in the plan."
    found = (
        f"Baseline kept: on {evidence.n_queries} queries no cell that could be chosen can be expected to gain "
        f"{plan.rule.min_gain:g} nDCG@10 over {plan.baseline}."
    )
    if ruled_out := [f"{row.cell} {_bar(row, plan)}" for row in others if _reaches_gain(row, plan)]:
        found += f" Ruled out: {'; '.join(ruled_out)}."
    return found, not_shown, "Try other cells: more queries on these are unlikely to change what is recorded."


def _bar(row: CellResult, plan: Plan) -> str:
    """Why a cell cannot be chosen whatever it gains."""
    failed = row.gate.verdict == "fail"
    return "fails the null gate" if failed else f"loses more than {plan.rule.max_recall_loss:g} Recall@10"


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
    assert row.guard is not None
    change = row.differences["recall@10"].mean
    return figure_beside_bar(change, -plan.rule.max_recall_loss, row.guard.low, row.guard.high)


def _lacks(row: CellResult) -> str:
    *before, last = row.short_of
    return f"{', '.join(before)} and {last}" if before else last


def _optimism(evidence: Evidence, row: CellResult) -> str:
    """What picking the best of several cells adds to its gain; "" for a cell that is not the best."""
    expected = evidence.best_gain_corrected
    if expected is None or len(evidence.cells) < 3 or row != best_of(evidence):
        return ""
    said = f"{round4(expected) + 0.0:+.2g}"
    left = f"about {said}" if round4(expected) > 0 else f"nothing ({said})"
    return (
        f"That it gains as much on other queries: less what picking the best of {len(evidence.cells) - 1} adds, {left} "
        "is to be expected."
    )


def _may_gain(row: CellResult, plan: Plan) -> bool:
    """Whether a gain of the size asked for is not ruled out, and the cell could be chosen for it."""
    able = row.guard is not None and row.guard.state != "inferior" and row.gate.verdict != "fail"
    return able and _reaches_gain(row, plan)


def _reaches_gain(row: CellResult, plan: Plan) -> bool:
    return row.test is not None and round4(interval_of(row.test)[1]) >= plan.rule.min_gain


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
