"""What the matrix is made of: runs (matrix/runs/<dataset>/<cell>.json) and published values (matrix/published.yaml).

Runs hold ids and figures, no text of a collection; `compare` reads them too. Reading a run computes its means and
intervals again, so that an edited one is found.
"""

import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from runner.base.canonical import read_json, slug
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display, printable, read_yaml
from runner.base.records import SCORE_UNIT, Ints, Verdict
from runner.base.schema import FrozenModel, Sha256, Share, checked
from runner.eval_set.shapes.cell import ImportedRun, Truncation
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.queries import QueryId
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
ShellLine = Annotated[str, Field(pattern=r"^[^`[:cntrl:]]{1,500}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Facts = dict[str, str | bool | int | Finite | dict[str, str]]
"""What a backend says of itself."""


class Mean(FrozenModel):
    """The mean of a measure with its percentile-bootstrap interval of 95 %."""

    mean: Share
    low: Share
    high: Share


class QueryFigures(FrozenModel):
    """One query's scores."""

    qid: QueryId
    ndcg10: Share
    recall10: Share
    recall100: Share
    mrr10: Share


class MatrixRun(FrozenModel):
    """A run's file. `encoder`, `bm25` and `imported` are as in results.json; `reproduce` are lines for a shell.

    `gate` is what the null gate said of the run, None in files that were written before, and `diagnosis` what is wrong.
    """

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
    gate: Verdict | None = None
    diagnosis: Annotated[str, Field(max_length=2000)] = ""

    @property
    def ranked(self) -> bool:
        """Whether nothing keeps it from being set beside others."""
        return self.gate in (None, "pass")

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
    """The runs of every dataset, datasets and cells by name; empty if there is no folder.

    InputError for a file that is no run or is misplaced, and if runs of a dataset differ in collection or queries;
    IntegrityError if means or intervals are not those of the scores.
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
    """What keeps two runs of a dataset from being compared, "" if nothing does; a folder's name does not.

    What is read off the files, whose digests are compared, does not either: earlier runs lack some of it.
    """
    here, there = (_ground(each) for each in (run, other))
    found = [f"{field} {here[field]} here, {there[field]} there" for field in here if here[field] != there[field]]
    if not found and set(run.query_ids) != set(other.query_ids):
        found = ["other queries"]
    return printable("; ".join(found), longest=1000)


def _ground(run: MatrixRun) -> dict[str, str | int]:
    collection = run.collection.model_dump(exclude={"name", "renormalised", "language"})
    return collection | {"relevant_grade": run.relevant_grade}


def _verify(run: MatrixRun, where: str) -> None:
    for measure, expected in means(np.array([run.values(measure) for measure in MEASURES])).items():
        stated = run.means[measure].model_dump() if measure in run.means else {}
        if not all(math.isclose(stated.get(end, -1), value, abs_tol=1e-9) for end, value in expected.items()):
            raise IntegrityError(
                f"{where}: its {measure} is not that of its queries, so one of them was edited. Restore it from git, "
                "or write it again: matrix add RESULTS.json."
            )


_FIELDS = {"schema_version", "sources", "values"}

Text = Annotated[str, Field(min_length=1, max_length=600, pattern=r"\S")]

Url = Annotated[str, Field(max_length=300, pattern=r"^https://[A-Za-z0-9._~/%#?=&:+@-]+$")]


class Source(FrozenModel):
    """Where values come from.

    A "reference run" was measured with another implementation over the same files and is published nowhere. `read_in`
    is where the values were read; null says that they are second-hand. `unlike` says what is not as in our run.
    """

    title: Text
    url: Url | None
    kind: Literal["published", "reference run"]
    configuration: Text
    read_in: Text | None
    unlike: Text | None


class Value(FrozenModel):
    """One value. `system` is the cell that it is set beside, or a name of its own.

    Without a `tolerance` it is only shown. `reason` is why ours differs by more.
    """

    dataset: Dataset
    system: Text
    measure: Measure
    value: Share
    tolerance: Annotated[float, Field(gt=0, le=0.1)] | None
    source: Text
    reason: Text | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """The values in file order, and their sources by name."""

    sources: Mapping[str, Source]
    values: tuple[Value, ...]


def load_published(path: Path) -> Published:
    """What the file holds; an InputError names the row and the field that is wrong, or a value that is given twice."""
    where, document = display(path), read_yaml(path)
    if not isinstance(document, dict) or set(document) != _FIELDS or document["schema_version"] != 1:
        raise InputError(f"{where}: {', '.join(sorted(_FIELDS))} are expected, and schema_version is 1.")
    given, rows = document["sources"], document["values"]
    if not isinstance(given, dict) or not isinstance(rows, list):
        raise InputError(f"{where}: `sources` is a mapping of names, `values` is a list.")
    sources = {
        str(name): checked(Source, row, f"{where}: source {printable(str(name))}") for name, row in given.items()
    }
    values = [checked(Value, row, f"{where}: {_row_name(row, number)}") for number, row in enumerate(rows, start=1)]
    _check_rows(values, sources, where)
    return Published(sources, tuple(values))


def _check_rows(values: list[Value], sources: Mapping[str, Source], where: str) -> None:
    places: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(values, start=1):
        if row.source not in sources:
            raise InputError(
                f"{where}: {_row_name(row.model_dump(), number)}: there is no source {printable(row.source)!r}."
            )
        first = places.setdefault((row.dataset, row.system, row.measure, row.source), number)
        if first != number:
            name = _row_name(row.model_dump(), number)
            raise InputError(f"{where}: {name}: row {first} has a value from the same source. Keep one.")


def _row_name(row: object, number: int) -> str:
    fields = [row.get(field) for field in ("dataset", "system", "measure")] if isinstance(row, dict) else []
    about = ", ".join(field for field in fields if isinstance(field, str))
    return f"row {number}" + (f" ({printable(about)})" if about else "")


def check_place(runs: Path) -> None:
    """Check that the folder is one or may become one; an InputError for a file, a link in a circle, too long a name."""
    try:
        problem = "" if stat.S_ISDIR(runs.stat().st_mode) else "Not a directory"
    except FileNotFoundError:
        return
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise InputError(f"{display(runs)} cannot be used ({problem}). Give with --docs the folder that holds matrix/.")
