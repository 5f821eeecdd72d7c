"""The matrix: what every system scored on every dataset, beside published values, and which differ from the baseline.

All systems of a dataset that pass its null gate are tested at once; others are neither ranked nor tested. A mean over
datasets is of systems that have a run of each of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader

from runner.base.canonical import refuse_special, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import p_text, signed
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.store import disk_errors
from runner.decide.tiers import side_of
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.eval_set.shapes.paired import PairedTest
from runner.report.page_frame import OPTIONS, TEMPLATES
from runner.score.bootstrap import mean_intervals
from runner.score.comparison import mean, wins_ties_losses
from runner.score.sign_flip import Side, paired_tests
from runner.tools.markdown import escaped
from runner.tools.matrix.runs import (
    MEASURES,
    MatrixRun,
    Measure,
    Published,
    Source,
    Value,
    load_published,
    load_runs,
)

TESTED: Measure = "ndcg@10"
"""The measure that is tested and averaged."""

SEED = 2026
"""Of the bootstrap and of the sign flips: every matrix is made alike, whatever a plan says."""

DRAWS = 100_000
ALPHA = 0.05

PLACES = 5
"""Decimal places at which a published value is compared, and shown."""

Agreement = Literal["agrees", "differs", "shown", "no run"]


class Mean(NamedTuple):
    """The mean of a measure with its percentile-bootstrap interval of 95 %."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tested:
    """A system's nDCG@10 less the baseline's over the same queries, two-sided; adjusted over the dataset's systems."""

    mean: float
    test: PairedTest
    counts: tuple[int, int, int]
    side: Side


@dataclass(frozen=True, slots=True)
class System:
    """A run, its means, and its test against the baseline: None for the baseline, and where nothing is tested."""

    run: MatrixRun
    means: Mapping[Measure, Mean]
    tested: Tested | None = None


@dataclass(frozen=True, slots=True)
class Beside:
    """A published value, and ours less it at PLACES; None if the dataset has no run of that system.

    "agrees" is a difference of at most the tolerance; a value without one is "shown".
    """

    value: Value
    source: Source
    ours: float | None
    difference: float | None
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class DatasetMatrix:
    """One dataset: systems that pass the null gate, best mean nDCG@10 first (of equal ones by name), and the others."""

    name: str
    ranked: tuple[System, ...]
    unranked: tuple[System, ...]
    beside: tuple[Beside, ...]


