"""The two results of a comparison page: what `--against` means, and what is read of each, locks verified first."""

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from runner.base.canonical import JSON, file_sha256, read_json
from runner.base.errors import InputError, IntegrityError
from runner.base.places import DRIVER
from runner.base.schema import checked, problems
from runner.decide.previous_version import EarlierCell, Lenient
from runner.decide.roster import version_in_force
from runner.eval_set.door import REPORTS, held
from runner.eval_set.lock import report_folders, verified, verify_lock, verify_version
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, numbered
from runner.report.comparison.file import FORMS
from runner.substrate.shapes import PostBulk


class _Test(Lenient):
    p_adjusted: float | None
    interval: list[float]
    simultaneous: list[float] | None


class _Gain(Lenient):
    mean: float


class CellThen(EarlierCell):
    """What is compared of a cell."""

    role: str
    differences: dict[str, _Gain]
    test: _Test | None
    confirmed: bool
    meets_criterion_5: bool


class _QueryThen(Lenient):
    id: str
    text: str


class _Corpus(Lenient):
    documents: int
    manifest_sha256: str


class _Labels(Lenient):
    lines: int
    sha256: str
    unjudged_pairs: int


class _Outcome(Lenient):
    tier: str
    sentence: str
    not_shown: str


class Scored(Lenient):
    """What is compared of a results.json, whichever release wrote it."""

    source: str
    version: int
    kind: str
    provisional: bool
    plan: Plan
    judge_prompt_sha256: str | None
    queries: list[_QueryThen]
    corpus: _Corpus
    labels: _Labels
    cells: list[CellThen]
    outcome: _Outcome


@dataclass(frozen=True, slots=True)
class Side:
    """One results.json by its digest, and the decision that rests on it, None if none does."""

    results: Scored | Results
    sha256: str
    decision: Decision | None = None

    @property
    def name(self) -> str:
        """What it is, from its own words: "version 1", "rehearsal of version 2", "version 3, provisional"."""
        kind, number = self.results.kind, self.results.version
        said = {"rehearsal": "rehearsal of ", "exploration": "exploration on ", "external": "collection, "}.get(
            kind, ""
        )
        return f"{said}version {number}" + (", provisional" if self.results.provisional else "")


@dataclass(frozen=True, slots=True)
class Pair:
    """`before` beside `now`; `bulk` in place of `before` if a report on the substrate is compared."""

    now: Side
    before: Side | None = None
    bulk: PostBulk | None = None
    bulk_sha256: str = ""


def pair_of(version: Version, against: str) -> Pair:
    """The version's results and those that `against` names, both as their locks hold them.

    Raises InputError for an unknown name, for missing results, and if both are the same.
    """
    if against == REPORTS or against.startswith(f"{REPORTS}/"):
        return _with_report(version, against)
    now = _own(version)
    path = _path_of(version, against)
    if path.is_file() and _is_report(path):
        return _beside_report(now, path)
    before = _side(path, strict=False)
    if before.sha256 == now.sha256:
        raise InputError(
            f"{path} holds the results that it would be compared with. Give --against another: {FORMS}; with "
            "--rehearse the rehearsal is compared with --against production."
        )
    return Pair(now, before)


def _own(version: Version) -> Side:
    verify_version(version)
    view = "rehearsal" if version.rehearsal else "production"
    return _side(_existing(version.results_path, version.name, _run(version, view)), strict=True)


def _path_of(version: Version, against: str) -> Path:
    if against in ("rehearsal", "production"):
        record = version.folder / "rehearsal" if against == "rehearsal" else version.folder
        verify_version(version)
        return _existing(record / "results.json", f"the {against} of {version.number_name}", _run(version, against))
    if match := re.fullmatch(r"v([1-9]\d*)", against):
        other = numbered(version, int(match[1]))
        verify_version(other)
        return _existing(other.results_path, other.name, "Give a version that was scored.")
    path = Path(against)
    if not path.is_file():
        raise InputError(f"{against} is neither a file nor a name that --against takes: {FORMS}.")
    return verified(path)


def _run(version: Version, against: str) -> str:
    rehearse = " --rehearse" if against == "rehearsal" else ""
    return f"Run {DRIVER} run {version.flags}{rehearse} first."


def _existing(path: Path, name: str, hint: str) -> Path:
    if not path.exists():
        raise InputError(f"{name} has no results to compare: {path} does not exist. {hint}")
    return path


def _side(path: Path, *, strict: bool) -> Side:
    """Of `strict` the whole is read, as this release writes it; of other files what is compared."""
    value = read_json(held(path))
    results = checked(Results, value, path) if strict else _lenient(value, path)
    digest = file_sha256(path)
    return Side(results, digest, _decision(path.with_name("decision.json"), digest))


def _lenient(value: JSON, path: Path) -> Scored:
    try:
        return Scored.model_validate(value)
    except ValidationError as error:
        raise InputError(
            f"{path} is no results.json that can be compared: {problems(error)[0]}. Give --against {FORMS}."
        ) from error


def _decision(path: Path, results_sha256: str) -> Decision | None:
    """The decision beside the results, None unless it rests on just these."""
    if not path.exists():
        return None
    found = checked(Decision, read_json(held(path)), path)
    return found if found.results_sha256 == results_sha256 else None


def _with_report(version: Version, against: str) -> Pair:
    """The report of that day, the newest one for the bare name, beside the results that it was made over."""
    # As --post-bulk does: while a newer version stands open, production is held to the one in force.
    held_to = version if version.rehearsal else version_in_force(version) or version
    now = _own(held_to)
    folders = report_folders(held_to.record)
    named = [folder for folder in folders if against in (REPORTS, f"{REPORTS}/{folder.name}")]
    if not named:
        there = ", ".join(f"{REPORTS}/{folder.name}" for folder in folders) or "none yet"
        raise InputError(
            f"{held_to.name} has no report {against}; there: {there}. Make one: {DRIVER} post-bulk {version.flags} "
            "--corpus-path SUBSTRATE.db."
        )
    return _beside_report(now, named[-1] / "post_bulk.json")


def _is_report(path: Path) -> bool:
    value = read_json(path)
    return isinstance(value, dict) and "arms" in value


def _beside_report(now: Side, path: Path) -> Pair:
    verify_lock(path.parent)
    found = checked(PostBulk, read_json(path), path)
    if found.results_sha256 != now.sha256:
        raise IntegrityError(
            f"{path} was made over results {found.results_sha256[:16]}, and those of {now.results.source} "
            f"{now.name} are {now.sha256[:16]}. Give the report of this version, or restore both from git."
        )
    return Pair(now, bulk=found, bulk_sha256=file_sha256(path))
