"""The matrix on a terminal, and as data for a program."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.base.given_files import printable
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.tools.console import Signs
from runner.tools.matrix.matrix import PLACES, Beside, DatasetMatrix, Matrix


def summary_lines(matrix: Matrix, signs: Signs) -> list[str]:
    """Three lines a dataset, and one for every value that ours differs from by more than its tolerance."""
    lines = []
    for dataset in matrix.datasets:
        said: Counter[str] = Counter(row.agreement for row in dataset.beside)
        lines += [
            f"{dataset.name}: {len(dataset.runs)} systems",
            f"  against the baseline: {_tested(dataset)}",
            f"  published values: {_counted(said, ('agrees', 'differs', 'shown', 'no run'))}",
            *(f"  {signs.no} {_difference(row, signs)}" for row in dataset.beside if row.agreement == "differs"),
        ]
    return [*lines, *(f"{name}: published values, and no run" for name in matrix.without_runs)]


def _tested(dataset: DatasetMatrix) -> str:
    if dataset.untested:
        return f"{EXTERNAL_BASELINE} {dataset.untested}"
    return _counted(Counter(test.side for test in dataset.tests), ("above", "below", "not told apart"))


def _counted(counts: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in names)


def _difference(row: Beside, signs: Signs) -> str:
    value = row.value
    less = signs.signed(row.difference or 0.0, PLACES)
    return printable(f"{value.system}: {value.measure} {less} from {value.value:g}, {row.source.title}")


def as_data(matrix: Matrix) -> dict[str, Any]:
    """Everything but the queries' scores, which are in the runs' files."""
    return {
        "datasets": [_dataset(dataset) for dataset in matrix.datasets],
        "everywhere": [asdict(row) for row in matrix.everywhere],
        "lacking": {cell: list(names) for cell, names in matrix.lacking.items()},
        "without_runs": list(matrix.without_runs),
    }


def _dataset(dataset: DatasetMatrix) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "collection": dataset.collection.model_dump(),
        "runs": [run.model_dump(exclude={"per_query", "collection", "schema_version"}) for run in dataset.runs],
        "published": [
            row.value.model_dump()
            | {
                "source": row.source.model_dump(),
                "ours": row.ours,
                "difference": row.difference,
                "agreement": row.agreement,
            }
            for row in dataset.beside
        ],
        "tests": [asdict(test) for test in dataset.tests],
    }
