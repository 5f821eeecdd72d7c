"""`doctor`: whether this installation does what it should, planted defects included."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.console import answer_json, command_parser
from runner.given_file import LONGEST_LINE, printable
from runner.tools.signs import show, signs_for

if TYPE_CHECKING:
    from runner.tools.doctor import Outcome

_DESCRIPTION = """\
Examines the installation end to end: Python and packages against the pins, folders, the packaged encoder, the parts of
an evening, and defects planted on purpose, each of which must be caught. Needs no network and leaves nothing behind.
"""
_EPILOG = "exit codes: 0 every check passed or was skipped, 1 a check failed, 2 usage"


def doctor(arguments: Sequence[str]) -> int:
    """0 where no check failed, else 1."""
    parser = command_parser("doctor", _DESCRIPTION, _EPILOG)
    parser.add_argument("--quick", action="store_true", help="leave out what loads torch, some 10 seconds")
    parser.add_argument("--json", action="store_true", help="the outcomes as JSON")
    parser.add_argument("--ascii", action="store_true", help="plain signs, nothing but ASCII")
    options = parser.parse_args(arguments)
    from runner.tools.doctor import all_checks, examine, report

    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    marks = {"ok": signs.ok, "failed": signs.no, "skipped": signs.unsure}
    outcomes: list[Outcome] = []
    for outcome in examine(all_checks(), quick=options.quick):
        outcomes.append(outcome)
        if not options.json:
            show([f"{marks[outcome.state]} {outcome.name}: {printable(outcome.result, LONGEST_LINE)}"], signs)
            if outcome.state == "failed":
                show([f"    done: {outcome.did}", f"    next: {outcome.next_step}"], signs)
    if options.json:
        answer_json(report(outcomes))
    else:
        show([_summary(outcomes)], signs)
    return 1 if any(outcome.state == "failed" for outcome in outcomes) else 0


def _summary(outcomes: Sequence["Outcome"]) -> str:
    named = {state: [o.name for o in outcomes if o.state == state] for state in ("ok", "failed", "skipped")}
    if named["failed"]:
        return f"{len(named['failed'])} of {len(outcomes)} checks failed: {', '.join(named['failed'])}"
    skipped = f", skipped: {', '.join(named['skipped'])}" if named["skipped"] else ""
    return f"{len(named['ok'])} checks passed{skipped}"
