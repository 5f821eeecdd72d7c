"""The locked results that are pooled: their gains, and which of them may be pooled with one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from chunkers.registry import limit_of, uncut
from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError
from runner.base.records import SCORE_UNIT
from runner.base.schema import checked
from runner.eval_set.catalog import SOURCES, source
from runner.eval_set.door import LOCK_NAME, held
from runner.eval_set.shapes.results import Kind, Results
from runner.tools.pooled.model import SourceGains

MEASURE = "ndcg@10"
FIXED = "fixed tokens"
STRUCTURAL = "structural chunker"
_OTHERS = {"whole_doc": "whole documents", "recursive_v1": "recursive chunker"}


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
    results = checked(Results, read_json(held(place)), place)
    if results.kind not in ("production", "rehearsal"):
        raise InputError(f"{place} is of {results.kind} cells, which decide nothing. Give a decided version's folder.")
    return Given(place, file_sha256(place), results.version, results.kind, results.plan.baseline, gains_of(results))


def gains_of(results: Results) -> SourceGains:
    """Return the gains of a version's preregistered cells over its baseline, with the covariance of their means."""
    rows = [row for row in results.cells if row.role == "preregistered"]
    own = next(row for row in results.cells if row.role == "baseline").scores[MEASURE].per_query
    differences = np.array([row.scores[MEASURE].per_query for row in rows], float).reshape(len(rows), len(own))
    differences = (differences - np.array(own, float)) / SCORE_UNIT
    n_queries = len(own)
    if not rows or n_queries < 2:
        raise InputError(
            f"{results.source} v{results.version} compares no cell with its baseline over 2 queries or more."
        )
    return SourceGains(
        results.source,
        tuple(row.cell for row in rows),
        tuple(effects_of(row.cell, results.plan.baseline, results.source) for row in rows),
        differences.mean(axis=1),
        np.cov(differences, ddof=1).reshape(len(rows), len(rows)) / n_queries,
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
    order = list(SOURCES)
    return sorted(given, key=lambda one: order.index(one.gains.source))


def _refuse(wanted: str, given: Sequence[Given], values: Sequence[str]) -> NoReturn:
    told = "; ".join(f"{one.path}: {value}" for one, value in zip(given, values, strict=True))
    raise InputError(f"Only results of {wanted} are pooled. Given are {told}.")


def effects_of(cell: str, baseline: str, source_name: str) -> tuple[str, ...]:
    """Return what a cell has that the baseline has not: its retriever by name, and its kind of chunker."""
    retriever, _, chunker = cell.rpartition(" x ")
    own_retriever, _, own_chunker = baseline.rpartition(" x ")
    kind, own_kind = (_kind_of(name, source_name) for name in (chunker, own_chunker))
    if kind == own_kind == FIXED and limit_of(chunker) != limit_of(own_chunker):
        kind = f"{FIXED}, {limit_of(chunker):,}"
    return tuple(([retriever] if retriever != own_retriever else []) + ([kind] if kind != own_kind else []))


def _kind_of(chunker: str, source_name: str) -> str:
    """Return the kind of a chunker.

    It is fixed tokens of whatever size, the source's structural one, the same cut at an encoder's limit, or its name.
    """
    name = chunker.removesuffix("-bare")
    if name.startswith("fixed_token_"):
        kind = FIXED
    elif uncut(name).rpartition("_v")[0] == source(source_name).structural_chunker.rpartition("_v")[0]:
        kind = STRUCTURAL if uncut(name) == name else f"{STRUCTURAL} cut at {limit_of(name)}"
    else:
        kind = _OTHERS.get(name, name)
    return kind if name == chunker else f"{kind}, without context"
