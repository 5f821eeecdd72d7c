"""The actions of `labels`: answers in, a page to judge by, second readings out, agreement, a judge withdrawn."""

import argparse
from contextlib import suppress

from runner.base.canonical import today
from runner.base.errors import EvalError, InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import answer, tell
from runner.commands.flags import version_of
from runner.eval_set.labels import version_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import Version
from runner.evening.status import counting, status
from runner.evening.trial import trial_of
from runner.judge.prep_labels import double_first
from runner.judge.second_reading import SHARE, export_doubles
from runner.report.labels_page import write_labels_page
from runner.tools.labels import agreement_of, import_files, open_for_labels, withdraw_judge


def import_(options: argparse.Namespace) -> None:
    """Take all answers of a file, or none, into labels.jsonl."""
    version = _version(options)
    added = import_files(version, options.files, judge=options.judge, model=options.model, judged_on=today())
    say(f"note: {counting(version)}")
    with suppress(EvalError):  # the grades are taken; `run` says what is wrong with other files
        step = next(step for step in status(version) if step.state == "open")
        if step.name == "verdict" and double_first(version) in step.ways:
            say(f"note: all pairs are judged. {double_first(version)}")
    answer(f"{version.name}: {added} labels added")


def double(options: argparse.Namespace) -> None:
    """Write batches for a second judge, without the first grades."""
    version, share = _version(options), SHARE if options.share is None else options.share
    if not 0 < share <= 1:
        raise InputError(f"--share {share:g}: a part of the judged pairs is wanted, above 0 and at most 1.")
    with open_for_labels(version):
        done = export_doubles(version, version_labels(version), share)
    if not done.waiting:
        more = " A larger --share takes more." if share < 1 else ""
        answer(
            f"{version.name}: nothing is left for a second judge: of {done.judged} judged pairs, those that a share of "
            f"{share:g} takes are read by two judges already.{more}"
        )
        return
    answer(
        f"{version.name}: {done.pairs} of {done.judged} judged pairs are for a second judge, {done.waiting} of them "
        f"not read yet: {' '.join(map(str, done.paths)) or 'none'}\n"
        "Give them to somebody who does not see the first grades, and before the next `run`: "
        f"{DRIVER} labels import {version.flags} --judge=OTHER-NAME --person FILE ... (or --model=ID)"
    )


def agreement(options: argparse.Namespace) -> None:
    """Say how far judges agree, and whether one repeats itself."""
    data, lines = agreement_of(_version(options))
    tell(options, data, lambda: lines)


def page(options: argparse.Namespace) -> None:
    """Write one offline HTML file in which a person judges batches by keyboard."""
    version = _version(options)
    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    written = write_labels_page(version, options.files, options.output, judge=options.judge)
    say("Open this file in a browser and judge; `labels import` takes the answers that it saves.")
    answer(str(written))


def withdraw(options: argparse.Namespace) -> None:
    """Append a row that voids each grade of one judge, before the lock; nothing is deleted."""
    version = _version(options)
    n_voided = withdraw_judge(version, options.judge, reason=options.reason, today=today())
    answer(
        f"{version.name}: {n_voided} labels of {options.judge} are void; their lines stay in {version.labels_path}\n"
        f"next: {DRIVER} run {version.flags}"
    )


def _version(options: argparse.Namespace) -> Version:
    """Return the version; a rehearsal has the labels of its version, a trial its own."""
    version = version_of(options)
    is_begun = version.preregistration_path.exists() or version.tried_from is not None
    if not is_begun and trial_of(version).preregistration_path.exists():
        say(f"note: a trial of {version.name} waits for grades; --try means that one")
    return version
