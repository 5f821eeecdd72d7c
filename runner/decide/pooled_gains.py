"""What pooling over other sources says of a version's cells, for a decision that cites it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict

from chunkers.registry import limit_of, uncut
from runner.base.canonical import file_sha256, read_json
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.schema import FrozenModel, Share, checked
from runner.eval_set.catalog import source
from runner.eval_set.shapes.decision import CitedGain
from runner.eval_set.shapes.results import Results

FIXED = "fixed tokens"
STRUCTURAL = "structural chunker"
_OTHERS = {"whole_doc": "whole documents", "recursive_v1": "recursive chunker"}


class _Predicted(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    effects: list[str]
    mean: float
    low: float
    high: float
    p_above_0: Share


class _Report(FrozenModel):
    """What is read of a file that `pooled --output` wrote."""

    model_config = ConfigDict(extra="ignore")

    schema_version: Literal[2]
    kind: Literal["production", "rehearsal"]
    baseline: str
    predicted: list[_Predicted]


@dataclass(frozen=True, slots=True)
class PooledGains:
    """A file of `pooled --output` that a decision is to cite."""

    path: Path
    sha256: str
    report: _Report

    def cited(self, results: Results, chosen: str) -> CitedGain:
        """What the file says of the chosen cell in a source like this one; of the best challenger for the baseline.

        InputError if the file is of the other kind, over another baseline, or knows no such cell.
        """
        baseline, report = results.plan.baseline, self.report
        for what, theirs, ours in (("kind", report.kind, results.kind), ("baseline", report.baseline, baseline)):
            if theirs != ours:
                raise InputError(
                    f"--pooled {self.path}: its {what} is {theirs}, that of this version {ours}. Pool results of one "
                    "kind over one baseline (pooled --help), or decide without --pooled."
                )
        best = next((row.cell for row in results.cells if row.cell != baseline), baseline)
        cell = best if chosen == baseline else chosen
        wanted = list(effects_of(cell, baseline, results.source))
        for known in report.predicted:
            if known.effects == wanted:
                return CitedGain(
                    sha256=self.sha256,
                    cell=cell,
                    gain=known.mean,
                    low=known.low,
                    high=known.high,
                    p_above_0=known.p_above_0,
                )
        kinds = "; ".join(" + ".join(known.effects) or "fixed tokens" for known in report.predicted)
        raise InputError(f"--pooled {self.path}: no source there has a cell like {cell!r}, only {kinds}.")


def read_pooled(path: Path) -> PooledGains:
    """The file at a path; InputError if `pooled --output` of this release did not write it."""
    if not path.is_file():
        raise InputError(f"--pooled: {path} is not there. Write it first: {DRIVER} pooled --output {path}")
    return PooledGains(path, file_sha256(path), checked(_Report, read_json(path), path))


def effects_of(cell: str, baseline: str, source_name: str) -> tuple[str, ...]:
    """What a cell has that the baseline has not: its retriever by name, and its kind of chunker."""
    retriever, _, chunker = cell.rpartition(" x ")
    own_retriever, _, own_chunker = baseline.rpartition(" x ")
    kind, own_kind = (kind_of(name, source_name) for name in (chunker, own_chunker))
    if kind == own_kind == FIXED and limit_of(chunker) != limit_of(own_chunker):
        kind = f"{FIXED}, {limit_of(chunker):,}"
    return tuple(([retriever] if retriever != own_retriever else []) + ([kind] if kind != own_kind else []))


def kind_of(chunker: str, source_name: str) -> str:
    """The kind of a chunker: fixed tokens of whatever size, the source's structural one, the same cut at an encoder's
    limit, or another by its name.
    """
    name = chunker.removesuffix("-bare")
    if name.startswith("fixed_token_"):
        kind = FIXED
    elif uncut(name).rpartition("_v")[0] == source(source_name).structural_chunker.rpartition("_v")[0]:
        kind = STRUCTURAL if uncut(name) == name else f"{STRUCTURAL} cut at {limit_of(name)}"
    else:
        kind = _OTHERS.get(name, name)
    return kind if name == chunker else f"{kind}, without context"
