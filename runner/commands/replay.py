"""`replay`: a recorded version embedded once more, and whether its numbers hold."""

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from runner.base.errors import DEFECT, BackendError, EvalError, InputError
from runner.base.progress import say
from runner.commands.console import Parser, add_output_flags, answer_json, show, version_parser
from runner.commands.flags.backend import (
    add_backend_flags,
    backend_from,
    check_backend_flags,
    choose_backend,
    with_own_encoders,
)
from runner.decide.roster import version_in_force
from runner.eval_set.version import Version, newest_version
from runner.tools.replay.text import Failure, failure_lines, replay_lines, report, summary
from runner.tools.symbols import signs_for

if TYPE_CHECKING:
    from runner.tools.replay.run import Replay

_DESCRIPTION = """\
Embeds a decided version (or, with --rehearse, the rehearsal's results) once more from its archived corpus and scores it
with its recorded labels: cell by cell nDCG@10 then and now, the difference with its paired bootstrap interval, and
whether that is more than noise. Vectors made before are not used, and the version is only read.
"""
_EPILOG = (
    "exit codes: 0 every cell holds, 1 one does not, 2 usage, no results or no sound archive, 4 the record was "
    "changed, 5 backend or budget (run again: what was finished is kept). With --all, every version is tried and the "
    "largest code counts."
)
_NOTHING = (
    "There is nothing to replay: no version of this checkout is decided over results and locked, or, with --rehearse, "
    "has the results of a rehearsal."
)


def replay(arguments: Sequence[str]) -> int:
    """0 if every cell of every version holds, else the largest code; InputError if there is nothing to replay."""
    parser, options = _options(arguments)
    if options.all == bool(options.source):
        parser.error("give either SOURCE or --all")
    if options.all and options.eval_set_path:
        parser.error("--all replays the checkout's own versions; --eval-set-path belongs to SOURCE")
    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    found: list[Replay] = []
    failures: list[Failure] = []
    for version in _versions(options):
        done = _attempt(version, options) if options.all else _replayed(version, options)
        if isinstance(done, Failure):
            failures.append(done)
            say(f"{version.name}: {done.error}")
        else:
            found.append(done)
        if not options.json:
            show(failure_lines(done, signs) if isinstance(done, Failure) else replay_lines(done, signs), signs)
    if options.json:
        answer_json(report(found, failures))
    if not found and not failures:
        raise InputError(_NOTHING)
    if options.all and not options.json:
        show([summary(found, failures)], signs)
    return max([0 if all(row.holds for row in found) else 1, *(row.exit_code for row in failures)])


def _options(arguments: Sequence[str]) -> tuple[Parser, argparse.Namespace]:
    parser = version_parser("replay", _DESCRIPTION, _EPILOG, optional="or --all")
    add = parser.add_argument
    add("--all", action="store_true", help="every version of the checkout that has results, in place of SOURCE")
    add("--rehearse", action="store_true", help="the rehearsal's results")
    add(
        "--backend", choices=("local", "modal", "http"), help="where to embed; default local, or as the flags below say"
    )
    add_output_flags(parser, "the report as JSON")
    add_backend_flags(parser)
    options = parser.parse_args(arguments)
    if options.backend:
        choose_backend(parser, options, "--backend", options.backend)
    check_backend_flags(parser, options)
    return parser, options


def _versions(options: argparse.Namespace) -> Iterator[Version]:
    from runner.tools.replay.record import versions_with_results

    if options.all:
        return versions_with_results(rehearsal=options.rehearse)
    newest = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    in_force = None if options.rehearse else version_in_force(newest)
    return iter([in_force or newest])


def _attempt(version: Version, options: argparse.Namespace) -> "Replay | Failure":
    """The version's replay, or what kept it from being made, whatever that is: the next version has its turn."""
    try:
        return _replayed(version, options)
    except EvalError as error:
        return Failure(version.name, str(error), error.exit_code)
    except (OSError, MemoryError) as error:
        return Failure(version.name, f"{type(error).__name__}: {error}", BackendError.exit_code)
    except Exception as error:  # noqa: BLE001  # a defect that one version brings out is no reason to skip the others
        say(traceback.format_exc().rstrip())
        what = f"a defect of this tool, please report it: {type(error).__name__}: {error}"
        return Failure(version.name, what, DEFECT)


def _replayed(version: Version, options: argparse.Namespace) -> "Replay":
    """What replays spend is counted apart: a version's own ledger says what its record cost."""
    from runner.tools.replay import run as stage

    work = version.work / "replay"
    with with_own_encoders(backend_from(options, work), version, options, work) as backend:
        return stage.replay(version, backend)
