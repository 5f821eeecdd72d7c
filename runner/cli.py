"""The command line: the driver without a subcommand, and the subcommands beside it.

stdout is the answer, stderr is progress. Exit codes are those of runner/errors.py and of the README's table.
"""

import argparse
import importlib
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.console import answer, command_parser
from runner.errors import BackendError, EvalError, InputError, IntegrityError
from runner.eval_set import DRIVER, Version, collection_folder, newest_version, source_of
from runner.progress import say

if TYPE_CHECKING:
    from runner.decide import Choice

EPILOG = """\
exit codes: 0 done, 1 negative verdict (gate failed, undecided), 2 usage or input error, 3 something is outstanding
from a person, 4 a frozen file changed, 5 backend, disk or budget. Subcommands, each with --help: labels, render, verify
(a version, or any folder), lock, grade, compare, tripwire, matrix, case-study, doctor, quickstart, mcp.
"""

DEFECT = 70
"""Exit code of what nobody foresaw (EX_SOFTWARE): apart from 1, which says that a verdict is negative."""

FOLDER_FORM = "For any other folder: verify FOLDER --lock FILE [--strict-git] [--json] [--ascii].\n"


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command line; every failure that is the user's to mend is one message on stderr."""
    try:
        _check_encoding(arguments)
        if arguments and not arguments[0].startswith("-"):
            return subcommand(arguments[0])(arguments[1:])
        return drive(arguments)
    except EvalError as error:
        say(f"per-source-eval: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("per-source-eval: interrupted; what was finished is kept, run the command again")
        return 130
    except MemoryError:
        say("per-source-eval: the memory is full; what was finished is kept. Free some, or give smaller input.")
        return BackendError.exit_code
    except OSError as error:
        say(f"per-source-eval: {error.filename or 'a file'} cannot be used ({error.strerror or error}).")
        return BackendError.exit_code
    except Exception:  # noqa: BLE001  # a defect must not end with the code of a verdict
        say(f"{traceback.format_exc()}per-source-eval: a defect of this tool; please report it with the lines above")
        return DEFECT


def _check_encoding(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error


def drive(arguments: Sequence[str]) -> int:
    """The evening, an exploration, a collection, a check of the production database, or a dry run."""
    parser = _driver_parser()
    options = parser.parse_args(arguments)
    _check_driver_flags(parser, options)
    if source_of(options.source).policy == "external":
        return _evaluate_external(parser, options)
    if options.trec_run:
        parser.error("--trec-run belongs to an external collection (--source=beir)")
    version = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    if options.dry_run:
        return _dry_run(version)
    if options.post_bulk:
        from runner.post_bulk.run import post_bulk

        answer(post_bulk(version, options.corpus_path))
        return 0
    from runner.pipeline import Evening

    answer(Evening(version, options.corpus_path, options.cells, _choice(options), _without_choice(arguments)).run())
    return 0


def _driver_parser() -> argparse.ArgumentParser:
    parser = _parser("", "Chooses the embedding model and chunker of one legislative source.", EPILOG)
    add = parser.add_argument
    add("--corpus-path", type=Path, metavar="PATH", help="documents to sample (first run), collection, or database")
    add("--cells", action="append", default=[], metavar="CELL", help="explore this cell (repeatable)")
    add("--trec-run", action="append", default=[], type=Path, metavar="FILE", help="another system's run (repeatable)")
    add("--post-bulk", action="store_true", help="hold a decision to the production database in --corpus-path")
    add("--rehearse", action="store_true", help="run the rehearsal plan; never a decision")
    add("--dry-run", action="store_true", help="say what exists and is missing; write nothing")
    add("--choose", metavar="CELL", help="decide for this cell, or 'recommended'")
    add("--reason", default="", help="why, with --choose")
    add("--by", default="", metavar="NAME", help="who chooses, with --choose")
    return parser


def _check_driver_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.cells and (options.choose is not None or options.dry_run):
        parser.error("--cells explores; it goes with neither --choose nor --dry-run")
    if options.dry_run and options.choose is not None:
        parser.error("--dry-run decides nothing; leave out --choose")
    if options.post_bulk and options.corpus_path is None:
        parser.error("--post-bulk needs --corpus-path SUBSTRATE.db")
    if options.post_bulk and (options.cells or options.choose is not None or options.dry_run):
        parser.error("--post-bulk checks a recorded decision; of these flags it goes with --rehearse alone")
    if (options.reason or options.by) and not options.choose:
        parser.error("--reason and --by belong to --choose CELL")


def _choice(options: argparse.Namespace) -> "Choice | None":
    """What the operator chooses; None without --choose."""
    if options.choose is None:
        return None
    from runner.decide import RECOMMENDED, Choice

    if options.choose != RECOMMENDED and not (options.reason.strip() and options.by.strip()):
        raise InputError("--choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
    return Choice(options.choose, options.reason, options.by or "unattended run (--choose recommended)")


def _evaluate_external(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """A public collection with published judgments: compared, never decided."""
    for flag in ("cells", "rehearse", "choose", "reason", "by", "post-bulk"):
        if getattr(options, flag.replace("-", "_")):
            parser.error(
                f"--{flag}: an external collection is compared and never decided; cells stand in its plan.yaml"
            )
    folder = options.eval_set_path
    if folder is None and options.corpus_path is not None:
        folder = collection_folder(source_of(options.source), options.corpus_path)
    version = newest_version(options.source, folder)
    if options.dry_run:
        return _dry_run(version)
    from runner.external import ExternalEvaluation

    answer(ExternalEvaluation(version, options.corpus_path, options.trec_run).run())
    return 0


def _dry_run(version: Version) -> int:
    from runner.dry_run import describe
    from runner.lock import verify_version

    verify_version(version)
    lines, recorded = describe(version)
    answer("\n".join(lines))
    return 0 if recorded else 1


def labels(arguments: Sequence[str]) -> int:
    """`labels import`: answers of a judge into labels.jsonl."""
    parser = _parser("labels", "Judges' answers by file.")
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
    parser = _parser("render", "Writes results.html from results.json and receipt.json.")
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
    parser = _parser("verify", "Checks a version against its locks.", FOLDER_FORM)
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


SUBCOMMANDS: dict[str, Callable[[Sequence[str]], int] | str] = {
    "labels": labels,
    "render": render,
    "verify": verify,
    "lock": "runner.tools.lock_command",
    "grade": "runner.tools.grade_command",
    "compare": "runner.tools.compare_command",
    "tripwire": "runner.tools.tripwire_command",
    "matrix": "runner.tools.matrix_command",
    "case-study": "runner.tools.case_study_command",
    "doctor": "runner.tools.doctor_command",
    "quickstart": "runner.tools.quickstart_command",
    "mcp": "runner.tools.mcp_command",
}
"""A function here, or the module whose function of the subcommand's name is imported when it is called."""


def subcommand(name: str) -> Callable[[Sequence[str]], int]:
    """The function behind a subcommand; an InputError names them all where there is none of that name."""
    found = SUBCOMMANDS.get(name)
    if found is None:
        raise InputError(f"{name!r} is no subcommand. There are: {', '.join(SUBCOMMANDS)}; without one, --source NAME.")
    if not isinstance(found, str):
        return found
    command: Callable[[Sequence[str]], int] = getattr(importlib.import_module(found), name.replace("-", "_"))
    return command


def _parser(command: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a command over versions."""
    parser = command_parser(command, description, epilog)
    parser.add_argument("--source", required=True, metavar="NAME", help="bills, us_code, demo, ...")
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/, v2/; default eval-sets/SOURCE")
    return parser


def _without_choice(arguments: Sequence[str]) -> str:
    """The arguments as a shell would take them, without what belongs to a choice."""
    kept = []
    skip = False
    for argument in arguments:
        name = argument.partition("=")[0]
        if not skip and name not in ("--choose", "--reason", "--by"):
            kept.append(argument)
        skip = name in ("--choose", "--reason", "--by") and "=" not in argument
    return shlex.join(kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
