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
from pathlib import Path
from typing import TYPE_CHECKING

from runner import catalog
from runner.backend_flags import add_backend_flags, backend_from, check_backend_flags, remote_options
from runner.console import answer, version_parser
from runner.errors import DEFECT, BackendError, EvalError, InputError
from runner.eval_set import Version, collection_folder, newest_version
from runner.progress import say

if TYPE_CHECKING:
    from runner.decide import Choice

EPILOG = """\
exit codes: 0 done, 1 negative verdict (gate failed, undecided), 2 usage or input error, 3 something is outstanding
from a person, 4 a frozen file changed, 5 backend, disk or budget. Subcommands, each with --help: labels, render, verify
(a version, or any folder), status, fetch, lock, grade, compare, tripwire, matrix, case-study, replay, smoke,
doctor, quickstart, mcp.
"""


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
    if catalog.source(options.source).policy == "external":
        return _evaluate_external(parser, options)
    if options.trec_run:
        parser.error("--trec-run belongs to an external collection (--source=beir)")
    version = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    if options.dry_run:
        return _dry_run(version, options)
    if options.bulk_gate is not None:
        return _bulk_gate(version, options.bulk_gate)
    if options.adopt_baseline:
        return _adopt_baseline(version, options)
    if options.post_bulk:
        from runner.post_bulk.run import post_bulk

        answer(post_bulk(version, options.corpus_path))
        return 0
    from runner.exploration import Exploration
    from runner.pipeline import Evening

    again, choice = _without_choice(arguments), _choice(options)
    with backend_from(options, version.work) as backend:
        if options.cells:
            evening: Evening = Exploration(version, options.corpus_path, choice, again, backend, cells=options.cells)
        else:
            evening = Evening(version, options.corpus_path, choice, again, backend, options.live)
        answer(evening.run())
    return 0


def _driver_parser() -> argparse.ArgumentParser:
    parser = version_parser("", "Chooses the embedding model and chunker of one legislative source.", EPILOG)
    add = parser.add_argument
    add("--corpus-path", type=Path, metavar="PATH", help="documents to sample (first run), collection, or database")
    add("--live", action="store_true", help="documents from the source's live feed, where the version has none yet")
    add("--cells", action="append", default=[], metavar="CELL", help="explore this cell (repeatable)")
    add("--trec-run", action="append", default=[], type=Path, metavar="FILE", help="another system's run (repeatable)")
    add("--post-bulk", action="store_true", help="hold a decision to the production database in --corpus-path")
    add("--rehearse", action="store_true", help="run the rehearsal plan; never a decision")
    add("--dry-run", action="store_true", help="say what exists and is missing; write nothing")
    add("--adopt-baseline", action="store_true", help="record the baseline by policy (weak structure), unevaluated")
    add("--bulk-gate", type=_count, metavar="N", help="may a source of N documents be embedded? for the ingester")
    add_backend_flags(parser)
    add("--choose", metavar="CELL", help="decide for this cell, or 'recommended'")
    add("--reason", default="", help="why, with --choose or --adopt-baseline")
    add("--by", default="", metavar="NAME", help="who chooses, with --choose or --adopt-baseline")
    return parser


def _check_driver_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.cells and (options.choose is not None or options.dry_run):
        parser.error("--cells explores; it goes with neither --choose nor --dry-run")
    if options.dry_run and options.choose is not None:
        parser.error("--dry-run decides nothing; leave out --choose")
    if options.live and (options.corpus_path or options.cells or options.dry_run or options.post_bulk):
        parser.error("--live fetches documents for a new version; it goes without --corpus-path, --cells, --dry-run")
    if options.post_bulk and options.corpus_path is None:
        parser.error("--post-bulk needs --corpus-path SUBSTRATE.db")
    if options.post_bulk and (options.cells or options.choose is not None or options.dry_run):
        parser.error("--post-bulk checks a recorded decision; of these flags it goes with --rehearse alone")
    if (options.reason or options.by) and not (options.choose or options.adopt_baseline):
        parser.error("--reason and --by belong to --choose CELL and --adopt-baseline")
    if options.adopt_baseline and not options.by.strip():
        parser.error("--adopt-baseline needs --by NAME: decision.json names who decided")
    check_backend_flags(parser, options)
    if (options.modal or options.encoder_url) and (options.post_bulk or options.adopt_baseline or options.bulk_gate):
        parser.error("--modal and --encoder-url say where an evening embeds; this one embeds nothing for a record")
    alone = {"--adopt-baseline": options.adopt_baseline, "--bulk-gate": options.bulk_gate is not None}
    others = (
        options.cells,
        options.choose,
        options.dry_run,
        options.post_bulk,
        options.rehearse,
        options.corpus_path,
        options.live,
    )
    for flag, given in alone.items():
        if given and (any(others) or all(alone.values())):
            parser.error(
                f"{flag} goes with --source and --eval-set-path alone (--adopt-baseline with --by, --reason too)"
            )


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of documents")
    return int(text)


