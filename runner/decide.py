"""The decision rule, applied literally, and the decision that it or the operator makes.

Criterion 5: a cell that gains at least `min_gain` nDCG@10 over the baseline and loses at most `max_recall_loss`
Recall@10 is a candidate, and the operator decides. Criterion 6: without a candidate the baseline is recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runner import catalog
from runner.canonical import json_bytes, sha256
from runner.errors import InputError
from runner.power import minimum_detectable_effect
from runner.records import BM25Cell, HybridCell, parse_cell
from runner.result_schemas import CellResult, Chosen, Decision, NoiseFloor, Outcome, Results, Tier
from runner.schemas import Plan, Rule

AUTOMATIC = "criterion 6"
"""Who decides where no cell is a candidate."""

RECOMMENDED = "recommended"
"""What an unattended run gives to --choose: the confirmed cell if there is one, else the baseline."""


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Whether differences to the baseline make a candidate; compared at the four places that the page shows."""
    return _shown(gain) >= rule.min_gain and _shown(recall_change) >= -rule.max_recall_loss


def _shown(value: float) -> float:
    # The page reads results.json, which holds nine places: 0.01995000004 is 0.0199 there, not 0.0200.
    return round(round(value, 9), 4)


def outcome(
    plan: Plan, cells: Sequence[CellResult], noise_floor: NoiseFloor | None, *, unjudged: int, n_queries: int
) -> Outcome:
    """The tier, the candidates best first, and the sentence an operator reads.

    No decision is possible where pairs are unjudged, where the baseline cannot be told from the null systems, or
    where embedding it once more moves it by as much as the rule asks of a winner.
    """
    baseline = plan.baseline
    rows = {row.cell: row for row in cells}
    candidates = [row.cell for row in cells if row.meets_criterion_5]
    verdict = rows[baseline].gate.verdict
    tier: Tier
    if unjudged:
        tier, sentence = "no decision", f"No decision: {unjudged} pairs of the pool are not judged yet."
    elif verdict != "pass":
        tier = "no decision"
        sentence = (
            f"No decision: the null gate says {verdict!r} of the baseline {baseline}, so nothing can be measured."
        )
    elif noise_floor is not None and abs(_shown(noise_floor.difference.mean)) >= plan.rule.min_gain:
        tier = "no decision"
        sentence = (
            f"No decision: the baseline embedded once more differs from itself by {noise_floor.difference.mean:+.4f} "
            f"nDCG@10, and the rule asks for {plan.rule.min_gain:.2f}."
        )
    elif candidates:
        tier, sentence = "candidate", _candidate_sentence(rows, candidates, n_queries, plan.bootstrap.confidence)
    else:
        tier = "baseline kept"
        sentence = f"Baseline kept: no cell beats {baseline} by the rule on {n_queries} queries."
    return Outcome(tier=tier, candidates=candidates, sentence=sentence, baseline_gate=verdict)


def _candidate_sentence(
    rows: dict[str, CellResult], candidates: Sequence[str], n_queries: int, confidence: float
) -> str:
    best = rows[candidates[0]].differences["ndcg@10"]
    named = f"Candidate: {candidates[0]}"
    if len(candidates) > 1:
        named = f"{len(candidates)} candidates; the best, {candidates[0]},"
    return (
        f"{named} gains {best.mean:+.4f} nDCG@10 over the baseline "
        f"({100 * confidence:g} % interval {best.low:+.4f} to {best.high:+.4f}, {n_queries} queries). "
        f"A difference below {minimum_detectable_effect(n_queries):.3f} may be chance; the operator decides."
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator says: a cell or `recommended`, why, and who."""

    cell: str
    reason: str
    by: str


def needs_choice(results: Results) -> bool:
    """Whether a person must choose before a decision can be recorded."""
    return results.outcome.tier == "candidate"


def decide(results: Results, results_sha256: str, choice: Choice | None, *, today: str) -> Decision:
    """The decision of a complete result: the operator's, or the baseline by criterion 6.

    ValueError where the result allows none, or where candidates need the operator's choice and there is none.
    """
    if results.outcome.tier == "no decision" or (choice is None and needs_choice(results)):
        raise ValueError(f"nothing can be decided from this alone: {results.outcome.sentence}")
    if choice is not None and choice.cell not in (RECOMMENDED, results.plan.baseline) and not needs_choice(results):
        raise InputError(
            f"No cell met criterion 5, so by criterion 6 the baseline {results.plan.baseline} is recorded; "
            f"{choice.cell!r} cannot be chosen. Run again without --choose."
        )
    baseline = results.plan.baseline
    chosen, reason, by = baseline, "no cell met criterion 5", AUTOMATIC
    if choice is not None:
        if choice.by == AUTOMATIC:
            raise InputError(f"--by: {AUTOMATIC!r} is what a decision without a chooser says; give a name.")
        chosen = baseline if choice.cell == RECOMMENDED else choice.cell
        reason, by = choice.reason, choice.by
        if choice.cell == RECOMMENDED and not reason:
            reason = (
                "no cell is confirmed, so the baseline is kept" if needs_choice(results) else "no cell met criterion 5"
            )
    names = [row.cell for row in results.cells]
    if chosen not in names:
        raise InputError(f"--choose: {chosen!r} is not a cell of this version. Cells: {'; '.join(names)}.")
    if results.kind == "exploration":
        raise InputError("An exploration decides nothing.")
    return Decision(
        schema_version=1,
        source=results.source,
        version=results.version,
        kind=results.kind,
        tier=results.outcome.tier,
        chosen=_chosen(chosen),
        baseline=baseline,
        candidates=results.outcome.candidates,
        rationale=_rationale(results, chosen),
        decided_by=by,
        reason=reason,
        decided_on=today,
        results_sha256=results_sha256,
    )


def remade(decision: Decision, results: Results) -> Decision:
    """The decision that these results, and what the recorded one says of who chose and why, make on its day."""
    choice = None
    if decision.decided_by != AUTOMATIC:
        choice = Choice(decision.chosen.cell, decision.reason, decision.decided_by)
    results_sha256 = sha256(json_bytes(results.model_dump()))
    return decide(results, results_sha256, choice, today=decision.decided_on)


def _chosen(name: str) -> Chosen:
    cell = parse_cell(name)
    if isinstance(cell, BM25Cell):
        return Chosen(cell=name, retrieval="bm25", encoder="", encoder_revision="", chunker=cell.chunker)
    return Chosen(
        cell=name,
        retrieval=cell.method if isinstance(cell, HybridCell) else "dense",
        encoder=cell.encoder,
        encoder_revision=catalog.encoder(cell.encoder).revision,
        chunker=cell.chunker,
    )


def _rationale(results: Results, chosen: str) -> str:
    row = next(row for row in results.cells if row.cell == chosen)
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    said = f"{chosen}: nDCG@10 {ndcg.mean:.4f} ({ndcg.low:.4f} to {ndcg.high:.4f}), Recall@10 {recall.mean:.4f}"
    if chosen != results.plan.baseline:
        gain = row.differences["ndcg@10"]
        said += f"; {gain.mean:+.4f} nDCG@10 to the baseline ({gain.low:+.4f} to {gain.high:+.4f})"
    return f"{results.outcome.sentence} Chosen is {said}, over {len(results.queries)} queries."
