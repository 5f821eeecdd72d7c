"""The actions of `queries`: a reading pack, drafts by a language model or by file, a check, and adding."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.commands.console import Parser, answer, answer_json, version_of, version_parser, whole_number
from runner.commands.flags import add_judge_flags, check_judge_flags, judge_options
from runner.eval_set import catalog
from runner.eval_set.version import alone

if TYPE_CHECKING:
    from runner.tools.queries import Desk

_CODES = """\
docs/queries.md has the whole way. exit codes: 0 done, 2 usage or input, 3 there is no corpus or no queries yet,
4 a frozen file changed, 5 the language model, disk or budget
"""

_LOG = """\
Every field but the queries is dropped, and every query that an e-mail address, a number like a telephone's or a Social
Security number, an address, or a name that the documents do not print stands in. What is left is for a person to read.
"""

MOST_DRAWN = 1_000


def sample(arguments: Sequence[str]) -> int:
    """`queries sample`: a stratified 25 documents to read, and the form of queries.yaml."""
    with _desk(_parser("queries sample").parse_args(arguments)) as desk:
        answer(desk.sample())
    return 0


def draft(arguments: Sequence[str]) -> int:
    """`queries draft`: files for whoever drafts, or their answers, or drafts of a language model."""
    epilog = "Without a flag, files to be answered. Drafts wait in drafted.yaml to be looked at.\n"
    parser = _parser("queries draft", epilog)
    add = parser.add_argument
    add("--answers", nargs="+", type=Path, metavar="FILE", help="answers to the rows of draft files")
    number = whole_number("a number from 1 to 10", 1, 10)
    add("--per-document", type=number, metavar="N", help="queries per document; default what makes 17 in all")
    add_judge_flags(parser, "have the plan's first judge write the queries")
    add("--max-usd", type=float, metavar="USD", help="stop before more is spent on the version; default 5")
    options = parser.parse_args(arguments)
    if options.answers and (options.judge or options.per_document):
        parser.error("--answers takes what was drafted; it goes without --judge and --per-document")
    if options.max_usd is not None and not options.judge:
        parser.error("--max-usd belongs to --judge")
    check_judge_flags(parser, options)
    with _desk(options) as desk:
        from runner.queries.drafting import frozen

        if said := frozen(desk.version):
            raise InputError(said)
        drafted = options.per_document, judge_options(options)
        answer(desk.take(options.answers) if options.answers else desk.draft(*drafted))
    return 0


def check(arguments: Sequence[str]) -> int:
    """`queries check`: 0, or 2 for errors in the version's queries or those of the files."""
    parser = _parser("queries check", "Several files are held against each other too.\n")
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="in the form of queries.yaml; default the version's own")
    add("--lexical-only", action="store_true", help="leave out what needs the packaged encoder")
    add("--json", action="store_true", help="the report as JSON")
    options = parser.parse_args(arguments)
    with _desk(options) as desk:
        from runner.embed.backends import LocalBackend
        from runner.report.query_review import summary

        report, page = desk.check(options.files, None if options.lexical_only else LocalBackend())
        if options.json:
            answer_json(report.model_dump())
        else:
            answer(f"{summary(report)}\nto eyeball: {page}")
        return InputError.exit_code if report.errors else 0


def import_(arguments: Sequence[str]) -> int:
    """`queries import`: queries drawn from a search log into a file to look over, without what could name a person."""
    parser = _parser("queries import", _LOG)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a log: CSV with a header, or JSON lines of ubi_queries")
    number = whole_number(f"a number from 3 to {MOST_DRAWN}", 3, MOST_DRAWN)
    add("--size", type=number, default=30, metavar="N", help="queries to draw, a third of each band; default 30")
    add("--seed", type=whole_number("a number, 0 or more", 0), default=2026, metavar="N", help="of the draw, 2026")
    add("--column", default="", metavar="NAME", help="the column of queries in a CSV file")
    options = parser.parse_args(arguments)
    with _desk(options) as desk:
        answer(desk.take_log(options.file, options.size, options.seed, options.column))
    return 0


def add(arguments: Sequence[str]) -> int:
    """`queries add`: the queries of files become the version's, all of a file or none."""
    parser = _parser("queries add")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="such as drafted.yaml of the reading pack")
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