def _choice(options: argparse.Namespace) -> "Choice | None":
    """What the operator chooses; None without --choose."""
    if options.choose is None:
        return None
    from runner.decide import RECOMMENDED, Choice

    if options.choose != RECOMMENDED and not (options.reason.strip() and options.by.strip()):
        raise InputError("--choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
    _check_signature(options)
    return Choice(options.choose, options.reason, options.by or "unattended run (--choose recommended)")


def _check_signature(options: argparse.Namespace) -> None:
    """Nothing for a name and a reason on one line of printable characters, as a page and a terminal show them."""
    for flag, text in (("--by", options.by), ("--reason", options.reason)):
        if not text.isprintable():
            raise InputError(f"{flag}: {text!r} has a line break or a control character; write it on one line.")


def _evaluate_external(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """A public collection with published judgments: compared, never decided."""
    for flag in ("cells", "live", "rehearse", "choose", "reason", "by", "post-bulk", "adopt-baseline", "bulk-gate"):
        if getattr(options, flag.replace("-", "_")):
            parser.error(
                f"--{flag}: an external collection is compared and never decided; cells stand in its plan.yaml"
            )
    folder = options.eval_set_path
    if folder is None and options.corpus_path is not None:
        folder = collection_folder(catalog.source(options.source), options.corpus_path)
    version = newest_version(options.source, folder)
    if options.dry_run:
        return _dry_run(version, options)
    from runner.external import ExternalEvaluation

    with backend_from(options, version.work) as backend:
        answer(ExternalEvaluation(version, options.corpus_path, options.trec_run, backend).run())
    return 0


def _bulk_gate(version: Version, n_documents: int) -> int:
    from runner.bulk_gate import bulk_gate
    from runner.lock import verify_version
    from runner.roster import standing

    verify_version(version)
    answer(bulk_gate(standing(version), n_documents))
    return 0


def _adopt_baseline(version: Version, options: argparse.Namespace) -> int:
    from runner.baseline_by_policy import adopt_baseline
    from runner.summary import decision_sentence

    _check_signature(options)
    today = datetime.now(UTC).date().isoformat()
    decision, is_new = adopt_baseline(version, options.by, options.reason, today=today)
    say(f"locked. To commit, as it is: {version.folder}" if is_new else "recorded before; nothing is changed")
    answer(decision_sentence(decision))
    return 0


def _dry_run(version: Version, options: argparse.Namespace) -> int:
    from runner.dry_run import describe
    from runner.lock import verify_version
    from runner.stored_chunks import stored_chunk_tokens

    verify_version(version)
    server = ""
    if options.encoder_url:
        from runner.over_http.dialects import address

        server = address(options.encoder_url, options.encoder_api or "openai", "ENCODER").endpoint
    lines, recorded = describe(version, options.corpus_path, remote_options(options), stored_chunk_tokens, server)
    answer("\n".join(lines))
    return 0 if recorded else 1


SUBCOMMANDS: dict[str, str] = {
    "labels": "runner.tools.version_commands",
    "render": "runner.tools.version_commands",
    "verify": "runner.tools.version_commands",
    "lock": "runner.tools.lock_command",
    "grade": "runner.tools.grade_command",
    "compare": "runner.tools.compare_command",
    "tripwire": "runner.tools.tripwire_command",
    "matrix": "runner.tools.matrix_command",
    "case-study": "runner.tools.case_study_command",
    "status": "runner.tools.status_command",
    "fetch": "runner.tools.fetch_command",
    "replay": "runner.tools.replay_command",
    "smoke": "runner.tools.smoke_command",
    "doctor": "runner.tools.doctor_command",
    "quickstart": "runner.tools.quickstart_command",
    "mcp": "runner.tools.mcp_command",
}
"""The module whose function of the subcommand's name is imported when it is called."""


def subcommand(name: str) -> Callable[[Sequence[str]], int]:
    """The function behind a subcommand; an InputError names them all where there is none of that name."""
    found = SUBCOMMANDS.get(name)
    if found is None:
        raise InputError(f"{name!r} is no subcommand. There are: {', '.join(SUBCOMMANDS)}; without one, --source NAME.")
    command: Callable[[Sequence[str]], int] = getattr(importlib.import_module(found), name.replace("-", "_"))
    return command


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
