"""`export`: the tables of a version's results as CSV or Parquet files."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.base.given_files import display
from runner.commands.console import answer, version_parser
from runner.commands.version import version_asked
from runner.eval_set.version import Version, load_receipt, load_results

if TYPE_CHECKING:
    from runner.eval_set.shapes.decision import Receipt
    from runner.eval_set.shapes.results import Results

_EPILOG = """\
Tables: cells (one row a cell), queries (query, cell, measure, value), judgments, hits; docs/results-page.md lists their
columns. They hold ids, grades and figures, no text of documents. In CSV a text that a spreadsheet would take for a
formula gets an apostrophe before it. exit codes: 0 done, 2 usage or input error, 4 a locked record changed, 5 disk
"""


def export(arguments: Sequence[str]) -> int:
    """`export`: 0 once every table is written."""
    parser = version_parser("export", "Writes a version's results as tables.", _EPILOG)
    add = parser.add_argument
    add("--version", type=int, metavar="N", help="of this version instead of the newest")
    add("--rehearse", action="store_true", help="the rehearsal's results")
    add("--format", required=True, choices=("csv", "parquet"), help="of the files")
    add("--output", required=True, type=_folder, metavar="FOLDER", help="where they go; outside the record")
    options = parser.parse_args(arguments)
    from runner.eval_set.lock import verify_version
    from runner.report.comparison.file import outside_records

    version = version_asked(options)
    verify_version(version)
    outside_records(options.output, version.work, version.folder.parent)
    results, receipt = _read(version)
    from runner.base.canonical import file_sha256
    from runner.report.export import readings, tables, write_tables

    origin = {
        "source": results.source,
        "version": results.version,
        "kind": results.kind,
        "results_sha256": file_sha256(version.results_path),
    }
    counts = write_tables(tables(results, receipt, readings(version, results)), options.output, options.format, origin)
    answer("\n".join(f"{display(options.output / name)}: {count:,} rows" for name, count in counts.items()))
    return 0


def _folder(given: str) -> Path:
    if not given:
        raise argparse.ArgumentTypeError("is empty; name a folder")
    return Path(given)


def _read(version: Version) -> "tuple[Results, Receipt | None]":
    """What the record holds; the receipt may be missing."""
    if not version.results_path.exists():
        from runner.report.rerender import missing

        raise InputError(missing(version, version.results_path))
    receipt = version.record / "receipt.json"
    return load_results(version), load_receipt(receipt) if receipt.exists() else None
