"""`queries`: a reading pack, drafts by a language model or by file, a check of what was written, and its adding."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.commands.console import answer, answer_json, version_parser, whole_number
from runner.commands.flags.judge import add_judge_flags, check_judge_flags, judge_options
from runner.eval_set.version import alone, newest_version

if TYPE_CHECKING:
    from runner.tools.queries import Desk

_DESCRIPTION = """\
sample: a stratified 25 documents to read, and the form of queries.yaml.
draft:  queries to be written from them: without a flag as files for whoever writes them, with --answers from their
        answers, with --judge by the language model that the plan names. They wait in drafted.yaml to be looked at.
check:  the version's queries, or those of the files, held to what makes them worth judging; a page to eyeball.
add:    the queries of a file become the version's.
"""
_EXAMPLES = {
    "sample": "per-source-eval.py queries sample --source=bills",
    "draft": """\
per-source-eval.py queries draft --source=bills                        what is still to be drafted, as files
  per-source-eval.py queries draft --source=bills --answers answers.jsonl
  per-source-eval.py queries draft --source=bills --judge --max-usd 2    by the plan's first judge""",
    "check": """\
per-source-eval.py queries check --source=bills                        the version's queries
  per-source-eval.py queries check --source=bills queries.yaml drafted.yaml
                                                                         both, also against each other""",
    "add": "per-source-eval.py queries add --source=bills drafted.yaml",
}
_EPILOG = """\
{examples}

exit codes: 0 done (check: nothing, or warnings), 2 usage or input error (check: errors), 3 there is no corpus or no
queries yet, 4 a frozen file changed, 5 the language model, disk or budget. docs/queries.md has the whole way.
"""
_ONLY = {
    "answers": "draft",
    "per_document": "draft",
    "judge": "draft",
    "judge_url": "draft",
    "judge_price": "draft",
    "max_usd": "draft",
    "lexical_only": "check",
    "json": "check",
}


def queries(arguments: Sequence[str]) -> int:
    """`queries` and its four actions."""
    options = _options(arguments)
    from runner.eval_set.lock import verify_version
    from runner.tools.queries import Desk

    version = newest_version(options.source, options.eval_set_path)
    if version.source.policy == "external":
        raise InputError(f"{version.source.name} is a public collection, which brings its own queries.")
    with alone(version):
        verify_version(version)
        desk = Desk(version, options.corpus_path)
        if options.action == "check":
            return _check(desk, options)
        if options.action == "sample":
            answer(desk.sample())
        elif options.action == "draft":
            answer(_draft(desk, options))
        else:
            for said in desk.add(options.files):
                answer(said)
        return 0


def _draft(desk: "Desk", options: argparse.Namespace) -> str:
    from runner.queries.drafting import frozen

    if said := frozen(desk.version):
        raise InputError(said)
    return desk.take(options.answers) if options.answers else desk.draft(options.per_document, judge_options(options))


def _check(desk: "Desk", options: argparse.Namespace) -> int:
    from runner.embed.backends import LocalBackend
    from runner.report.query_review import summary

    report, page = desk.check(options.files, None if options.lexical_only else LocalBackend())
    if options.json:
        answer_json(report.model_dump())
    else:
        answer(f"{summary(report)}\nto eyeball: {page}")
    return InputError.exit_code if report.errors else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    chosen = next((one for one in arguments if one in _EXAMPLES), None)  # `queries draft --help` shows its own
    examples = "examples:\n  " + "\n  ".join(_EXAMPLES[one] for one in ([chosen] if chosen else _EXAMPLES))
    parser = version_parser("queries", _DESCRIPTION, _EPILOG.format(examples=examples))
    add = parser.add_argument
    add("action", choices=["sample", "draft", "check", "add"])
    add("files", nargs="*", type=Path, metavar="FILE", help="check, add: files in the form of queries.yaml")
    add("--corpus-path", type=Path, metavar="PATH", help="the documents, where their archive is gone")
    add("--answers", nargs="+", type=Path, metavar="FILE", help="draft: answers to the rows of draft files")
    add(
        "--per-document",
        type=whole_number("a number from 1 to 10", 1, 10),
        metavar="N",
        help="draft: queries a document; default what makes 17 in all",
    )
    add("--lexical-only", action="store_true", help="check: leave out what needs the packaged encoder")
    add("--json", action="store_true", help="check: the report as JSON")
    add_judge_flags(parser, "draft: have the plan's first judge write the queries")
    add("--max-usd", type=float, metavar="USD", help="draft: stop before more is spent on the version; default 5")
    options = parser.parse_intermixed_args(arguments)  # a flag may stand between the action and its files
    _check_options(parser, options)
    return options


def _check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for name, action in _ONLY.items():
        if getattr(options, name) not in (None, False) and options.action != action:
            parser.error(f"--{name.replace('_', '-')} belongs to queries {action}")
    if options.files and options.action in ("sample", "draft"):
        parser.error(f"queries {options.action} takes no files; answers to draft files go with --answers")
    if options.action == "add" and not options.files:
        raise InputError("queries add needs a file with queries, such as drafted.yaml of the reading pack.")
    if options.answers and (options.judge or options.per_document):
        parser.error("--answers takes what was drafted; it goes without --judge and --per-document")
    if options.max_usd is not None and not options.judge:
        parser.error("--max-usd belongs to --judge")
    check_judge_flags(parser, options)
