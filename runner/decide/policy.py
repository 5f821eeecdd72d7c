"""Decisions without an evaluation: the baseline adopted by policy, and whether a source may be embedded in bulk."""

from runner.base.canonical import json_bytes, write_atomic
from runner.base.errors import InputError, NegativeVerdict
from runner.base.places import DRIVER
from runner.decide.roster import Standing, locked_decision
from runner.eval_set import catalog
from runner.eval_set.catalog import SourceSpec
from runner.eval_set.lock import verify_version, write_lock
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.version import Version, alone, load_decision

REASON = "the source has weak structure, so an evaluation is not expected to pay"


def adopt_baseline(version: Version, by: str, reason: str, *, today: str) -> tuple[Decision, bool]:
    """Record and lock the decision for the baseline by policy; return it and whether it is new: a recorded one stays.

    InputError for a source that is to be evaluated, and for a version that an evaluation has begun on.
    """
    from runner.decide.decide import chosen_cell  # which brings what decides

    source = version.source
    if source.policy != "baseline":
        raise InputError(
            f"{source.name} is to be evaluated: its structure is what the evaluation is about. "
            f"Only {', '.join(row.name for row in catalog.SOURCES.values() if row.policy == 'baseline')} may adopt it."
        )
    with alone(version):
        verify_version(version)
        if recorded := locked_decision(version):
            return recorded, False
        path = version.folder / "decision.json"
        if path.exists() and (killed := load_decision(version)).kind == "policy":
            write_lock(version.folder)  # of a run that was killed before it
            return killed, False
        if path.exists() or version.preregistration_path.exists():
            raise InputError(
                f"{version.name} is being evaluated already; let it be decided: {DRIVER} run {version.flags}"
            )
        decision = Decision(
            schema_version=1,
            source=source.name,
            version=version.number,
            kind="policy",
            tier="by policy",
            chosen=chosen_cell(source.baseline, "the baseline"),
            baseline=source.baseline,
            candidates=[],
            rationale=_rationale(source),
            decided_by=by,
            reason=reason or REASON,
            decided_on=today,
            results_sha256=None,
        )
        write_atomic(path, json_bytes(decision.model_dump()))
        write_lock(version.folder)
    return decision, True


def _rationale(source: SourceSpec) -> str:
    words = f"Nothing was measured here for {source.name}: {REASON}."
    if source.predicted_best != source.baseline.rpartition(" x ")[2]:
        words += f" That {source.predicted_best} would do better is predicted in the catalog, and untested."
    if elsewhere := source.imported:
        words += (
            f" v{elsewhere.version}, decided elsewhere and without artefacts here, chose {elsewhere.cell} at nDCG@10 "
            f"{elsewhere.ndcg:.4f}."
        )
    return words


HARD_ABOVE = 10_000
"""Documents above which a source without a decision is not embedded; below, the baseline may go ahead."""


def bulk_gate(standing: Standing, n_documents: int) -> str:
    """Return what may be embedded; NegativeVerdict if a source of more than HARD_ABOVE documents is undecided."""
    if standing.decision is not None:
        from runner.decide.decide import decision_sentence  # which brings what decides

        return f"open: {decision_sentence(standing.decision)}\nembed: {standing.live}"
    source = standing.source
    flags = standing.version.flags
    command = f"{DRIVER} choose {flags} baseline --by NAME" if source.policy == "baseline" else f"{DRIVER} next {flags}"
    if n_documents > HARD_ABOVE:
        raise NegativeVerdict(
            f"closed: {source.name} has {n_documents:,} documents, more than {HARD_ABOVE:,}, and no decision "
            f"is on record. Next: {command}"
        )
    return (
        f"open with a warning: {source.name} is undecided; up to {HARD_ABOVE:,} documents may take the baseline. "
        f"To decide it: {command}\nembed: {standing.live}"
    )
