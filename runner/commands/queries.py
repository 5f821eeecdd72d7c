"""`queries`: a reading pack, drafts by a language model or by file, a check of what was written, and its adding."""

import argparse
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import BackendError, InputError, Outstanding
from runner.base.progress import say
from runner.commands.flags.judge import add_judge_flags, check_judge_flags, judge_options
from runner.eval_set.version import DRIVER, Version, newest_version
from runner.tools.console import answer, answer_json, version_parser

if TYPE_CHECKING:
    from runner.base.records import Document
    from runner.judge.models.requests import LanguageModel
    from runner.queries.draft_answers import Answered
    from runner.queries.draft_asks import DraftRow
    from runner.queries.taken_drafts import TakenDrafts

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
    from runner.base.store import disk_errors, exclusive
    from runner.eval_set.lock import verify_version

    version = newest_version(options.source, options.eval_set_path)
    if version.source.policy == "external":
        raise InputError(f"{version.source.name} is a public collection, which brings its own queries.")
    action = {"sample": _sample, "draft": _draft, "check": _check, "add": _add}[options.action]
    with disk_errors(version.work), exclusive(version.work / "version.lock", f"another run of {version.name}"):
        verify_version(version)
        return action(_Desk(version, options))


class _Desk:
    """What the actions share: the version, its documents, and what was asked for."""

    def __init__(self, version: Version, options: argparse.Namespace) -> None:
        self.version, self.options = version, options

    @cached_property
    def documents(self) -> "Sequence[Document]":
        """The sample; Outstanding where there is none yet."""
        from runner.eval_set.corpus import corpus_documents
        from runner.queries.reading_pack import need_sampled

        if self.options.corpus_path:
            need_sampled(self.version, self.options.corpus_path)
        embedded = self.version.source.corpus
        place = self.options.corpus_path or (self.version.checkout / embedded if embedded else None)
        return corpus_documents(self.version, place)

    @property
    def seed(self) -> int:
        """Of the sample, and so of the pack."""
        return self.version.plan(rehearsal=False).sample.seed

    @property
    def folder(self) -> Path:
        """Of the pack and of all that is made from it."""
        from runner.queries.reading_pack import reading_folder

        return reading_folder(self.version)

    @property
    def taken(self) -> "TakenDrafts":
        """The drafts so far, as their files have them now."""
        from runner.queries.query_file import read_queries
        from runner.queries.taken_drafts import TakenDrafts

        own = self.version.queries_path
        return TakenDrafts(self.folder, read_queries(own) if own.exists() else [])

    def again(self, action: str, *files: Path) -> str:
        """The command of another action on this version."""
        return f"{DRIVER} {shlex.join(['queries', action, *map(str, files)])} {self.version.flags}"


def _sample(desk: _Desk) -> int:
    from runner.queries.drafting import frozen
    from runner.queries.kinds import WANTED_GENERATED, WANTED_HAND
    from runner.queries.reading_pack import INDEX, PACK_SIZE, write_reading_pack

    folder = write_reading_pack(desk.version, desk.documents, desk.seed)
    n_documents = min(PACK_SIZE, sum(not document.status for document in desk.documents))
    pack = f"{n_documents} of {len(desk.documents)} documents to read: {folder} ({INDEX} lists them)"
    if said := frozen(desk.version):
        answer(f"{pack}\n{said}")
        return 0
    answer(
        f"{pack}\nRead them; write {WANTED_HAND} queries or more of your own, in the form of "
        f"{folder / 'queries.yaml.template'}, and save them as {desk.version.queries_path}.\n"
        f"For {WANTED_GENERATED} more by a language model: {desk.again('draft')} --judge\n"
        f"Then: {desk.again('check')}"
    )
    return 0


def _draft(desk: _Desk) -> int:
    from runner.queries.draft_asks import draft_rows, write_draft_file
    from runner.queries.drafting import frozen
    from runner.queries.query_file import counted
    from runner.queries.reading_pack import pack_documents
    from runner.queries.taken_drafts import standing

    if said := frozen(desk.version):
        raise InputError(said)
    if desk.options.answers:
        return _take_answers(desk)
    pack = pack_documents(desk.version, desk.documents, desk.seed)
    rows = draft_rows(desk.version, desk.documents, pack, desk.options.per_document)
    usable = desk.taken.usable()
    left = [row for row in rows if row.key not in usable]
    if not left:
        answer(f"Nothing is left to draft. {standing(rows, usable)}\n{_look(desk)}")
        return 0
    path = write_draft_file(desk.folder, left)
    if desk.options.judge:
        return _ask(desk, left)
    answer(
        f"{counted(len(left), 'query', 'queries')} to draft: {path}, by the draft-instructions.md beside it. Each row "
        f"has its request and, apart from it, the words that are forbidden. {standing(rows, usable)}\n"
        'An answer file has one line a row: {"key": "as in the row", "kind": "as in the row", "query": "...", '
        '"note": "what serves the need"}\n'
        f"Then: {desk.again('draft')} --answers FILE"
    )
    return 0


