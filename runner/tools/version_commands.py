"""`render` and `verify`: commands over a version that exists."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from runner.console import answer, version_parser
from runner.errors import IntegrityError
from runner.eval_set import DRIVER, Version, newest_version

FOLDER_FORM = "For any other folder: verify FOLDER --lock FILE [--strict-git] [--json] [--ascii].\n"


def render(arguments: Sequence[str]) -> int:
    """`render`: results.html again from results.json and receipt.json."""
    parser = version_parser("render", "Writes results.html from results.json and receipt.json.")
    parser.add_argument("--rehearse", action="store_true", help="the rehearsal's page")
    parser.add_argument("--receipt", type=Path, help="another receipt.json")
    parser.add_argument("--output", type=Path, help="where to write the page, by default into .work")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    options = parser.parse_args(arguments)
    from runner.lock import verify_version
    from runner.rerender import check_page, write_page

    version = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    verify_version(version)
    made = check_page if options.check else partial(write_page, output=options.output)
    answer(str(made(version, options.receipt)))
    return 0


def verify(arguments: Sequence[str]) -> int:
    """`verify`: every file of a locked version, or of any folder with `--lock`, against its lock."""
    flags = {argument.partition("=")[0] for argument in arguments}
    if "--lock" in flags or (arguments and not arguments[0].startswith("-")):
        from runner.tools.lock_command import verify_folder

        return verify_folder(arguments)
    parser = version_parser("verify", "Checks a version against its locks.", FOLDER_FORM)
    options = parser.parse_args(arguments)
    from runner.version_history import versions_of

    newest = newest_version(options.source, options.eval_set_path)
    for version in versions_of(newest) or [newest]:
        _verify(version)
    return 0


def _verify(version: Version) -> None:
    """What the locks of one version and of its reports hold; an IntegrityError where they do not."""
    from runner.lock import report_folders, verify_lock, verify_version

    locks = verify_version(version)
    for folder, lock in zip((version.folder, version.folder / "rehearsal"), locks, strict=True):
        if lock is None and (folder / "decision.json").exists():
            raise IntegrityError(
                f"{folder} has a decision.json and no lock.json, so nothing says that they are what was decided. "
                f"Restore the lock from git, or run {DRIVER} {version.flags} to have both checked and locked."
            )
    reports = [
        (report, verify_lock(report))
        for folder in (version.folder, version.folder / "rehearsal")
        for report in report_folders(folder)
    ]
    for name, lock in zip(("record", "rehearsal"), locks, strict=True):
        answer(f"{version.name} {name}: " + (f"{len(lock.files)} files as locked" if lock else "not locked"))
    for report, lock in reports:
        assert lock is not None  # verify_lock refuses a report without one
        answer(f"{version.name} {report.relative_to(version.folder)}: {len(lock.files)} files as locked")
