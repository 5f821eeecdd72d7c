"""The sources in the order of bulk embedding, and how far each has come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.base.errors import IntegrityError
from runner.base.records import DenseCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.catalog import SOURCES, SourceSpec
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.history import abandoned, versions_of
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.decision import Decision, Reuse
from runner.eval_set.shapes.results import CellResult
from runner.eval_set.version import Version, is_abandoned, load_decision, load_results, newest_version, own_names

NOT_BEGUN = "not begun"

Versions = Callable[[str], Version]
"""The newest version of a source, by its name."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one source stands; `decision` is the one in force, of the newest locked record.

    `version` is the one that it is of or, without a decision, the newest. `beside` tells of others: "v3 is open", "v2
    abandoned", "" for none. `observed_best` is the chunker of the dense cell with the highest nDCG@10 of the decided
    version, or of a decision that was made elsewhere, "" if nothing was measured. `rehearsed` is what its locked
    rehearsal chose.
    """

    source: SourceSpec
    version: Version
    state: str
    decision: Decision | None
    observed_best: str
    beside: str
    rehearsed: Decision | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the source's model and chunker are on record."""
        return self.decision is not None

    @property
    def live(self) -> str:
        """What is to be embedded: the decided cell, else the production baseline."""
        return self.decision.chosen.cell if self.decision else self.source.baseline


def in_production() -> list[SourceSpec]:
    """Return the sources of the substrate, in the order of their bulk embedding."""
    return sorted((spec for spec in SOURCES.values() if spec.trigger_order), key=lambda spec: spec.trigger_order)


def newest_locked(*, rehearsal: bool, versions: Versions = newest_version) -> list[Path]:
    """Return results.json of every source in production that has one locked: the newest version's.

    A baseline adopted by policy has no results.
    """
    paths = []
    for spec in in_production():
        newest = versions(spec.name)
        views = [replace(one, rehearsal=rehearsal) for one in reversed(versions_of(newest) or [newest])]
        # A version that is open leaves the one before it in force.
        locked = [one.results_path for one in views if (one.record / LOCK_NAME).exists()]
        paths += [path for path in locked if path.exists()][:1]
    return paths


def roster(versions: Versions = newest_version, changed: list[IntegrityError] | None = None) -> list[Standing]:
    """Return where every source in production stands.

    The error of a source whose locked record was changed is raised or, with `changed`, kept there, and the source left
    out.
    """
    return _standings([spec.name for spec in in_production()], versions, changed)


def _standings(names: Sequence[str], versions: Versions, changed: list[IntegrityError] | None) -> list[Standing]:
    standings = []
    for name in names:
        try:
            standings.append(standing(versions(name)))
        except IntegrityError as error:
            if changed is None:
                raise
            changed.append(error)
    return standings


def own_standings(changed: list[IntegrityError] | None = None) -> list[Standing]:
    """Return the same of every source of one's own that lies where no other folder was named."""
    return _standings(own_names(), newest_version, changed)


def standing(version: Version) -> Standing:
    """Return how far a source has come, `version` being its newest; files must keep to their schemas."""
    shown, decision = _in_force(version) or (version, None)  # every lock that counts is verified, once
    state = "undecided" if (shown.folder / "plan.yaml").exists() else NOT_BEGUN
    if decision is not None:
        state = "baseline by policy" if decision.kind == "policy" else "decided"
    return Standing(
        source=version.source,
        version=shown,
        state=state,
        decision=decision,
        observed_best=_observed_best(shown, decision),
        beside=beside(shown),
        rehearsed=_decision_if_locked(replace(shown, rehearsal=True)),
    )


def beside(version: Version) -> str:
    """Return what became of versions that are newer than this one, or were given up before it; "" if there are none."""
    told = []
    for other in versions_of(version):
        if abandoned(other) is not None:
            told.append(f"v{other.number} abandoned")
        elif other.number > version.number:
            told.append(f"v{other.number} is open")
    return ", ".join(told)


def version_in_force(version: Version) -> Version | None:
    """Return the newest version of the same source, in the same view, whose decision is locked; None if none is.

    While a newer one stands open this is what holds. An IntegrityError if its record was changed since.
    """
    in_force = _in_force(version)
    return in_force and in_force[0]


def _in_force(version: Version) -> tuple[Version, Decision] | None:
    newest_first = (one for one in reversed(versions_of(version)) if not is_abandoned(one.folder))
    return next(((one, decision) for one in newest_first if (decision := locked_decision(one)) is not None), None)


