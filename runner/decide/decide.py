"""The decision: the operator's where a cell is a candidate or confirmed, else the baseline by criterion 6."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from runner.base.canonical import json_bytes, sha256
from runner.base.errors import InputError
from runner.base.figures import gain_text
from runner.base.records import WITHOUT_VECTORS, CrossCell, HybridCell, parse_cell
from runner.decide.outcome import CHOSEN
from runner.decide.tiers import recommendation
from runner.eval_set import catalog
from runner.eval_set.shapes.decision import Chosen, Decision, Standing
from runner.eval_set.shapes.plan import Reuse
from runner.eval_set.shapes.results import Results

AUTOMATIC = "criterion 6"
"""Who decides if no cell is a candidate."""

UNATTENDED = "choose recommended (unattended)"
"""Who decided if `recommended` was chosen and nobody signed."""

RECOMMENDED = "recommended"
"""What an unattended run gives to `choose`: the baseline or a candidate, whichever is expected to lose least."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator says: a cell or `recommended`, why, and who."""

    cell: str
    reason: str
    by: str


def needs_choice(results: Results) -> bool:
    """Whether a person must choose before a decision can be recorded."""
    return results.outcome.tier in CHOSEN


def need_cell(cell: str, cells: Sequence[str]) -> None:
    """An InputError unless it is one of a version's cells."""
    if cell not in cells:
        near = "".join(f" Did you mean {name!r}?" for name in get_close_matches(cell, cells, 1))
        raise InputError(f"{cell!r} is not a cell of this version.{near} Cells: {'; '.join(cells)}.")


def decide(
    results: Results, results_sha256: str, choice: Choice | None, *, today: str, reuse: Reuse | None = None
) -> Decision:
    """The decision of a complete result: the operator's, or the baseline by criterion 6.

    `reuse` is what is known today of a structural chunker that was written for a sibling source.

    ValueError if the result allows none, or if candidates need the operator's choice and there is none.
    """
    if results.outcome.tier == "no decision" or (choice is None and needs_choice(results)):
        raise ValueError(f"nothing can be decided from this alone: {results.outcome.tier}")
    if choice is not None and choice.cell not in (RECOMMENDED, results.plan.baseline) and not needs_choice(results):
        raise InputError(
            f"No cell is a candidate, so the baseline {results.plan.baseline} is recorded; "
            f"{choice.cell!r} cannot be chosen. `run` records it."
        )
    baseline = results.plan.baseline
    chosen, reason, by = baseline, "no cell met criterion 5", AUTOMATIC
    if choice is not None:
        if choice.by == AUTOMATIC:
            raise InputError(f"--by: {AUTOMATIC!r} is what a decision without a chooser says; give a name.")
        chosen, reason, by = choice.cell, choice.reason, choice.by
        if choice.cell == RECOMMENDED:
            chosen = results.outcome.recommended
            reason = reason or recommendation(results.cells, results.plan)[1]
    need_cell(chosen, [row.cell for row in results.cells])
    if results.kind == "exploration" or results.kind == "external":
        raise InputError("An exploration decides nothing, nor does a public collection.")
    return Decision(
        schema_version=1,
        source=results.source,
        version=results.version,
        kind=results.kind,
        tier=results.outcome.tier,
        chosen=_chosen(results, chosen),
        baseline=baseline,
        candidates=results.candidates,
        rationale=_rationale(results, chosen),
        decided_by=by,
        reason=reason,
        decided_on=today,
        results_sha256=results_sha256,
        reuse=reuse,
    )


def remade(decision: Decision, results: Results) -> Decision:
    """The decision that these results, and what the recorded one says of who chose and why, make on its day."""
    choice = None
    if decision.decided_by != AUTOMATIC:
        choice = Choice(decision.chosen.cell, decision.reason, decision.decided_by)
    results_sha256 = sha256(json_bytes(results.model_dump()))
    return decide(results, results_sha256, choice, today=decision.decided_on, reuse=decision.reuse)


def _chosen(results: Results, name: str) -> Chosen:
    cell, standing = parse_cell(name), _standing(results, name)
    if isinstance(cell, WITHOUT_VECTORS):
        return Chosen(
            cell=name,
            standing=standing,
            retrieval="rerank" if isinstance(cell, CrossCell) else "bm25",
            encoder="",
            encoder_revision="",
            chunker=cell.chunker,
        )
    return Chosen(
        cell=name,
        standing=standing,
        retrieval=cell.method if isinstance(cell, HybridCell) else "dense",
        encoder=cell.encoder,
        encoder_revision=catalog.encoder(cell.encoder, results.plan.encoders).revision,
        chunker=cell.chunker,
    )


def _standing(results: Results, name: str) -> Standing:
    if name == results.plan.baseline:
        return "the baseline"
    if name in results.confirmed:
        return "confirmed"
    return "candidate" if name in results.candidates else "no candidate"


def _rationale(results: Results, chosen: str) -> str:
    row = next(row for row in results.cells if row.cell == chosen)
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    said = f"{chosen}: nDCG@10 {ndcg.mean:.4f} ({ndcg.low:.4f} to {ndcg.high:.4f}), Recall@10 {recall.mean:.4f}"
    if chosen != results.plan.baseline:
        said += f"; {gain_text(row.differences['ndcg@10'].mean)} nDCG@10 to the baseline"
        said += "; confirmed" if row.confirmed else f"; not confirmed: it {', '.join(row.short_of)}"
    return f"{said}; over {len(results.queries)} queries"


def decision_sentence(decision: Decision) -> str:
    """What was chosen, for what tier of evidence, by whom and why."""
    head = f"{decision.source} v{decision.version}"
    if decision.kind == "rehearsal":
        head = f"rehearsal of {head} (never counts as a decision)"
    chosen = decision.chosen
    said = f"{chosen.cell} ({chosen.standing})"
    if decision.kind == "policy":
        said = f"the baseline, {chosen.cell} (by policy, nothing was measured)"
    elif chosen.standing == "the baseline":
        said = f"the baseline, {chosen.cell} ({_beside(decision)})"
    return f"{head}: chosen is {said}. Decided by {decision.decided_by}: {decision.reason}."


def _beside(decision: Decision) -> str:
    if decision.tier == "confirmed":
        return "though a cell is confirmed"
    if decision.tier == "candidate":
        return "1 candidate" if len(decision.candidates) == 1 else f"{len(decision.candidates)} candidates"
    return decision.tier
