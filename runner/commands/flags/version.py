"""The flags that open the next version and give one up, and what they do."""

import argparse

from runner.eval_set.version import Version
from runner.tools.console import answer


def add_version_flags(parser: argparse.ArgumentParser) -> None:
    """--new-version and --abandon."""
    add = parser.add_argument
    add("--new-version", action="store_true", help="open the version after the newest, which is frozen or decided")
    add("--abandon", action="store_true", help="give up the newest version, which is undecided")


def check_version_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Nothing for flags that go together; the parser's error, exit 2, for others."""
    if options.abandon and not (options.reason.strip() and options.by.strip()):
        parser.error("--abandon needs --reason TEXT and --by NAME: abandoned.json names who gave up, and why")
    others = (
        options.new_version and options.abandon,
        options.abandon and (options.cells or options.rehearse),
        *(options.choose, options.dry_run, options.post_bulk, options.adopt_baseline, options.bulk_gate is not None),
        *(options.corpus_path, options.live, options.modal, options.encoder_url, options.judge),
    )
    if (options.new_version or options.abandon) and any(others):
        parser.error(
            "--new-version goes with --cells, --rehearse, --reason and --by alone, --abandon with --reason and --by"
        )


def change_version(version: Version, options: argparse.Namespace, *, today: str) -> int:
    """The exit code, once the next version is open or the newest one given up."""
    from runner.evening.next_version import abandon, open_next

    if options.abandon:
        answer(abandon(version, reason=options.reason, by=options.by, today=today))
    else:
        answer(open_next(version, cells=options.cells, reason=options.reason, by=options.by, today=today))
    return 0
