"""The matrix: what every system scored on every dataset, beside published values, and which differ from the baseline.

All systems of a dataset are tested at once. What is said of all datasets is said only of a system with a run of each.
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
    """A system's nDCG@10 less the baseline's over the same queries, two-sided; adjusted over the dataset's systems.

    Its side follows from `simultaneous` and from `p_skew`, which skewed differences do not mislead.
    """

    cell: str
    difference: float
    interval: Interval
    simultaneous: Interval
    p: float
    p_adjusted: float
    p_skew: float
    wins: int
    ties: int
    losses: int
    side: Side


@dataclass(frozen=True, slots=True)
class DatasetMatrix:
    """One dataset: its runs, best mean nDCG@10 first (of equal ones by name), and what they are compared with.

    `tests` are in the order of the runs, without the baseline; empty if there is none, or nothing else.
    """

    name: str
    collection: CollectionFacts
    runs: tuple[MatrixRun, ...]
    beside: tuple[Beside, ...]
    tests: tuple[Tested, ...]

    @property
    def untested(self) -> str:
        """What of the baseline keeps everything from being tested, to follow its name; "" if something is."""
        if self.tests:
            return ""
        has_baseline = any(run.cell == EXTERNAL_BASELINE for run in self.runs)
        return f"{'is the only run' if has_baseline else 'has no run'} here, so nothing is tested"


@dataclass(frozen=True, slots=True)
class Everywhere:
    """A system on all datasets: its mean of their mean nDCG@10, and its side; "not told apart" if sides differ.

    `simultaneous` are the intervals by dataset: empty, and the side None, for the baseline or if a dataset lacks it.
    """

    cell: str
    mean: float
    side: Side | None
    simultaneous: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Matrix:
    """All datasets by name; `everywhere` best mean first, `lacking` the datasets that a system has no run of.

    `without_runs` are datasets of published values alone.
    """

    datasets: tuple[DatasetMatrix, ...]
    everywhere: tuple[Everywhere, ...]
    lacking: Mapping[str, tuple[str, ...]]
    without_runs: tuple[str, ...]

    def on_every_dataset(self, side: Side) -> list[Everywhere]:
        """The systems that take this side of the baseline on every dataset, best mean first."""
        return [row for row in self.everywhere if row.side == side]


def make_matrix(folder: Path, *, draws: int = DRAWS) -> Matrix:
    """The matrix of a folder with `published.yaml` and `runs/`; InputError if there is no run."""
    published = load_published(folder / "published.yaml")
    runs = load_runs(folder / "runs")
    if not runs:
        raise InputError(f"{display(folder / 'runs')} has no run yet. Add some: matrix add RESULTS.json.")
    datasets = tuple(_dataset(name, found, published, draws) for name, found in runs.items())
    cells = sorted({run.cell for dataset in datasets for run in dataset.runs})
    lacking = {cell: tuple(d.name for d in datasets if cell not in {run.cell for run in d.runs}) for cell in cells}
    everywhere = [_everywhere(cell, datasets) for cell in cells if not lacking[cell]]
    return Matrix(
        datasets,
        tuple(sorted(everywhere, key=lambda row: (-row.mean, row.cell))),
        {cell: missing for cell, missing in lacking.items() if missing},
        tuple(sorted({row.dataset for row in published.values} - runs.keys())),
    )


def agreement(ours: float, value: Value) -> tuple[float, Agreement]:
    """Ours less the published value, rounded to PLACES, and what its tolerance says of that; the edge agrees."""
    difference = round(ours - value.value, PLACES) + 0.0  # + 0.0 turns -0.0 into 0.0
    if value.tolerance is None:
        return difference, "shown"
    return difference, "agrees" if abs(difference) <= value.tolerance else "differs"


def _dataset(name: str, runs: Sequence[MatrixRun], published: Published, draws: int) -> DatasetMatrix:
    ordered = tuple(sorted(runs, key=lambda run: (-run.means[TESTED].mean, run.cell)))
    by_cell = {run.cell: run for run in ordered}
    beside = [
        _beside(value, published.sources[value.source], by_cell.get(value.system))
        for value in published.values
        if value.dataset == name
    ]
    return DatasetMatrix(name, ordered[0].collection, ordered, tuple(beside), _tests(ordered, draws))


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
        p_skew=test.p_skew,
        wins=wins,
        ties=ties,
        losses=losses,
        side=side_of((test.simultaneous.low, test.simultaneous.high), test.p_skew, ALPHA),
    )


def _everywhere(cell: str, datasets: Sequence[DatasetMatrix]) -> Everywhere:
    means = [run.means[TESTED].mean for dataset in datasets for run in dataset.runs if run.cell == cell]
    tests = {dataset.name: test for dataset in datasets for test in dataset.tests if test.cell == cell}
    mean = math.fsum(means) / len(means)
    if len(tests) < len(datasets):
        return Everywhere(cell, mean, None, {})
    sides = {test.side for test in tests.values()}
    side: Side = sides.pop() if len(sides) == 1 else "not told apart"
    return Everywhere(cell, mean, side, {name: test.simultaneous for name, test in tests.items()})
