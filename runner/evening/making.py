"""From queries to runs: looks first at what would end an evening late, and says how it goes on without an encoder."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from runner.base.checks import need_all
from runner.base.errors import BackendError
from runner.embed.chunk_corpus import stored_chunk_tokens
from runner.embed.cost.estimate import Total
from runner.embed.cost.prices import MAX_USD
from runner.eval_set.labels import closed
from runner.eval_set.version import Version
from runner.evening.costs import Asked
from runner.evening.leave_out import leave_out, without_advice
from runner.evening.preflight import Preflight
from runner.evening.session import Session
from runner.retrieve.make_runs import Wanted


def drop_encoders(session: Session) -> None:
    """Take the encoders of `--without` out of the plan, as soon as there is one."""
    if session.without and _has_plan(session.version):
        leave_out(session.version, session.without, datetime.now(UTC).date().isoformat())


def look_ahead(session: Session) -> None:
    """Check, before documents are sampled, what all cells of the plan need; nothing if there is no plan yet."""
    if not session.version.corpus_path.exists() and _has_plan(session.version):
        _need(session, session.plan.cells)


def make_runs(session: Session) -> None:
    """Chunk, embed and search for every cell that lacks a run; what cannot be had is said before anything long."""
    with session.timed("runs"):
        runs = session.runs
        missing = runs.announced(session.wanted(noise_floor=True))
        unmade = runs.unmade(missing)
        left = _need(session, [str(each.cell) for each in unmade])
        _have_rerankers(session, unmade)
        runs.chunk(missing)
        try:
            runs.embed(missing, left)
        except BackendError as error:
            if not runs.vectors.failed:
                raise
            raise _advised(session.version, error, runs.vectors.failed) from error
        runs.retrieve(missing)


def _has_plan(version: Version) -> bool:
    return version.plan_path(rehearsal=version.rehearsal).exists()


def _need(session: Session, cells: Sequence[str]) -> Total:
    """Raise what keeps these cells or their judging from being had; returns what judging costs.

    What an earlier attempt embedded is known once chunks are made: the backend then counts both together.
    """
    judge = None if closed(session.version) else session.judge
    ceiling = session.backend.max_usd or (judge.max_usd if judge else MAX_USD)
    where = "" if session.backend.name == "local" else f"{session.backend.name}, counted once chunks are made"
    asked = Asked(None, where, judge, ceiling, stored_chunk_tokens)
    preflight = Preflight(session.version, session.plan, session.backend, asked, cells)
    need_all(preflight.checks())
    return preflight.left.total


def _have_rerankers(session: Session, unmade: Sequence[Wanted]) -> None:
    for model in session.runs.rerankers(unmade):
        try:
            session.runs.reranker(model).check()
        except BackendError as error:
            raise _advised(session.version, error, [model]) from error


def _advised(version: Version, error: BackendError, failed: Iterable[str]) -> BackendError:
    advice = [without_advice(version, model) for model in failed]
    return type(error)("\n".join([str(error), *filter(None, advice)]))
