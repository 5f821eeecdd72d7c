"""`doctor`: whether this installation works, planted defects included; with SOURCE, whether an evening would end."""

import argparse
from collections.abc import Iterable

from runner.base.errors import InputError
from runner.base.given_files import LONGEST_LINE, printable
from runner.base.steps import Check, Step, examined
from runner.base.terminal import MARKS
from runner.commands.console import answer, answer_json
from runner.commands.flags import asked_of, backend_of, check_models, version_of
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import to_read
from runner.evening.needs import Needs
from runner.tools.doctor.doctor import all_checks

_OF_SOURCE = ("eval_set_path", "corpus_path", "rehearse", "trial", "yes", "modal", "encoder_url", "judge")
"""The flags of `doctor` that mean nothing without SOURCE, as argparse names them."""


def doctor(options: argparse.Namespace) -> int:
    """Examine the installation, or what would end an evening of SOURCE; 0 if no check failed, else 1."""
    check_models(options)
    if options.source and options.quick:
        raise InputError("--quick shortens the examination of the installation; it goes without SOURCE.")
    if not options.source and (given := [name for name in _OF_SOURCE if getattr(options, name)]):
        raise InputError(f"--{given[0].replace('trial', 'try').replace('_', '-')} needs SOURCE.")
    steps = _of_source(options) if options.source else _shown(all_checks(), options)
    # A check that cannot be made is open, and no failure: without a hub nothing is wrong with an encoder.
    failed, skipped = ([step.name for step in steps if step.state == state] for state in ("blocked", "open"))
    if options.json:
        answer_json({"ok": not failed, "checks": [step._asdict() for step in steps]})
    elif failed:
        answer(f"{len(failed)} of {len(steps)} checks failed: {', '.join(failed)}")
    else:
        answer(f"{len(steps) - len(skipped)} checks passed" + (f", skipped: {', '.join(skipped)}" if skipped else ""))
    return 1 if failed else 0


def _of_source(options: argparse.Namespace) -> list[Step]:
    version = to_read(version_of(options, begins=options.corpus_path is not None))
    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    # A trial needs one container; the total counts as many as a run may start.
    with backend_of(options, version, version.work, containers=1) as backend:
        needs = Needs(version, backend, asked_of(options), corpus_path=options.corpus_path)
        steps = _shown(needs.checks(documents=True), options)
        # A trial is charged for, so nothing is tried of what cannot run anyway.
        if options.yes and not any(step.state == "blocked" for step in steps):
            steps += _shown(needs.trials(), options)
    return steps


def _shown(checks: Iterable[Check], options: argparse.Namespace) -> list[Step]:
    """Return the step of each check, printed as soon as it is made unless --json was given, with what helps."""
    marks = {"done": MARKS["pass"], "blocked": MARKS["fail"], "open": "?"}
    steps = []
    for step in examined(checks, quick=options.quick):
        steps.append(step)
        if not options.json:
            first, *more = step.say.splitlines() or [""]
            answer(f"{marks[step.state]} {step.name}: {printable(first, LONGEST_LINE)}")
            for line in (*more, *(f"next: {way}" for way in step.ways)):
                answer(f"    {printable(line, LONGEST_LINE)}")
    return steps
