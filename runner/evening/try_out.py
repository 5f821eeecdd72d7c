"""A rehearsal in a folder of its own, below .work: of what is made and judged there, nothing reaches the version."""

from dataclasses import replace

from runner.base.canonical import write_atomic
from runner.base.progress import say
from runner.eval_set.corpus import archive_path
from runner.eval_set.version import Version, Workspace, numbered, open_version

FOLDER = "try"


def tried(version: Version) -> Version:
    """The trial's version, a rehearsal, with whatever inputs the version has and the trial has not.

    It begins with plans, judge's instructions, sample and queries, and without preregistration and grades.
    """
    folder = version.work.parent / FOLDER
    workspace = Workspace(version.checkout, folder, folder / ".work", version.cache)
    trial = numbered(open_version(workspace, version.source, rehearsal=True), version.number)
    if not trial.preregistration_path.exists():
        own = replace(version, rehearsal=True)
        pairs = [
            *((own.plan_path(rehearsal=which), trial.plan_path(rehearsal=which)) for which in (False, True)),
            (version.judge_path, trial.judge_path),
            (version.queries_path, trial.queries_path),
            (archive_path(version), archive_path(trial)),
            (version.corpus_path, trial.corpus_path),
        ]
        for before, now in pairs:
            if before.exists() and not now.exists():
                write_atomic(now, before.read_bytes())
    say(f"a trial: everything goes to {folder}, and {version.number_name} stays as it is")
    return trial
