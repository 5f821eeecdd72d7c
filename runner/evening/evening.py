"""The evening, from top to bottom: sample, chunk, embed, retrieve, pool, judge, score, gate, decide, lock.

It moves a version as far as it can go, then says what is outstanding and which command brings it.
"""

from runner.base.errors import InputNeeded
from runner.base.progress import say
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import check_preregistration, preregister
from runner.eval_set.version import alone
from runner.evening.next_version import begin_version
from runner.evening.session import Session
from runner.evening.stages import (
    check_choice,
    check_frozen,
    check_judges_named,
    look_ahead,
    make_runs,
    need_queries,
    need_same_documents,
    sample,
    write_pack,
)
from runner.evening.stops import doubts, steps
from runner.evening.verdict import recorded_answer, verdict
from runner.judge.carried_labels import carry_labels


class Evening(Session):
    """One run of the driver over one version, up to its decision."""

    def run(self) -> str:
        """The answer for stdout; InputNeeded, NegativeVerdict and the other outcomes are raised."""
        with alone(self.version):
            verify_version(self.version)
            try:
                return recorded_answer(self) or self._decided()
            except InputNeeded as stop:
                # Under the steps that are done, with what the operator should know before going on.
                raise stop.at(self.version.name, steps(self.version), doubts(self.version)) from None

    def begin(self) -> None:
        """Plans and judge's instructions, and the sample if there are documents to draw it from."""
        with alone(self.version):
            verify_version(self.version)
            check_frozen(self)
            need_same_documents(self)
            if self.corpus_place is None:
                begin_version(self.version)
            else:
                sample(self)
                write_pack(self)

    def _decided(self) -> str:
        check_frozen(self)
        check_choice(self)
        check_judges_named(self)
        look_ahead(self)
        with self.timed("corpus"):
            sample(self)
        need_queries(self)
        check_preregistration(self.version)  # what could not be frozen later is said before hours of embedding

        make_runs(self)
        self.remember_times()

        frozen = preregister(self.version)
        if said := carry_labels(self.version).sentence:
            say(said)
        return verdict(self, frozen)