@dataclass(frozen=True, slots=True)
class Average:
    """A system's mean of all datasets' mean nDCG@10, and its test on each."""

    cell: str
    mean: float
    tested: tuple[Tested | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """All datasets by name, and the systems with a ranked run of each, best mean first, of equal ones by name."""

    datasets: tuple[DatasetMatrix, ...]
    averages: tuple[Average, ...]


def make_matrix(folder: Path, *, draws: int = DRAWS) -> Matrix:
    """Return the matrix of a folder with `published.yaml` and `runs/`; InputError if there is no run."""
    published = load_published(folder / "published.yaml")
    runs = load_runs(folder / "runs")
    if not runs:
        raise InputError(
            f"{display(folder / 'runs')} has no run yet. Add some: python -m runner.commands.matrix RESULTS.json"
        )
    datasets = tuple(_dataset(name, found, published, draws) for name, found in runs.items())
    cells = set.intersection(*({system.run.cell for system in dataset.ranked} for dataset in datasets))
    averages = [_average(cell, datasets) for cell in cells] if datasets[1:] else []
    return Matrix(datasets, tuple(sorted(averages, key=lambda row: (-row.mean, row.cell))))


def agreement(ours: float, value: Value) -> tuple[float, Agreement]:
    """Return ours less the published value, rounded to PLACES, and what its tolerance says of that; the edge agrees."""
    difference = round(ours - value.value, PLACES) + 0.0  # + 0.0 turns -0.0 into 0.0
    if value.tolerance is None:
        return difference, "shown"
    return difference, "agrees" if abs(difference) <= value.tolerance else "differs"


def _dataset(name: str, runs: Sequence[MatrixRun], published: Published, draws: int) -> DatasetMatrix:
    systems = sorted(
        (System(run, _means(run)) for run in runs), key=lambda one: (-one.means[TESTED].mean, one.run.cell)
    )
    ranked = [system for system in systems if system.run.gate == "pass"]
    tests = _tests([system.run for system in ranked], draws)
    by_cell = {system.run.cell: system for system in systems}
    beside = []
    for value in published.values:
        if value.dataset == name:
            system = by_cell.get(value.system)
            ours = system.means[value.measure].mean if system else None
            compared = (None, "no run") if ours is None else agreement(ours, value)
            beside.append(Beside(value, published.sources[value.source], ours, *compared))
    return DatasetMatrix(
        name,
        tuple(System(system.run, system.means, tests.get(system.run.cell)) for system in ranked),
        tuple(system for system in systems if system.run.gate != "pass"),
        tuple(beside),
    )


def _means(run: MatrixRun) -> dict[Measure, Mean]:
    values = np.array([run.values(measure) for measure in MEASURES])
    ends = mean_intervals(values, seed=SEED)
    return {
        measure: Mean(mean(row), interval.low, interval.high)
        for measure, row, interval in zip(MEASURES, values, ends, strict=True)
    }


def _tests(runs: Sequence[MatrixRun], draws: int) -> dict[str, Tested]:
    """Return the tests of all but the baseline by cell; none if there is no baseline, or nothing else."""
    baseline = next((run for run in runs if run.cell == EXTERNAL_BASELINE), None)
    others = [run for run in runs if run is not baseline]
    if baseline is None or not others:
        return {}
    rows = []
    for run in others:
        # Files may have the same queries in another order.
        places = {query_id: place for place, query_id in enumerate(run.query_ids)}
        rows.append(run.values(TESTED)[[places[query_id] for query_id in baseline.query_ids]] - baseline.values(TESTED))
    tests = paired_tests(np.array(rows), draws=draws, alpha=ALPHA, seed=SEED)
    return {
        run.cell: Tested(mean(row), test, wins_ties_losses(row), side_of(test.simultaneous or test.interval))
        for run, row, test in zip(others, rows, tests, strict=True)
    }


def _average(cell: str, datasets: Sequence[DatasetMatrix]) -> Average:
    systems = [system for dataset in datasets for system in dataset.ranked if system.run.cell == cell]
    means = [system.means[TESTED].mean for system in systems]
    return Average(cell, math.fsum(means) / len(means), tuple(system.tested for system in systems))


def matrix_page(matrix: Matrix) -> bytes:
    """Return the page as Markdown, what comes from data files escaped; the same bytes for the same matrix."""
    templates = Environment(loader=FileSystemLoader(TEMPLATES), **OPTIONS)  # noqa: S701  # Markdown, escaped by a filter
    templates.filters |= {"escaped": escaped, "signed": signed, "p_value": p_text, "ends": _ends}
    page = templates.get_template("matrix.md.j2").render(matrix=matrix, baseline=EXTERNAL_BASELINE, driver=DRIVER)
    return f"{page}\n".encode()


def _ends(interval: Sequence[float]) -> str:
    return f"[{signed(interval[0])}, {signed(interval[1])}]"


def write_matrix(path: Path, *, check: bool) -> None:
    """Write the page of the folder matrix/ beside it or, with `check`, hold it to that; an edited one is an error."""
    refuse_special(path)
    content = matrix_page(make_matrix(path.with_suffix("")))
    if not check:
        with disk_errors(path):
            write_atomic(path, content)
    elif not path.exists():
        raise InputError(f"{display(path)} does not exist. Write it: matrix.")
    elif path.read_bytes() != content:
        raise IntegrityError(f"{display(path)} is not what its runs and published values make. Write it again: matrix.")
