"""`doctor`: whether this installation works, planted defects included; `--parity`: whether a backend does."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.base.canonical import today
from runner.base.checks import report, summary
from runner.base.places import WORKPLACE
from runner.base.terminal import signs_for
from runner.commands.console import add_output_flags, answer_json, command_parser, show, show_checks
from runner.commands.flags import OF_MODAL, add_backend_flags, backend_from, check_backend_flags, choose_backend
from runner.tools.doctor.parity import compared, encoders_here, need_weights, parity_lines

if TYPE_CHECKING:
    from runner.embed.parity.compare import Parity

_DESCRIPTION = """\
Examines the installation end to end: Python and packages against the pins, folders, the packaged encoder, the parts of
an evening, and defects planted on purpose, each of which must be caught. Needs no network and leaves nothing behind.

With --parity instead: 32 fixed texts embedded on a backend and on this machine, and the vectors compared. Receipts name
the comparison that a cell's backend passed.
"""
_BACKEND_OF = dict.fromkeys(("modal", *OF_MODAL), "modal") | dict.fromkeys(("encoder_url", "encoder_api"), "http")
"""The flags that mean nothing without one backend, as argparse names them."""

_EPILOG = "exit codes: 0 every check passed or was skipped, 1 a check failed, 2 usage, 5 no backend, or the budget"


def doctor(arguments: Sequence[str]) -> int:
    """0 if no check failed, else 1."""
    parser = command_parser("doctor", _DESCRIPTION, _EPILOG)
    parser.add_argument("--quick", action="store_true", help="leave out what loads the model, some 2 seconds")
    add_output_flags(parser, "the outcomes as JSON")
    parser.add_argument(
        "--parity", choices=("modal", "http"), help="compare this backend's vectors with this machine's"
    )
    parser.add_argument("--encoder", action="append", metavar="NAME", help="of these (repeatable); default those here")
    add_backend_flags(parser)
    options = parser.parse_args(arguments)
    _check_flags(parser, options)
    if options.parity:
        choose_backend(parser, options, "--parity", options.parity)
        check_backend_flags(parser, options)
        return _check_parity(options)
    return _examine(options)


def _check_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check that every flag given means something here; a usage error names what it belongs to."""
    for name, backend in _BACKEND_OF.items():
        given = getattr(options, name)
        if given is not None and given is not False and options.parity != backend:
            parser.error(f"--{name.replace('_', '-')} belongs to --parity {backend}")
    if options.encoder and not options.parity:
        parser.error("--encoder belongs to --parity modal and --parity http")
    if options.quick and options.parity:
        parser.error("--quick shortens the examination of the installation; it does not go with --parity")


def _examine(options: argparse.Namespace) -> int:
    from runner.tools.doctor.doctor import all_checks

    outcomes = show_checks(all_checks(), options, quick=options.quick)
    if options.json:
        answer_json(report(outcomes))
    else:
        show([summary(outcomes)], signs_for(sys.stdout, ascii_only=options.ascii))
    return 1 if any(outcome.state == "failed" for outcome in outcomes) else 0


def _check_parity(options: argparse.Namespace) -> int:
    """0 if every encoder passed, else 1; a backend that does not answer at all is a BackendError."""
    day = today()
    names = list(dict.fromkeys(options.encoder or encoders_here(options.parity)))
    need_weights(names)  # before anything is started that costs money
    found: list[Parity] = []
    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    # What it spends is counted for the day, and in no version's ledger.
    with backend_from(options, WORKPLACE / ".work" / "parity" / day) as backend:
        for result in compared(backend, names, day):
            found.append(result)
            if not options.json:
                show(parity_lines(result, signs), signs)
    if options.json:
        rows = [{**row.model_dump(), "passed": row.passed, "sha256": row.sha256} for row in found]
        answer_json({"ok": all(row.passed for row in found), "parity": rows})
    return 0 if all(row.passed for row in found) else 1
