"""`matrix`: what systems score on public collections, beside published values, as a page of the documents."""

import argparse
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputError, IntegrityError
from runner.tools.console import answer_json, command_parser

_EPILOG = """\
Without an action, DOCS/matrix.md is written from DOCS/matrix/published.yaml and the runs below DOCS/matrix/runs. `add`
takes each results.json of an external collection (--source=beir) and writes a run of each of its cells there, ids and
figures alone. exit codes: 0 done, 2 usage or input error, 4 the page is not what its inputs make (--check), or a run
or a results.json was edited, 5 disk.
"""


def matrix(arguments: Sequence[str]) -> int:
    """`matrix` and `matrix add`."""
    options = _options(arguments)
    _refuse_place(options.docs / "matrix" / "runs")
    return _add(options) if options.action else _page(options)


def _page(options: argparse.Namespace) -> int:
    from runner.base.canonical import refuse_special, write_atomic
    from runner.base.given_files import display
    from runner.base.store import disk_errors
    from runner.tools.console import show, signs_for
    from runner.tools.matrix.matrix import make_matrix
    from runner.tools.matrix.page import as_data, matrix_page, summary_lines

    path = options.docs / "matrix.md"
    refuse_special(path)
    found = make_matrix(options.docs / "matrix")
    content = matrix_page(found)
    if options.check:
        _check(path, content)
    else:
        with disk_errors(path):
            write_atomic(path, content)
    if options.json:
        answer_json(as_data(found))
    else:
        signs = signs_for(sys.stdout, ascii_only=options.ascii)
        done = "is reproduced byte for byte" if options.check else "is written"
        show([*summary_lines(found, signs), f"{display(path)} {done}"], signs)
    return 0


def _refuse_place(runs: Path) -> None:
    """Nothing for a folder or what may become one; an InputError for a file, a link in a circle, too long a name."""
    from runner.base.given_files import display

    try:
        problem = "" if stat.S_ISDIR(runs.stat().st_mode) else "Not a directory"
    except FileNotFoundError:
        return
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise InputError(f"{display(runs)} cannot be used ({problem}). Give with --docs the folder that holds matrix/.")


def _check(path: Path, content: bytes) -> None:
    from runner.base.given_files import display

    if not path.exists():
        raise InputError(f"{display(path)} does not exist. Write it: matrix.")
    if path.read_bytes() != content:
        raise IntegrityError(f"{display(path)} is not what its runs and published values make. Write it again: matrix.")


def _add(options: argparse.Namespace) -> int:
    from runner.base.given_files import display
    from runner.tools.console import show, signs_for
    from runner.tools.matrix.add import add_runs

    written = add_runs(options.results, options.docs / "matrix" / "runs")
    if options.json:
        answer_json([{"path": str(row.path), "state": row.state} for row in written])
    else:
        show(
            [*(f"{row.state:9} {display(row.path)}" for row in written), "now write the page: matrix"],
            signs_for(sys.stdout, ascii_only=options.ascii),
        )
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    docs = Path(__file__).resolve().parents[2] / "docs"
    parser = command_parser("matrix", "The page of public collections: our scores, published values, tests.", _EPILOG)
    parser.add_argument("action", nargs="?", choices=["add"], help="add runs; the page is written without it")
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS", help="results.json files, with add")
    parser.add_argument("--docs", type=Path, default=docs, metavar="DOCS", help="default: the checkout's docs")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    parser.add_argument("--json", action="store_true", help="one JSON value")
    parser.add_argument("--ascii", action="store_true", help="plain signs, nothing but ASCII")
    options = parser.parse_args(arguments)
    if options.action and not options.results:
        parser.error("add needs at least one results.json")
    if options.action and options.check:
        parser.error("--check compares the page; it goes without add")
    return options
