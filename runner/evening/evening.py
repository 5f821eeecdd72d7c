"""The evening, from top to bottom: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

It moves a version as far as it can go, then says what is outstanding and which command brings it.
"""

from pathlib import Path

from runner.base.errors import InputNeeded
from runner.base.progress import say
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import check_preregistration, preregister
from runner.eval_set.shapes.plan import Preregistration
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import alone
from runner.evening.inputs import check_frozen, need_queries, sample
from runner.evening.judging import check_keys, need_labels
from runner.evening.next_version import begin_version
from runner.evening.recorded import decide_and_lock, recorded_answer
from runner.evening.remake import results_of
from runner.evening.session import Session
from runner.evening.stops import doubts, steps
from runner.judge.carried_labels import carry_labels
from runner.retrieve.pool import pool
from runner.score.comparison import load_runs


class Evening(Session):
    """One run of the driver over one version, up to its decision."""

    def run(self) -> str:
        """The answer for stdout; InputNeeded, NegativeVerdict and the other outcomes are raised."""
        with alone(self.version):
            verify_version(self.version)
            try:
                return recorded_answer(self, self._results) or self._decided()
            except InputNeeded as stop:
                raise self._told(stop) from None

    def begin(self) -> None:
        """Plans and judge's instructions, and the sample if there are documents to draw it from."""
        with alone(self.version):
            verify_version(self.version)
            check_frozen(self)
            if self.corpus_place is None:
                begin_version(self.version)
            else:
                sample(self)

    def _told(self, stop: InputNeeded) -> InputNeeded:
        """The stop under the steps that are done, with what the operator should know before going on."""
        return stop.at(self.version.name, steps(self.version), doubts(self.version))

    def _decided(self) -> str:
        check_frozen(self)
        if not self.version.corpus_path.exists():
            check_keys(self)
        with self.timed("corpus"):
            sample(self)
        need_queries(self)
        check_preregistration(self.version)  # what could not be frozen later is said before hours of embedding

        with self.timed("runs"):
            missing = self.runs.missing(self.wanted(noise_floor=True))
            if missing:
                check_keys(self)
                self.runs.check(missing)
            self.runs.chunk(missing)
            self.runs.embed(missing)
            self.runs.retrieve(missing)
        self.remember_times()

        frozen = preregister(self.version)
        if said := carry_labels(self.version).sentence:
            say(said)
        with self.timed("judge"):
            runs = load_runs(self.version, self.plan)
            pooled = pool(runs.values(), self.plan.pool_depth)
            need_labels(self, pooled, runs, lambda: self._provisional(frozen))

        with self.timed("score"):
            results = self._results(frozen)
            self.write(results, self.version.record)
        return decide_and_lock(self, results)

    def _results(self, frozen: Preregistration) -> Results:
        return results_of(self.version, self.plan, frozen)

    def _provisional(self, frozen: Preregistration) -> Path:
        """The page with unjudged pairs marked, outside of the record."""
        folder = self.version.work / ("provisional-rehearsal" if self.version.rehearsal else "provisional")
        self.write(self._results(frozen), folder)
        return folder / "results.html"