def locked_decision(version: Version) -> Decision | None:
    """Return the decision of a version's record once it is locked; IntegrityError if the record was changed since."""
    verify_version(version)
    return _decision_if_locked(version)


def _decision_if_locked(version: Version) -> Decision | None:
    locked = (version.record / "decision.json").exists() and (version.record / LOCK_NAME).exists()
    return load_decision(version) if locked else None


def next_to_evaluate(standings: list[Standing]) -> Standing | None:
    """Return the first source in trigger order that the policy wants evaluated and that has no decision."""
    return next((s for s in standings if s.source.policy == "evaluate" and not s.is_decided), None)


NOT_EVALUATED = "not yet evaluated"
"""What a decision says of a sibling source without a decision."""


def reuse_of(version: Version) -> Reuse | None:
    """Return what a decision says of a structural chunker that was written for a sibling; None for the source's own."""
    source = version.source
    if not source.reuses:
        return None
    result = sibling_result(source, rehearsal=version.rehearsal)
    return Reuse(chunker=source.structural_chunker, source=source.reuses, result=result)


def sibling_result(source: SourceSpec, versions: Versions = newest_version, *, rehearsal: bool = False) -> str:
    """Return what is known of a reused chunker in the evaluation of the sibling that it was written for.

    With `rehearsal` a sibling's rehearsal is told while it has no decision.
    """
    newest = versions(source.reuses)
    views = [newest, replace(newest, rehearsal=True)] if rehearsal else [newest]
    found = next((in_force for view in views if (in_force := _in_force(view)) is not None), None)
    if found is None:
        return NOT_EVALUATED
    from chunkers.registry import uncut

    sibling, decision = found
    words = f"{sibling.name}: chosen is {decision.chosen.cell} ({standing_of(decision)})"
    rows = [row for row in _dense_rows(sibling) if uncut(parse_cell(row.cell).chunker) == source.structural_chunker]
    if not rows:
        return f"{words}; {source.structural_chunker} was not measured"
    best = max(rows, key=lambda row: row.differences["ndcg@10"].mean)
    return f"{words}; {best.cell} {best.differences['ndcg@10'].mean:+.4f} nDCG@10 to its baseline"


def standing_of(decision: Decision) -> str:
    """Return the chosen cell's standing; of a baseline, that of a tier of another cell too."""
    if decision.chosen.standing != "the baseline":
        return decision.chosen.standing
    if decision.tier in ("baseline kept", "by policy"):
        return decision.tier
    return "the baseline; there was a candidate" if decision.tier == "candidate" else f"the baseline, {decision.tier}"


def _observed_best(version: Version, decision: Decision | None) -> str:
    if decision is not None and decision.kind == "production" and (rows := _dense_rows(version)):
        return parse_cell(max(rows, key=lambda row: row.scores["ndcg@10"].mean).cell).chunker
    imported = version.source.imported
    return f"{parse_cell(imported.cell).chunker} (v{imported.version}, elsewhere)" if imported else ""


def _dense_rows(version: Version) -> list[CellResult]:
    if not version.results_path.exists():
        return []
    return [row for row in load_results(version).cells if isinstance(parse_cell(row.cell), DenseCell)]


def moved_on(standing: Standing) -> list[str]:
    """Return what the catalog says otherwise today than when the source was decided; empty if nothing moved."""
    decision, source, version = standing.decision, standing.source, standing.version
    if decision is None:
        return []
    from chunkers.registry import uncut

    changes = []
    if decision.baseline != source.baseline:
        changes.append(f"the production baseline is now {source.baseline}, it was {decision.baseline}")
    name, revision = decision.chosen.encoder, decision.chosen.encoder_revision
    spec = catalog.ENCODERS.get(name)
    # An encoder of the plan's own is frozen with it, and none is needed without vectors.
    path = version.plan_path(rehearsal=version.rehearsal)
    own = bool(name) and spec is None and path.exists() and name in read_plan(path).encoders
    if name and not own and (spec is None or spec.excluded):
        changes.append(f"the encoder {name} is {'excluded' if spec else 'no longer in the catalog'}")
    elif spec is not None and spec.revision not in ("", revision):
        changes.append(f"the encoder {name} is now pinned at {spec.revision[:12]}, it was decided at {revision[:12]}")
    measured = {uncut(parse_cell(row.cell).chunker) for row in _dense_rows(version)}
    if decision.kind == "production" and source.structural_chunker not in measured:
        changes.append(f"the structural chunker is now {source.structural_chunker}, which was not measured")
    return changes
