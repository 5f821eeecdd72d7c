"""The decision in a version's record: made, locked, and held to what made it."""

from collections.abc import Callable
from datetime import UTC, datetime

from runner.base.canonical import file_sha256, json_bytes, write_atomic
from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.progress import say
from runner.decide.decide import RECOMMENDED, decide, decision_sentence, needs_choice
from runner.decide.previous_version import comparison_lines
from runner.decide.roster import reuse_of
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.lock import write_lock
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Preregistration
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import load_decision
from runner.evening.remake import differing, files_of
from runner.evening.session import Session
from runner.evening.stops import choice_stop

Score = Callable[[Preregistration], Results]


def recorded_answer(session: Session, score: Score) -> str:
    """The answer of a version that is decided, "" if it is not; a missing lock is written.

    A run that was killed between decision and lock leaves none: `score` makes the results once more, to see that
    the decision rests on the files beside it. IntegrityError if it does not, InputError for another choice.
    """
    version = session.version
    if not (version.record / "decision.json").exists():
        return ""
    decision = load_decision(version)
    if not (version.record / LOCK_NAME).exists():
        if decision.kind != "policy":  # which rests on nothing beside it
            _check_unlocked(session, score)
        write_lock(version.record)
        say(f"{version.name}: the lock of the recorded decision was missing and is written now")
    if session.choice and session.choice.cell not in (RECOMMENDED, decision.chosen.cell):
        raise InputError(
            f"{decision_sentence(decision)} That is final: a decision is not changed, the next version can decide "
            "otherwise."
        )
    return _answer(session, decision)


def decide_and_lock(session: Session, results: Results) -> str:
    """The answer once the decision is recorded and locked.

    NegativeVerdict if the results allow none, InputNeeded if a person has to choose.
    """
    version = session.version
    if results.previous is not None:
        say("\n".join(comparison_lines(results.previous)))
    if results.outcome.tier == "no decision":
        raise NegativeVerdict(
            f"{version.name}: {results.outcome.sentence}\n{results.outcome.next_step}\n"
            f"results: {version.record / 'results.html'}"
        )
    if session.choice is None and needs_choice(results):
        raise choice_stop(version, results)
    today = datetime.now(UTC).date().isoformat()
    scored = file_sha256(version.results_path)
    decision = decide(results, scored, session.choice, today=today, reuse=reuse_of(version.source))
    write_atomic(version.record / "decision.json", json_bytes(decision.model_dump()))
    write_lock(version.record)
    say(f"locked. To commit, as they are: {version.record}")
    return _answer(session, decision)


def _answer(session: Session, decision: Decision) -> str:
    place = "" if decision.kind == "policy" else f"\nresults: {session.version.record / 'results.html'}"
    return decision_sentence(decision) + place


def _check_unlocked(session: Session, score: Score) -> None:
    """Raise IntegrityError unless results, page and decision can be made again byte for byte."""
    version, record = session.version, session.version.record
    frozen = verified_preregistration(version)
    if missing := session.runs.missing(session.wanted(noise_floor=True)):
        raise IntegrityError(
            f"The decision of {version.name} is not locked yet, and runs of it are gone: "
            f"{', '.join(each.name for each in missing)}. Restore them from git."
        )
    if wrong := differing(version, files_of(version, score(frozen))):
        raise IntegrityError(
            f"{record / 'decision.json'} is not locked yet, and {record / wrong[0]} is not what the files beside it "
            f"make. Restore them from git, or delete decision.json and run {session.again} to decide again."
        )
