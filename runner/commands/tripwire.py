"""`tripwire`: golden queries against a committed snapshot; `check` compares, `update` alone writes."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError, NegativeVerdict
from runner.commands.console import add_output_flags, command_parser, tell

if TYPE_CHECKING:
    from runner.tools.tripwire.tripwire import Report

_EPILOG = """\
GOLDEN is a YAML list of {name, text, expected: [ids]}; in a run, a query's id is its name. `update` takes the same
arguments, writes the snapshot and prints what that changes; --tolerance does nothing there.
exit codes: 0 nothing fell (or the snapshot is written), 1 the tripwire fired, 2 usage or input error (a query added,
deleted or edited, another k or limit, a query that the run lacks), 4 a locked run changed, 5 disk.
"""


def tripwire(arguments: Sequence[str]) -> int:
    """`tripwire check` and `tripwire update`."""
    options = _options(arguments)
    from runner.tools.tripwire.runs import read_rankings, update_snapshot
    from runner.tools.tripwire.tripwire import load_golden, rankings_report

    if options.k < 1 or options.limit < options.k:
        raise InputError(f"--k {options.k} and --limit {options.limit}: 1 <= k <= limit is needed.")
    if not 0 <= options.tolerance < 1:
        raise InputError(f"--tolerance {options.tolerance:g} compares nothing; from 0 to less than 1 is possible.")
    golden = load_golden(options.golden)
    rankings = read_rankings(options.run, golden, options.limit)
    report = rankings_report(rankings, golden, k=options.k, limit=options.limit)
    if options.action == "check":
        return _check(options, report)
    data, lines = update_snapshot(report, options.snapshot)
    tell(options, data, lambda: lines)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    description = "Fires when a change makes golden queries worse than their committed snapshot."
    parser = command_parser("tripwire", description, _EPILOG)
    parser.add_argument("action", choices=["check", "update"])
    parser.add_argument("golden", type=Path, metavar="GOLDEN", help="golden queries, YAML")
    parser.add_argument(
        "--run", type=Path, required=True, metavar="FILE", help="a cell's run (runs/CELL.tsv) or a TREC run"
    )
    parser.add_argument("--snapshot", type=Path, required=True, metavar="FILE", help="the committed snapshot, JSON")
    parser.add_argument("--k", type=int, default=5, help="Hit@K's cutoff (default 5)")
    parser.add_argument("--limit", type=int, default=10, help="documents kept a query, over which MRR runs (10)")
    parser.add_argument("--tolerance", type=float, default=0.02, metavar="T", help="a fall that is let pass (0.02)")
    add_output_flags(parser, "the answer as JSON")
    return parser.parse_args(arguments)


def _check(options: argparse.Namespace, report: "Report") -> int:
    from runner.tools.tripwire.runs import check_lines, fallen_rows
    from runner.tools.tripwire.tripwire import compare_to_snapshot, load_snapshot

    if not options.snapshot.exists():
        raise InputError(f"{options.snapshot} does not exist. `tripwire update` with the same arguments writes it.")
    snapshot = load_snapshot(options.snapshot)
    diff = compare_to_snapshot(report, snapshot, options.tolerance)
    fallen = fallen_rows(report, snapshot, diff)
    compared = {"ok": diff.ok, "regressions": list(diff.regressions), "fallen": fallen, "tolerance": options.tolerance}
    compared["report"] = report.model_dump()
    tell(options, compared, lambda: check_lines(report, diff, fallen, options.snapshot, options.tolerance))
    return 0 if diff.ok else NegativeVerdict.exit_code
