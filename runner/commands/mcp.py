"""The command `mcp`: this tool for models, over the Model Context Protocol."""

import sys
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import BackendError
from runner.commands.console import command_parser

_EPILOG = """\
Tools: grade_retrieval, compare_runs, explain_decision, dry_run; all read-only. Files are read below --root and in the
checkout's eval-sets alone. Standard output carries the protocol, standard error everything else.
"""


def mcp(arguments: Sequence[str]) -> int:
    """`mcp`: serves one client on standard input and output until it leaves."""
    description = "Serves the Model Context Protocol on standard input and output. A client starts it."
    parser = command_parser("mcp", description, _EPILOG)
    parser.add_argument("--root", type=Path, metavar="FOLDER", help="files are read below it; default ./eval-sets")
    options = parser.parse_args(arguments)
    try:
        from runner.tools.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("anyio", "mcp", "mcp_types"):
            raise
        raise BackendError(
            f"The package {error.name} is not installed for {sys.executable}. Run `make setup`, or "
            "pip install 'per-source-eval[mcp]'."
        ) from error
    from runner.tools.mcp.tools import root_of

    serve(root_of(options.root))
    return 0
