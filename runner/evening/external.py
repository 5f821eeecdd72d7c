"""An external collection, evaluated: its cells and imported runs against published qrels, onto a page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml

from runner.base.canonical import write_atomic
from runner.base.errors import InputError, InputNeeded, NegativeVerdict
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import IMPORTED, Run
from runner.decide.results import make_results
from runner.eval_set.asked import asked_ids
from runner.eval_set.collection import (
    check_same_collection,
    collection_facts,
    keep_collection,
    keep_qrels,
)
from runner.eval_set.corpus import read_external
from runner.eval_set.plan import default_plan_text
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.corpus import GIVEN_QRELS
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.trec import read_trec_qrels, trec_qrels_bytes, trec_run_bytes
from runner.eval_set.version import alone, load_corpus, load_queries
from runner.evening.session import PAGE, Session
from runner.gate.gate import Gate
from runner.report.sentences import found
from runner.retrieve.imported_runs import import_runs, imported_cells
from runner.score.comparison import load_comparison
from samplers.sources.beir import Collection, collection_digests


@dataclass
class ExternalEvaluation(Session):
    """One run of the driver over an external collection; `trec_runs` are imported as cells."""

    trec_runs: Sequence[Path] = ()

    def run(self) -> str:
        """Return the answer for stdout; NegativeVerdict if baseline or controls keep figures from meaning anything."""
        version, plan = self.version, self.plan
        with alone(version):
            with self.timed("corpus"):
                self.need_collection(plan)
            import_runs(version, self.trec_runs, self.called)
            self.make_runs()
            with self.timed("score"):
                # Imported runs count for this page alone: plan.yaml names what this tool can make itself.
                plan = plan.model_copy(update={"cells": [*plan.cells, *imported_cells(version)]})
                comparison = load_comparison(version, plan, frozenset(plan.cells), read_trec_qrels(version.qrels_path))
                scored = make_results(version, comparison, Gate.over(comparison), kind="external")
                self._export(scored.results)
            self.write(scored, version.record)
        results = scored.results
        sentence = found(results)
        answer = f"{printable(sentence, len(sentence))}\nresults: {display(version.record / PAGE)}"
        if results.outcome.tier == "no decision":
            raise NegativeVerdict(answer)
        return answer

    @cached_property
    def plan(self) -> Plan:
        """plan.yaml, or the default one if it is not written yet."""
        path = self.version.plan_path(rehearsal=False)
        if path.exists():
            return self.version.plan(rehearsal=False)
        return Plan.model_validate(yaml.safe_load(default_plan_text(self.version.source, rehearsal=False)))

    def called(self, trec_run: Path) -> str:
        """Return what lines about an imported run call it."""
        return display(trec_run)

    def need_collection(self, plan: Plan) -> None:
        """Make the collection's files and plan.yaml, where they are missing, from a folder that was read whole."""
        version, path = self.version, self.version.plan_path(rehearsal=False)
        if not version.collection_path.exists():
            if self.corpus_path is None:
                raise InputNeeded(
                    f"{version.name} has no collection yet. Give its folder (corpus.jsonl, queries.jsonl, qrels.tsv or "
                    f"qrels/test.tsv): {DRIVER} run {version.flags} --corpus-path FOLDER"
                )
            keep_collection(version, plan, read_external(self.corpus_path))
        elif self.corpus_path is not None:
            check_same_collection(version, collection_digests(self.corpus_path))
        collection_facts(version)  # an edited file is said before anything is searched
        # Figures of one sample must not stand under the name of another.
        drawn = load_corpus(version.corpus_path)[0].sample
        if drawn != plan.sample:
            raise InputError(
                f"{path}: sample is {plan.sample.size} (seed {plan.sample.seed}), and {drawn.size} (seed {drawn.seed}) "
                "was drawn. Put it back, or give another --eval-set-path to draw anew."
            )
        if not path.exists():
            write_atomic(path, default_plan_text(version.source, rehearsal=False).encode())
            say(f"wrote {path}")

    def _export(self, results: Results) -> None:
        """Write every run and the qrels as TREC files, for any other tool to score."""
        version = self.version
        query_ids = asked_ids(load_queries(version.queries_path))
        for row in results.cells:
            run = read_run(version.run_path(row.cell), row.cell, query_ids)
            write_atomic(version.trec_path(row.cell), trec_run_bytes(run))
        write_atomic(version.record / "trec" / "qrels.txt", trec_qrels_bytes(read_trec_qrels(version.qrels_path)))
        exported = {version.trec_path(row.cell) for row in results.cells}
        for path in sorted((version.record / "trec").glob("*.run")):
            if path not in exported:
                path.unlink()  # of a cell that is not on the page any more


@dataclass(frozen=True)
class Given:
    """What a Python program gave: documents, queries and qrels, the plan of cells, and other systems' runs."""

    collection: Collection
    plan: Plan
    runs: Sequence[Run]


@dataclass
class GivenEvaluation(ExternalEvaluation):
    """One evaluation of what a Python program gave."""

    given: Given = field(kw_only=True)

    @cached_property
    def plan(self) -> Plan:
        """The plan as given."""
        return self.given.plan

    def called(self, trec_run: Path) -> str:
        """Return the retriever that the run was made by."""
        return f"retriever {trec_run.stem}"

    def found(self) -> dict[str, Run]:
        """Return what each cell of the plan finds for every query; nothing is scored."""
        with alone(self.version):
            self.need_collection(self.plan)
            self.make_runs()
        query_ids = list(self.given.collection.queries)
        return {cell: read_run(self.version.run_path(cell), cell, query_ids) for cell in self.plan.cells}

    def need_collection(self, plan: Plan) -> None:
        """Put what was given where a collection's files lie; InputError if the folder has other ones."""
        version, given = self.version, self.given
        if not version.collection_path.exists():
            keep_collection(version, plan, given.collection, GIVEN_QRELS)
        else:
            check_same_collection(version, given.collection.sha256, qrels=False)
            keep_qrels(version, collection_facts(version), given.collection.qrels)
        write_atomic(version.plan_path(rehearsal=False), yaml.safe_dump(plan.model_dump(), sort_keys=False).encode())
        for path in (version.record / "cells").glob(f"{IMPORTED}-*.json"):
            path.unlink()  # of an earlier call: its retriever may be another one now
        self.trec_runs = [version.work / "given" / f"{run.cell}.run" for run in given.runs]
        for path, run in zip(self.trec_runs, given.runs, strict=True):
            write_atomic(path, trec_run_bytes(run))
