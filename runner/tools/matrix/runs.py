"""The runs of the matrix, one file a cell of an external evaluation: matrix/runs/<dataset>/<cell>.json.

They hold ids and figures and no text of a collection, and `compare` reads them. Reading one for the page computes its
means and intervals again, so that none can be edited by hand.
"""

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from runner.base.canonical import read_json, slug
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display, printable
from runner.base.records import SCORE_UNIT, Ints
from runner.base.schema import Sha256, Share, Strict, checked
from runner.eval_set.shapes.cell import ImportedRun, Truncation
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.score.bootstrap import mean_intervals
from runner.score.comparison import mean

Measure = Literal["ndcg@10", "recall@10", "recall@100", "mrr@10"]
MEASURES: tuple[Measure, ...] = ("ndcg@10", "recall@10", "recall@100", "mrr@10")
"""What a run keeps of its scores; `perQuery` has the names without "@"."""

SEED = 2026
"""Of the bootstrap and of the sign flips: every matrix is made alike, whatever a plan says."""

DATASET_LENGTH = 64
Dataset = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=DATASET_LENGTH)]
CellName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9 ._>(),:-]{0,199}$")]
QueryId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
ShellLine = Annotated[str, Field(pattern=r"^[^`[:cntrl:]]{1,500}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Facts = dict[str, str | bool | int | Finite | dict[str, str]]
"""What a backend says of itself."""


class Mean(Strict):
    """The mean of a measure with its percentile-bootstrap interval of 95 %."""

    mean: Share
    low: Share
    high: Share


class QueryFigures(Strict):
    """One query's scores."""

    qid: QueryId
    ndcg10: Share
    recall10: Share
    recall100: Share
    mrr10: Share


class MatrixRun(Strict):
    """A run's file. `encoder`, `bm25` and `imported` are as in results.json; `reproduce` are lines for a shell."""

    schema_version: Literal[2]
    dataset: Dataset
    cell: CellName
    collection: CollectionFacts
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    means: dict[Measure, Mean]
    per_query: Annotated[list[QueryFigures], Field(min_length=1, alias="perQuery")]
    encoder: Facts | None
    bm25: Facts | None
    imported: ImportedRun | None
    method: str
    truncation: Truncation | None
    run_sha256: Sha256
    reproduce: list[ShellLine]

    @property
    def file_name(self) -> str:
        """The name of the run's file in its dataset's folder."""
        return f"{slug(self.cell)}.json"

    @property
    def query_ids(self) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(row.qid for row in self.per_query)

    def values(self, measure: str) -> Ints:
        """The scores (queries,) in units of 1e-9, in the order of `query_ids`."""
        name = measure.replace("@", "")
        return np.array([round(getattr(row, name) * SCORE_UNIT) for row in self.per_query], np.int64)


def load_runs(folder: Path) -> dict[str, list[MatrixRun]]:
    """The runs of every dataset, datasets and cells by name; empty where there is no folder.

    InputError for a file that is no run or lies in another dataset's place, and where runs of a dataset differ in
    their collection or queries. IntegrityError where means or intervals are not those of the scores.
    """
    datasets: dict[str, list[MatrixRun]] = {}
    for path, run in run_files(folder):
        _verify(run, display(path))
        runs = datasets.setdefault(run.dataset, [])
        if runs and (problem := other_ground(run, runs[0])):
            raise InputError(f"{display(path)} is over another collection than {runs[0].file_name}: {problem}.")
        runs.append(run)
    return datasets


def means(values: Ints) -> dict[Measure, dict[str, float]]:
    """Mean and interval of each row of `values` (MEASURES, queries), in units of 1e-9."""
    return {
        measure: {"mean": mean(row), "low": interval.low, "high": interval.high}
        for measure, row, interval in zip(MEASURES, values, mean_intervals(values, seed=SEED), strict=True)
    }


def checked_run(value: object, where: str) -> MatrixRun:
    """`value` as a run; an InputError names the place and what is wrong."""
    run = checked(MatrixRun, value, where)
    if len(set(run.query_ids)) < len(run.query_ids):
        raise InputError(f"{where}: a query occurs twice.")
    return run


def run_files(folder: Path) -> list[tuple[Path, MatrixRun]]:
    """Every run below `folder` with its path, sorted by path; InputError for a file that is none or is misplaced."""
    found = []
    for path in sorted(folder.glob("*/*.json")):
        run = checked_run(read_json(path), display(path))
        if (path.parent.name, path.name) != (run.dataset, run.file_name):
            raise InputError(f"{display(path)} holds {run.cell} of {run.dataset}. Move it to its place, or remove it.")
        found.append((path, run))
    return found


def other_ground(run: MatrixRun, other: MatrixRun) -> str:
    """What keeps two runs of a dataset from being compared, "" where nothing does; a folder's name does not."""
    here = run.collection.model_dump(exclude={"name"}) | {"relevant_grade": run.relevant_grade}
    there = other.collection.model_dump(exclude={"name"}) | {"relevant_grade": other.relevant_grade}
    found = [f"{field} {here[field]} here, {there[field]} there" for field in here if here[field] != there[field]]
    if not found and set(run.query_ids) != set(other.query_ids):
        found = ["other queries"]
    return printable("; ".join(found), longest=1000)


def _verify(run: MatrixRun, where: str) -> None:
    for measure, expected in means(np.array([run.values(measure) for measure in MEASURES])).items():
        stated = run.means[measure].model_dump() if measure in run.means else {}
        if not all(math.isclose(stated.get(end, -1), value, abs_tol=1e-9) for end, value in expected.items()):
            raise IntegrityError(
                f"{where}: its {measure} is not that of its queries, so one of them was edited. Restore it from git, "
                "or write it again: matrix add RESULTS.json."
            )
