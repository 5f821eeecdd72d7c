"""One version of a source's eval set on disk: where its files lie, and how each is read and written.

docs/eval-architecture.md describes every file; runner/schemas.py and runner/result_schemas.py check them.
"""

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import catalog
from runner.canonical import file_sha256, jsonl_bytes, read_json, read_jsonl, sha256, slug, write_atomic
from runner.catalog import SourceSpec
from runner.errors import InputError
from runner.given_file import display, printable
from runner.plan import load_plan, read_yaml
from runner.records import Judgment, Query, Span
from runner.schemas import CellFile, CorpusHeader, CorpusRow, Label, LabelPrefix, Plan, Queries
from runner.strict import checked

CHECKOUT = Path(__file__).resolve().parents[1]

CACHE_VARIABLE = "PER_SOURCE_EVAL_CACHE"
"""Names the cache's folder where that is not .cache in the checkout."""

DRIVER = "bin/per-source-eval.py"
"""The command that messages name."""

NOISE_FLOOR_CELL = "aa"
"""File name of the baseline's run over vectors that were embedded once more, in other batches."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The three places that a command writes to: eval sets, work that is kept out of git, disposable cache."""

    checkout: Path
    eval_set: Path
    work: Path
    cache: Path


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a source's eval set, seen as the record or, with `rehearsal`, as its rehearsal.

    `folder` holds what is shared (queries, corpus, labels); `record` is where runs, results and the decision go.
    """

    source: SourceSpec
    number: int
    folder: Path
    record: Path
    work: Path
    cache: Path
    checkout: Path
    rehearsal: bool = False

    @property
    def name(self) -> str:
        """As messages say it: "bills v1", "bills v1 (rehearsal)"."""
        return f"{self.source.name} v{self.number}{' (rehearsal)' if self.rehearsal else ''}"

    @property
    def flags(self) -> str:
        """The flags that name this version on a command line, for the commands that messages suggest."""
        given = [f"--source={self.source.name}"]
        if self.folder.parent.resolve() != (self.checkout / "eval-sets" / self.source.name).resolve():
            given.append(f"--eval-set-path={self.folder.parent}")
        return shlex.join(given)

    @property
    def queries_path(self) -> Path:
        """queries.yaml, shared by record and rehearsal."""
        return self.folder / "queries.yaml"

    @property
    def corpus_path(self) -> Path:
        """corpus.jsonl, the manifest of the sample."""
        return self.folder / "corpus.jsonl"

    @property
    def judging(self) -> Path:
        """Where batches wait for a judge, outside git."""
        return self.work / "judging"

    @property
    def labels_path(self) -> Path:
        """labels.jsonl, append-only until the lock."""
        return self.folder / "labels.jsonl"

    @property
    def judge_path(self) -> Path:
        """The judge's instructions, part of the version."""
        return self.folder / f"judge-v{self.number}.md"

    @property
    def preregistration_path(self) -> Path:
        """preregistration.json."""
        return self.folder / "preregistration.json"

    def plan_path(self, *, rehearsal: bool) -> Path:
        """plan.yaml of the record or of the rehearsal."""
        return (self.folder / "rehearsal" if rehearsal else self.folder) / "plan.yaml"

    def run_path(self, cell: str) -> Path:
        """runs/<cell>.tsv."""
        return self.record / "runs" / f"{slug(cell)}.tsv"

    def chunk_run_path(self, cell: str) -> Path:
        """runs/<cell>.chunks.tsv."""
        return self.record / "runs" / f"{slug(cell)}.chunks.tsv"

    def cell_path(self, cell: str) -> Path:
        """cells/<cell>.json, written after the cell's runs: where it exists, they are whole."""
        return self.record / "cells" / f"{slug(cell)}.json"

    def plan(self, *, rehearsal: bool | None = None) -> Plan:
        """The plan in force, or the one that `rehearsal` names."""
        which = self.rehearsal if rehearsal is None else rehearsal
        return load_plan(self.plan_path(rehearsal=which), self.source, self.number, rehearsal=which)


def open_version(workspace: Workspace, source: SourceSpec, *, rehearsal: bool = False) -> Version:
    """The newest version under the eval set's folder, or a first one that does not exist on disk yet.

    A folder without a plan is no version: an empty v2 must not hide what v1 decided.
    """
    plans = sorted(workspace.eval_set.glob("v*/plan.yaml"))
    numbers = [int(match[1]) for path in plans if (match := re.fullmatch(r"v(\d+)", path.parent.name))]
    number = max(numbers, default=1)
    folder = workspace.eval_set / f"v{number}"
    return Version(
        source=source,
        number=number,
        folder=folder,
        record=folder / "rehearsal" if rehearsal else folder,
        work=workspace.work / source.name / f"v{number}",
        cache=workspace.cache,
        checkout=workspace.checkout,
        rehearsal=rehearsal,
    )


def newest_version(name: str, folder: Path | None = None, *, rehearsal: bool = False) -> Version:
    """The newest version of a source in a folder of versions, by default the checkout's own.

    InputError for a source that cannot be evaluated, and where the folder is a version itself, a file, or unusable.
    """
    source = source_of(name)
    own = CHECKOUT / "eval-sets" / source.name
    try:
        given = (folder or own).resolve()
        if given.is_file() or (given / "plan.yaml").exists():
            raise InputError(f"{display(given)} is a version or a file; give the folder that holds v1/, v2/.")
    except (OSError, RuntimeError) as error:  # too long a name, links in a circle
        raise InputError(f"{printable(str(error))}: cannot be used. Give the folder that holds v1/, v2/.") from error
    # Beside an eval set of its own, work must not mix with that of the checkout's set of the same source.
    beside = CHECKOUT if given == own.resolve() else given
    workspace = Workspace(CHECKOUT, given, beside / ".work", cache_folder(CHECKOUT))
    return open_version(workspace, source, rehearsal=rehearsal)


