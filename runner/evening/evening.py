"""The evening: move a version as far as it can go, then say what is outstanding and which command brings it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter

from runner.base.canonical import file_sha256, json_bytes, read_json, write_atomic
from runner.base.errors import InputError, IntegrityError, NegativeVerdict, Outstanding
from runner.base.git import untracked
from runner.base.progress import say
from runner.base.records import BM25Cell, Document, parse_cell
from runner.base.schema import checked
from runner.base.store import disk_errors, exclusive
from runner.decide.decide import RECOMMENDED, Choice, decide, decision_sentence, needs_choice, remade
from runner.decide.previous_version import comparison_lines, previous_version
from runner.decide.receipt import CellTimes, remember_times
from runner.decide.results import make_results
from runner.decide.roster import reuse_of
from runner.embed.backends import Backend, LocalBackend
from runner.eval_set.corpus import (
    corpus_documents,
    fetched_corpus,
    keep_sample,
    need_corpus,
    sample_of,
    sample_to_draw,
    texts_to_show,
)
from runner.eval_set.labels import closed, version_labels
from runner.eval_set.lock import LOCK_NAME, verify_version, write_lock
from runner.eval_set.preregistration import (
    check_preregistration,
    check_sample,
    preregister,
    registered_cells,
    verified_preregistration,
)
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.plan import Plan, Preregistration
from runner.eval_set.shapes.results import Kind, Results
from runner.eval_set.version import DRIVER, NOISE_FLOOR_CELL, Version, load_decision, load_queries
from runner.evening.next_version import begin_version
from runner.evening.written_results import write_results
from runner.judge.carried_labels import carry_labels
from runner.judge.models.run_judges import JudgeOptions, judge_again, judge_missing
from runner.judge.prep_labels import export_missing, judging_message
from runner.judge.second_reading import unread_twice
from runner.queries.reading_pack import queries_wanted
from runner.report.results_page.render import page
from runner.report.summary import run_summary
from runner.retrieve.make_runs import CellRuns
from runner.retrieve.pool import pool, unjudged


@dataclass
class Evening:
    """One run of the driver over one version."""

    version: Version
    corpus_path: Path | None = None
    choice: Choice | None = None
    options: str = ""
    """The driver's arguments as given, for the commands that messages name."""
    backend: Backend = field(default_factory=LocalBackend)
    judge: JudgeOptions | None = None
    """How the plan's judges are asked; None where people or agents judge by file."""
    live: bool = False
    """Whether the live feed may be asked for documents where the version has none yet."""
    times: CellTimes = field(default_factory=dict, init=False)
    scored: tuple[Results, Path] | None = field(default=None, init=False)
    """What this run scored, and the folder that holds it."""
    seconds: dict[str, float] = field(default_factory=dict, init=False)

    def run(self) -> str:
        """The answer for stdout; Outstanding, NegativeVerdict and the other outcomes are raised."""
        version = self.version
        with disk_errors(version.folder), exclusive(version.work / "version.lock", f"another run of {version.name}"):
            verify_version(version)
            return self._advance()

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
        return corpus_documents(self.version, self._corpus_place)

    @cached_property
    def _corpus_place(self) -> Path | None:
        """Where documents are drawn from; None where nothing was given."""
        if self.live and not self.version.corpus_path.exists():
            return fetched_corpus(self.version)
        embedded = self.version.source.corpus
        return self.corpus_path or (self.version.checkout / embedded if embedded else None)

    def _advance(self) -> str:
        if recorded := self._recorded():
            return recorded
        if self.version.preregistration_path.exists():
            verified_preregistration(self.version)  # what changed since is said before a plan's criteria are
        self._refuse_adopted()
        with self._timed("corpus"):
            if self.corpus_path and not self.corpus_path.exists():
                raise InputError(f"--corpus-path: {self.corpus_path} does not exist.")
            drawn = None
            if not self.version.corpus_path.exists() and self._corpus_place is not None:
                say(f"reading and sampling {self._corpus_place}")
                drawn = sample_of(self.version.source, sample_to_draw(self.version), self._corpus_place)
            begin_version(self.version)  # once there are documents: a mistyped path opens no version
            if drawn is not None:
                keep_sample(self.version, drawn)
        need_corpus(self.version)
        check_sample(self.version)
        self._need_queries()
        for path in untracked([self.version.queries_path, self.version.labels_path]):
            say(f"warning: {path} is not tracked by git; a decision that rests on it is only as safe as this disk")
        check_preregistration(self.version)  # what could not be frozen later is said before hours of embedding
        self._make_runs(noise_floor=self._has_noise_floor)
        frozen = preregister(self.version)
        if said := carry_labels(self.version).sentence:
            say(said)
        with self._timed("judge"):
            self._need_labels(frozen)
        with self._timed("score"):
            results = self._results(frozen)
            self._write_results(results, self.version.record)
        return self._decide(results)

    def _refuse_adopted(self) -> None:
        """Nothing, but for a rehearsal beside a baseline by policy: that version takes neither queries nor labels."""
        if (self.version.folder / "decision.json").exists() and self.version.rehearsal:
            decision = load_decision(replace(self.version, record=self.version.folder, rehearsal=False))
            if decision.kind == "policy":
                raise InputError(
                    f"{decision_sentence(decision)} There is nothing to rehearse in that version; give a rehearsal a "
                    "folder of its own with --eval-set-path."
                )

    def _results(self, frozen: Preregistration) -> Results:
        registered = registered_cells(frozen, rehearsal=self.version.rehearsal)
        results = make_results(
            self.version, self.plan, self.plan.cells, registered, kind=self._kind, texts=texts_to_show(self.version)
        )
        return results.model_copy(update={"previous": previous_version(self.version, results)})

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
        if not (self.version.record / "decision.json").exists():
            return ""
        decision = load_decision(self.version)
        if not (self.version.record / LOCK_NAME).exists():
            if decision.kind != "policy":  # which rests on nothing beside it
                self._check_unlocked(decision)
            write_lock(self.version.record)
            say(f"{self.version.name}: the lock of the recorded decision was missing and is written now")
        if self.choice and self.choice.cell not in (RECOMMENDED, decision.chosen.cell):
            raise InputError(
                f"{decision_sentence(decision)} That is final: a decision is not changed, the next version can decide "
                "otherwise."
            )
        return self._answer(decision)

    def _check_unlocked(self, decision: Decision) -> None:
        """Nothing, where everything that the decision rests on makes it once more, byte by byte."""
        record = self.version.record
        frozen = verified_preregistration(self.version)
        self._check_runs()
        receipt = checked(Receipt, read_json(record / "receipt.json"), record / "receipt.json")
        results = self._results(frozen)
        expected = {
            "results.json": json_bytes(results.model_dump()),
            "results.html": page(results, receipt),
            "decision.json": json_bytes(remade(decision, results).model_dump()),
        }
        for name, content in expected.items():
            if not (record / name).exists() or (record / name).read_bytes() != content:
                raise IntegrityError(
                    f"{record / 'decision.json'} is not locked yet, and {record / name} is not what the files beside "
                    f"it make. Restore them from git, or delete decision.json and run {self.again} to decide again."
                )

    def _check_runs(self) -> None:
        missing = [cell for cell in self.plan.cells if not self.cell_runs.is_current(cell)]
        if self._has_noise_floor and not self.cell_runs.is_current(self.plan.baseline, noise_floor=True):
            missing.append(NOISE_FLOOR_CELL)
        if missing:
            raise IntegrityError(
                f"The decision of {self.version.name} is not locked yet, and runs of it are gone: "
                f"{', '.join(missing)}. Restore them from git."
            )

    def _answer(self, decision: Decision) -> str:
        place = "" if decision.kind == "policy" else f"\nresults: {self.version.record / 'results.html'}"
        return decision_sentence(decision) + place

    def _need_queries(self) -> None:
        if not self.version.queries_path.exists():
            seed = self.version.plan(rehearsal=False).sample.seed
            raise Outstanding(queries_wanted(self.version, self.documents, seed, self.again))

    @cached_property
    def cell_runs(self) -> CellRuns:
        """The maker of this version's runs."""
        return CellRuns(self.version, lambda: self.documents, self.backend)

    @property
    def _has_noise_floor(self) -> bool:
        """Whether the baseline has vectors that can be embedded once more."""
        return not isinstance(parse_cell(self.plan.baseline), BM25Cell)

    def _make_runs(self, *, noise_floor: bool) -> None:
        with self._timed("runs"):
            self.cell_runs.embed_ahead(self.plan.cells, noise_floor=self.plan.baseline if noise_floor else "")
            for cell in self.plan.cells:
                self.cell_runs.record(cell)
            if noise_floor:
                self.cell_runs.record(self.plan.baseline, noise_floor=True)
        self.times = remember_times(self.version, self.cell_runs.measured)

    def _need_labels(self, frozen: Preregistration) -> None:
        version, plan = self.version, self.plan
        query_ids = [query.query_id for query in load_queries(version.queries_path)]
        runs = [read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells]
        pooled = pool(runs, plan.pool_depth)
        reason = closed(version)
        if missing := unjudged(pooled, version_labels(version)):
            if reason:
                raise InputError(f"{len(missing)} of {len(pooled)} pairs of {version.name} are not judged. {reason}")
            documents = {document.doc_id: document for document in self.documents}
            batches = export_missing(version, missing, [*runs, self.cell_runs.lexical_windows()], documents)
            if self.judge is None:
                lines = [judging_message(version, len(pooled), missing, batches), f"Then run: {self.again}"]
                if len(missing) < len(pooled):
                    lines.append(f"A provisional page with {len(missing)} pairs unjudged: {self._provisional(frozen)}")
                raise Outstanding("\n".join(lines))
            judge_missing(version, plan, set(missing), self.judge)
        if reason:
            return
        if self.judge is not None:
            judge_again(version, plan, self.judge)
        elif outstanding := unread_twice(version, plan):
            raise Outstanding(f"{outstanding}\nThen run: {self.again}")

    def _provisional(self, frozen: Preregistration) -> Path:
        folder = self.version.work / ("provisional-rehearsal" if self.version.rehearsal else "provisional")
        self._write_results(self._results(frozen), folder)
        return folder / "results.html"

    def _write_results(self, results: Results, folder: Path) -> None:
        self.scored = results, folder
        own = (*self.plan.cells, NOISE_FLOOR_CELL)
        write_results(self.version, results, folder, own, self.times, self.seconds, self.backend.billed)

    def _decide(self, results: Results) -> str:
        version = self.version
        say(run_summary(results))
        if results.previous is not None:
            say("\n".join(comparison_lines(results.previous)))
        if results.outcome.tier == "no decision":
            raise NegativeVerdict(
                f"{version.name}: {results.outcome.sentence}\n{results.outcome.next_step}\n"
                f"results: {version.record / 'results.html'}"
            )
        if self.choice is None and needs_choice(results):
            raise Outstanding(
                f"{version.name}: {results.outcome.sentence}\n"
                f"Read {version.record / 'results.html'}, then choose: "
                f"{self.again} --choose 'CELL' --reason 'WHY' --by NAME"
            )
        today = datetime.now(UTC).date().isoformat()
        scored = file_sha256(version.record / "results.json")
        decision = decide(results, scored, self.choice, today=today, reuse=reuse_of(version.source))
        write_atomic(version.record / "decision.json", json_bytes(decision.model_dump()))
        write_lock(version.record)
        say(f"locked. To commit, as they are: {version.record}")
        return self._answer(decision)
