"""The evening, from top to bottom: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

It moves a version as far as it can go, then says what is outstanding and which command brings it.
"""

from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputNeeded
from runner.base.progress import say
from runner.decide.decide import RECOMMENDED
from runner.eval_set.labels import version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.looks import keep_look, kept_looks
from runner.eval_set.preregistration import check_preregistration, preregister
from runner.eval_set.shapes.plan import Preregistration
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import alone, load_results
from runner.evening.inputs import check_frozen, need_queries, sample, write_pack
from runner.evening.judging import check_keys, need_labels
from runner.evening.next_version import begin_version
from runner.evening.recorded import decide_and_lock, recorded_answer
from runner.evening.remake import kept_before, remade_look, results_of
from runner.evening.session import Session
from runner.evening.stops import doubts, steps
from runner.judge.carried_labels import carry_labels
from runner.retrieve.pool import pool, unjudged
from runner.score.comparison import load_runs
from runner.score.looks import Look, look_after


class Evening(Session):
    """One run of the driver over one version, up to its decision."""

    def run(self) -> str:
        """The answer for stdout; InputNeeded, NegativeVerdict and the other outcomes are raised."""
        with alone(self.version):
            verify_version(self.version)
            try:
                remade = recorded_answer(self, lambda frozen: self._results(frozen, kept_before(self.version)))
                return remade or self._decided()
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
                write_pack(self)

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
            missing = self.runs.announced(self.wanted(noise_floor=True))
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
        kept, ask = self._kept(frozen), True
        while True:
            if kept and self._ends_the_looks(look_after(self.plan, kept)):
                results = load_results(self.version)
                self.write(results, self.version.record)  # a killed run may have left no page of it
                return decide_and_lock(self, results)
            results = self._scored(frozen, kept, ask=ask)
            if results.look is None or results.look.ended != "next look":
                return decide_and_lock(self, results)
            say(f"look {results.look.number} of {results.look.of} is over: {results.outcome.sentence}")
            # What a further look costs is not spent unasked: whoever reads this one may stop.
            kept, ask = kept_looks(self.version, self.plan).digests, False

    def _kept(self, frozen: Preregistration) -> Sequence[str]:
        """The digests of the looks that are over; one that results.json does not name yet is made anew first."""
        found = kept_looks(self.version, self.plan)
        for look in found.looks[found.vouched :]:  # of a run that was killed
            self.write(remade_look(self.version, self.plan, frozen, look), self.version.record)
        return found.digests

    def _ends_the_looks(self, due: Look | None) -> bool:
        """Whether a person chooses a cell by the looks so far, the next one not being judged."""
        if due is None or self.choice is None or self.choice.cell == RECOMMENDED:
            return False
        runs = load_runs(self.version, self.plan, due.queries)
        return bool(unjudged(pool(runs.values(), self.plan.pool_depth), version_labels(self.version)))

    def _scored(self, frozen: Preregistration, kept: Sequence[str], *, ask: bool) -> Results:
        """The results of the look that is due, of all queries if none are planned, once its pool is judged."""
        look = look_after(self.plan, kept)
        with self.timed("judge"):
            runs = load_runs(self.version, self.plan, look.queries if look else None)
            pooled = pool(runs.values(), self.plan.pool_depth)
            need_labels(self, pooled, runs, lambda: self._provisional(frozen, kept), look, ask=ask)

        with self.timed("score"):
            results = self._results(frozen, kept)
            if results.look is not None and results.look.ended == "next look":
                keep_look(self.version, results)
            self.write(results, self.version.record)
        return results

    def _results(self, frozen: Preregistration, kept: Sequence[str]) -> Results:
        return results_of(self.version, self.plan, frozen, kept)

    def _provisional(self, frozen: Preregistration, kept: Sequence[str]) -> Path:
        """The page with unjudged pairs marked, outside of the record."""
        folder = self.version.work / ("provisional-rehearsal" if self.version.rehearsal else "provisional")
        self.write(self._results(frozen, kept), folder)
        return folder / "results.html"
