"""Locked results of other sources, and what a new plan takes from them: the SD of per-query differences."""

from collections.abc import Callable
from pathlib import Path
from statistics import median

from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError
from runner.base.progress import say
from runner.base.schema import checked
from runner.eval_set.catalog import SOURCES
from runner.eval_set.door import LOCK_NAME, held
from runner.eval_set.history import versions_of
from runner.eval_set.shapes.plan import Planning, PlanningSource
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, newest_version

RESULTS = "results.json"


def newest_locked(*, rehearsal: bool, versions: Callable[[str], Version] = newest_version) -> list[Path]:
    """results.json of every source of the roster that has one locked: the newest version's.

    `versions` gives the newest version of a source by its name. A baseline adopted by policy has no results.
    """
    found = []
    for spec in SOURCES.values():
        if spec.trigger_order:
            newest = versions(spec.name)
            folders = [_record(one, rehearsal) for one in reversed(versions_of(newest) or [newest])]
            locked = (folder / RESULTS for folder in folders if (folder / LOCK_NAME).exists())
            found += [path for path in locked if path.exists()][:1]
    return found


def _record(version: Version, rehearsal: bool) -> Path:
    return version.folder / "rehearsal" if rehearsal else version.folder


def planning_of(
    source: str, baseline: str, *, rehearsal: bool, versions: Callable[[str], Version] = newest_version
) -> Planning | None:
    """The median SD of challengers' nDCG@10 differences in the locked results of other sources; None without any.

    Decisions inform decisions and rehearsals inform rehearsals, over the same baseline. Results of another release are
    left out, and it is said. Raises IntegrityError if locked results were changed.
    """
    sds, sources = [], []
    for path in newest_locked(rehearsal=rehearsal, versions=versions):
        try:
            results = checked(Results, read_json(held(path)), path)
        except InputError as error:
            say(f"left out of the planning SD: {error}")
            continue
        if results.source == source or results.plan.baseline != baseline:
            continue
        own = [row.test.sd for row in results.cells if row.role == "preregistered" and row.test and row.test.sd]
        if own:
            sds += own
            sources.append(
                PlanningSource(source=results.source, version=results.version, results_sha256=file_sha256(path))
            )
    return Planning(sd=round(median(sds), 3), sources=sources) if sds else None
