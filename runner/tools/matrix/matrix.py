"""The matrix: what every system scored on every dataset, beside published values, and which differ from the baseline.

All systems of a dataset that pass its null gate are tested at once; others are neither ranked nor tested. A mean over
datasets is of systems that have a run of each of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from runner.base.errors import InputError
from runner.base.given_files import display
from runner.base.records import Interval, Ints
from runner.decide.tiers import side_of
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.score.comparison import wins_ties_losses
from runner.score.sign_flip import PairedTest, Side, paired_tests
from runner.tools.matrix.runs import SEED, MatrixRun, Measure, Published, Source, Value, load_published, load_runs

TESTED: Measure = "ndcg@10"
"""The measure that is tested and averaged."""

DRAWS = 100_000
ALPHA = 0.05

PLACES = 5
"""Decimal places at which a published value is compared, and shown."""

Agreement = Literal["agrees", "differs", "shown", "no run"]


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
class Tested:
    """A system's nDCG@10 less the baseline's over the same queries, two-sided; adjusted over the dataset's systems."""

    cell: str
    difference: float
    interval: Interval
    simultaneous: Interval
    p: float
    p_adjusted: float
    wins: int
    ties: int
    losses: int
    side: Side


@dataclass(frozen=True, slots=True)
class DatasetMatrix:
    """One dataset: its runs, best mean nDCG@10 first (of equal ones by name), those that are not ranked last.

    `tests` are of the ranked ones in their order, without the baseline; empty if there is none, or nothing else.
    """

    name: str
    collection: CollectionFacts
    runs: tuple[MatrixRun, ...]
    beside: tuple[Beside, ...]
    tests: tuple[Tested, ...]

    @property
    def ranked(self) -> tuple[MatrixRun, ...]:
        """The runs that pass the null gate, or were written before it was recorded."""
        return tuple(run for run in self.runs if run.ranked)

    @property
    def untested(self) -> str:
        """What of the baseline keeps everything from being tested, to follow its name; "" if something is."""
        if self.tests:
            return ""
        has_baseline = any(run.cell == EXTERNAL_BASELINE for run in self.ranked)
        return f"{'is the only run' if has_baseline else 'has no run'} here, so nothing is tested"


@dataclass(frozen=True, slots=True)
class Average:
    """A system's mean of several datasets' mean nDCG@10, and where it stands on each; None for what is not tested.

    `side` is the one that it takes on all of them, None if there is none.
    """

    cell: str
    mean: float
    tests: Mapping[str, Tested | None]
    side: Side | None


