"""The matrix of public collections: what every system scored, beside published values, and which differ from BM25.

In: results.json of external evaluations, and docs/matrix/published.yaml. Out: runs (docs/matrix/runs/DATASET/CELL.json,
ids and figures alone; `compare` reads them too), and the page. All systems of a dataset that pass its null gate are
tested at once; others are neither ranked nor tested. A mean over datasets is of systems that have a run of each.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from runner.base.canonical import json_bytes, read_json, refuse_special, slug, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import p_text, signed
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.plain_yaml import read_yaml
from runner.base.records import SCORE_UNIT, Verdict
from runner.base.schema import FrozenModel, Sha256, Share, checked
from runner.base.store import disk_errors
from runner.decide.tiers import side_of
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.eval_set.lock import verified
from runner.eval_set.shapes.cell import ImportedRun, Truncation
from runner.eval_set.shapes.corpus import CollectionSizes
from runner.eval_set.shapes.paired import Difference, MeasureResult, PairedTest
from runner.eval_set.shapes.queries import QueryId
from runner.eval_set.shapes.results import Results
from runner.report.templates import environment
from runner.score.comparison import less, measured, summarised
from runner.score.sign_flip import paired_tests
from runner.tools.compare import ALPHA, BOOTSTRAP, DRAWS, SEED
from runner.tools.markdown import escaped

Measure = Literal["ndcg@10", "recall@100", "mrr@10"]
MEASURES: tuple[Measure, ...] = ("ndcg@10", "recall@100", "mrr@10")
"""What the page shows; the first is tested and averaged."""

KEPT = (*MEASURES, "recall@10")
"""What a run keeps of its scores; `perQuery` has the names without "@"."""

PLACES = 5
"""Decimal places at which a published value is compared, and shown."""

Dataset = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=600, pattern=r"\S")]


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
    collection: CollectionSizes
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
        """The queries' ids in the order of the file."""
        return [row.qid for row in self.per_query]

    def values(self, measure: Measure) -> dict[str, int]:
        """Return the scores by query id, in units of 1e-9."""
        name = measure.replace("@", "")
        return {row.qid: round(getattr(row, name) * SCORE_UNIT) for row in self.per_query}


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


@dataclass(frozen=True, slots=True)
class System:
    """A run, its means with intervals of 95 %, and its nDCG@10 less the baseline's over the same queries.

    `test` is adjusted over the dataset's systems; both are None for the baseline and where nothing is tested.
    """

    run: MatrixRun
    means: Mapping[str, MeasureResult]
    difference: Difference | None = None
    test: PairedTest | None = None

    @property
    def score(self) -> float:
        """The mean nDCG@10, by which systems are ranked."""
        return self.means[MEASURES[0]].mean

    @property
    def side(self) -> str:
        """Whether all differences at once say above or below the baseline; "–" without a test."""
        return "–" if self.test is None else side_of(self.test.simultaneous or self.test.interval)


def load_runs(folder: Path) -> dict[str, list[MatrixRun]]:
    """Return the runs of every dataset, datasets and cells by name; empty if there is no folder.

    InputError for a file that is not a run or is misplaced, and if runs of a dataset differ in collection or queries.
    """
    datasets: dict[str, list[MatrixRun]] = {}
    for path in sorted(folder.glob("*/*.json")):
        run = checked(MatrixRun, read_json(path), display(path))
        # The page links each run by the place that its content gives it.
        if path != folder / run.file:
            raise InputError(f"{display(path)} holds {run.cell} of {run.dataset}. Move it to its place, or remove it.")
        _need_same_ground(run, datasets.setdefault(run.dataset, []), display(path))
        datasets[run.dataset].append(run)
    return datasets


