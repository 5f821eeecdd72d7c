"""A trial: a rehearsal in a folder of its own below .work, of which nothing counts."""

from dataclasses import replace

from runner.base.canonical import write_atomic
from runner.base.progress import say
from runner.eval_set.corpus import archive_path
from runner.eval_set.version import TRIAL, Version, bring_demo, numbered, open_version


def trial_of(version: Version) -> Version:
    """Return the trial's version, a rehearsal, as it lies in .work or would lie."""
    folder = version.work.parent / TRIAL
    newest = open_version(folder, folder / ".work", version.cache, version.source, rehearsal=True)
    trial = numbered(newest, version.number)
    return replace(trial, tried_from=replace(version, rehearsal=False))


def tried(version: Version) -> Version:
    """Return the trial's version with the queries as they are now, and what else of its inputs the trial lacks.

    It begins with plans, judge's instructions, sample and queries, and without preregistration and grades, and takes
    nothing more once it is preregistered.
    """
    bring_demo(version)
    trial = trial_of(version)
    folder = trial.folder.parent
    if not trial.preregistration_path.exists():
        own = replace(version, rehearsal=True)
        # Queries follow the version's until they are frozen; all else is taken once and may then be edited.
        pairs = [
            *((own.plan_path(rehearsal=which), trial.plan_path(rehearsal=which)) for which in (False, True)),
            (version.judge_path, trial.judge_path),
            (version.queries_path, trial.queries_path),
            (archive_path(version), archive_path(trial)),
            (version.corpus_path, trial.corpus_path),
        ]
        for before, now in pairs:
            if before.exists() and (not now.exists() or now == trial.queries_path):
                write_atomic(now, before.read_bytes())
    say(f"a trial: everything goes to {folder}, and {version.number_name} stays as it is")
    return trial
