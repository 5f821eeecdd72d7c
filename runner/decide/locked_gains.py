"""The gains of locked results: which of them may be pooled with one another, and the prior that they make of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from pydantic import Field

from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT
from runner.base.schema import FrozenModel, checked
from runner.decide.roster import Versions, newest_locked
from runner.eval_set.catalog import SOURCES
from runner.eval_set.door import LOCK_NAME, held
from runner.eval_set.kinds import kind_of
from runner.eval_set.plan import default_cells, default_plan_text, prior_over
from runner.eval_set.shapes.plan import Prior
from runner.eval_set.shapes.results import REGISTERED, Kind, Role
from runner.eval_set.version import Version, newest_version
from runner.score.gain_test import effective_number
from runner.score.pooling import SourceGains, prior_of

MEASURE = "ndcg@10"


class _Scores(FrozenModel, extra="ignore"):
    per_query: list[int]


class _Row(FrozenModel, extra="ignore"):
    cell: str
    role: Role
    scores: dict[str, _Scores]


class _Plan(FrozenModel, extra="ignore"):
    source: str
    version: int
    baseline: str


class _Results(FrozenModel, extra="ignore"):
    """What pooling reads of results.json, so that it reads what other releases locked as well."""

    kind: Kind
    plan: _Plan
    cells: list[_Row]
    weights: list[int] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Given:
    """One source's results: where they lie, what they are, and the gains of their cells."""

    path: Path
    results_sha256: str
    version: int
    kind: Kind
    baseline: str
    gains: SourceGains


def read_given(path: Path) -> Given:
    """Return the results at a path, a version's folder or its results.json.

    IntegrityError if its lock says otherwise, InputError if nothing locks it, if pairs are unjudged, or if it compares
    no cell with a baseline.
    """
    place = path / "results.json" if path.is_dir() else path
    if not place.with_name(LOCK_NAME).exists():
        raise InputError(f"{place} is not locked, and only what is decided is pooled. Give a decided version's folder.")
    results = checked(_Results, read_json(held(place)), place)
    if results.kind not in ("production", "rehearsal"):
        raise InputError(f"{place} is of {results.kind} cells, which decide nothing. Give a decided version's folder.")
    plan = results.plan
    return Given(place, file_sha256(place), plan.version, results.kind, plan.baseline, _gains_of(results))


def _gains_of(results: _Results) -> SourceGains:
    """Return the gains of a version's preregistered cells over its baseline, with the covariance of their means."""
    plan, rows = results.plan, [row for row in results.cells if row.role in REGISTERED]
    own = next(row for row in results.cells if row.role == "baseline").scores[MEASURE].per_query
    differences = np.array([row.scores[MEASURE].per_query for row in rows], float).reshape(len(rows), len(own))
    differences = (differences - np.array(own, float)) / SCORE_UNIT
    # Queries without an answer weigh 0; without weights all count alike.
    weights = np.array(results.weights or [1] * len(own))
    differences, weights = differences[:, weights > 0], weights[weights > 0]
    n_queries = len(weights)
    if not rows or n_queries < 2:
        raise InputError(f"{plan.source} v{plan.version} compares no cell with its baseline over 2 queries or more.")
    means = np.average(differences, axis=1, weights=weights)
    apart = differences - means[:, None]
    return SourceGains(
        plan.source,
        tuple(row.cell for row in rows),
        tuple(kind_of(row.cell, plan.baseline) for row in rows),
        means,
        (apart * weights) @ apart.T / weights.sum() / (effective_number(weights.tolist()) - 1),
        n_queries,
    )


def checked_together(given: Sequence[Given]) -> list[Given]:
    """Return the same in the roster's order; InputError if two are of one source, of two kinds or two baselines."""
    sources = [one.gains.source for one in given]
    if len(set(sources)) < len(sources):
        _refuse("one version a source", given, sources)
    if len({one.kind for one in given}) > 1:
        _refuse("one kind", given, [one.kind for one in given])
    if len({one.baseline for one in given}) > 1:
        _refuse("one baseline", given, [one.baseline for one in given])
    order = {name: place for place, name in enumerate(SOURCES)}  # of one's own come last, by name
    return sorted(given, key=lambda one: (order.get(one.gains.source, len(order)), one.gains.source))


def _refuse(wanted: str, given: Sequence[Given], values: Sequence[str]) -> NoReturn:
    told = "; ".join(f"{one.path}: {value}" for one, value in zip(given, values, strict=True))
    raise InputError(f"Only results of {wanted} are pooled. Given are {told}.")


def prior_from(given: Sequence[Given]) -> Prior:
    """Return the prior that results make, with their digests."""
    kinds = prior_of([one.gains for one in given])
    return Prior(kinds=kinds, from_results=[one.results_sha256 for one in given])


def prior_of_others(version: Version, baseline: str, *, rehearsal: bool, versions: Versions = newest_version) -> Prior:
    """Return the prior of a new plan: what the newest locked results of all other sources make of the kinds of cell.

    Production learns from production and a rehearsal from rehearsals, over the same baseline. Without any it is
    `prior_over` this one.
    """
    given = [read_given(path) for path in newest_locked(rehearsal=rehearsal, versions=versions)]
    others = [one for one in given if one.gains.source != version.source.name and one.baseline == baseline]
    return prior_from(others) if others else prior_over(baseline)


def new_plan_text(version: Version, *, rehearsal: bool) -> str:
    """Return plan.yaml as the version gets it, from what is locked of other sources today."""
    source = version.source
    return default_plan_text(
        source,
        rehearsal=rehearsal,
        version=version.number,
        prior=prior_of_others(version, default_cells(source, rehearsal=rehearsal)[0], rehearsal=rehearsal),
    )
