"""The decision: the operator's where a cell is a candidate or confirmed, else the baseline by criterion 6."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from runner.base.canonical import json_bytes, sha256
from runner.base.errors import InputError
from runner.base.figures import gain_text
from runner.base.records import WITHOUT_VECTORS, CrossCell, HybridCell, parse_cell
from runner.decide.tiers import CHOSEN, recommendation
from runner.eval_set import catalog
from runner.eval_set.shapes.decision import Chosen, Decision, Retrieval, Reuse, Standing
from runner.eval_set.shapes.results import CellResult, Results

AUTOMATIC = "criterion 6"
"""Who decides if no cell is a candidate."""

UNATTENDED = "choose recommended (nobody signed)"
"""Who decided if `recommended` was chosen and nobody signed."""

RECOMMENDED = "recommended"
"""What an unattended run gives to `choose`: the candidate of the greatest expected gain, or the baseline."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator says: a cell or `recommended`, why, and who."""

    cell: str
    reason: str
    by: str


def needs_choice(results: Results) -> bool:
    """Return whether a person must choose before a decision can be recorded."""
    return results.outcome.tier in CHOSEN


def need_cell(cell: str, cells: Sequence[str]) -> None:
    """Raise InputError unless it is one of a version's cells."""
    if cell not in cells:
        near = "".join(f" Did you mean {name!r}?" for name in get_close_matches(cell, cells, 1))
        raise InputError(f"{cell!r} is not a cell of this version.{near} Cells: {'; '.join(cells)}.")


def decide(
    results: Results, results_sha256: str, choice: Choice | None, *, today: str, reuse: Reuse | None = None
) -> Decision:
    """Return the decision of a complete result: the operator's, or the baseline by criterion 6.

    `reuse` is what is known today of a structural chunker that was written for a sibling source.

    ValueError if the result allows none, or if candidates need the operator's choice and there is none.
    """
    tier, baseline = results.outcome.tier, results.plan.baseline
    if tier == "no decision" or (choice is None and needs_choice(results)):
        raise ValueError(f"nothing can be decided from this alone: {tier}")
    if results.kind not in ("production", "rehearsal"):
        raise InputError("An exploration decides nothing, nor does a public collection.")
    chosen, reason, by = baseline, "no cell met criterion 5", AUTOMATIC
    if choice is not None:
        chosen, reason, by = choice.cell, choice.reason, choice.by
        if by == AUTOMATIC:
            raise InputError(f"--by: {AUTOMATIC!r} is what a decision without a chooser says; give a name.")
        if chosen not in (RECOMMENDED, baseline) and not needs_choice(results):
            raise InputError(
                f"No cell is a candidate, so the baseline {baseline} is recorded; {chosen!r} cannot be chosen. "
                "`run` records it."
            )
        if chosen == RECOMMENDED:
            chosen = results.outcome.recommended
            reason = reason or recommendation(results.cells, results.plan)[1]
    # Neither a typing error nor a cell that was only explored can be decided upon.
    need_cell(chosen, [row.cell for row in results.cells])
    row = next(row for row in results.cells if row.cell == chosen)
    if row.same_as and chosen != results.plan.in_place:
        raise InputError(f"{chosen} returns the same lists as {row.same_as}, which stands for both. Choose that one.")
    standing: Standing = "the baseline" if chosen == baseline else "no candidate"
    if row.meets_criterion_5:
        standing = results.confirmed_as if row.confirmed else "candidate"
    return Decision(
        schema_version=1,
        source=results.source,
        version=results.version,
        kind=results.kind,
        tier=tier,
        chosen=chosen_cell(chosen, standing, row.provenance.encoder),
        baseline=baseline,
        candidates=results.candidates,
        rationale=f"{_rationale(row, standing)}; over {results.counted} queries",
        decided_by=by,
        reason=reason,
        decided_on=today,
        results_sha256=results_sha256,
        reuse=reuse,
    )


def remade(decision: Decision, results: Results) -> Decision:
    """Return the decision that these results, and what the recorded one says of who chose and why, make on its day."""
    choice = None
    if decision.decided_by != AUTOMATIC:
        choice = Choice(decision.chosen.cell, decision.reason, decision.decided_by)
    results_sha256 = sha256(json_bytes(results.model_dump()))
    return decide(results, results_sha256, choice, today=decision.decided_on, reuse=decision.reuse)


def chosen_cell(name: str, standing: Standing, measured: Mapping[str, Any] | None = None) -> Chosen:
    """Return a cell as it goes to production; `measured` is what a run says of its encoder, else the catalog does."""
    cell = parse_cell(name)
    encoder = revision = ""
    retrieval: Retrieval = "rerank" if isinstance(cell, CrossCell) else "bm25"
    if not isinstance(cell, WITHOUT_VECTORS):
        encoder = cell.encoder
        # An encoder of the plan's own is in no catalog; one of a package need not say its revision.
        said = (measured or {}).get("revision")
        revision = catalog.encoder(encoder).revision if said is None else said
        retrieval = cell.method if isinstance(cell, HybridCell) else "dense"
    return Chosen(
        cell=name,
        standing=standing,
        retrieval=retrieval,
        encoder=encoder,
        encoder_revision=revision,
        chunker=cell.chunker,
    )


def _rationale(row: CellResult, standing: Standing) -> str:
    ndcg, recall = row.scores["ndcg@10"], row.scores["recall@10"]
    words = f"{row.cell}: nDCG@10 {ndcg.mean:.4f} ({ndcg.low:.4f} to {ndcg.high:.4f}), Recall@10 {recall.mean:.4f}"
    if row.test is None:
        return words
    words += f"; {gain_text(row.differences['ndcg@10'].mean)} nDCG@10 to the baseline"
    return f"{words}; {standing}" if row.confirmed else f"{words}; not confirmed: it {', '.join(row.short_of)}"


def decision_sentence(decision: Decision) -> str:
    """Return what was chosen, for what tier of evidence, by whom and why."""
    head = f"{decision.source} v{decision.version}"
    if decision.kind == "rehearsal":
        head = f"rehearsal of {head} (never counts as a decision)"
    chosen, tier, n_candidates = decision.chosen, decision.tier, len(decision.candidates)
    words = f"{chosen.cell} ({chosen.standing})"
    if chosen.standing == "the baseline":
        beside = {
            "by policy": "by policy, nothing was measured",
            "candidate": f"{n_candidates} candidate{'' if n_candidates == 1 else 's'}",
        }
        said = f"though a cell is {tier}" if tier.startswith("confirmed") else beside.get(tier, tier)
        words = f"the baseline, {chosen.cell} ({said})"
    why = f"Decided by {decision.decided_by}: {decision.reason}"
    if decision.decided_by == AUTOMATIC:
        why = "No cell is a candidate, so there was nothing to choose"
    return f"{head}: chosen is {words}. {why}."
