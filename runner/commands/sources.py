"""`sources`: the roster, also as docs/data-status.md, and what the catalog has moved on from."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.base.errors import InputError, IntegrityError, NegativeVerdict
from runner.base.places import DRIVER
from runner.commands.console import answer, answer_json, command_parser
from runner.eval_set.catalog import source

if TYPE_CHECKING:
    from runner.decide.roster import Standing

_EPILOG = """\
Without a flag: every source in the order of bulk embedding. exit codes: 0 done, 1 --stale found a decision that the
catalog has moved on from, 2 usage or input error, 4 a locked record changed, or the page is not what the eval sets make
(--check), 5 disk.
"""


def sources(arguments: Sequence[str]) -> int:
    """`sources` and its forms."""
    options = _options(arguments)
    from runner.decide.roster import roster
    from runner.tools.roster import data_row, roster_lines, write_data_status

    if options.source and not (asked := source(options.source)).trigger_order:
        raise InputError(
            f"{asked.name} is none of the sources in production, which are all that this lists. To see how far it is: "
            f"{DRIVER} plan {asked.name}"
        )
    is_page = options.write or options.check
    changed: list[IntegrityError] | None = None if is_page or options.stale else []
    standings = [s for s in roster(changed=changed) if options.source in ("", s.source.name)]
    if options.write or options.check:
        answer(write_data_status(standings, check=options.check))
    elif options.stale:
        return _stale(standings, as_json=options.json)
    elif options.json:
        answer_json([data_row(standing) for standing in standings])
    else:
        answer("\n".join(roster_lines(standings)))
    if changed:
        raise IntegrityError("\n".join(map(str, changed)))
    return 0


def _stale(standings: "list[Standing]", *, as_json: bool) -> int:
    from runner.decide.roster import moved_on

    found = {s.source.name: changes for s in standings if (changes := moved_on(s))}
    if as_json:
        answer_json(found)
    elif not found:
        answer("no decision that the catalog has moved on from")
    if found and not as_json:
        lines = (f"{name}: {change}" for name, changes in found.items() for change in changes)
        raise NegativeVerdict("\n".join(("stale, a new version would decide anew:", *lines)))
    return 1 if found else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser("sources", epilog=_EPILOG)
    add = parser.add_argument
    add("source", nargs="?", default="", metavar="SOURCE", help="this source alone")
    add("--stale", action="store_true", help="decisions whose cell or baseline the catalog has moved on from")
    add("--write", action="store_true", help="write docs/data-status.md")
    add("--check", action="store_true", help="compare docs/data-status.md with the eval sets; write nothing")
    add("--json", action="store_true", help="one JSON value")
    options = parser.parse_args(arguments)
    is_page = options.write or options.check
    if sum((options.stale, options.write, options.check)) > 1:
        parser.error("--stale, --write and --check go one at a time")
    if is_page and options.source:
        parser.error("the page is of the whole roster; leave out SOURCE")
    if is_page and options.json:
        parser.error("--write and --check answer in a sentence; leave out --json")
    return options
