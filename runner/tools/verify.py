"""What the locks of a version, of its rehearsal and of its reports hold."""

from dataclasses import replace

from runner.base.errors import IntegrityError
from runner.base.places import DRIVER
from runner.eval_set.lock import report_folders, verify_lock, verify_version
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import Version
from runner.evening.remake import remake


def verify_record(version: Version, *, deep: bool = False) -> list[str]:
    """A line per lock with how many files are as it says; an IntegrityError for the first that does not hold.

    With `deep` also what was made anew from the runs and labels of a decided record, and of its rehearsal.
    """
    locks = verify_version(version)
    for folder, lock in zip((version.folder, version.folder / "rehearsal"), locks, strict=True):
        if lock is None and (folder / "decision.json").exists():
            raise IntegrityError(
                f"{folder} has a decision.json and no lock.json, so nothing says that they are what was decided. "
                f"Restore the lock from git, or run {DRIVER} run {version.flags} to have both checked and locked."
            )
    reports = [
        (report, verify_lock(report))
        for folder in (version.folder, version.folder / "rehearsal")
        for report in report_folders(folder)
    ]
    named = [*zip(("record", "rehearsal"), locks, strict=True)]
    named += [(str(report.relative_to(version.folder)), lock) for report, lock in reports]
    lines = [
        f"{version.name} {name}: "
        + (f"{len(lock.files)} files as locked, root {lock.root_sha256}" if lock else "not locked")
        for name, lock in named
        if lock or name != "rehearsal" or (version.folder / "rehearsal" / "results.json").exists()
    ]
    views = (version, replace(version, record=version.folder / "rehearsal", rehearsal=True))
    if not locks[0] and version.preregistration_path.exists():
        verified_preregistration(version)
        lines.append(f"{version.name}: plans, queries and judge's instructions as they were frozen")
    if deep:
        lines += [f"{view.name}: {remake(view)}" for view, lock in zip(views, locks, strict=True) if lock]
    return lines