def cache_folder(checkout: Path) -> Path:
    """Where a checkout's cache lies: the folder that CACHE_VARIABLE names, else .cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or checkout / ".cache")


def load_queries(path: Path) -> tuple[Query, ...]:
    """The queries in file order; an InputError names duplicate ids and texts."""
    rows = checked(Queries, read_yaml(path), path).queries
    for field in ("id", "text"):
        values = [" ".join(getattr(row, field).casefold().split()) for row in rows]
        if repeated := sorted({value for value in values if values.count(value) > 1}):
            raise InputError(f"{path}: the same {field} twice: {', '.join(map(repr, repeated))}.")
    return tuple(
        Query(row.id, row.text, row.kind, row.origin, row.source_document, row.stratum, row.note) for row in rows
    )


def load_corpus(path: Path) -> tuple[CorpusHeader, tuple[CorpusRow, ...]]:
    """The manifest's header and rows, documents in id order; an InputError names the line that is wrong."""
    lines = list(read_jsonl(path))
    if not lines:
        raise InputError(f"{path} is empty; delete it and run the driver with --corpus-path to sample again.")
    header = checked(CorpusHeader, lines[0][1], f"{path}:{lines[0][0]}")
    rows = tuple(checked(CorpusRow, row, f"{path}:{number}") for number, row in lines[1:])
    if len(rows) != header.n_documents or [r.doc_id for r in rows] != sorted({r.doc_id for r in rows}):
        raise InputError(
            f"{path}: rows are missing, repeated or out of order; {header.n_documents} documents expected."
        )
    return header, rows


def corpus_bytes(header: CorpusHeader, rows: Iterable[CorpusRow]) -> bytes:
    """corpus.jsonl: the header, then one row a document in id order."""
    ordered = sorted(rows, key=lambda row: row.doc_id)
    return jsonl_bytes([header.model_dump(), *(row.model_dump() for row in ordered)])


def load_labels(path: Path) -> tuple[Label, ...]:
    """Every row of labels.jsonl in file order, () where there is no file; a repeated key is an InputError."""
    if not path.exists():
        return ()
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        raise InputError(f"{path} ends in the middle of a line; restore it from git.")
    labels: dict[tuple[str, str, str, int], Label] = {}
    for number, row in read_jsonl(path):
        label = checked(Label, row, f"{path}:{number}")
        if label.key in labels:
            raise InputError(f"{path}:{number}: query {label.query_id} and {label.doc_id} are labelled twice.")
        labels[label.key] = label
    return tuple(labels.values())


def version_labels(version: Version) -> tuple[Label, ...]:
    """The labels of a version; an InputError for a query, document or judge prompt that the version does not have."""
    labels = load_labels(version.labels_path)
    if not labels:
        return ()
    queries = {query.query_id for query in load_queries(version.queries_path)}
    documents = {row.doc_id for row in load_corpus(version.corpus_path)[1]}
    prompt = file_sha256(version.judge_path)
    for number, label in enumerate(labels, start=1):
        problem = ""
        if label.query_id not in queries:
            problem = f"there is no query {label.query_id!r}"
        elif label.doc_id not in documents:
            problem = f"there is no document {label.doc_id!r} in the sample"
        elif label.prompt_sha256 != prompt:
            problem = f"it was judged by another prompt than {version.judge_path.name}"
        if problem:
            raise InputError(
                f"{version.labels_path}: label {number} is not one of {version.name}: {problem}. Restore the file from "
                "git."
            )
    return labels


def append_labels(path: Path, labels: Sequence[Label]) -> None:
    """labels.jsonl with `labels` at its end, whole or not at all; earlier bytes are kept as they are."""
    before = path.read_bytes() if path.exists() else b""
    write_atomic(path, before + jsonl_bytes(label.model_dump() for label in labels))


def judgments(labels: Iterable[Label]) -> tuple[Judgment, ...]:
    """The labels as records."""
    return tuple(
        Judgment(
            label.query_id,
            label.doc_id,
            label.grade,
            label.judge,
            label.round,
            label.batch,
            label.model,
            label.reason,
            label.prompt_sha256,
            label.evidence_sha256,
            tuple(Span(start, end) for start, end in label.spans),
        )
        for label in labels
    )


def load_cell_file(path: Path) -> CellFile:
    """cells/<cell>.json."""
    return checked(CellFile, read_json(path), path)


def label_prefix(path: Path) -> LabelPrefix:
    """How many lines labels.jsonl has and their digest, so that results name exactly what they were scored with."""
    content = path.read_bytes() if path.exists() else b""
    return LabelPrefix(lines=content.count(b"\n"), sha256=sha256(content))


def source_of(name: str) -> SourceSpec:
    """The roster's row of a source that this version of the tool can evaluate."""
    source = catalog.source(name)
    if not source.reader:
        readable = ", ".join(row.name for row in catalog.SOURCES.values() if row.reader)
        raise InputError(f"{name} is in the roster, but no reader for its documents exists yet. Readable: {readable}.")
    return source
