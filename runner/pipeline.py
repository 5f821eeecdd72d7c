"""The evening: move a version as far as it can go, then say what is outstanding and which command brings it."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter

from runner.canonical import digest, file_sha256, json_bytes, json_line, read_json, write_atomic
from runner.cell_runs import CellRuns
from runner.corpus import corpus_documents
from runner.decide import RECOMMENDED, Choice, decide, needs_choice
from runner.encoder import Encoder
from runner.errors import InputError, IntegrityError, NegativeVerdict, Outstanding
from runner.eval_set import Version, load_labels, load_queries, preregister, registered_cells
from runner.local_encoder import encoder_for
from runner.lock import LOCK_NAME, verify_version, write_lock
from runner.plan import check_cell, default_plan_text
from runner.prep_labels import BATCH_PAIRS, Pair, export_batches, judging_folder, pool, unjudged
from runner.progress import say
from runner.reading_pack import write_reading_pack
from runner.receipt import CellTimes, make_receipt, remember_times
from runner.records import BM25Cell, Document, parse_cell
from runner.render import page
from runner.results import make_results
from runner.run_files import read_run
from runner.schemas import Decision, Kind, Plan, Results
from runner.store import disk_errors, exclusive
from runner.strict import checked
from runner.summary import decision_sentence, ranking_table
from runner.tracked import untracked

DRIVER = "bin/per-source-eval.py"
JUDGE_TEMPLATE = "judge.md"


@dataclass
class Evening:
    """One run of the driver over one version; `cells` makes it an exploration."""

    version: Version
    corpus_path: Path | None = None
    cells: Sequence[str] = ()
    choice: Choice | None = None
    options: str = ""
    """The driver's arguments as given, for the commands that messages name."""
    encoders: Callable[[str], Encoder] = encoder_for
    times: CellTimes = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> str:
        """The answer for stdout; Outstanding, NegativeVerdict and the other outcomes are raised."""
        version = self.version
        with disk_errors(version.folder), exclusive(version.work / "version.lock", f"another run of {version.name}"):
            verify_version(version)
            return self._explore() if self.cells else self._advance()

    @property
    def again(self) -> str:
        """The command that continues this evening."""
        return f"{DRIVER} {self.options}".strip()

    @cached_property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.version.plan(rehearsal=self.version.rehearsal)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The version's documents; drawn on the first run."""
        return corpus_documents(self.version, self.version.plan(rehearsal=False), self._corpus_folder())

    def _corpus_folder(self) -> Path | None:
        embedded = self.version.source.corpus
        return self.corpus_path or (self.version.checkout / embedded if embedded else None)

    def _advance(self) -> str:
        if recorded := self._recorded():
            return recorded
        self._create_plans()
        with self._timed("corpus"):
            if not self.version.corpus_path.exists():
                say(f"reading and sampling {self._corpus_folder() or 'the corpus'}")
                _ = self.documents
        self._need_queries()
        for path in untracked([self.version.queries_path, self.version.labels_path]):
            say(f"warning: {path} is not tracked by git; a decision that rests on it is only as safe as this disk")
        frozen = preregister(self.version)
        self._make_runs()
        with self._timed("score"):
            registered = registered_cells(frozen, rehearsal=self.version.rehearsal)
            self._need_labels(registered)
            results = make_results(self.version, self.plan, self.plan.cells, registered, kind=self._kind)
            self._write_results(results, self.version.record)
        return self._decide(results)

    @property
    def _kind(self) -> Kind:
        return "rehearsal" if self.version.rehearsal else "production"

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - started

    def _recorded(self) -> str:
        """The recorded decision, its lock completed if a run was killed before it was written; "" without one."""
        path = self.version.record / "decision.json"
        if not path.exists():
            return ""
        decision = checked(Decision, read_json(path), path)
        if not (self.version.record / LOCK_NAME).exists():
            if file_sha256(self.version.record / "results.json") != decision.results_sha256:
                raise IntegrityError(
                    f"{path} was made from another results.json than the one beside it, and neither is locked. "
                    f"Delete {path} and run {self.again} to decide again."
                )
            write_lock(self.version.record)
            say(f"{self.version.name}: the lock of the recorded decision was missing and is written now")
        if self.choice and self.choice.cell not in (RECOMMENDED, decision.chosen.cell):
            raise InputError(
                f"{decision_sentence(decision)} That is final: a decision is not changed, the next version can decide "
                "otherwise."
            )
        return self._answer(decision)

    def _answer(self, decision: Decision) -> str:
        page_path = self.version.record / "results.html"
        return f"{decision_sentence(decision)}\nresults: {page_path}"

    def _create_plans(self) -> None:
        version = self.version
        version.folder.mkdir(parents=True, exist_ok=True)
        for rehearsal in (False, True):
            path = version.plan_path(rehearsal=rehearsal)
            if not path.exists() and not version.preregistration_path.exists():
                text = default_plan_text(version.source, rehearsal=rehearsal, version=version.number)
                write_atomic(path, text.encode())
                say(f"wrote {path}")
        if not version.judge_path.exists():
            write_atomic(version.judge_path, (version.checkout / "templates" / JUDGE_TEMPLATE).read_bytes())
            say(f"wrote {version.judge_path}")
        for rehearsal in (False, True):
            if rehearsal == version.rehearsal or version.plan_path(rehearsal=rehearsal).exists():
                version.plan(rehearsal=rehearsal)

    def _need_queries(self) -> None:
        version = self.version
        if version.queries_path.exists():
            return
        folder = write_reading_pack(version, self.documents, self.version.plan(rehearsal=False).sample.seed)
        raise Outstanding(
            f"{version.name} has a corpus of {len(self.documents)} documents and no queries yet. "
            f"Read the pack in {folder}, write at least 25 queries to {version.queries_path} "
            f"(form: {folder / 'queries.yaml.template'}), then run: {self.again}"
        )

    def _make_runs(self) -> None:
        runs = CellRuns(self.version, lambda: self.documents, self.encoders)
        with self._timed("runs"):
            for cell in self.plan.cells:
                runs.record(cell)
            if not isinstance(parse_cell(self.plan.baseline), BM25Cell):
                runs.record(self.plan.baseline, noise_floor=True)
        self.times = remember_times(self.version, runs.measured)

    def _need_labels(self, registered: frozenset[str]) -> None:
        version, plan = self.version, self.plan
        queries = {query.query_id: query for query in load_queries(version.queries_path)}
        runs = [read_run(version.run_path(cell), cell, list(queries)) for cell in plan.cells]
        pooled = pool(runs, plan.pool_depth)
        missing = unjudged(pooled, load_labels(version.labels_path))
        if not missing:
            return
        documents = {document.doc_id: document for document in self.documents}
        batches = export_batches(version, {pair: pooled[pair] for pair in missing}, queries, documents)
        lines = [self._judging_message(len(pooled), missing, batches)]
        if len(missing) < len(pooled):
            lines.append(f"A provisional page with {len(missing)} pairs unjudged: {self._provisional(registered)}")
        raise Outstanding("\n".join(lines))

    def _provisional(self, registered: frozenset[str]) -> Path:
        version = self.version
        folder = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional")
        results = make_results(version, self.plan, self.plan.cells, registered, kind=self._kind)
        self._write_results(results, folder)
        return folder / "results.html"

    def _judging_message(self, pooled: int, missing: Sequence[Pair], batches: Sequence[Path]) -> str:
        version = self.version
        folder = judging_folder(version)
        example = json_line({"query_id": missing[0][0], "doc_id": missing[0][1], "grade": 0, "reason": "why"})
        waiting = " ".join(shlex.quote(path.name) for path in batches[:2]) + (" ..." if len(batches) > 2 else "")
        return (
            f"{version.name}: {len(missing)} of {pooled} pairs are to be judged, in {len(batches)} batches of at most "
            f"{BATCH_PAIRS}: {folder} ({waiting}).\n"
            f"Judge them by {folder / version.judge_path.name}. An answer file has one line a pair:\n"
            f"  {example}\n"
            f"Import answers, a batch or several at a time: "
            f"{DRIVER} labels import {version.flags} --judge=NAME FILE ...\n"
            f"Then run: {self.again}"
        )

    def _write_results(self, results: Results, folder: Path) -> None:
        receipt = make_receipt(self.times, self.seconds)
        write_atomic(folder / "results.json", json_bytes(results.model_dump()))
        write_atomic(folder / "receipt.json", json_bytes(receipt.model_dump()))
        write_atomic(folder / "results.html", page(results, receipt))

    def _decide(self, results: Results) -> str:
        version = self.version
        path = version.record / "results.json"
        say(ranking_table(results))
        if results.outcome["tier"] == "no decision":
            raise NegativeVerdict(
                f"{version.name}: {results.outcome['sentence']}\nresults: {version.record / 'results.html'}"
            )
        if self.choice is None and needs_choice(results):
            raise Outstanding(
                f"{version.name}: {results.outcome['sentence']}\n"
                f"Read {version.record / 'results.html'}, then choose: "
                f"{self.again} --choose 'CELL' --reason 'WHY' --by NAME"
            )
        decision = decide(results, file_sha256(path), self.choice, today=datetime.now(UTC).date().isoformat())
        write_atomic(version.record / "decision.json", json_bytes(decision.model_dump()))
        write_lock(version.record)
        say(f"locked. To commit, as they are: {version.record}")
        return self._answer(decision)

    def _explore(self) -> str:
        """Cells of the operator's choice beside the baseline, on the frozen set, in .work alone."""
        if not self.version.preregistration_path.exists():
            raise InputError(
                f"{self.version.name} is not preregistered yet, so there is nothing to explore on. "
                f"Run {DRIVER} {self.version.flags} first."
            )
        for cell in self.cells:
            check_cell(parse_cell(cell))
        cells = list(dict.fromkeys([self.plan.baseline, *self.cells]))
        folder = self.version.work / "explorations" / digest(cells)[:12]
        frozen = preregister(self.version)
        self.plan = self.plan.model_copy(update={"cells": cells})
        _take_runs(self.version, folder, cells)
        self.version = replace(self.version, record=folder)
        self._make_runs()
        registered = registered_cells(frozen, rehearsal=self.version.rehearsal)
        results = make_results(self.version, self.plan, cells, registered, kind="exploration")
        self._write_results(results, folder)
        return f"{ranking_table(results)}\nexploration, nothing is decided: {folder / 'results.html'}"


def _take_runs(version: Version, folder: Path, cells: Sequence[str]) -> None:
    """Runs that lie in the record are authoritative: an exploration compares with them, not with a recomputation."""
    exploration = replace(version, record=folder)
    for cell in cells:
        if version.cell_path(cell).exists():
            for kind in (Version.chunk_run_path, Version.run_path, Version.cell_path):
                write_atomic(kind(exploration, cell), kind(version, cell).read_bytes())
