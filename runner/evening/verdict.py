"""From the last cell that was searched to the decision: pool, judge, score, decide, lock.

A decision that is recorded already is held to what made it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.base.canonical import json_bytes, sha256, today, write_atomic
from runner.base.errors import EvalError, InputError, IntegrityError, NegativeVerdict
from runner.base.git import ignored
from runner.base.progress import say
from runner.base.records import Run
from runner.decide.compared import comparison_lines
from runner.decide.decide import RECOMMENDED, decide, decision_sentence, needs_choice
from runner.decide.results import Scored
from runner.decide.roster import reuse_of
from runner.eval_set.batches import Pair
from runner.eval_set.door import LOCK_NAME
from runner.eval_set.labels import closed, version_labels
from runner.eval_set.lock import write_lock
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Preregistration
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import load_decision
from runner.evening.remake import differing, files_of, results_of
from runner.evening.session import Session
from runner.evening.stops import choice_stop, counting
from runner.judge.models.run_judges import judge_again, judge_missing
from runner.judge.prep_labels import export_missing, judging_stop
from runner.judge.second_reading import second_reading_stop, unread_twice
from runner.report.sentences import found, next_step
from runner.retrieve.pool import pool, unjudged
from runner.score.comparison import load_runs


def need_labels(
    session: Session, pooled: Sequence[Pair], runs: Mapping[str, Run], provisional: Callable[[], Path]
) -> None:
    """Have the whole pool judged, or raise InputNeeded with the batches that wait for a judge.

    `provisional` writes a page of what is judged so far. InputError if pairs are missing and labels are final.
    """
    version, plan, final = session.version, session.plan, closed(session.version)
    first, second = (plan.judges.first, plan.judges.second) if plan.judges else (None, None)
    missing = unjudged(pooled, version_labels(version))
    if missing and final:
        raise InputError(f"{len(missing)} of {len(pooled)} pairs of {version.name} are not judged. {final}")
    if missing:
        documents = {document.doc_id: document for document in session.documents}
        batches = export_missing(version, missing, [*runs.values(), session.runs.lexical_windows()], documents)
        if session.judge is None or first is None or first.by_file:
            if len(missing) < len(pooled):
                say(f"a provisional page, with {len(missing)} pairs unjudged: {provisional()}")
            stop = judging_stop(version, len(pooled), missing, batches, session.again)
            stop.notes = (counting(version),)
            raise stop
        judge_missing(version, plan, set(missing), session.judge)
    if final:
        return
    if session.judge is not None and not (second and second.by_file):
        judge_again(version, plan, session.judge)
    elif waiting := unread_twice(version, plan):
        raise second_reading_stop(version, waiting, session.again)


def verdict(session: Session, frozen: Preregistration) -> str:
    """Return the answer once the version is decided and locked; InputNeeded for pairs to judge or a cell to choose."""
    version, plan = session.version, session.plan
    with session.timed("judge"):
        runs = load_runs(version, plan)
        pooled = pool(runs.values(), plan.pool_depth)
        need_labels(session, pooled, runs, lambda: _provisional(session, frozen))
    with session.timed("score"):
        scored = results_of(version, plan, frozen, runs)
    return decide_and_lock(session, scored)


def _provisional(session: Session, frozen: Preregistration) -> Path:
    """The page with unjudged pairs marked, outside of the record."""
    version = session.version
    folder = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional")
    session.write(results_of(version, session.plan, frozen), folder)
    return folder / "results.html"


PAGE = "results.html"


def recorded_answer(session: Session) -> str:
    """The answer of a version that is decided, "" if it is not; a missing lock is written.

    A run that was killed between decision and lock leaves none: the results are made once more, to see that
    the decision rests on the files beside it. IntegrityError if it does not, InputError for another choice.
    """
    version = session.version
    if not (version.record / "decision.json").exists():
        return ""
    decision = load_decision(version)
    if not (version.record / LOCK_NAME).exists():
        if decision.kind != "policy":  # which rests on nothing beside it
            made = _checked_unlocked(session)
            write_atomic(version.record / PAGE, made[PAGE])
        write_lock(version.record)
        say(f"{version.name}: the lock of the recorded decision was missing and is written now")
    if session.choice and session.choice.cell not in (RECOMMENDED, decision.chosen.cell):
        raise InputError(
            f"{decision_sentence(decision)} That is final: a decision is not changed, the next version can decide "
            "otherwise."
        )
    if session.choice and (session.choice.reason, session.choice.by) != (decision.reason, decision.decided_by):
        say(f"recorded before, on {decision.decided_on}; nothing is changed, and no other reason or name is kept")
    return _answer(session, decision)


def decide_and_lock(session: Session, scored: Scored) -> str:
    """The answer once results, page and decision are written and locked.

    NegativeVerdict if the results allow no decision, InputNeeded if a person has to choose; results and page are
    written all the same.
    """
    record, content = session.version.record, json_bytes(scored.results.model_dump())
    try:
        decision = _decided(session, scored.results, sha256(content))
    except EvalError:
        session.write(scored, record, None, content)
        raise
    session.write(scored, record, decision, content)
    write_lock(record)
    say(f"locked. {_to_commit(record)}")
    return _answer(session, decision)


def _decided(session: Session, results: Results, results_sha256: str) -> Decision:
    version = session.version
    if beside := comparison_lines(results):
        say("\n".join(beside))
    if results.outcome.tier == "no decision":
        raise NegativeVerdict(
            f"{version.name}: {found(results)}\n{next_step(results)}\nresults: {version.record / 'results.html'}"
        )
    if session.choice is None and needs_choice(results):
        raise choice_stop(version, results)
    return decide(results, results_sha256, session.choice, today=today(), reuse=reuse_of(version.source))


def _to_commit(record: Path) -> str:
    """What to commit of a record, of which git may ignore some files, and of the demo's all that is made."""
    names = ignored(record)
    if LOCK_NAME in names:
        return "Nothing is to be committed: .gitignore names what was made."
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"Commit {record}" + (f", without what .gitignore names: {', '.join(names[:4])}{more}" if names else "")


def _answer(session: Session, decision: Decision) -> str:
    place = "" if decision.kind == "policy" else f"\nresults: {session.version.record / 'results.html'}"
    return decision_sentence(decision) + place


def _checked_unlocked(session: Session) -> dict[str, bytes]:
    """The record's files made again; IntegrityError unless results and decision are there byte for byte.

    The page follows from them, and the run may have been killed before it was written with the decision.
    """
    version, record = session.version, session.version.record
    frozen = verified_preregistration(version)
    if missing := session.runs.missing(session.wanted(noise_floor=True)):
        raise IntegrityError(
            f"The decision of {version.name} is not locked yet, and runs of it are gone: "
            f"{', '.join(each.name for each in missing)}. Restore them from git."
        )
    made = files_of(version, results_of(version, session.plan, frozen))
    if wrong := [name for name in differing(version, made) if name != PAGE]:
        raise IntegrityError(
            f"{record / 'decision.json'} is not locked yet, and {record / wrong[0]} is not what the files beside it "
            f"make. Restore them from git, or delete decision.json and run {session.again} to decide again."
        )
    return made