def _take_answers(desk: _Desk) -> int:
    from runner.queries.draft_answers import file_answers
    from runner.queries.draft_asks import all_draft_rows

    rows = {row.key: row for _, row in all_draft_rows(desk.folder)}
    return _keep(desk, file_answers(desk.options.answers, rows), [])


def _ask(desk: _Desk, rows: "Sequence[DraftRow]") -> int:
    from runner.queries.drafting import ask_model

    with _language_model(desk) as model:
        asked = ask_model(rows, model, desk.folder, datetime.now(UTC).date().isoformat())
    if not asked.answers and asked.failed:
        raise BackendError(f"No query was drafted. {asked.failed[0]}. Run the command again; replies are kept.")
    return _keep(desk, asked.answers, asked.failed)


def _language_model(desk: _Desk) -> "LanguageModel":
    """The plan's first judge, which drafts too."""
    from runner.judge.models.api import open_model
    from runner.judge.models.run_judges import named_judges

    version, how = desk.version, judge_options(desk.options)
    assert how is not None  # nobody is asked without --judge
    judge = named_judges(version, version.plan(rehearsal=False)).first
    return open_model(judge, how.how, how.url, version.work, how.max_usd, how.price)


def _keep(desk: _Desk, answers: "Sequence[Answered]", failed: Sequence[str]) -> int:
    """Puts what keeps the rules into drafted.yaml, and says of every answer what became of it."""
    from runner.queries.draft_answers import sifted
    from runner.queries.draft_asks import all_draft_rows
    from runner.queries.taken_drafts import became, standing

    found = sifted(answers, {document.doc_id: document for document in desk.documents})
    drafts = desk.taken
    kept = drafts.keep(found.kept, desk.version.number_name)
    left_out = [*failed, *found.left_out, *kept.repeats]
    for line in left_out:
        say(f"left out: {line}")
    for line in found.no_query:
        say(f"no honest query: {line}")
    if left_out and not found.no_query and not drafts.path.exists():
        raise InputError("No draft keeps the rules, so there is nothing to look at; see above what each one broke.")
    rows = list({row.key: row for _, row in all_draft_rows(desk.folder)}.values())
    what = became(drafts, kept, len(found.no_query), len(left_out))
    answer(f"{what}\n{standing(rows, drafts.usable())}\n{_look(desk)}".rstrip())
    return 0


def _look(desk: _Desk) -> str:
    """What to do with drafts next; "" where there are none."""
    path = desk.taken.path
    if not path.exists():
        return ""
    own = [desk.version.queries_path] if desk.version.queries_path.exists() else []
    return (
        f"Look them over and delete what nobody would ask: {desk.again('check', *own, path)}\n"
        f"Then: {desk.again('add', path)}"
    )


def _check(desk: _Desk) -> int:
    from runner.embed.backends import LocalBackend
    from runner.queries.checks import check, read_files
    from runner.report.query_review import summary, write_review

    paths = desk.options.files or [desk.version.queries_path]
    if not desk.options.files and not paths[0].exists():
        raise Outstanding(f"{paths[0]} does not exist yet. Begin with: {desk.again('sample')}")
    rows = read_files(paths)
    report = check(desk.version, desk.documents, rows, None if desk.options.lexical_only else LocalBackend())
    page = write_review(report, desk.folder)
    if desk.options.json:
        answer_json(report.model_dump())
    else:
        answer(f"{summary(report)}\nto eyeball: {page}")
    return InputError.exit_code if report.errors else 0


def _add(desk: _Desk) -> int:
    from runner.eval_set.corpus import need_corpus
    from runner.queries.additions import add_queries

    need_corpus(desk.version)
    for path in desk.options.files:
        answer(add_queries(desk.version, path))
    answer(f"Next: {desk.again('check')}")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    chosen = next((one for one in arguments if one in _EXAMPLES), None)  # `queries draft --help` shows its own
    examples = "examples:\n  " + "\n  ".join(_EXAMPLES[one] for one in ([chosen] if chosen else _EXAMPLES))
    parser = version_parser("queries", _DESCRIPTION, _EPILOG.format(examples=examples))
    add = parser.add_argument
    add("action", choices=["sample", "draft", "check", "add"])
    add("files", nargs="*", type=Path, metavar="FILE", help="check, add: files in the form of queries.yaml")
    add("--corpus-path", type=Path, metavar="PATH", help="the documents, where their archive is gone")
    add("--answers", nargs="+", type=Path, metavar="FILE", help="draft: answers to the rows of draft files")
    add("--per-document", type=_count, metavar="N", help="draft: queries a document; default what makes 17 in all")
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


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or not 1 <= int(text) <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10")
    return int(text)
