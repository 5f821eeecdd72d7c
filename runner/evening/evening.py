"""The evening, from top to bottom: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

It moves a version as far as it can go; where a person must do something, it stops with the open step of its status.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from runner.base.canonical import json_bytes, sha256, today, write_atomic
from runner.base.errors import BackendError, EvalError, InputError, InputNeeded, IntegrityError, NegativeVerdict
from runner.base.git import ignored, untracked
from runner.base.progress import say
from runner.base.steps import Step, need_all
from runner.decide.decide import RECOMMENDED, decide, decision_sentence, need_cell, needs_choice
from runner.decide.receipt import remember_times
from runner.decide.results import Scored
from runner.decide.roster import reuse_of
from runner.decide.sample_size import too_few
from runner.embed.cost import MAX_USD
from runner.embed.cost.estimate import Total
from runner.embed.weights import newest_commit
from runner.eval_set.batches import Pair
from runner.eval_set.corpus import (
    keep_sample,
    listed_documents,
    sample_of,
    sample_to_draw,
)
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import closed, version_labels
from runner.eval_set.lock import verify_version, write_lock
from runner.eval_set.plan import MIN_QUERIES, pin, unpinned
from runner.eval_set.preregistration import check_preregistration, check_sample, preregister, verified_preregistration
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import alone, load_decision, load_queries
from runner.evening.costs import Asked
from runner.evening.needs import Needs, without_advice
from runner.evening.next_version import begin_version
from runner.evening.remake import differing, files_of, results_of
from runner.evening.session import PAGE, Session
from runner.evening.status import FREEZES, choice, missing_documents, stop_at
from runner.judge.carried_labels import carry_labels
from runner.judge.models.estimate import pooled_pairs
from runner.judge.models.run_judges import asked_judges, judge_again, judge_missing
from runner.judge.prep_labels import export_missing, left_to_judge
from runner.judge.second_reading import unread_doubles, unread_twice
from runner.queries.reading_pack import write_reading_pack
from runner.report import sentences
from runner.retrieve.pool import pool, unjudged
from runner.score.comparison import load_runs


class Evening(Session):
    """One run of the driver over one version, up to its decision."""

    def run(self) -> str:
        """Return the answer for stdout; InputNeeded, NegativeVerdict and the other outcomes are raised."""
        with alone(self.version):
            verify_version(self.version)
            if (self.version.record / "decision.json").exists():
                return self._recorded()
            self._check_frozen()
            self._check_asked()
            with self.timed("corpus"):
                self._sample()
            self._need_queries()
            check_preregistration(self.version)  # what could not be frozen later is said before hours of embedding
            self._make_all_runs()
            if not self.version.preregistration_path.exists() and (
                few := too_few(len(load_queries(self.version.queries_path)))
            ):
                say(f"{few}. From here on the queries are frozen.")
            preregister(self.version)
            if said := carry_labels(self.version).sentence:
                say(said)
            with self.timed("judge"):
                runs = load_runs(self.version, self.plan)
                judged, queries = (
                    (runs[cell] for cell in self.plan.judged_cells),
                    load_queries(self.version.queries_path),
                )
                self._need_labels(pool(judged, self.plan.pool_depth, queries))
            with self.timed("score"):
                scored = results_of(self.version, self.plan, verified_preregistration(self.version), runs)
            return self._decided(scored)

    def begin(self) -> None:
        """Write plans and judge's instructions, and draw the sample if there are documents to draw it from."""
        version, given = self.version, self.corpus_path
        with alone(version):
            verify_version(version)
            self._check_frozen()
            if given is not None and version.corpus_path.exists():
                try:
                    listed_documents(version, given)
                except InputError as error:
                    raise InputError(
                        f"{version.name} has its documents already, and nothing of {given} was sampled: {error}\nTo "
                        "evaluate your own documents, begin in a folder of your own: --eval-set-path FOLDER, here and "
                        "in every command after it."
                    ) from error
            if self.corpus_place is None:
                begin_version(version)
            else:
                self._sample()
                self._write_pack()

    def _stopped(self, step: Step | None = None) -> InputNeeded:
        """Return the stop of a step, of the open one as it is now unless one is given."""
        return stop_at(self.version, step, self.again)

    def _check_frozen(self) -> None:
        """Check what is frozen already, and refuse to rehearse a version whose baseline was adopted by policy."""
        version = self.version
        if version.preregistration_path.exists():
            verified_preregistration(version)  # what changed since is said before a plan's criteria are
        # A rehearsal shares documents and grades with the record, of which a policy decision has neither.
        if version.rehearsal and (version.folder / "decision.json").exists():
            decision = load_decision(replace(version, rehearsal=False))
            if decision.kind == "policy":
                raise InputError(
                    f"{decision_sentence(decision)} There is nothing to rehearse in that version; give a rehearsal a "
                    "folder of its own with --eval-set-path."
                )

    def _check_asked(self) -> None:
        """Check what was asked for before hours of embedding: the chosen cell, the judges, what all cells need."""
        version, choice = self.version, self.choice
        if not version.plan_path(rehearsal=version.rehearsal).exists():
            return
        if choice and choice.cell != RECOMMENDED:
            need_cell(choice.cell, self.plan.cells)
        if self.judge is not None and not closed(version) and pooled_pairs(version, self.plan) is None:
            asked_judges(version, self.plan)
        if not version.corpus_path.exists():
            self._need(self.plan.cells)

    def _sample(self) -> None:
        """Draw the plan's sample, unless the version has one; afterwards the version has plans, prompt and corpus."""
        version, given = self.version, self.corpus_path
        if given and not given.exists():
            raise InputError(f"{given} does not exist. Give the place that holds the documents.")
        drawn = None
        if not version.corpus_path.exists() and self.corpus_place is not None:
            say(f"reading and sampling {self.corpus_place}")
            drawn = sample_of(version.source, sample_to_draw(version), self.corpus_place)
        begin_version(version)  # once there are documents: a mistyped path opens no version
        if drawn is not None:
            keep_sample(version, drawn)
        if not version.corpus_path.exists():
            raise self._stopped()
        check_sample(version)

    def _write_pack(self) -> None:
        """Write the reading pack to write queries from, if the version has no queries."""
        if not self.version.queries_path.exists():
            write_reading_pack(self.version, self.documents, self.version.plan(rehearsal=False).sample.seed)

    def _need_queries(self) -> None:
        """Stop, with a reading pack to write queries from, unless the version has enough queries.

        An InputError if one was written from a document that is not in the sample.
        """
        version = self.version
        self._write_pack()
        if not version.queries_path.exists() or len(load_queries(version.queries_path)) < MIN_QUERIES:
            raise self._stopped()
        if missing := missing_documents(version):
            raise InputError(missing)
        for path in untracked([version.queries_path, version.labels_path]):
            say(f"warning: {path} is not tracked by git; a decision that rests on it is only as safe as this disk")

    def _make_all_runs(self) -> None:
        """Chunk, embed and search for every cell that lacks a run; what cannot be had is said before anything long."""
        self._pin()
        version, runs = self.version, self.runs
        if version.rehearsal and not (version.tried_from or version.preregistration_path.exists()):
            say(FREEZES.format(version.number_name))
        with self.timed("runs"):
            missing = runs.announced(self.wanted(noise_floor=True))
            unmade = runs.unmade(missing)
            left = self._need([str(each.cell) for each in unmade])
            # A re-ranker is asked for last and would fail last, so it is tried now.
            for model in runs.rerankers(unmade):
                try:
                    runs.reranker(model).check()
                except BackendError as error:
                    raise self._advised(error, [model]) from error
            runs.chunk(missing)
            try:
                runs.embed(missing, left)
            except BackendError as error:
                if not runs.vectors.failed:
                    raise
                raise self._advised(error, runs.vectors.failed) from error
            runs.retrieve(missing)
        self.times = remember_times(version, runs.measured)

    def _pin(self) -> None:
        """Write into the plan, and say, which commit of the hub stands for an encoder that the catalog does not pin."""
        path = self.version.plan_path(rehearsal=self.version.rehearsal)
        if (rows := unpinned(self.plan)) and not self.version.preregistration_path.exists():
            commits = {row.name: newest_commit(row) for row in rows}
            pin(path, commits)
            self.plan = self.version.plan()
            for row in rows:
                say(f"pinned {row.name} to {row.model} at {commits[row.name]} in {path} (licence: {row.licence})")

    def _need(self, cells: Sequence[str]) -> Total:
        """Raise what keeps these cells or their judging from being had; return what judging costs.

        What an earlier attempt embedded is known once chunks are made: the backend then counts both together.
        """
        judge = None if closed(self.version) else self.judge
        ceiling = self.backend.max_usd or (judge.max_usd if judge else MAX_USD)
        where = "" if self.backend.name == "local" else f"{self.backend.name}, counted once chunks are made"
        needs = Needs(self.version, self.backend, Asked(None, where, judge, ceiling), cells)
        needs.plan = self.plan
        need_all(needs.checks())
        return needs.left.total

    def _advised(self, error: BackendError, models: Iterable[str]) -> BackendError:
        return type(error)("\n".join([str(error), *(without_advice(self.version, model) for model in models)]))

    def _need_labels(self, pooled: Sequence[Pair]) -> None:
        """Have the whole pool judged, or stop with the batches that wait for a judge.

        InputError if pairs are missing and labels are final.
        """
        version, plan, final = self.version, self.plan, closed(self.version)
        first, second = (plan.judges.first, plan.judges.second) if plan.judges else (None, None)
        # The pairs, and once they are judged those that left a doubt, with more of their documents.
        while missing := unjudged(pooled, version_labels(version)):
            if final:
                raise InputError(f"{len(missing)} of {len(pooled)} pairs of {version.name} are not judged. {final}")
            documents = {document.doc_id: document for document in self.documents}
            export_missing(version, missing, documents, self.passages.shown)
            if self.judge is None or first is None or first.by_file:
                # Unjudged pairs have bounds, so that a page can be read before all grades are in.
                if len(missing) < len(pooled):
                    folder = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional")
                    self.write(results_of(version, plan, verified_preregistration(version)), folder)
                    left = left_to_judge(version, len(pooled), missing)
                    say(f"a provisional page, with {left}: {folder / PAGE}")
                raise self._stopped()
            if not judge_missing(version, plan, set(missing), self.judge):
                raise self._stopped()
        if final:
            return
        if self.judge is not None and second is not None and not second.by_file:
            judge_again(version, plan, self.judge)
        elif unread_twice(version, plan) or unread_doubles(version, version_labels(version)):
            raise self._stopped()

    def _decided(self, scored: Scored) -> str:
        """Return the answer once results, page and decision are written and locked.

        NegativeVerdict if the results allow no decision, InputNeeded if a person has to choose; results and page are
        written all the same.
        """
        record, content = self.version.record, json_bytes(scored.results.model_dump())
        try:
            decision = self._decision(scored.results, sha256(content))
        except EvalError:  # nothing is decided, and the page says why
            self.write(scored, record, None, content)
            raise
        self.write(scored, record, decision, content)
        write_lock(record)
        say(f"locked. {_to_commit(record)}")
        return self._answer(decision)

    def _decision(self, results: Results, results_sha256: str) -> Decision:
        version = self.version
        if results.previous is not None:
            say(f"beside v{results.previous.version}: the page says what changed, and how far every cell moved")
        if results.outcome.tier == "no decision":
            said, following = sentences.found(results), sentences.next_step(results)
            raise NegativeVerdict(f"{version.name}: {said}\n{following}\nresults: {version.record / PAGE}")
        if self.choice is None and needs_choice(results):
            raise self._stopped(choice(version, results))
        return decide(results, results_sha256, self.choice, today=today(), reuse=reuse_of(version))

    def _recorded(self) -> str:
        """Return the answer of a version that is decided; a missing lock is written.

        A run that was killed between decision and lock leaves none: the results are made once more, to see that the
        decision rests on the files beside it. IntegrityError if it does not, InputError for another choice.
        """
        version, asked = self.version, self.choice
        decision = load_decision(version)
        if not (version.record / LOCK_NAME).exists():
            if decision.kind != "policy":  # which rests on nothing beside it
                write_atomic(version.record / PAGE, self._made_again()[PAGE])
            write_lock(version.record)
            say(f"{version.name}: the lock of the recorded decision was missing and is written now")
        if asked and asked.cell not in (RECOMMENDED, decision.chosen.cell):
            raise InputError(
                f"{decision_sentence(decision)} That is final: a decision is not changed, the next version can decide "
                "otherwise."
            )
        if asked and (asked.reason, asked.by) != (decision.reason, decision.decided_by):
            say(f"recorded before, on {decision.decided_on}; nothing is changed, and no other reason or name is kept")
        return self._answer(decision)

    def _made_again(self) -> dict[str, bytes]:
        """Return the record's files made again; IntegrityError unless results and decision are there byte for byte.

        The page follows from them, and the run may have been killed before it was written with the decision.
        """
        version, record = self.version, self.version.record
        frozen = verified_preregistration(version)
        if missing := self.runs.missing(self.wanted(noise_floor=True)):
            raise IntegrityError(
                f"The decision of {version.name} is not locked yet, and runs of it are gone: "
                f"{', '.join(each.name for each in missing)}. Restore them from git or a backup."
            )
        made = files_of(version, results_of(version, self.plan, frozen))
        if wrong := [name for name in differing(version, made) if name != PAGE]:
            raise IntegrityError(
                f"{record / 'decision.json'} is not locked yet, and {record / wrong[0]} is not what the files beside "
                f"it make. Restore them from git or a backup, or delete decision.json and run {self.again} to decide "
                "again."
            )
        return made

    def _answer(self, decision: Decision) -> str:
        at = "" if decision.kind == "policy" else f"\nresults: {self.version.record / PAGE}"
        return decision_sentence(decision) + at


def _to_commit(record: Path) -> str:
    """Return what to commit of a record, of which git may ignore some files, and of the demo's all that is made."""
    names = ignored(record)
    if LOCK_NAME in names:
        return "Nothing is to be committed: .gitignore names what was made."
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"Commit {record}" + (f", without what .gitignore names: {', '.join(names[:4])}{more}" if names else "")
