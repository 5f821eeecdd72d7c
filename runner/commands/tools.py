"""`mcp` and `matrix`: tools for models, our scores on public collections beside published ones."""

import sys
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import BackendError
from runner.base.given_files import display
from runner.base.places import WORKPLACE
from runner.commands.console import answer, command_parser

_MCP_EPILOG = """\
Tools: grade_retrieval, compare_runs, explain_decision, dry_run; all read-only. Files are read below --root and in the
checkout's eval-sets alone. Standard output carries the protocol, standard error everything else.
"""


def mcp(arguments: Sequence[str]) -> int:
    """`mcp`: serves one client on standard input and output until it leaves."""
    description = "Serves the Model Context Protocol on standard input and output. A client starts it."
    parser = command_parser("mcp", description, _MCP_EPILOG)
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="files are read below it; default ./eval-sets")
    options = parser.parse_args(arguments)
    try:
        from runner.tools.mcp.server import root_of, serve
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        raise BackendError(
            f"The package {error.name} is not installed for {sys.executable}. Run `make setup`, or "
            "pip install 'per-source-eval[mcp]'."
        ) from error
    serve(root_of(options.root))
    return 0


_MATRIX_EPILOG = """\
Without an action, DOCS/matrix.md is written from DOCS/matrix/published.yaml and the runs below DOCS/matrix/runs. `add`
takes each results.json of an external collection (--source=beir) and writes a run of each of its cells there, ids and
figures alone. exit codes: 0 done, 2 usage or input error, 4 the page is not what its inputs make (--check), or a
results.json was edited, 5 disk.
"""


def matrix(arguments: Sequence[str]) -> int:
    """`matrix` and `matrix add`."""
    parser = command_parser(
        "matrix", "The page of public collections: our scores, published values, tests.", _MATRIX_EPILOG
    )
    parser.add_argument("action", nargs="?", choices=["add"], help="add runs; the page is written without it")
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS", help="results.json files, with add")
    parser.add_argument("--docs", type=Path, default=WORKPLACE / "docs", metavar="DOCS", help="default: docs")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    options = parser.parse_args(arguments)
    if options.action and (options.check or not options.results):
        parser.error("add needs at least one results.json, and goes without --check")
    if options.action:
        from runner.tools.matrix.runs import add_runs

        paths = add_runs(options.results, options.docs / "matrix" / "runs")
        answer("\n".join([*(f"wrote {display(path)}" for path in paths), "now write the page: matrix"]))
        return 0
    from runner.tools.matrix.matrix import write_matrix

    path: Path = options.docs / "matrix.md"
    write_matrix(path, check=options.check)
    answer(f"{display(path)} {'is reproduced byte for byte' if options.check else 'is written'}")
    return 0
