"""The command line: the driver without a subcommand, and the subcommands beside it.

stdout is the answer, stderr is progress. Exit codes are those of runner/base/errors.py and of the README's table.
"""

import argparse
import importlib
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from runner.base.errors import DEFECT, BackendError, EvalError, InputError, InputNeeded, NegativeVerdict
from runner.base.progress import say
from runner.commands.console import answer, answer_json
from runner.commands.flags.backend import backend_from, remote_options
from runner.commands.flags.driver import (
    OF_A_DECISION,
    change_version,
    check_driver_flags,
    check_signature,
    choice_of,
    driver_parser,
)
from runner.commands.flags.judge import judge_options
from runner.eval_set import catalog
from runner.eval_set.version import Version, collection_folder, newest_version

if TYPE_CHECKING:
    from runner.evening.session import Session


def main(arguments: Sequence[str]) -> int:
    """The exit code of a command line; every failure that is the user's to mend is one message on stderr."""
    try:
        _check_encoding(arguments)
        if arguments and not arguments[0].startswith("-"):
            return subcommand(arguments[0])(arguments[1:])
        return drive(arguments)
    except EvalError as error:
        say(f"per-source-eval: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("per-source-eval: interrupted; what was finished is kept, run the command again")
        return 130
    except MemoryError:
        say("per-source-eval: the memory is full; what was finished is kept. Free some, or give smaller input.")
        return BackendError.exit_code
    except OSError as error:
        say(f"per-source-eval: {error.filename or 'a file'} cannot be used ({error.strerror or error}).")
        return BackendError.exit_code
    except Exception:  # noqa: BLE001  # a defect must not end with the code of a verdict
        say(f"{traceback.format_exc()}per-source-eval: a defect of this tool; please report it with the lines above")
        return DEFECT


def _check_encoding(arguments: Sequence[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"The argument {argument!r} is not UTF-8.") from error


def drive(arguments: Sequence[str]) -> int:
    """The evening, an exploration, a collection, a check of the production database, or a dry run."""
    lines = (f"  {name:11} {subcommand.does}" for name, subcommand in SUBCOMMANDS.items())
    parser = driver_parser(_EPILOG.format(subcommands="\n".join(lines)))
    options = parser.parse_args(arguments)
    check_driver_flags(parser, options)
    if catalog.source(options.source).policy == "external":
        return _evaluate_external(parser, options)
    if options.trec_run:
        parser.error("--trec-run belongs to an external collection (--source=beir)")
    version = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    if options.dry_run:
        return _dry_run(version, options)
    if options.bulk_gate is not None:
        from runner.decide.policy import bulk_gate
        from runner.decide.roster import standing
        from runner.eval_set.lock import verify_version

        verify_version(version)
        answer(bulk_gate(standing(version), options.bulk_gate))
        return 0
    if options.adopt_baseline:
        return _adopt_baseline(version, options)
    if options.post_bulk:
        from runner.decide.roster import version_in_force
        from runner.evening.post_bulk import post_bulk

        in_force = None if version.rehearsal else version_in_force(version)
        answer(post_bulk(in_force or version, options.corpus_path))
        return 0
    if options.new_version or options.abandon:
        check_signature(options)
        return change_version(version, options, today=datetime.now(UTC).date().isoformat())
    from runner.evening.evening import Evening
    from runner.evening.exploration import Exploration

    again, choice = _without_choice(arguments), choice_of(options)
    with backend_from(options, version.work) as backend:
        if options.cells:
            evening: Session = Exploration(version, options.corpus_path, choice, again, backend, cells=options.cells)
        else:
            evening = Evening(
                version, options.corpus_path, choice, again, backend, judge_options(options), options.live
            )
        return _answer(evening, as_json=options.json)


def _evaluate_external(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """A public collection with published judgments: compared, never decided."""
    for flag in OF_A_DECISION:
        value = getattr(options, flag.replace("-", "_"))
        if value or (value == 0 and value is not False):
            parser.error(
                f"--{flag}: an external collection is compared and never decided; cells stand in its plan.yaml"
            )
    folder = options.eval_set_path
    if folder is None and options.corpus_path is not None:
        folder = collection_folder(catalog.source(options.source), options.corpus_path)
    version = newest_version(options.source, folder)
    if options.dry_run:
        return _dry_run(version, options)
    from runner.evening.external import ExternalEvaluation

    with backend_from(options, version.work) as backend:
        evaluation = ExternalEvaluation(version, options.corpus_path, backend=backend, trec_runs=options.trec_run)
        return _answer(evaluation, as_json=options.json)


def _answer(run: "Session", *, as_json: bool) -> int:
    """0 once the answer is printed; as JSON, verdicts and what is outstanding are printed before they are raised."""
    if not as_json:
        answer(run.run())
        return 0
    from runner.report.summary import run_json

    try:
        said = run.run()
    except (NegativeVerdict, InputNeeded) as outcome:
        answer_json(run_json(run.version, run.scored, outcome.exit_code, str(outcome)))
        raise
    answer_json(run_json(run.version, run.scored, 0, said))
    return 0


def _adopt_baseline(version: Version, options: argparse.Namespace) -> int:
    from runner.decide.decide import decision_sentence
    from runner.decide.policy import adopt_baseline

    check_signature(options)
    today = datetime.now(UTC).date().isoformat()
    decision, is_new = adopt_baseline(version, options.by, options.reason, today=today)
    say(f"locked. To commit, as it is: {version.folder}" if is_new else "recorded before; nothing is changed")
    answer(decision_sentence(decision))
    return 0


def _dry_run(version: Version, options: argparse.Namespace) -> int:
    from runner.embed.chunk_corpus import stored_chunk_tokens
    from runner.embed.cost.prices import MAX_USD, positive
    from runner.eval_set.lock import verify_version
    from runner.evening.dry_run import describe

    verify_version(version)
    server = ""
    if options.encoder_url:
        from runner.embed.over_http.dialects import address

        server = address(options.encoder_url, options.encoder_api or "openai", "ENCODER").endpoint
    remote, judge = remote_options(options), judge_options(options)
    ceiling = MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)
    budget = ceiling if options.budget is None else positive("--budget", options.budget)
    lines, recorded = describe(version, options.corpus_path, remote, stored_chunk_tokens, server, judge, budget)
    if options.json:
        answer_json({"version": version.name, "recorded": recorded, "lines": lines, "exit_code": 0 if recorded else 1})
    else:
        answer("\n".join(lines))
    return 0 if recorded else 1


class Subcommand(NamedTuple):
    """A subcommand: its function as "module:name", imported when it is called, and its line in the help."""

    function: str
    does: str


SUBCOMMANDS: dict[str, Subcommand] = {
    "queries": Subcommand("runner.commands.queries:queries", "a pack to read; draft, check and add queries"),
    "labels": Subcommand(
        "runner.commands.labels:labels", "import grades, second readings, agreement, a page to judge by"
    ),
    "status": Subcommand("runner.commands.status:status", "how far each source has come, and the health of its chunks"),
    "render": Subcommand("runner.commands.version:render", "the results page again, with passages, or beside others"),
    "verify": Subcommand("runner.commands.version:verify", "a version, or any folder, against its lock"),
    "export": Subcommand("runner.commands.export:export", "a version's results as CSV or Parquet tables"),
    "fetch": Subcommand("runner.commands.fetch:fetch", "documents of a source from its publisher"),
    "replay": Subcommand("runner.commands.replay:replay", "embed a recorded version again: do its numbers hold?"),
    "grade": Subcommand("runner.commands.grade:grade", "does a retriever beat systems that never read the query?"),
    "compare": Subcommand("runner.commands.compare:compare", "intervals and paired tests on per-query scores"),
    "pooled": Subcommand("runner.commands.pooled:pooled", "what the locked results of all sources say together"),
    "tripwire": Subcommand("runner.commands.tripwire:tripwire", "golden queries against a committed snapshot"),
    "lock": Subcommand("runner.commands.lock:lock", "lock the files of any folder by SHA-256"),
    "matrix": Subcommand("runner.commands.matrix:matrix", "our scores on public collections, beside published ones"),
    "case-study": Subcommand("runner.commands.case_study:case_study", "broken predictors through both null gates"),
    "playground": Subcommand("runner.commands.playground:playground", "a page on which to play with the null gate"),
    "quickstart": Subcommand("runner.commands.grade:quickstart", "a sample bench to try `grade` on"),
    "doctor": Subcommand("runner.commands.doctor:doctor", "does this installation, or a backend, do what it should?"),
    "smoke": Subcommand("runner.commands.smoke:smoke", "does embedding on Modal work with this account?"),
    "mcp": Subcommand("runner.commands.mcp:mcp", "serve these tools to a model"),
}
"""Every subcommand, in the order of the help."""

_EPILOG = """\
subcommands, each with --help:
{subcommands}

exit codes: 0 done, 1 negative verdict (gate failed, undecided), 2 usage or input error, 3 something is outstanding
from a person, 4 a frozen file changed, 5 backend, disk or budget.
"""


def subcommand(name: str) -> Callable[[Sequence[str]], int]:
    """The function behind a subcommand; an InputError names them all if there is none of that name."""
    found = SUBCOMMANDS.get(name)
    if found is None:
        raise InputError(f"{name!r} is no subcommand. There are: {', '.join(SUBCOMMANDS)}; without one, --source NAME.")
    module, _, function = found.function.partition(":")
    command: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), function)
    return command


def _without_choice(arguments: Sequence[str]) -> str:
    """The arguments as a shell would take them, without what belongs to a choice."""
    kept, skip, ours = [], False, ("--choose", "--reason", "--by", "--pooled")
    for argument in arguments:
        name = argument.partition("=")[0]
        if not skip and name not in ours:
            kept.append(argument)
        skip = name in ours and "=" not in argument
    return shlex.join(kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
