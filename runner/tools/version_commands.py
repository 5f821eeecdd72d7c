"""`labels`, `render` and `verify`: commands over a version that exists."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from runner.console import answer, version_parser
from runner.errors import InputError, IntegrityError
from runner.eval_set import DRIVER, newest_version
from runner.progress import say

FOLDER_FORM = "For any other folder: verify FOLDER --lock FILE [--strict-git] [--json] [--ascii].\n"


def labels(arguments: Sequence[str]) -> int:
    """`labels import`: answers of a judge into labels.jsonl."""
    parser = version_parser("labels", "Judges' answers by file.")
    parser.add_argument("action", choices=["import"])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="answers, one JSON object a line")
    parser.add_argument("--judge", default="", metavar="NAME", help="who judged, where the lines do not say")
    parser.add_argument("--model", default="", help="the judge's model id, where the lines do not say")
    parser.add_argument("--judged-on", default=datetime.now(UTC).date().isoformat(), metavar="DATE", help="YYYY-MM-DD")
    options = parser.parse_args(arguments)
    from runner.lock import LOCK_NAME, verify_version
    from runner.prep_labels import import_answers
    from runner.preregistration import verified_preregistration
    from runner.store import disk_errors, exclusive
    from runner.strict import is_date

    if not is_date(options.judged_on):
        raise InputError(f"--judged-on: {options.judged_on!r} is not a date (YYYY-MM-DD).")
    version = newest_version(options.source, options.eval_set_path)
    added = 0
    with disk_errors(version.folder), exclusive(version.work / "version.lock", f"another run of {version.name}"):
        if verify_version(version)[0] is not None or (version.folder / "decision.json").exists():
            raise InputError(f"{version.name} is decided: its labels are final. Top-ups belong in the next version.")
        if not version.preregistration_path.exists():
            raise InputError(f"{version.name} has no preregistration yet, so nothing of it was given to a judge.")
        rehearsal = version.folder / "rehearsal"
        if (rehearsal / "decision.json").exists() and not (rehearsal / LOCK_NAME).exists():
            raise InputError(
                f"The rehearsal of {version.name} is decided but not locked. Run it with --rehearse first."
            )
        verified_preregistration(version)
        for path in options.files:
            done = import_answers(version, path, judge=options.judge, model=options.model, judged_on=options.judged_on)
            added += done.added
            say(f"{path}: {done.added} labels added" + (f", {done.known} known already" if done.known else ""))
    answer(f"{version.name}: {added} labels added")
    return 0


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
    from runner.lock import report_folders, verify_lock, verify_version

    version = newest_version(options.source, options.eval_set_path)
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
    return 0