def _need_same_ground(run: MatrixRun, others: Sequence[MatrixRun], where: str) -> None:
    """Raise InputError unless a run and others are over the same collection and queries; a folder's name may differ."""
    if len(set(run.query_ids)) < len(run.query_ids):
        raise InputError(f"{where}: a query occurs twice.")
    for other in others[:1]:
        here, there = (each.collection.model_dump(exclude={"name"}) for each in (run, other))
        unlike = [f"{name} {here[name]} here, {there[name]} there" for name in here if here[name] != there[name]]
        if run.relevant_grade != other.relevant_grade or set(run.query_ids) != set(other.query_ids):
            unlike.append("other queries, or another relevant grade")
        if unlike:
            raise InputError(
                f"{where} is over another collection than the run of {other.cell}, though both are of {run.dataset}: "
                f"{printable('; '.join(unlike), longest=1000)}. Give the collection's folder another name, or remove "
                "the runs that are out of date."
            )


def add_runs(results: Iterable[Path], folder: Path) -> list[Path]:
    """Write each cell's run under `folder`/DATASET and return their paths; nothing is written if anything is wrong."""
    # Everything is read and held to its collection before the first file is written.
    known = load_runs(folder)
    runs: dict[Path, MatrixRun] = {}
    for source in results:
        for run in runs_of(source):
            _need_same_ground(run, known.setdefault(run.dataset, []), display(source))
            known[run.dataset].append(run)
            runs[folder / run.file] = run
    with disk_errors(folder):
        for path, run in runs.items():
            write_atomic(path, json_bytes(run.model_dump(by_alias=True)))
    return list(runs)


