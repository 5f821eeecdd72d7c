"""`preflight`: whether an evening would end, before it costs anything; with --yes, a trial in earnest."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.checks import report, summary
from runner.base.progress import say
from runner.base.terminal import signs_for
from runner.commands.console import (
    add_output_flags,
    add_trial_flag,
    answer_json,
    show,
    show_checks,
    version_of,
    version_parser,
)
from runner.commands.flags import (
    add_backend_flags,
    add_judge_flags,
    backend_from,
    check_backend_flags,
    check_judge_flags,
    judge_options,
    modal_backend,
    remote_options,
    with_own_encoders,
)
from runner.embed.cost.prices import MAX_USD, positive, shown

if TYPE_CHECKING:
    from runner.tools.preflight import Flight

_DESCRIPTION = """\
One page of ticks, at no cost: documents, chunks, queries, git, the account, the model hub and each encoder's revision,
tokenizers, disk, keys, and one total of embedding, judging and headroom against --max-usd. With --yes, and if nothing
is red so far: each encoder of the plan embeds 32 texts as a run would, and each judge grades one pair.
"""
_EPILOG = """\
A run looks at machines and services by itself. Nothing is written but what the trial costs, in the version's ledger.
exit codes: 0 the evening can begin, 1 something is red: what to do is listed, 2 usage, 4 what is frozen changed,
5 no backend, or the budget
"""


def preflight(arguments: Sequence[str]) -> int:
    """0 if no tick is red, else 1."""
    parser = version_parser("preflight", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add(
        "--corpus-path",
        type=Path,
        metavar="PATH",
        help="a folder with the version's documents, or with others to look at",
    )
    not_the_plans = "look at the chunks of these, with commas between, not at the plan's; without a total"
    add("--chunkers", type=lambda names: names.split(","), default=[], metavar="NAMES", help=not_the_plans)
    add("--rehearse", action="store_true", help="the rehearsal's plan")
    add_trial_flag(parser)
    add("--yes", action="store_true", help="try encoders and judges in earnest, and spend the money")
    add_output_flags(parser, "one JSON object")
    add_backend_flags(parser)
    add_judge_flags(parser, "look at the plan's language models too")
    options = parser.parse_args(arguments)
    check_backend_flags(parser, options)
    check_judge_flags(parser, options)
    from chunkers.registry import limit_of
    from runner.embed.chunk_corpus import stored_chunk_tokens
    from runner.eval_set.lock import verify_version
    from runner.eval_set.preregistration import verified_preregistration
    from runner.eval_set.version import to_read
    from runner.evening.costs import Asked
    from runner.tools.preflight import Flight

    version = to_read(version_of(options, begins=options.corpus_path is not None))
    for name in options.chunkers:
        limit_of(name)
    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    remote = remote_options(options)
    ceiling = MAX_USD if options.max_usd is None else positive("--max-usd", options.max_usd)
    asked = Asked(remote, options.encoder_url or "", judge_options(options), ceiling, stored_chunk_tokens)
    # Thirty-two texts need one container; the total counts as many as a run may start.
    alone = None if remote is None else modal_backend(replace(remote, containers=1), version.work)
    base = alone or backend_from(options, version.work)
    with with_own_encoders(base, version, options, version.work) as backend:
        return _looked(Flight(version, backend, asked, options.corpus_path, options.chunkers), options)


def _looked(flight: "Flight", options: argparse.Namespace) -> int:
    from runner.tools.preflight import chunks_data

    signs = signs_for(sys.stdout, ascii_only=options.ascii)
    outcomes = show_checks(flight.checks(), options, advise=False)
    said = []
    if all(outcome.state != "failed" for outcome in outcomes):
        usd = flight.trials_usd()
        price = f"about {shown(usd)} by list price" if usd else "nothing that is known"
        said = [f"32 texts with each encoder and one pair with each judge cost {price}."]
        if options.yes:
            say(said.pop())
            outcomes += show_checks(flight.trials(), options, advise=False)
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    if options.json:
        answer_json({**report(outcomes), "chunks": chunks_data(flight.rows)})
    else:
        todo = [f"{number}. {outcome.name}: {outcome.next_step}" for number, outcome in enumerate(failed, start=1)]
        show([summary(outcomes), *todo, *(f"Not tried yet: {line} To do it: --yes" for line in said)], signs)
    return 1 if failed else 0
