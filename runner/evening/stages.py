"""The stages of an evening before its verdict: the sample, the queries, the runs, and what is looked at beforehand."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from runner.base.checks import need_all
from runner.base.errors import BackendError, InputError
from runner.base.git import untracked
from runner.base.progress import say
from runner.decide.decide import RECOMMENDED, decision_sentence, need_cell
from runner.embed.cost.estimate import Total
from runner.embed.cost.prices import MAX_USD
from runner.eval_set.corpus import keep_sample, listed_documents, need_corpus, sample_of, sample_to_draw
from runner.eval_set.labels import closed
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import check_sample, verified_preregistration
from runner.eval_set.version import Version, load_decision, load_queries
from runner.evening.costs import Asked
from runner.evening.needs import Needs, without_advice
from runner.evening.next_version import begin_version
from runner.evening.session import Session
from runner.evening.stops import FREEZES, missing_documents
from runner.judge.models.estimate import pooled_pairs
from runner.judge.models.run_judges import asked_judges
from runner.queries.reading_pack import queries_stop, write_reading_pack
from runner.retrieve.make_runs import Wanted


def check_frozen(session: Session) -> None:
    """Check what is frozen already, and refuse to rehearse a version whose baseline was adopted by policy."""
    version = session.version
    if version.preregistration_path.exists():
        verified_preregistration(version)  # what changed since is said before a plan's criteria are
    if version.rehearsal and (version.folder / "decision.json").exists():
        decision = load_decision(replace(version, rehearsal=False))
        if decision.kind == "policy":
            raise InputError(
                f"{decision_sentence(decision)} There is nothing to rehearse in that version; give a rehearsal a "
                "folder of its own with --eval-set-path."
            )


def check_choice(session: Session) -> None:
    """Check that the cell which is to be chosen is one of the plan's, before hours of embedding."""
    version, choice = session.version, session.choice
    if choice and choice.cell != RECOMMENDED and version.plan_path(rehearsal=version.rehearsal).exists():
        need_cell(choice.cell, version.plan().cells)


def check_judges_named(session: Session) -> None:
    """Check that the plan names a service if one is to be asked, before hours of embedding."""
    version = session.version
    if session.judge is None or closed(version) or not version.plan_path(rehearsal=version.rehearsal).exists():
        return
    if pooled_pairs(version, version.plan()) is None:
        asked_judges(version, version.plan())


def sample(session: Session) -> None:
    """Draw the plan's sample, unless the version has one; afterwards the version has plans, prompt and corpus."""
    version, place = session.version, session.corpus_path
    if place and not place.exists():
        raise InputError(f"--corpus-path: {place} does not exist.")
    drawn = None
    if not version.corpus_path.exists() and session.corpus_place is not None:
        say(f"reading and sampling {session.corpus_place}")
        drawn = sample_of(version.source, sample_to_draw(version), session.corpus_place)
    begin_version(version)  # once there are documents: a mistyped path opens no version
    if drawn is not None:
        keep_sample(version, drawn)
    need_corpus(version)
    check_sample(version)


def need_same_documents(session: Session) -> None:
    """Raise InputError if documents are given for a version that has others."""
    version, place = session.version, session.corpus_path
    if place is None or not version.corpus_path.exists():
        return
    try:
        listed_documents(version, place)
    except InputError as error:
        raise InputError(
            f"{version.name} has its documents already, and nothing of {place} was sampled: {error}\n"
            "To evaluate your own documents, begin in a folder of your own: --eval-set-path FOLDER, here and in every "
            "command after it."
        ) from error


def write_pack(session: Session) -> None:
    """The reading pack to write queries from, if the version has none."""
    if not session.version.queries_path.exists():
        write_reading_pack(session.version, session.documents, session.version.plan(rehearsal=False).sample.seed)


def need_queries(session: Session) -> None:
    """Raise InputNeeded, with a reading pack to write queries from, unless the version has enough queries."""
    version = session.version
    if not version.queries_path.exists():
        write_pack(session)
        raise queries_stop(version, session.again)
    if (count := len(load_queries(version.queries_path))) < MIN_QUERIES:
        raise queries_stop(version, session.again, count)
    for note in missing_documents(version):
        say(f"warning: {note}")
    for path in untracked([version.queries_path, version.labels_path]):
        say(f"warning: {path} is not tracked by git; a decision that rests on it is only as safe as this disk")


def look_ahead(session: Session) -> None:
    """Check, before documents are sampled, what all cells of the plan need; nothing if there is no plan yet."""
    if not session.version.corpus_path.exists() and _has_plan(session.version):
        _need(session, session.plan.cells)


def make_runs(session: Session) -> None:
    """Chunk, embed and search for every cell that lacks a run; what cannot be had is said before anything long."""
    if session.version.rehearsal and not (session.version.tried_from or session.version.preregistration_path.exists()):
        say(FREEZES.format(session.version.number_name))
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
    asked = Asked(None, where, judge, ceiling)
    needs = Needs(session.version, session.plan, session.backend, asked, cells)
    need_all(needs.checks())
    return needs.left.total


def _have_rerankers(session: Session, unmade: Sequence[Wanted]) -> None:
    for model in session.runs.rerankers(unmade):
        try:
            session.runs.reranker(model).check()
        except BackendError as error:
            raise _advised(session.version, error, [model]) from error


def _advised(version: Version, error: BackendError, failed: Iterable[str]) -> BackendError:
    advice = [without_advice(version, model) for model in failed]
    return type(error)("\n".join([str(error), *advice]))
