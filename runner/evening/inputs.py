"""What an evening begins with: the sampled documents and the queries."""

from dataclasses import replace

from runner.base.errors import InputError
from runner.base.git import untracked
from runner.base.progress import say
from runner.decide.decide import decision_sentence
from runner.eval_set.corpus import keep_sample, need_corpus, sample_of, sample_to_draw
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.preregistration import check_sample, verified_preregistration
from runner.eval_set.version import load_decision, load_queries
from runner.evening.next_version import begin_version
from runner.evening.session import Session
from runner.evening.stops import missing_documents
from runner.queries.reading_pack import queries_stop, write_reading_pack


def check_frozen(session: Session) -> None:
    """Check what is frozen already, and refuse to rehearse a version whose baseline was adopted by policy."""
    version = session.version
    if version.preregistration_path.exists():
        verified_preregistration(version)  # what changed since is said before a plan's criteria are
    if version.rehearsal and (version.folder / "decision.json").exists():
        decision = load_decision(replace(version, record=version.folder, rehearsal=False))
        if decision.kind == "policy":
            raise InputError(
                f"{decision_sentence(decision)} There is nothing to rehearse in that version; give a rehearsal a "
                "folder of its own with --eval-set-path."
            )


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
