"""What an ingester asks before it embeds a whole source: whether its model and chunker are decided."""

from runner.base.errors import NegativeVerdict
from runner.decide.roster import Standing
from runner.eval_set.version import DRIVER
from runner.report.summary import decision_sentence

HARD_ABOVE = 10_000
"""Documents above which a source without a decision is not embedded; below, the baseline may go ahead."""


def bulk_gate(standing: Standing, n_documents: int) -> str:
    """What may be embedded; a NegativeVerdict where a source of more than HARD_ABOVE documents is undecided."""
    if standing.decision is not None:
        return f"open: {decision_sentence(standing.decision)}\nembed: {standing.live}"
    source = standing.source
    way = "--adopt-baseline --by NAME" if source.policy == "baseline" else "--dry-run"
    command = f"{DRIVER} {standing.version.flags} {way}"
    if n_documents > HARD_ABOVE:
        raise NegativeVerdict(
            f"closed: {source.name} has {n_documents:,} documents, more than {HARD_ABOVE:,}, and no decision "
            f"is on record. Next: {command}"
        )
    return (
        f"open with a warning: {source.name} is undecided; up to {HARD_ABOVE:,} documents may take the baseline. "
        f"To decide it: {command}\nembed: {standing.live}"
    )