@dataclass(frozen=True, slots=True)
class Shared:
    """Two datasets or more, and the systems with a ranked run of each, best mean first, of equal ones by name."""

    datasets: tuple[str, ...]
    averages: tuple[Average, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """All datasets by name. `shared` are the sets of datasets that some system was run on, larger ones first.

    `alone` are the systems of a single dataset, which have no mean; `without_runs` are datasets of published values.
    """

    datasets: tuple[DatasetMatrix, ...]
    shared: tuple[Shared, ...]
    alone: Mapping[str, str]
    without_runs: tuple[str, ...]


def make_matrix(folder: Path, *, draws: int = DRAWS) -> Matrix:
    """The matrix of a folder with `published.yaml` and `runs/`; InputError if there is no run."""
    published = load_published(folder / "published.yaml")
    runs = load_runs(folder / "runs")
    if not runs:
        raise InputError(f"{display(folder / 'runs')} has no run yet. Add some: matrix add RESULTS.json.")
    datasets = tuple(_dataset(name, found, published, draws) for name, found in runs.items())
    run_on: dict[str, list[DatasetMatrix]] = {}
    for dataset in datasets:
        for run in dataset.ranked:
            run_on.setdefault(run.cell, []).append(dataset)
    sets = {tuple(dataset.name for dataset in found) for found in run_on.values()}
    return Matrix(
        datasets,
        tuple(_shared(names, run_on) for names in sorted(sets, key=lambda names: (-len(names), names)) if names[1:]),
        {cell: found[0].name for cell, found in sorted(run_on.items()) if len(found) == 1},
        tuple(sorted({row.dataset for row in published.values} - runs.keys())),
    )


def agreement(ours: float, value: Value) -> tuple[float, Agreement]:
    """Ours less the published value, rounded to PLACES, and what its tolerance says of that; the edge agrees."""
    difference = round(ours - value.value, PLACES) + 0.0  # + 0.0 turns -0.0 into 0.0
    if value.tolerance is None:
        return difference, "shown"
    return difference, "agrees" if abs(difference) <= value.tolerance else "differs"


def _dataset(name: str, runs: Sequence[MatrixRun], published: Published, draws: int) -> DatasetMatrix:
    ordered = tuple(sorted(runs, key=lambda run: (not run.ranked, -run.means[TESTED].mean, run.cell)))
    by_cell = {run.cell: run for run in ordered}
    beside = [
        _beside(value, published.sources[value.source], by_cell.get(value.system))
        for value in published.values
        if value.dataset == name
    ]
    tests = _tests([run for run in ordered if run.ranked], draws)
    return DatasetMatrix(name, ordered[0].collection, ordered, tuple(beside), tests)


def _beside(value: Value, source: Source, run: MatrixRun | None) -> Beside:
    if run is None:
        return Beside(value, source, None, None, "no run")
    ours = run.means[value.measure].mean
    return Beside(value, source, ours, *agreement(ours, value))


def _tests(runs: Sequence[MatrixRun], draws: int) -> tuple[Tested, ...]:
    baseline = next((run for run in runs if run.cell == EXTERNAL_BASELINE), None)
    others = [run for run in runs if run is not baseline]
    if baseline is None or not others:
        return ()
    values = baseline.values(TESTED)
    differences = np.array([_aligned(run, baseline.query_ids) - values for run in others])
    tests = paired_tests(differences, draws=draws, alpha=ALPHA, seed=SEED)
    return tuple(_tested(run.cell, row, test) for run, row, test in zip(others, differences, tests, strict=True))


def _aligned(run: MatrixRun, query_ids: Sequence[str]) -> Ints:
    """A run's scores in the order of another's queries, which are the same ones."""
    places = {query_id: place for place, query_id in enumerate(run.query_ids)}
    values: Ints = run.values(TESTED)[[places[query_id] for query_id in query_ids]]
    return values


def _tested(cell: str, differences: Ints, test: PairedTest) -> Tested:
    wins, ties, losses = wins_ties_losses(differences)
    return Tested(
        cell=cell,
        difference=test.mean,
        interval=test.interval,
        simultaneous=test.simultaneous,
        p=test.p,
        p_adjusted=test.p_adjusted,
        wins=wins,
        ties=ties,
        losses=losses,
        side=side_of((test.simultaneous.low, test.simultaneous.high)),
    )


def _shared(names: tuple[str, ...], run_on: Mapping[str, Sequence[DatasetMatrix]]) -> Shared:
    found = {cell: [d for d in datasets if d.name in names] for cell, datasets in run_on.items()}
    averages = [_average(cell, datasets) for cell, datasets in found.items() if len(datasets) == len(names)]
    return Shared(names, tuple(sorted(averages, key=lambda row: (-row.mean, row.cell))))


def _average(cell: str, datasets: Sequence[DatasetMatrix]) -> Average:
    means = [run.means[TESTED].mean for dataset in datasets for run in dataset.ranked if run.cell == cell]
    tests = {d.name: next((test for test in d.tests if test.cell == cell), None) for d in datasets}
    sides = {test.side if test else None for test in tests.values()}
    return Average(cell, math.fsum(means) / len(means), tests, sides.pop() if len(sides) == 1 else None)
