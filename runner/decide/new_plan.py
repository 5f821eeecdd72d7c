"""plan.yaml of a new version, with what other sources' evaluations say: of its chunker, and of the kinds of cell."""

from runner.decide.locked_gains import prior_of_others
from runner.decide.roster import sibling_result
from runner.eval_set.plan import NOT_EVALUATED, default_cells, default_plan_text
from runner.eval_set.version import Version


def new_plan_text(version: Version, *, rehearsal: bool) -> str:
    """Return plan.yaml as the version gets it, from what is locked of other sources today."""
    source = version.source
    return default_plan_text(
        source,
        rehearsal=rehearsal,
        version=version.number,
        sibling_result=sibling_result(source) if source.reuses else NOT_EVALUATED,
        prior=prior_of_others(version, default_cells(source, rehearsal=rehearsal)[0], rehearsal=rehearsal),
    )
