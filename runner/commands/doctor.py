"""`doctor`: whether this installation works, planted defects included; with SOURCE, whether an evening would end."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from runner.base.checks import Outcome, report, summary
from runner.commands.console import (
    Parser,
    add_output_flags,
    add_trial_flag,
    answer,
    answer_json,
    show_checks,
    version_of,
    version_parser,
)
from runner.commands.flags import (
    add_backend_flags,
    add_judge_flags,
    asked_of,
    backend_from,
    check_backend_flags,
    check_judge_flags,
    modal_backend,
    remote_options,
    with_own_encoders,
)

_DESCRIPTION = """\
Without SOURCE examines the installation: Python and packages against the pins, folders, the packaged encoder, the parts
of an evening, and defects planted on purpose, each of which must be caught. Needs no network and leaves nothing behind.

With SOURCE looks, at no cost, at what would end its evening: documents, the account, the model hub and each encoder's
revision, disk, the judges' keys, and one total against --max-usd. A run looks at the same by itself. With --yes, and if
nothing is red, each encoder embeds a few sentences and each judge grades one pair as a run would: that is charged.
"""
_EPILOG = """\
exit codes: 0 every check passed or was skipped, 1 a check failed, 2 usage, 4 what is frozen changed, 5 no backend, or
the budget
"""
_OF_SOURCE = ("eval_set_path", "corpus_path", "rehearse", "trial", "yes", "modal", "encoder_url", "judge")
"""The flags that mean nothing without SOURCE, as argparse names them."""


def doctor(arguments: Sequence[str]) -> int:
    """Return 0 if no check failed, else 1."""
    parser = version_parser("doctor", _DESCRIPTION, _EPILOG, optional="without it: the installation")
    add = parser.add_argument
    add("--quick", action="store_true", help="of the installation, leave out what loads the model, some 2 seconds")
    add("--corpus-path", type=Path, metavar="PATH", help="the version's documents, or others to draw a sample of")
    add("--rehearse", action="store_true", help="the rehearsal's plan")
    add_trial_flag(parser)
    add("--yes", action="store_true", help="try encoders and judges in earnest, and spend the money")
    add_output_flags(parser, "the outcomes as JSON")
    add_backend_flags(parser)
    add_judge_flags(parser, "look at the plan's language models too")
    options = parser.parse_args(arguments)
    _check_flags(parser, options)
    outcomes = _of_source(options) if options.source else _of_installation(options)
    if options.json:
        answer_json(report(outcomes))
    else:
        answer(summary(outcomes))
    return 1 if _failed(outcomes) else 0


def _check_flags(parser: Parser, options: argparse.Namespace) -> None:
    """Check the flags; a usage error for those that do not go together."""
    check_backend_flags(parser, options)
    check_judge_flags(parser, options)
    if options.source and options.quick:
        parser.error("--quick shortens the examination of the installation; it goes without SOURCE")
    if not options.source and (given := [name for name in _OF_SOURCE if getattr(options, name)]):
        parser.error(f"--{given[0].replace('trial', 'try').replace('_', '-')} needs SOURCE")


def _failed(outcomes: Sequence[Outcome]) -> bool:
    return any(outcome.state == "failed" for outcome in outcomes)


def _of_installation(options: argparse.Namespace) -> list[Outcome]:
    from runner.tools.doctor.doctor import all_checks

    return show_checks(all_checks(), options, quick=options.quick)


def _of_source(options: argparse.Namespace) -> list[Outcome]:
    from runner.eval_set.lock import verify_version
    from runner.eval_set.preregistration import verified_preregistration
    from runner.eval_set.version import to_read
    from runner.tools.doctor.source import SourceChecks

    version = to_read(version_of(options, begins=options.corpus_path is not None))
    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    remote = remote_options(options)
    # A trial needs one container; the total counts as many as a run may start.
    alone = None if remote is None else modal_backend(replace(remote, containers=1), version.work)
    with with_own_encoders(alone or backend_from(options, version.work), version, options, version.work) as backend:
        found = SourceChecks(version, backend, asked_of(options), options.corpus_path)
        outcomes = show_checks(found.checks(), options)
        if options.yes and not _failed(outcomes):
            outcomes += show_checks(found.trials(), options)
    return outcomes
