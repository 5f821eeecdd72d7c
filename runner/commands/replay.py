"""`replay`: a recorded version embedded once more, and whether its numbers hold."""

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from runner.base.canonical import JSON
from runner.base.errors import DEFECT, BackendError, EvalError, InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.progress import say
from runner.base.terminal import Signs, signs_for
from runner.commands.console import Parser, add_output_flags, answer_json, show, version_of, version_parser
from runner.commands.flags import (
    add_backend_flags,
    backend_from,
    check_backend_flags,
    choose_backend,
    with_own_encoders,
)
from runner.decide.roster import version_in_force
from runner.eval_set.version import Version

if TYPE_CHECKING:
    from runner.tools.replay.run import CellReplay, Replay


class Failure(NamedTuple):
    """A version that could not be replayed."""

    version: str
    error: str
    exit_code: int


def report(found: Sequence["Replay"], failures: Sequence[Failure]) -> JSON:
    """Every replay and every failure as one JSON value; `holds` is None if there was nothing to replay."""
    return {
        "holds": not failures and all(row.holds for row in found) if found or failures else None,
        "versions": [{**asdict(row), "holds": row.holds, "cells": list(map(_cell_row, row.cells))} for row in found],
        "not_replayed": [row._asdict() for row in failures],
    }


def _cell_row(cell: "CellReplay") -> JSON:
    return {**asdict(cell), "difference": cell.difference.model_dump()}


def replay_lines(found: "Replay", signs: Signs) -> list[str]:
    """Each cell then and now, and how many hold."""
    held = sum(cell.holds for cell in found.cells)
    lines = [line for cell in found.cells for line in _cell_lines(cell, signs)]
    devices = sorted({cell.device for cell in found.cells if cell.device})
    where = f"{found.backend} ({', '.join(devices)})" if devices else found.backend
    return [*lines, printable(f"{found.version} on {where}: {held} of {len(found.cells)} cells hold", LONGEST_LINE)]


def _cell_lines(cell: "CellReplay", signs: Signs) -> list[str]:
    sign = signs.ok if cell.holds else signs.no
    head = f"{sign} {cell.cell}: nDCG@10 {cell.recorded:.4f} then, {cell.replayed:.4f} now"
    if cell.identical:
        return [printable(f"{head}; the same run", LONGEST_LINE)]
    interval = " to ".join(signs.signed(value, 4) for value in (cell.difference.low, cell.difference.high))
    moved = f"largest change of a query {cell.max_change:.4f}"
    if cell.worst_query:
        moved += f" ({cell.worst_query}; {cell.queries_changed} changed)"
    allowed = f"noise explains {cell.allowed:.4f} and {cell.allowed_change:.4f}"
    text = f"{head}, {signs.signed(cell.difference.mean, 4)} ({interval}); {moved}; {allowed}"
    return [printable(text, LONGEST_LINE), *([f"    {printable(cell.note, LONGEST_LINE)}"] if cell.note else [])]


def failure_lines(failure: Failure, signs: Signs) -> list[str]:
    """Why a version was not replayed."""
    head = f"{signs.no} {failure.version}: not replayed (exit code {failure.exit_code}): {failure.error}"
    return [printable(head, LONGEST_LINE)]


def summary(found: Sequence["Replay"], failures: Sequence[Failure]) -> str:
    """How many versions hold, and which were not replayed."""
    held = sum(row.holds for row in found)
    failed = f"; not replayed: {', '.join(row.version for row in failures)}" if failures else ""
    return f"{held} of {len(found)} versions hold{failed}"


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
    newest = version_of(options)
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
