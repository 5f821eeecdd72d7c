"""The decision rule, applied literally, and the decision that it or the operator makes.

Criterion 5: a cell that gains at least `min_gain` nDCG@10 over the baseline and loses at most `max_recall_loss`
Recall@10 is a candidate, and the operator decides. Criterion 6: without a candidate the baseline is recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from runner import catalog
from runner.errors import InputError
from runner.power import minimum_detectable_effect
from runner.records import BM25Cell, HybridCell, parse_cell
from runner.schemas import CellResult, Chosen, Decision, Results, Rule, Tier

RECOMMENDED = "recommended"
"""What an unattended run gives to --choose: the confirmed cell if there is one, else the baseline."""


def meets_criterion_5(gain: float, recall_change: float, rule: Rule) -> bool:
    """Whether differences to the baseline make a candidate; compared at the four places that the page shows."""
    return _shown(gain) >= rule.min_gain and _shown(recall_change) >= -rule.max_recall_loss


def _shown(value: float) -> float:
    # The page reads results.json, which holds nine places: 0.01995000004 is 0.0199 there, not 0.0200.
    return round(round(value, 9), 4)


def outcome(cells: Sequence[CellResult], baseline: str, *, unjudged: int, n_queries: int) -> dict[str, object]:
    """The tier, the candidates best first, and the sentence an operator reads.

    No decision is possible where pairs are unjudged or where the baseline cannot be told from the null systems.
    """
    rows = {row.cell: row for row in cells}
    candidates = [row.cell for row in cells if row.meets_criterion_5]
    verdict = str(rows[baseline].gate["verdict"])
    tier: Tier
    if unjudged:
        tier, sentence = "no decision", f"No decision: {unjudged} pairs of the pool are not judged yet."
    elif verdict != "pass":
        tier = "no decision"
        sentence = (
            f"No decision: the null gate says {verdict!r} of the baseline {baseline}, so nothing can be measured."
        )
    elif candidates:
        tier, sentence = "candidate", _candidate_sentence(rows, candidates, n_queries)
    else:
        tier = "baseline kept"
        sentence = f"Baseline kept: no cell beats {baseline} by the rule on {n_queries} queries."
    return {"tier": tier, "candidates": candidates, "sentence": sentence, "baseline_gate": verdict}


def _candidate_sentence(rows: dict[str, CellResult], candidates: Sequence[str], n_queries: int) -> str:
    best = rows[candidates[0]].differences["ndcg@10"]
    named = f"Candidate: {candidates[0]}"
    if len(candidates) > 1:
        named = f"{len(candidates)} candidates; the best, {candidates[0]},"
    return (
        f"{named} gains {best.mean:+.4f} nDCG@10 over the baseline "
        f"(95 % interval {best.low:+.4f} to {best.high:+.4f}, {n_queries} queries). "
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
    return bool(results.outcome["tier"] == "candidate")


def decide(results: Results, results_sha256: str, choice: Choice | None, *, today: str) -> Decision:
    """The decision of a complete result: the operator's, or the baseline by criterion 6."""
    baseline = results.plan.baseline
    chosen, reason, by = baseline, "no cell met criterion 5", "criterion 6"
    if choice is not None:
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
        tier=results.outcome["tier"],
        chosen=_chosen(chosen),
        baseline=baseline,
        candidates=results.outcome["candidates"],
        rationale=_rationale(results, chosen),
        decided_by=by,
        reason=reason,
        decided_on=today,
        results_sha256=results_sha256,
    )


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
    return f"{results.outcome['sentence']} Chosen is {said}, over {len(results.queries)} queries."
