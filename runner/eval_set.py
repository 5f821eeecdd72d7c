"""One version of a source's eval set on disk: where its files lie, and how each is read and written.

docs/eval-architecture.md describes every file; runner/schemas.py checks them.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import catalog
from runner.canonical import file_sha256, json_bytes, jsonl_bytes, read_json, read_jsonl, sha256, slug, write_atomic
from runner.catalog import SourceSpec
from runner.errors import InputError, IntegrityError
from runner.plan import load_plan, plan_digest, query_count_problem, read_yaml
from runner.records import Judgment, Query, Span
from runner.schemas import CellFile, CorpusHeader, CorpusRow, Label, Plan, Preregistration, Queries
from runner.strict import checked


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
        if self.folder.parent != self.checkout / "eval-sets" / self.source.name:
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
    """The newest version under the eval set's folder, or a first one that does not exist on disk yet."""
    numbers = [int(match[1]) for path in _folders(workspace.eval_set) if (match := re.fullmatch(r"v(\d+)", path.name))]
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


def _folders(path: Path) -> list[Path]:
    return sorted(child for child in path.iterdir() if child.is_dir()) if path.is_dir() else []


def load_queries(path: Path) -> tuple[Query, ...]:
    """The queries in file order; an InputError names duplicate ids and texts."""
    rows = checked(Queries, read_yaml(path), path).queries
    for field in ("id", "text"):
        values = [getattr(row, field) for row in rows]
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
    labels: dict[tuple[str, str, str, int], Label] = {}
    for number, row in read_jsonl(path):
        label = checked(Label, row, f"{path}:{number}")
        if label.key in labels:
            raise InputError(f"{path}:{number}: query {label.query_id} and {label.doc_id} are labelled twice.")
        labels[label.key] = label
    return tuple(labels.values())


def append_labels(path: Path, labels: Sequence[Label]) -> None:
    """labels.jsonl with `labels` at its end, whole or not at all; earlier bytes are kept as they are."""
    before = path.read_bytes() if path.exists() else b""
    if before and not before.endswith(b"\n"):
        raise InputError(f"{path} ends in the middle of a line; restore it from git before importing.")
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


def preregistration(version: Version) -> Preregistration:
    """What is to be frozen, from the files as they are now; both plans must load and queries must suffice."""
    queries = load_queries(version.queries_path)
    if problem := query_count_problem(len(queries)):
        raise InputError(f"{version.queries_path}: {problem}. Add queries and run again.")
    rehearsal = version.plan_path(rehearsal=True)
    return Preregistration(
        schema_version=1,
        source=version.source.name,
        version=version.number,
        queries_sha256=file_sha256(version.queries_path),
        corpus_sha256=file_sha256(version.corpus_path),
        judge_prompt_sha256=file_sha256(version.judge_path),
        production=plan_digest(version.plan(rehearsal=False)),
        rehearsal=plan_digest(version.plan(rehearsal=True)) if rehearsal.exists() else None,
    )


def preregister(version: Version) -> Preregistration:
    """The version's preregistration, written now if it was not yet, verified against the files if it was.

    Cells that a plan gained since are allowed (they are exploratory); any other change is an IntegrityError.
    """
    path = version.preregistration_path
    if not path.exists():
        frozen = preregistration(version)
        write_atomic(path, json_bytes(frozen.model_dump()))
        return frozen
    frozen = checked(Preregistration, read_json(path), path)
    if changed := _changes(frozen, preregistration(version)):
        raise IntegrityError(
            f"{path} froze {version.source.name} v{version.number}, and since then {'; '.join(changed)}. "
            "Restore the files from git, or open the next version: queries, corpus, prompt and rule never change."
        )
    return frozen


def _changes(frozen: Preregistration, now: Preregistration) -> list[str]:
    files = {
        "queries_sha256": "queries.yaml",
        "corpus_sha256": "corpus.jsonl",
        "judge_prompt_sha256": "the judge prompt",
    }
    changed = [
        f"{name} changed (frozen {getattr(frozen, field)[:12]}, now {getattr(now, field)[:12]})"
        for field, name in files.items()
        if getattr(frozen, field) != getattr(now, field)
    ]
    for name in ("production", "rehearsal"):
        before, after = getattr(frozen, name), getattr(now, name)
        if before is None:
            continue
        if after is None:
            changed.append(f"the {name} plan is gone")
            continue
        if before.rule_sha256 != after.rule_sha256 or before.baseline != after.baseline:
            changed.append(f"the rule of the {name} plan changed")
        if gone := [cell for cell in before.cells if cell not in after.cells]:
            changed.append(f"the {name} plan lost {', '.join(gone)}")
    return changed


def registered_cells(frozen: Preregistration, *, rehearsal: bool) -> frozenset[str]:
    """The cells of the tested family; others are exploratory."""
    plan = frozen.rehearsal if rehearsal else frozen.production
    return frozenset(plan.cells if plan else ())


def label_prefix(path: Path) -> dict[str, object]:
    """How many lines labels.jsonl has and their digest, so that results name exactly what they were scored with."""
    content = path.read_bytes() if path.exists() else b""
    return {"lines": content.count(b"\n"), "sha256": sha256(content)}


def source_of(name: str) -> SourceSpec:
    """The roster's row of a source that this version of the tool can evaluate."""
    source = catalog.source(name)
    if not source.reader:
        readable = ", ".join(row.name for row in catalog.SOURCES.values() if row.reader)
        raise InputError(f"{name} is in the roster, but no reader for its documents exists yet. Readable: {readable}.")
    return source
