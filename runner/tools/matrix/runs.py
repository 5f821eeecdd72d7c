"""What the matrix is made of: runs (matrix/runs/<dataset>/<cell>.json) and published values (matrix/published.yaml).

Runs hold ids and figures, no text of a collection; `compare` reads them too.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from runner.base.canonical import json_bytes, read_json, slug, write_atomic
from runner.base.errors import InputError
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.plain_yaml import read_yaml
from runner.base.records import SCORE_UNIT, Ints, Verdict
from runner.base.schema import FrozenModel, Sha256, Share, checked
from runner.base.store import disk_errors
from runner.eval_set.lock import verified
from runner.eval_set.shapes.cell import ImportedRun, Truncation
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.queries import QueryId
from runner.eval_set.shapes.results import CellResult, Results

Measure = Literal["ndcg@10", "recall@100", "mrr@10"]
MEASURES: tuple[Measure, ...] = ("ndcg@10", "recall@100", "mrr@10")
"""What the page shows."""

KEPT = (*MEASURES, "recall@10")
"""What a run keeps of its scores; `perQuery` has the names without "@"."""

Dataset = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]


class QueryFigures(FrozenModel):
    """One query's scores."""

    qid: QueryId
    ndcg10: Share
    recall10: Share
    recall100: Share
    mrr10: Share


class MatrixRun(FrozenModel):
    """A run's file: `encoder`, `bm25`, `imported`, `truncation` and `method` are as in results.json.

    `gate` is what the null gate said of the run, and `diagnosis` what is wrong.
    """

    schema_version: Literal[1]
    dataset: Dataset
    cell: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9 ._>(),:-]{0,199}$")]
    collection: CollectionFacts
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    per_query: Annotated[list[QueryFigures], Field(min_length=1, alias="perQuery")]
    encoder: dict[str, Any] | None
    bm25: dict[str, Any] | None
    imported: ImportedRun | None
    method: str
    truncation: Truncation | None
    run_sha256: Sha256
    gate: Verdict
    diagnosis: Annotated[str, Field(max_length=2000)]

    @property
    def file(self) -> str:
        """Where the run lies below the folder of runs."""
        return f"{self.dataset}/{slug(self.cell)}.json"

    @property
    def query_ids(self) -> list[str]:
        """In the order of the file."""
        return [row.qid for row in self.per_query]

    def values(self, measure: Measure) -> Ints:
        """Return the scores (queries,) in units of 1e-9, in the order of `query_ids`."""
        name = measure.replace("@", "")
        return np.array([round(getattr(row, name) * SCORE_UNIT) for row in self.per_query], np.int64)


def load_runs(folder: Path) -> dict[str, list[MatrixRun]]:
    """Return the runs of every dataset, datasets and cells by name; empty if there is no folder.

    InputError for a file that is no run or is misplaced, and if runs of a dataset differ in collection or queries.
    """
    datasets: dict[str, list[MatrixRun]] = {}
    for path in sorted(folder.glob("*/*.json")):
        run = checked(MatrixRun, read_json(path), display(path))
        if path != folder / run.file:
            raise InputError(f"{display(path)} holds {run.cell} of {run.dataset}. Move it to its place, or remove it.")
        runs = datasets.setdefault(run.dataset, [])
        _need_same_ground(run, runs[:1], display(path))
        runs.append(run)
    return datasets


def _need_same_ground(run: MatrixRun, others: Iterable[MatrixRun], where: str) -> None:
    """Raise InputError unless a run and others are over the same collection and queries; a folder's name may differ."""
    if len(set(run.query_ids)) < len(run.query_ids):
        raise InputError(f"{where}: a query occurs twice.")
    for other in others:
        here, there = (each.collection.model_dump(exclude={"name"}) for each in (run, other))
        found = [f"{name} {here[name]} here, {there[name]} there" for name in here if here[name] != there[name]]
        if run.relevant_grade != other.relevant_grade or set(run.query_ids) != set(other.query_ids):
            found.append("other queries, or another relevant grade")
        if found:
            told = printable("; ".join(found), longest=1000)
            raise InputError(
                f"{where} is over another collection than the run of {other.cell}, though both are of {run.dataset}: "
                f"{told}. Give the collection's folder another name, or remove the runs that are out of date."
            )


