"""plan.yaml of a new version, with what other sources' evaluations say of the kinds of cell."""

from runner.decide.locked_gains import prior_of_others
from runner.eval_set.plan import default_cells, default_plan_text
from runner.eval_set.version import Version


def new_plan_text(version: Version, *, rehearsal: bool) -> str:
    """Return plan.yaml as the version gets it, from what is locked of other sources today."""
    source = version.source
    return default_plan_text(
        source,
        rehearsal=rehearsal,
        version=version.number,
        prior=prior_of_others(version, default_cells(source, rehearsal=rehearsal)[0], rehearsal=rehearsal),
    )
