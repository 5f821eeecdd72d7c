"""`sources` and `bulk-gate`: the roster, and what of it may be embedded."""

import argparse

from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import DRIVER
from runner.commands.console import answer, tell
from runner.commands.flags import version_of
from runner.decide import policy
from runner.decide.roster import moved_on, own_standings, roster, standing
from runner.eval_set.catalog import source
from runner.eval_set.lock import verify_version
from runner.eval_set.version import own_names
from runner.tools.roster import data_row, roster_lines, write_data_status


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
        asked = source(options.source, own_names())
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
