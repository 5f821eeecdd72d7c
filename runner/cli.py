"""The command line: the driver without a subcommand, and the subcommands beside it.

stdout is the answer, stderr is progress. Exit codes are those of runner/errors.py and of the README's table.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from runner.errors import EvalError, InputError
from runner.eval_set import Version, Workspace, open_version, source_of

CHECKOUT = Path(__file__).resolve().parents[1]
CACHE_VARIABLE = "PER_SOURCE_EVAL_CACHE"
EPILOG = """\
exit codes: 0 done, 1 negative verdict (gate failed, undecided), 2 usage or input error, 3 something is outstanding
from a person, 4 a frozen file changed, 5 backend, disk or budget. Subcommands: labels, render, verify; each has --help.
"""


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command line; every failure that is the user's to mend is one message on stderr."""
    try:
        _check_encoding(arguments)
        if arguments and arguments[0] in SUBCOMMANDS:
            return SUBCOMMANDS[arguments[0]](arguments[1:])
        return drive(arguments)
    except EvalError as error:
        print(f"per-source-eval: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("per-source-eval: interrupted; what was finished is kept, run the command again", file=sys.stderr)
        return 130


def _check_encoding(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error


def drive(arguments: Sequence[str]) -> int:
    """The evening, an exploration or a dry run."""
    parser = _parser("per-source-eval.py", "Chooses the embedding model and chunker of one legislative source.", EPILOG)
    parser.add_argument("--corpus-path", type=Path, metavar="FOLDER", help="documents to sample, first run only")
    parser.add_argument("--cells", action="append", default=[], metavar="CELL", help="explore this cell (repeatable)")
    parser.add_argument("--rehearse", action="store_true", help="run the rehearsal plan; never a decision")
    parser.add_argument("--dry-run", action="store_true", help="say what exists and is missing; write nothing")
    parser.add_argument("--choose", metavar="CELL", help="decide for this cell, or 'recommended'")
    parser.add_argument("--reason", default="", help="why, with --choose")
    parser.add_argument("--by", default="", metavar="NAME", help="who chooses, with --choose")
    options = parser.parse_args(arguments)
    if options.cells and (options.choose is not None or options.dry_run):
        parser.error("--cells explores; it goes with neither --choose nor --dry-run")
    if options.dry_run and options.choose is not None:
        parser.error("--dry-run decides nothing; leave out --choose")
    if (options.reason or options.by) and not options.choose:
        parser.error("--reason and --by belong to --choose CELL")
    version = _version(options, rehearsal=options.rehearse)
    if options.dry_run:
        return _dry_run(version)
    from runner.decide import RECOMMENDED, Choice
    from runner.pipeline import Evening

    choice = None
    if options.choose is not None:
        unattended = options.choose == RECOMMENDED
        if not unattended and not (options.reason.strip() and options.by.strip()):
            raise InputError("--choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
        choice = Choice(options.choose, options.reason, options.by or "unattended run (--choose recommended)")
    print(Evening(version, options.corpus_path, options.cells, choice, _without_choice(arguments)).run())
    return 0


def _dry_run(version: Version) -> int:
    from runner.dry_run import describe
    from runner.lock import verify_version

    verify_version(version)
    lines, recorded = describe(version)
    print("\n".join(lines))
    return 0 if recorded else 1


def labels(arguments: Sequence[str]) -> int:
    """`labels import`: answers of a judge into labels.jsonl."""
    parser = _parser("per-source-eval.py labels", "Judges' answers by file.")
    parser.add_argument("action", choices=["import"])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="answers, one JSON object a line")
    parser.add_argument("--judge", default="", metavar="NAME", help="who judged, where the lines do not say")
    parser.add_argument("--model", default="", help="the judge's model id, where the lines do not say")
    parser.add_argument("--judged-on", default=datetime.now(UTC).date().isoformat(), metavar="DATE", help="YYYY-MM-DD")
    options = parser.parse_args(arguments)
    from runner.lock import LOCK_NAME, verify_version
    from runner.prep_labels import import_answers
    from runner.preregistration import verified_preregistration
    from runner.progress import say
    from runner.store import disk_errors, exclusive
    from runner.strict import is_date

    if not is_date(options.judged_on):
        raise InputError(f"--judged-on: {options.judged_on!r} is not a date (YYYY-MM-DD).")
    version = _version(options)
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
    print(f"{version.name}: {added} labels added")
    return 0


def render(arguments: Sequence[str]) -> int:
    """`render`: results.html again from results.json and receipt.json."""
    parser = _parser("per-source-eval.py render", "Writes results.html from results.json and receipt.json.")
    parser.add_argument("--rehearse", action="store_true", help="the rehearsal's page")
    parser.add_argument("--receipt", type=Path, help="another receipt.json")
    parser.add_argument("--output", type=Path, help="where to write the page, by default into .work")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    options = parser.parse_args(arguments)
    from runner.lock import verify_version
    from runner.rerender import check_page, write_page

    version = _version(options, rehearsal=options.rehearse)
    verify_version(version)
    answer = check_page if options.check else partial(write_page, output=options.output)
    print(answer(version, options.receipt))
    return 0


def verify(arguments: Sequence[str]) -> int:
    """`verify`: every file of a locked version against its lock."""
    options = _parser("per-source-eval.py verify", "Checks a version against its locks.").parse_args(arguments)
    from runner.lock import verify_version

    version = _version(options)
    for name, lock in zip(("record", "rehearsal"), verify_version(version), strict=True):
        print(f"{version.name} {name}: " + (f"{len(lock.files)} files as locked" if lock else "not locked"))
    return 0


SUBCOMMANDS = {"labels": labels, "render": render, "verify": verify}


def _parser(program: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--source", required=True, metavar="NAME", help="bills, us_code, demo, ...")
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/, v2/; default eval-sets/SOURCE")
    return parser


def _version(options: argparse.Namespace, *, rehearsal: bool = False) -> Version:
    source = source_of(options.source)
    own = CHECKOUT / "eval-sets" / source.name
    given: Path | None = options.eval_set_path.resolve() if options.eval_set_path else None
    if given == own.resolve():
        given = None  # the default spelled out: the same work folder, the same lock
    if given and (given / "plan.yaml").exists():
        raise InputError(f"--eval-set-path: {given} is a version; give the folder that holds it.")
    workspace = Workspace(
        checkout=CHECKOUT,
        eval_set=given or own,
        # Beside an eval set of its own, work must not mix with that of the checkout's set of the same source.
        work=given / ".work" if given else CHECKOUT / ".work",
        cache=Path(os.environ.get(CACHE_VARIABLE) or CHECKOUT / ".cache"),
    )
    return open_version(workspace, source, rehearsal=rehearsal)


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
