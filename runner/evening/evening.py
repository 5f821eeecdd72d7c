"""The evening, from top to bottom: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

It moves a version as far as it can go, then says what is outstanding and which command brings it.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from runner.base.checks import need_all
from runner.base.errors import BackendError, InputNeeded
from runner.base.progress import say
from runner.embed.chunk_corpus import stored_chunk_tokens
from runner.embed.cost.estimate import Total
from runner.embed.cost.prices import MAX_USD
from runner.eval_set.labels import closed
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import check_preregistration, preregister
from runner.eval_set.version import alone
from runner.evening.costs import Asked
from runner.evening.inputs import check_frozen, need_queries, sample, write_pack
from runner.evening.leave_out import leave_out, without_advice
from runner.evening.next_version import begin_version
from runner.evening.preflight import Preflight
from runner.evening.recorded import recorded_answer
from runner.evening.remake import kept_before, results_of
from runner.evening.session import Session
from runner.evening.stops import doubts, steps
from runner.evening.verdict import verdict
from runner.judge.carried_labels import carry_labels
from runner.retrieve.make_runs import Wanted


class Evening(Session):
    """One run of the driver over one version, up to its decision."""

    def run(self) -> str:
        """The answer for stdout; InputNeeded, NegativeVerdict and the other outcomes are raised."""
        with alone(self.version):
            verify_version(self.version)
            try:
                remade = recorded_answer(
                    self, lambda frozen: results_of(self.version, self.plan, frozen, kept_before(self.version))
                )
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
        self._leave_out()
        if not self.version.corpus_path.exists() and self._has_plan:
            self._preflight(self.plan.cells)
        with self.timed("corpus"):
            sample(self)
        self._leave_out()
        need_queries(self)
        check_preregistration(self.version)  # what could not be frozen later is said before hours of embedding

        with self.timed("runs"):
            missing = self.runs.announced(self.wanted(noise_floor=True))
            unmade = self.runs.unmade(missing)
            left = self._preflight([str(each.cell) for each in unmade])
            self._have_rerankers(unmade)
            self.runs.chunk(missing)
            self._embed(missing, left)
            self.runs.retrieve(missing)
        self.remember_times()

        frozen = preregister(self.version)
        if said := carry_labels(self.version).sentence:
            say(said)
        return verdict(self, frozen)

    @property
    def _has_plan(self) -> bool:
        return self.version.plan_path(rehearsal=self.version.rehearsal).exists()

    def _preflight(self, cells: Sequence[str]) -> Total:
        """Check, before anything long, what making these cells and judging need; returns what judging costs.

        What an earlier attempt embedded is known once chunks are made: the backend then counts both together.
        """
        judge = None if closed(self.version) else self.judge
        ceiling = self.backend.max_usd or (judge.max_usd if judge else MAX_USD)
        where = "" if self.backend.name == "local" else f"{self.backend.name}, counted once chunks are made"
        asked = Asked(None, where, judge, ceiling, stored_chunk_tokens)
        preflight = Preflight(self.version, self.plan, self.backend, asked, cells)
        need_all(preflight.checks())
        return preflight.left.total

    def _leave_out(self) -> None:
        """Take encoders out of the plan, as soon as there is one."""
        if self.without and self._has_plan:
            leave_out(self.version, self.without, datetime.now(UTC).date().isoformat())

    def _have_rerankers(self, unmade: Sequence[Wanted]) -> None:
        """Have the weights of every cross-encoder, fetched if need be, before anything long."""
        for model in self.runs.rerankers(unmade):
            try:
                self.runs.reranker(model).check()
            except BackendError as error:
                raise self._advised(error, [model]) from error

    def _embed(self, missing: Sequence[Wanted], left: Total) -> None:
        """Embed; a BackendError about an encoder says how the evening goes on without it."""
        try:
            self.runs.embed(missing, left)
        except BackendError as error:
            if not (failed := self.runs.vectors.failed):
                raise
            raise self._advised(error, failed) from error

    def _advised(self, error: BackendError, failed: Iterable[str]) -> BackendError:
        advice = [without_advice(self.version, model) for model in failed]
        return type(error)("\n".join([str(error), *filter(None, advice)]))