def runs_of(path: Path) -> list[MatrixRun]:
    """Return the runs of an external evaluation's results.json, in its order.

    InputError if it is another file, is of a sample, is of tier "no decision" or has a name that makes no dataset's.
    """
    where = display(path)
    results = checked(Results, read_json(verified(path)), where)
    if results.collection is None:
        raise InputError(
            f"{where} is not a results.json of an external collection. Make one: "
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
    sizes = {
        "documents": results.corpus.n_read + results.collection.empty_documents,
        "queries": len(results.queries),
        "judged_pairs": results.labels.pairs,
    }
    runs = []
    for cell in results.cells:
        rows = [
            {"qid": query.id} | {name.replace("@", ""): cell.scores[name].per_query[n] / SCORE_UNIT for name in KEPT}
            for n, query in enumerate(results.queries)
        ]
        run = {
            "schema_version": 1,
            "dataset": slug(results.collection.name).lstrip("._-")[:64],
            "cell": cell.cell,
            "collection": results.collection.model_dump() | sizes,
            "relevant_grade": results.plan.relevant_grade,
            "perQuery": rows,
            "gate": cell.gate.verdict,
            "diagnosis": cell.diagnosis,
        }
        made_of = {"encoder", "bm25", "imported", "method", "truncation", "run_sha256"}
        runs.append(checked(MatrixRun, run | cell.provenance.model_dump(include=made_of), where))
    return runs


def load_published(path: Path) -> Published:
    """Return what the file holds; an InputError names the row and the field that is wrong, or a value given twice."""
    published = checked(Published, read_yaml(path), display(path))
    places: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(published.values):
        where = f"{display(path)}: values.{number}"
        if row.source not in published.sources:
            raise InputError(f"{where}: there is no source {printable(row.source)!r}.")
        if (first := places.setdefault((row.dataset, row.system, row.measure, row.source), number)) != number:
            raise InputError(f"{where}: values.{first} is from the same source. Keep one.")
    return published


def systems_of(runs: Sequence[MatrixRun], *, draws: int = DRAWS) -> list[System]:
    """Return a dataset's systems, best mean nDCG@10 first, of equal ones by name; those that pass the gate are tested.

    Nothing is tested without the baseline, or with nothing else.
    """
    # Differences to the baseline, of those that pass the gate: they are one family.
    scores = {run.cell: run.values(MEASURES[0]) for run in runs if run.gate == "pass"}
    baseline = scores.pop(EXTERNAL_BASELINE, None)
    tested: dict[str, tuple[Difference, PairedTest]] = {}
    if baseline is not None and scores:
        rows = np.array([less(row, baseline, baseline) for row in scores.values()])
        tests = paired_tests(rows, draws=draws, alpha=ALPHA, seed=SEED)
        tested = dict(zip(scores, zip(summarised(rows, BOOTSTRAP), tests, strict=True), strict=True))
    # Means and their intervals are given of all, whatever the gate says.
    systems = []
    for run in runs:
        values = np.array([list(run.values(measure).values()) for measure in MEASURES])
        means: dict[str, MeasureResult] = dict(zip(MEASURES, measured(values, BOOTSTRAP), strict=True))
        systems.append(System(run, means, *tested.get(run.cell, ())))
    return sorted(systems, key=lambda system: (-system.score, system.run.cell))


def beside(value: Value, scores: Mapping[str, float]) -> dict[str, Any]:
    """Return a published value with ours, the difference, and what the tolerance says of that; the edge agrees.

    `scores` are our means of its measure by cell; where the system has none, ours and the difference are None.
    """
    ours, difference, agreement = scores.get(value.system), None, "no run"
    if ours is not None:
        difference = round(ours - value.value, PLACES) + 0.0  # + 0.0 turns -0.0 into 0.0
        agreement = "agrees" if abs(difference) <= (value.tolerance or 0) else "differs"
        agreement = "shown" if value.tolerance is None else agreement
    return {"value": value, "ours": ours, "difference": difference, "agreement": agreement}


def averages(datasets: Mapping[str, Sequence[System]]) -> list[tuple[str, float, list[System]]]:
    """Return the systems ranked on each of several datasets: name, mean of their means, and themselves; best first."""
    # Only systems that are ranked everywhere: a mean over other datasets would compare datasets.
    ranked = [{system.run.cell: system for system in of if system.run.gate == "pass"} for of in datasets.values()]
    cells = set.intersection(*map(set, ranked)) if ranked[1:] else ()
    rows = ((cell, [of[cell] for of in ranked]) for cell in cells)
    means = [(cell, math.fsum(system.score for system in of) / len(of), of) for cell, of in rows]
    return sorted(means, key=lambda row: (-row[1], row[0]))


def matrix_page(folder: Path, *, draws: int = DRAWS) -> bytes:
    """Return the page of a folder with `published.yaml` and `runs/` as Markdown; InputError if there is no run.

    What comes from data files is escaped. The same bytes for the same files.
    """
    published = load_published(folder / "published.yaml")
    runs = load_runs(folder / "runs")
    if not runs:
        raise InputError(
            f"{display(folder / 'runs')} has no run yet. Add some: python -m runner.commands.matrix RESULTS.json"
        )
    datasets = {name: systems_of(of, draws=draws) for name, of in runs.items()}
    values = {
        name: [
            beside(value, {system.run.cell: system.means[value.measure].mean for system in of})
            for value in published.values
            if value.dataset == name
        ]
        for name, of in datasets.items()
    }
    templates = environment(autoescape=False)  # Markdown, escaped by a filter
    templates.filters |= {"escaped": escaped, "signed": signed, "p_value": p_text, "ends": _ends}
    page = templates.get_template("matrix.md.j2").render(
        datasets=datasets,
        beside=values,
        sources=published.sources,
        averages=averages(datasets),
        baseline=EXTERNAL_BASELINE,
        driver=DRIVER,
    )
    return f"{page}\n".encode()


def _ends(interval: Sequence[float]) -> str:
    return f"[{signed(interval[0])}, {signed(interval[1])}]"


def write_matrix(path: Path, *, check: bool) -> None:
    """Write the page of the folder it is in or, with `check`, raise IntegrityError if it is another."""
    refuse_special(path)
    content = matrix_page(path.parent)
    if not check:
        with disk_errors(path):
            write_atomic(path, content)
    elif not path.exists():
        raise InputError(f"{display(path)} does not exist. Write it: matrix.")
    elif path.read_bytes() != content:
        raise IntegrityError(f"{display(path)} is not what its runs and published values make. Write it again: matrix.")
