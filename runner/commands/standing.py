"""`next`, `plan` and `doctor`: how things stand, and what to do; nothing is written."""

import argparse
from collections.abc import Iterable
from dataclasses import replace

from runner.base.checks import Check, Outcome, examine, report, summary
from runner.base.errors import InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.terminal import MARKS
from runner.commands.console import answer, answer_json
from runner.commands.evening import collection_of
from runner.commands.flags import asked_of, backend_of, check_models, refuse_external, version_of
from runner.decide.roster import roster
from runner.eval_set import catalog
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import to_read
from runner.evening.dry_run import describe
from runner.evening.exploration import trial_of
from runner.evening.stops import next_step as following
from runner.report.summary import recorded_json, step_json
from runner.tools.doctor.doctor import all_checks
from runner.tools.doctor.source import SourceChecks
from runner.tools.roster import next_step as next_source


def next_step(options: argparse.Namespace) -> None:
    """Say how far a version has come and what to do now; without SOURCE, which source is next."""
    if not options.source:
        data, lines = next_source(roster())
        answer_json(data) if options.json else answer("\n".join(lines))
        return
    refuse_external(options)
    version = to_read(version_of(options))
    stop = following(version)
    if options.json:
        answer_json(step_json(version, stop))
        return
    answer(str(stop))
    if not options.trial and trial_of(version).folder.exists():
        answer(f"\nA trial lies beside it: {DRIVER} next {version.flags} --try")


def plan(options: argparse.Namespace) -> int:
    """Say what a version is, lacks and costs; 0 if a decision is recorded, which the last line says, else 1."""
    check_models(options)
    if catalog.source(options.source).policy == "external":
        version = collection_of(options)
    else:
        version = to_read(version_of(options, begins=options.corpus_path is not None))
    if version.tried_from is not None and not version.corpus_path.exists():
        say(f"no trial is begun; `run --try` begins one with plans, sample and queries of {version.number_name}:")
        version = replace(version.tried_from, rehearsal=True)
    verify_version(version)
    lines, recorded = describe(version, options.corpus_path, asked_of(options))
    if options.json:
        answer_json(recorded_json(version, lines, recorded=recorded))
    else:
        answer("\n".join(lines))
    return 0 if recorded else 1


_OF_SOURCE = ("eval_set_path", "corpus_path", "rehearse", "trial", "yes", "modal", "encoder_url", "judge")
"""The flags of `doctor` that mean nothing without SOURCE, as argparse names them."""


def doctor(options: argparse.Namespace) -> int:
    """Examine the installation, or what would end an evening of SOURCE; 0 if no check failed, else 1."""
    check_models(options)
    if options.source and options.quick:
        raise InputError("--quick shortens the examination of the installation; it goes without SOURCE.")
    if not options.source and (given := [name for name in _OF_SOURCE if getattr(options, name)]):
        raise InputError(f"--{given[0].replace('trial', 'try').replace('_', '-')} needs SOURCE.")
    outcomes = _of_source(options) if options.source else _shown(all_checks(), options, quick=options.quick)
    if options.json:
        answer_json(report(outcomes))
    else:
        answer(summary(outcomes))
    return 1 if _failed(outcomes) else 0


def _failed(outcomes: list[Outcome]) -> bool:
    return any(outcome.state == "failed" for outcome in outcomes)


def _of_source(options: argparse.Namespace) -> list[Outcome]:
    version = to_read(version_of(options, begins=options.corpus_path is not None))
    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    # A trial needs one container; the total counts as many as a run may start.
    with backend_of(options, version, version.work, containers=1) as backend:
        source = SourceChecks(version, backend, asked_of(options), options.corpus_path)
        outcomes = _shown(source.checks(), options)
        if options.yes and not _failed(outcomes):
            outcomes += _shown(source.trials(), options)
    return outcomes


def _shown(checks: Iterable[Check], options: argparse.Namespace, *, quick: bool = False) -> list[Outcome]:
    """Return the outcome of each check, printed as soon as it is made unless --json was given, with what helps."""
    marks = {"ok": MARKS["pass"], "failed": MARKS["fail"], "skipped": "?"}
    outcomes = []
    for outcome in examine(checks, quick=quick):
        outcomes.append(outcome)
        if not options.json:
            first, *more = outcome.result.splitlines() or [""]
            answer(f"{marks[outcome.state]} {outcome.name}: {printable(first, LONGEST_LINE)}")
            for line in more:
                answer(f"    {printable(line, LONGEST_LINE)}")
            if outcome.state == "failed":
                answer(f"    next: {outcome.next_step}")
    return outcomes
