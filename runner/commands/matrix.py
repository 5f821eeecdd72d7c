"""`matrix`: what systems score on public collections, beside published values, as a page of the documents."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from runner.base.given_files import display
from runner.base.places import WORKPLACE
from runner.base.records import Verdict
from runner.commands.console import add_output_flags, command_parser, tell

_EPILOG = """\
Without an action, DOCS/matrix.md is written from DOCS/matrix/published.yaml and the runs below DOCS/matrix/runs. `add`
takes each results.json of an external collection (--source=beir) and writes a run of each of its cells there, ids and
figures alone. exit codes: 0 done, 2 usage or input error, 4 the page is not what its inputs make (--check), or a run
or a results.json was edited, 5 disk.
"""


def matrix(arguments: Sequence[str]) -> int:
    """`matrix` and `matrix add`."""
    options = _options(arguments)
    from runner.tools.matrix.runs import check_place

    check_place(options.docs / "matrix" / "runs")
    if options.action:
        from runner.tools.matrix.add import add_runs

        written = add_runs(options.results, options.docs / "matrix" / "runs")
        lines = [f"{row.state:9} {display(row.path)}{_unranked(row.gate)}" for row in written]
        data = [{"path": str(row.path), "state": row.state, "gate": row.gate} for row in written]
        tell(options, data, lambda _: [*lines, "now write the page: matrix"])
        return 0
    from runner.tools.matrix.page import as_data, summary_lines, write_matrix

    path: Path = options.docs / "matrix.md"
    found = write_matrix(path, check=options.check)
    done = "is reproduced byte for byte" if options.check else "is written"
    tell(options, as_data(found), lambda signs: [*summary_lines(found, signs), f"{display(path)} {done}"])
    return 0


def _unranked(gate: Verdict) -> str:
    return "" if gate == "pass" else f"  (null gate: {gate}; not ranked)"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    docs = WORKPLACE / "docs"
    parser = command_parser("matrix", "The page of public collections: our scores, published values, tests.", _EPILOG)
    parser.add_argument("action", nargs="?", choices=["add"], help="add runs; the page is written without it")
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS", help="results.json files, with add")
    parser.add_argument("--docs", type=Path, default=docs, metavar="DOCS", help="default: docs")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    add_output_flags(parser, "one JSON value")
    options = parser.parse_args(arguments)
    if options.action and not options.results:
        parser.error("add needs at least one results.json")
    if options.action and options.check:
        parser.error("--check compares the page; it goes without add")
    return options
