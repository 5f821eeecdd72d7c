"""`next` and `plan`: how things stand, and what to do; nothing is written."""

import argparse
from dataclasses import replace

from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import answer, answer_json
from runner.commands.flags import asked_of, check_models, collection_of, refuse_external, version_of
from runner.decide.roster import roster
from runner.eval_set import catalog
from runner.eval_set.lock import verify_version
from runner.eval_set.version import source_of, to_read
from runner.evening.status import describe
from runner.evening.status import next_step as following
from runner.evening.trial import trial_of
from runner.report.summary import recorded_json, step_json
from runner.tools.roster import next_step as next_source


def next_step(options: argparse.Namespace) -> None:
    """Say how far a version has come and what to do now; without SOURCE, which source is next."""
    if options.eval_set_path is not None and not options.source:
        options.source = source_of(options.eval_set_path)
    if not options.source and (options.eval_set_path or options.rehearse or options.trial):
        raise InputError("Which SOURCE? Without one, `next` says which source of the roster is next.")
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
    if catalog.is_external(options.source):
        version = collection_of(options)
    else:
        version = to_read(version_of(options, begins=options.corpus_path is not None))
    if version.tried_from is not None and not version.corpus_path.exists():
        # What it would begin with is shown, from the version: a plan writes nothing.
        say(f"no trial is begun; `run --try` begins one with plans, sample and queries of {version.number_name}:")
        version = replace(version.tried_from, rehearsal=True)
    verify_version(version)
    lines, recorded = describe(version, options.corpus_path, asked_of(options))
    if options.json:
        answer_json(recorded_json(version, lines, recorded=recorded))
    else:
        answer("\n".join(lines))
    return 0 if recorded else 1
