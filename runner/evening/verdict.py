"""From the last cell that was searched to the decision: pool, judge, score, look by look, decide, lock."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.progress import say
from runner.decide.decide import RECOMMENDED
from runner.eval_set.labels import version_labels
from runner.eval_set.looks import keep_look, kept_looks
from runner.eval_set.shapes.plan import Preregistration
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import load_results
from runner.evening.judging import need_labels
from runner.evening.recorded import decide_and_lock
from runner.evening.remake import remade_look, results_of
from runner.evening.session import Session
from runner.retrieve.pool import pool, unjudged
from runner.score.comparison import load_runs
from runner.score.looks import Look, look_after


def verdict(session: Session, frozen: Preregistration) -> str:
    """The answer once the version is decided and locked; InputNeeded for pairs to judge or a cell to choose."""
    version, plan = session.version, session.plan
    kept, ask = _kept(session, frozen), True
    while True:
        if kept and _ends_the_looks(session, look_after(plan, kept)):
            results = load_results(version)
            session.write(results, version.record)  # a killed run may have left no page of it
            return decide_and_lock(session, results)
        results = _scored(session, frozen, kept, ask=ask)
        if results.look is None or results.look.ended != "next look":
            return decide_and_lock(session, results)
        say(f"look {results.look.number} of {results.look.of} is over: {results.outcome.sentence}")
        # What a further look costs is not spent unasked: whoever reads this one may stop.
        kept, ask = kept_looks(version, plan).digests, False


def _kept(session: Session, frozen: Preregistration) -> Sequence[str]:
    """The digests of the looks that are over; one that results.json does not name yet is made anew first."""
    version, plan = session.version, session.plan
    found = kept_looks(version, plan)
    for look in found.looks[found.vouched :]:  # of a run that was killed
        session.write(remade_look(version, plan, frozen, look), version.record)
    return found.digests


def _ends_the_looks(session: Session, due: Look | None) -> bool:
    """Whether a person chooses a cell by the looks so far, the next one not being judged."""
    if due is None or session.choice is None or session.choice.cell == RECOMMENDED:
        return False
    runs = load_runs(session.version, session.plan, due.queries)
    return bool(unjudged(pool(runs.values(), session.plan.pool_depth), version_labels(session.version)))


def _scored(session: Session, frozen: Preregistration, kept: Sequence[str], *, ask: bool) -> Results:
    """The results of the look that is due, of all queries if none are planned, once its pool is judged."""
    version, plan = session.version, session.plan
    look = look_after(plan, kept)
    with session.timed("judge"):
        runs = load_runs(version, plan, look.queries if look else None)
        pooled = pool(runs.values(), plan.pool_depth)
        need_labels(session, pooled, runs, lambda: _provisional(session, frozen, kept), look, ask=ask)

    with session.timed("score"):
        results = results_of(version, plan, frozen, kept)
        if results.look is not None and results.look.ended == "next look":
            keep_look(version, results)
        session.write(results, version.record)
    return results


def _provisional(session: Session, frozen: Preregistration, kept: Sequence[str]) -> Path:
    """The page with unjudged pairs marked, outside of the record."""
    version = session.version
    folder = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional")
    session.write(results_of(version, session.plan, frozen, kept), folder)
    return folder / "results.html"
