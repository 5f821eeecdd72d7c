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
arguments, writes the snapshot and prints what that changes; --tolerance and --results do nothing there.
exit codes: 0 nothing fell (or the snapshot is written), 1 the tripwire fired, 2 usage or input error (a query added,
deleted or edited, another k or limit, a query that the run lacks), 4 a locked run changed, 5 disk.
"""
NOISE = "noise"


def tripwire(arguments: Sequence[str]) -> int:
    """`tripwire check` and `tripwire update`."""
    options = _options(arguments)
    from runner.tools.tripwire.runs import cell_run_path, read_rankings, update_snapshot
    from runner.tools.tripwire.tripwire import load_golden, rankings_report

    if options.k < 1 or options.limit < options.k:
        raise InputError(f"--k {options.k} and --limit {options.limit}: 1 <= k <= limit is needed.")
    golden = load_golden(options.golden)
    run = options.run or cell_run_path(options.source, options.eval_set_path, options.cell)
    rankings = read_rankings(run, golden, options.limit)
    report = rankings_report(rankings, golden, k=options.k, limit=options.limit)
    if options.action == "check":
        return _check(options, report)
    data, lines = update_snapshot(report, options.snapshot)
    tell(options, data, lambda _: lines)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    description = "Fires when a change makes golden queries worse than their committed snapshot."
    parser = command_parser("tripwire", description, _EPILOG)
    parser.add_argument("action", choices=["check", "update"])
    parser.add_argument("golden", type=Path, metavar="GOLDEN", help="golden queries, YAML")
    ran = parser.add_mutually_exclusive_group(required=True)
    ran.add_argument("--run", type=Path, metavar="FILE", help="a cell's run (runs/CELL.tsv) or a TREC run")
    ran.add_argument("--source", metavar="NAME", help="with --cell: the run of a cell of this source's newest version")
    parser.add_argument("--cell", metavar="CELL", help="as the plan writes it")
    parser.add_argument("--eval-set-path", type=Path, metavar="FOLDER", help="holds v1/; default eval-sets/SOURCE")
    parser.add_argument("--snapshot", type=Path, required=True, metavar="FILE", help="the committed snapshot, JSON")
    parser.add_argument("--k", type=int, default=5, help="Hit@K's cutoff (default 5)")
    parser.add_argument("--limit", type=int, default=10, help="documents kept a query, over which MRR runs (10)")
    parser.add_argument(
        "--tolerance", default="0.02", metavar="T", help=f"a fall that is let pass, or {NOISE!r} (0.02)"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help=f"results.json, with --tolerance {NOISE}")
    add_output_flags(parser, "the answer as JSON")
    options = parser.parse_args(arguments)
    if (options.source is None) != (options.cell is None):
        parser.error("--source and --cell go together")
    if options.eval_set_path and not options.source:
        parser.error("--eval-set-path goes with --source")
    if (options.results is not None) != (options.tolerance == NOISE):
        parser.error(f"--tolerance {NOISE} and --results FILE go together")
    return options


def _check(options: argparse.Namespace, report: "Report") -> int:
    from runner.tools.tripwire.runs import asked_tolerance, check_lines, fallen_rows
    from runner.tools.tripwire.tripwire import compare_to_snapshot, load_snapshot

    if not options.snapshot.exists():
        raise InputError(f"{options.snapshot} does not exist. `tripwire update` with the same arguments writes it.")
    tolerance, origin = asked_tolerance(options.tolerance, options.results)
    snapshot = load_snapshot(options.snapshot)
    diff = compare_to_snapshot(report, snapshot, tolerance)
    fallen = fallen_rows(report, snapshot, diff)
    compared = {"ok": diff.ok, "regressions": list(diff.regressions), "fallen": fallen, "tolerance": tolerance}
    compared["report"] = report.model_dump()
    allowed = f"{tolerance:g}{origin}"
    tell(options, compared, lambda signs: check_lines(report, diff, fallen, options.snapshot, allowed, signs))
    return 0 if diff.ok else NegativeVerdict.exit_code
