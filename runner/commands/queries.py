"""The actions of `queries`: a reading pack, a check, queries of a search log, and adding."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.commands.console import Parser, answer, version_of, version_parser, whole_number
from runner.eval_set import catalog
from runner.eval_set.version import alone

if TYPE_CHECKING:
    from runner.tools.queries import Desk

_CODES = """\
docs/queries.md has the whole way. exit codes: 0 done, 2 usage or input, 3 there is no corpus or no queries yet,
4 a frozen file changed, 5 the disk
"""

_LOG = """\
The file is yours to clean: leave out who asked and when, and every query that names a person, before it comes here.
"""

MOST_DRAWN = 1_000


def sample(arguments: Sequence[str]) -> int:
    """`queries sample`: a stratified 25 documents to read, how to write queries, and the form of queries.yaml."""
    with _desk(_parser("queries sample").parse_args(arguments)) as desk:
        answer(desk.sample())
    return 0


def check(arguments: Sequence[str]) -> int:
    """`queries check`: 0, or 2 for errors in the version's queries or those of the files."""
    parser = _parser("queries check", "The report is Markdown. Several files are held against each other too.\n")
    help_ = "in the form of queries.yaml; default the version's own"
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=help_)
    options = parser.parse_args(arguments)
    with _desk(options) as desk:
        from runner.tools.queries import report_text

        report = desk.check(options.files)
        answer(report_text(report))
        return InputError.exit_code if report.errors else 0


def import_(arguments: Sequence[str]) -> int:
    """`queries import`: queries drawn by frequency from a search log into a file to look over."""
    parser = _parser("queries import", _LOG)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a CSV file with the columns query and count")
    number = whole_number(f"a number from 3 to {MOST_DRAWN}", 3, MOST_DRAWN)
    add("--size", type=number, default=30, metavar="N", help="queries to draw, a third of each band; default 30")
    options = parser.parse_args(arguments)
    with _desk(options) as desk:
        answer(desk.take_log(options.file, options.size))
    return 0


def add(arguments: Sequence[str]) -> int:
    """`queries add`: the queries of files become the version's, all of a file or none."""
    parser = _parser("queries add")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="in the form of queries.yaml")
    options = parser.parse_args(arguments)
    with _desk(options) as desk:
        for said in desk.add(options.files):
            answer(said)
    return 0


def _parser(verb: str, epilog: str = "") -> Parser:
    parser = version_parser(verb, epilog=epilog + _CODES)
    parser.add_argument("--corpus-path", type=Path, metavar="PATH", help="the documents, where their archive is gone")
    return parser


@contextmanager
def _desk(options: argparse.Namespace) -> "Iterator[Desk]":
    """The version, verified and to oneself."""
    from runner.eval_set.lock import verify_version
    from runner.tools.queries import Desk

    if catalog.source(options.source).policy == "external":
        raise InputError(f"{options.source} is a public collection, which brings its own queries.")
    version = version_of(options)
    with alone(version):
        verify_version(version)
        yield Desk(version, options.corpus_path)
