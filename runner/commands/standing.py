"""`next`, `plan`, `sources` and `bulk-gate`: how things stand, what to do, and what may be embedded."""

import argparse
from dataclasses import replace

from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import answer, answer_json, tell
from runner.commands.flags import asked_of, check_models, collection_of, refuse_external, version_of
from runner.decide import policy
from runner.decide.roster import moved_on, own_standings, roster, standing
from runner.eval_set import catalog
from runner.eval_set.lock import verify_version
from runner.eval_set.version import own_names, source_of, to_read
from runner.evening.status import describe
from runner.evening.status import next_step as following
from runner.evening.trial import trial_of
from runner.report.summary import recorded_json, step_json
from runner.tools.roster import data_row, roster_lines, write_data_status
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


def sources(options: argparse.Namespace) -> None:
    """List how far every source has come, write or check docs/data-status.md, or say what is stale."""
    is_page = options.write or options.check
    if sum((options.stale, options.write, options.check)) > 1:
        raise InputError("--stale, --write and --check go one at a time.")
    if is_page and options.source:
        raise InputError("The page is of the whole roster; leave out SOURCE.")
    if is_page and options.json:
        raise InputError("--write and --check answer in a sentence; leave out --json.")
    if options.source and options.source not in own_names():
        asked = catalog.source(options.source, own_names())
        if not asked.trigger_order:
            raise InputError(
                f"{asked.name} is none of the sources in production or of your own, which are all that this lists. To "
                f"see how far it is: {DRIVER} plan {asked.name}"
            )
    # A list is shown whole and its changed records are raised after it; a page with one is not written at all.
    changed: list[IntegrityError] | None = None if is_page or options.stale else []
    standings = [row for row in roster(changed=changed) if options.source in ("", row.source.name)]
    own = [row for row in own_standings(changed) if options.source in ("", row.source.name)]
    if is_page:
        answer(write_data_status(standings, check=options.check))
    elif options.stale:
        stale = {row.source.name: changes for row in (*standings, *own) if (changes := moved_on(row))}
        if options.json or not stale:
            tell(options, stale, lambda: ["no decision that the catalog has moved on from"])
        if stale:
            lines = (f"{name}: {change}" for name, changes in stale.items() for change in changes)
            raise NegativeVerdict("\n".join(("stale, a new version would decide anew:", *lines)))
    else:
        tell(options, [data_row(row) for row in (*standings, *own)], lambda: roster_lines(standings, own))
    if changed:
        raise IntegrityError("\n".join(map(str, changed)))


def bulk_gate(options: argparse.Namespace) -> None:
    """Say whether so many documents of a source may be embedded; NegativeVerdict if not."""
    version = version_of(options)
    verify_version(version)
    answer(policy.bulk_gate(standing(version), options.n))
