"""The files that a version begins with."""

from runner.base.canonical import write_atomic
from runner.base.progress import say
from runner.decide.roster import new_plan_text
from runner.eval_set.version import Version

JUDGE_TEMPLATE = "judge.md"


def begin_version(version: Version) -> None:
    """Plans and judge's instructions where they are missing, from catalog and template; both plans hold afterwards.

    Once the version is preregistered nothing is created: a plan that is missing then was lost.
    """
    version.folder.mkdir(parents=True, exist_ok=True)
    frozen = version.preregistration_path.exists()
    for rehearsal in (False, True):
        path = version.plan_path(rehearsal=rehearsal)
        if not path.exists() and not frozen:
            text = new_plan_text(version, rehearsal=rehearsal)
            write_atomic(path, text.encode())
            say(f"wrote {path}")
    if not version.judge_path.exists() and not frozen:
        write_atomic(version.judge_path, (version.checkout / "templates" / JUDGE_TEMPLATE).read_bytes())
        say(f"wrote {version.judge_path}")
    for rehearsal in (False, True):
        if rehearsal == version.rehearsal or version.plan_path(rehearsal=rehearsal).exists():
            version.plan(rehearsal=rehearsal)
