"""`view`, `render`, `verify` and `export`: verbs over a version that exists."""

import argparse
import sys
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError, InputNeeded
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import add_trial_flag, answer, version_of, version_parser
from runner.eval_set.version import Version, load_results
from runner.report.comparison.file import FORMS

if TYPE_CHECKING:
    from runner.eval_set.shapes.results import Results

_VIEW_EPILOG = "exit codes: 0 the page is there, 2 usage or input error, 3 nothing is scored yet"

FOLDER_FORM = "For any other folder: verify FOLDER --lock FILE [--strict-git] [--json] [--ascii].\n"

_VERIFY_EPILOG = """\
Every digest that one file holds of another is compared too. Who can write every file can forge them all: --deep makes
results.json, page and decision anew from the runs and labels, and says what it cannot of a version that an earlier
release made. What no lock shows is who gave the labels, and that nothing was locked before.
"""

_RENDER_EPILOG = """\
--passages adds titles and passages from the archive of the sample: for reading here, never for the record.
--against sets the version's results, with --rehearse its rehearsal's, beside others on one page; it decides nothing.
--check compares a page of this release's template; one of another release is as its lock holds it. Every lock is
verified first. exit codes: 0 done, 2 usage or input error, 4 a locked record or report changed, or --check finds
another page, 5 disk.
"""


def view(arguments: Sequence[str]) -> int:
    """`view`: open the newest results page in a browser, from a terminal; its address on stdout in any case."""
    parser = version_parser("view", optional="without it: the page over all sources", epilog=_VIEW_EPILOG)
    parser.add_argument("--rehearse", action="store_true", help="the rehearsal's page")
    add_trial_flag(parser, "the trial's page")
    options = parser.parse_args(arguments)
    if options.source:
        version = version_of(options)
        page = newest_page(version)
        if page.parent != version.record and _has_newer_labels(version, page):
            say("grades came in or were taken back since this page was made; `run` makes it anew")
    else:
        from runner.decide.roster import roster
        from runner.tools.roster import write_index

        page = write_index(roster(), "")
    answer(page.resolve().as_uri())
    if sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())
    return 0


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


def render(arguments: Sequence[str]) -> int:
    """`render`: results.html again from results.json and receipt.json, a copy with passages, or a comparison."""
    options = _render_options(arguments)
    version = version_asked(options)
    if options.against is not None:
        from runner.report.comparison.page import write_comparison

        answer(str(write_comparison(version, options.against, options.output)))
        return 0
    from runner.eval_set.lock import verify_version

    verify_version(version)
    if options.passages:
        from runner.report.rerender import write_local_copy

        answer(str(write_local_copy(version, options.receipt, options.output)))
        return 0
    from runner.report.rerender import check_page, write_page

    made = check_page if options.check else partial(write_page, output=options.output)
    answer(str(made(version, options.receipt)))
    return 0


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


def _render_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = version_parser("render", "Writes results.html from results.json and receipt.json.", _RENDER_EPILOG)
    add = parser.add_argument
    add("--version", type=int, metavar="N", help="of this version instead of the newest")
    add("--rehearse", action="store_true", help="the rehearsal's page")
    add("--receipt", type=Path, metavar="FILE", help="another receipt.json")
    add("--output", type=Path, metavar="FILE", help="where to write the page, by default into .work")
    add("--check", action="store_true", help="compare with the page that is there; write nothing")
    add("--passages", action="store_true", help="a copy with passages of the documents, for this machine alone")
    add("--against", metavar="WHAT", help=f"side by side with other results: {FORMS}")
    options = parser.parse_args(arguments)
    if sum((options.check, options.passages, options.against is not None)) > 1:
        parser.error("--check, --passages and --against go one at a time")
    if options.check and options.output:
        parser.error("--check writes nothing; leave out --output")
    if options.against is not None and options.receipt:
        parser.error("a comparison has no receipt in it; leave out --receipt")
    return options


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
    from runner.tools.verify import verify_record

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
    from runner.report.comparison.file import outside_records

    version = version_asked(options)
    verify_version(version)
    outside_records(options.output, version.work, version.folder.parent)
    from runner.report.export import write_tables

    rows = write_tables(_results(version), options.output, options.format)
    answer("\n".join(f"{display(path)}: {count:,} rows" for path, count in rows.items()))
    return 0


def _folder(given: str) -> Path:
    if not given:
        raise argparse.ArgumentTypeError("is empty; name a folder")
    return Path(given)


def _results(version: Version) -> "Results":
    """Return what the record holds."""
    if not version.results_path.exists():
        from runner.report.rerender import missing

        raise InputError(missing(version, version.results_path))
    return load_results(version)
