"""`view`, `verify` and `export`: verbs over a version that exists."""

import argparse
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError, InputNeeded
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import add_trial_flag, answer, version_of, version_parser
from runner.eval_set.version import Version, load_lists, load_results

if TYPE_CHECKING:
    from runner.eval_set.shapes.results import Results

_VIEW_EPILOG = """\
--passages adds titles and passages from the archive of the sample: for reading here, never for the record.
exit codes: 0 the page is there, 2 usage or input error, 3 nothing is scored yet, 4 a locked record changed, 5 disk
"""

FOLDER_FORM = "For any other folder: verify FOLDER --lock FILE [--strict-git] [--json].\n"

_VERIFY_EPILOG = """\
Every digest that one file holds of another is compared too. Who can write every file can forge them all: --deep makes
results.json, page and decision anew from the runs and labels. What no lock shows is who gave the labels, and that
nothing was locked before.
"""


def view(arguments: Sequence[str]) -> int:
    """`view`: open the newest results page in a browser, from a terminal; its address on stdout in any case."""
    parser = version_parser("view", epilog=_VIEW_EPILOG)
    add = parser.add_argument
    add("--rehearse", action="store_true", help="the rehearsal's page")
    add_trial_flag(parser, "the trial's page")
    add("--passages", action="store_true", help="a copy with titles and passages, for this machine alone")
    add("--output", type=Path, metavar="FILE", help="where to write that copy, by default into .work")
    options = parser.parse_args(arguments)
    if options.output and not options.passages:
        parser.error("--output is where --passages writes its copy; give both")
    version = version_of(options)
    shown = _local_copy(version, options.output) if options.passages else _newest_page(version)
    answer(shown.resolve().as_uri())
    if sys.stdout.isatty():
        webbrowser.open(shown.resolve().as_uri())
    return 0


def _local_copy(version: Version, output: Path | None) -> Path:
    from runner.eval_set.lock import verify_version
    from runner.report.local_copy import write_local_copy

    verify_version(version)
    return write_local_copy(version, output)


def _newest_page(version: Version) -> Path:
    page = newest_page(version)
    if page.parent != version.record and _has_newer_labels(version, page):
        say("grades came in or were taken back since this page was made; `run` makes it anew")
    return page


def _has_newer_labels(version: Version, page: Path) -> bool:
    from runner.base.canonical import read_json
    from runner.eval_set.labels import label_prefix

    scored = read_json(page.with_name("results.json"))["labels"]
    return bool(scored["lines"] != label_prefix(version.labels_path).lines)


def newest_page(version: Version) -> Path:
    """The version's page, or the provisional one while grades are missing; InputNeeded if there is neither.

    A provisional page all of whose grades were taken back is none.
    """
    from runner.eval_set.labels import load_labels

    provisional = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional") / "results.html"
    places = [version.record / "results.html", *([provisional] if load_labels(version.labels_path) else [])]
    pages = [path for path in places if path.exists()]
    if not pages:
        other = "" if version.rehearsal else f" That of its rehearsal: {DRIVER} view {version.flags} --rehearse"
        other = other if (version.folder / "rehearsal" / "results.html").exists() else ""
        ways = f"What to do now: {DRIVER} next {version.viewed}"
        raise InputNeeded(f"{version.name} has no results page yet.{other} {ways}")
    return pages[0]


def version_asked(options: argparse.Namespace) -> Version:
    """The version that --version names, the newest without; an InputError for one that is not there."""
    newest = version_of(options)
    if options.version is None:
        return newest
    from runner.eval_set.history import versions_of

    there = {version.number: version for version in versions_of(newest)}
    if options.version not in there:
        named = ", ".join(map(str, there)) or "none yet"
        raise InputError(f"--version: {options.source} has no version {options.version}; there: {named}.")
    return there[options.version]


def verify(arguments: Sequence[str]) -> int:
    """`verify`: every file of a locked version, or of any folder with `--lock`, against its lock."""
    flags = {argument.partition("=")[0] for argument in arguments}
    if "--lock" in flags:
        from runner.commands.lock import verify_folder

        return verify_folder(arguments)
    parser = version_parser("verify", "Checks a version against its locks.", _VERIFY_EPILOG + FOLDER_FORM)
    parser.add_argument("--deep", action="store_true", help="make results, page and decision anew, and compare")
    options = parser.parse_args(arguments)
    from runner.eval_set.history import versions_of
    from runner.evening.remake import verify_record

    newest = version_of(options)
    for version in versions_of(newest) or [newest]:
        answer("\n".join(verify_record(version, deep=options.deep)))
    return 0


_EXPORT_EPILOG = """\
Tables: cells (one row a cell), queries (query, cell, measure, value) and hits. They hold ids, grades and figures of
results.json, no text of documents. exit codes: 0 done, 2 usage or input error, or a file is there already, 4 a locked
record changed, 5 disk
"""


def export(arguments: Sequence[str]) -> int:
    """`export`: 0 once every table is written."""
    parser = version_parser("export", "Writes a version's results as tables.", _EXPORT_EPILOG)
    add = parser.add_argument
    add("--version", type=int, metavar="N", help="of this version instead of the newest")
    add("--rehearse", action="store_true", help="the rehearsal's results")
    add("--format", required=True, choices=("csv", "parquet"), help="of the files")
    add("--output", required=True, type=_folder, metavar="FOLDER", help="where they go; outside the record")
    options = parser.parse_args(arguments)
    from runner.eval_set.lock import verify_version
    from runner.report.html_file import outside_records

    version = version_asked(options)
    verify_version(version)
    outside_records(options.output, version.work, version.folder.parent)
    from runner.report.export import write_tables

    rows = write_tables(_results(version), load_lists(version), options.output, options.format)
    answer("\n".join(f"{display(path)}: {count:,} rows" for path, count in rows.items()))
    return 0


def _folder(given: str) -> Path:
    if not given:
        raise argparse.ArgumentTypeError("is empty; name a folder")
    return Path(given)


def _results(version: Version) -> "Results":
    """Return what the record holds."""
    if not version.results_path.exists():
        raise InputError(f"{version.results_path} does not exist; `run` makes it. Or name another --version.")
    return load_results(version)