def add_runs(results: Iterable[Path], folder: Path) -> list[Path]:
    """Write each cell's run under `folder`/DATASET and return their paths; nothing is written if anything is wrong."""
    known = load_runs(folder)
    runs: dict[Path, MatrixRun] = {}
    for source in results:
        for run in runs_of(source):
            _need_same_ground(run, known.setdefault(run.dataset, [])[:1], display(source))
            known[run.dataset].append(run)
            runs[folder / run.file] = run
    with disk_errors(folder):
        for path, run in runs.items():
            write_atomic(path, json_bytes(run.model_dump(by_alias=True)))
    return list(runs)


def runs_of(path: Path) -> list[MatrixRun]:
    """Return the runs of an external evaluation's results.json, in its order.

    InputError if it is none, is of a sample, is of tier "no decision" or has a name that makes no dataset's.
    """
    where = display(path)
    results = checked(Results, read_json(verified(path)), where)
    if results.collection is None:
        raise InputError(
            f"{where} is no results.json of an external collection. Make one: "
            f"{DRIVER} --source=beir --corpus-path FOLDER."
        )
    if results.corpus.documents != results.corpus.n_read:
        raise InputError(
            f"{where}: {results.corpus.documents:,} of {results.corpus.n_read:,} documents were searched, and "
            "no published figure is of a sample. Raise sample.size in the plan and evaluate the whole collection."
        )
    if results.outcome.tier == "no decision":
        raise InputError(
            f"{where}: its baseline or a control fails, so its figures mean nothing. Its page says what is "
            "wrong; mend it and evaluate again."
        )
    return [_run(results, results.collection, cell, where) for cell in results.cells]


def _run(results: Results, collection: CollectionFacts, cell: CellResult, where: str) -> MatrixRun:
    rows = [
        {"qid": query.id} | {name.replace("@", ""): cell.scores[name].per_query[n] / SCORE_UNIT for name in KEPT}
        for n, query in enumerate(results.queries)
    ]
    run = {
        "schema_version": 1,
        "dataset": slug(collection.name).lstrip("._-")[:64],
        "cell": cell.cell,
        "collection": collection.model_dump(),
        "relevant_grade": results.plan.relevant_grade,
        "perQuery": rows,
        "gate": cell.gate.verdict,
        "diagnosis": cell.diagnosis,
    }
    made_of = {"encoder", "bm25", "imported", "method", "truncation", "run_sha256"}
    return checked(MatrixRun, run | cell.provenance.model_dump(include=made_of), where)


Text = Annotated[str, Field(min_length=1, max_length=600, pattern=r"\S")]


class Source(FrozenModel):
    """Where values come from.

    A "reference run" was measured with another implementation over the same files and is published nowhere. `read_in`
    is where the values were read; null says that they are second-hand. `unlike` says what is not as in our run.
    """

    title: Text
    url: Annotated[str, Field(max_length=300, pattern=r"^https://[A-Za-z0-9._~/%#?=&:+@-]+$")] | None
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


class Published(FrozenModel):
    """published.yaml: values in file order, and their sources by name."""

    schema_version: Literal[1]
    sources: dict[str, Source]
    values: list[Value]


def load_published(path: Path) -> Published:
    """Return what the file holds; an InputError names the row and the field that is wrong, or a value given twice."""
    found = checked(Published, read_yaml(path), display(path))
    places: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(found.values):
        where = f"{display(path)}: values.{number}"
        if row.source not in found.sources:
            raise InputError(f"{where}: there is no source {printable(row.source)!r}.")
        if (first := places.setdefault((row.dataset, row.system, row.measure, row.source), number)) != number:
            raise InputError(f"{where}: values.{first} is from the same source. Keep one.")
    return found
