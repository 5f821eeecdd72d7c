"""The driver's own flags: what there is, what goes together, and what a choice and a change of version are made of."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.errors import InputError
from runner.commands.console import answer, version_parser, whole_number
from runner.commands.flags.backend import add_backend_flags, check_backend_flags, dollars
from runner.commands.flags.judge import add_judge_flags, check_judge_flags
from runner.eval_set.version import Version

if TYPE_CHECKING:
    from runner.decide.decide import Choice


def check_version_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the flags of a change of version; a usage error for those that do not go together."""
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


_SIGNED = "--choose, --adopt-baseline, --abandon and --new-version"


def driver_parser(epilog: str) -> argparse.ArgumentParser:
    """The parser of the driver's flags."""
    parser = version_parser("", "Chooses the embedding model and chunker of one legislative source.", epilog)
    add = parser.add_argument
    add("--corpus-path", type=Path, metavar="PATH", help="documents to sample (first run), collection, or database")
    add("--live", action="store_true", help="documents from the source's live feed, where the version has none yet")
    add("--cells", action="append", default=[], metavar="CELL", help="explore this cell, or add it with --new-version")
    add("--new-version", action="store_true", help="open the version after the newest, which is frozen or decided")
    add("--abandon", action="store_true", help="give up the newest version, which is undecided")
    add("--trec-run", action="append", default=[], type=Path, metavar="FILE", help="another system's run (repeatable)")
    add("--post-bulk", action="store_true", help="hold a decision to the production database in --corpus-path")
    add("--rehearse", action="store_true", help="run the rehearsal plan; never a decision")
    add("--dry-run", action="store_true", help="say what exists and is missing; write nothing")
    add("--budget", type=dollars, metavar="USD", help="with --dry-run: what so much judging buys; default --max-usd")
    add("--json", action="store_true", help="stdout is one JSON object: outcome, choice, figures, exit code")
    add("--adopt-baseline", action="store_true", help="record the baseline by policy (weak structure), unevaluated")
    add(
        "--bulk-gate",
        type=whole_number("a number of documents"),
        metavar="N",
        help="may a source of N documents be embedded? for the ingester",
    )
    add_backend_flags(parser)
    add_judge_flags(parser, "have the plan's judges grade what is missing, and go on")
    add("--choose", metavar="CELL", help="decide for this cell, or 'recommended'")
    add("--reason", default="", help=f"why, with {_SIGNED}")
    add("--pooled", type=Path, metavar="FILE", help="cite what `pooled --output` says, with --choose")
    add("--by", default="", metavar="NAME", help=f"who decides, with {_SIGNED}")
    return parser


def check_driver_flags(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Check the driver's flags; a usage error for those that do not go together."""
    if options.cells and (options.choose is not None or options.dry_run):
        parser.error("--cells explores; it goes with neither --choose nor --dry-run")
    if options.budget is not None and not options.dry_run:
        parser.error("--budget says what judging buys; it goes with --dry-run")
    if options.dry_run and options.choose is not None:
        parser.error("--dry-run decides nothing; leave out --choose")
    if options.live and (options.corpus_path or options.cells or options.dry_run or options.post_bulk):
        parser.error("--live fetches documents for a new version; it goes without --corpus-path, --cells, --dry-run")
    if options.post_bulk and options.corpus_path is None:
        parser.error("--post-bulk needs --corpus-path SUBSTRATE.db")
    if options.post_bulk and (options.cells or options.choose is not None or options.dry_run):
        parser.error("--post-bulk checks a recorded decision; of these flags it goes with --rehearse alone")
    signed = options.choose or options.adopt_baseline or options.new_version or options.abandon
    if (options.reason or options.by) and not signed:
        parser.error("--reason and --by belong to --choose CELL, --adopt-baseline, --new-version and --abandon")
    if options.pooled is not None and not options.choose:
        parser.error("--pooled belongs to --choose: it is the decision that cites it")
    changes = options.adopt_baseline or options.new_version or options.abandon
    if options.json and (changes or options.post_bulk or options.bulk_gate is not None):
        parser.error("--json goes with an evening, an exploration, a collection and --dry-run")
    check_version_flags(parser, options)
    if options.adopt_baseline and not options.by.strip():
        parser.error("--adopt-baseline needs --by NAME: decision.json names who decided")
    check_backend_flags(parser, options)
    check_judge_flags(parser, options)
    is_gate = options.bulk_gate is not None  # a source of 0 documents is asked about too
    if options.judge and (options.cells or options.post_bulk or options.adopt_baseline or is_gate):
        parser.error("--judge belongs to an evening: explorations and checks have nothing judged")
    if (options.modal or options.encoder_url) and (options.post_bulk or options.adopt_baseline or is_gate):
        parser.error("--modal and --encoder-url say where an evening embeds; this one embeds nothing for a record")
    alone = {"--adopt-baseline": options.adopt_baseline, "--bulk-gate": is_gate}
    others = (
        *(options.cells, options.choose is not None, options.dry_run, options.post_bulk),
        *(options.rehearse, options.corpus_path, options.live),
    )
    for flag, given in alone.items():
        if given and (any(others) or all(alone.values())):
            parser.error(
                f"{flag} goes with --source and --eval-set-path alone (--adopt-baseline with --by, --reason too)"
            )


def choice_of(options: argparse.Namespace) -> "Choice | None":
    """What the operator chooses; None without --choose."""
    if options.choose is None:
        return None
    from runner.decide.decide import RECOMMENDED, Choice
    from runner.decide.pooled_gains import read_pooled

    if options.choose != RECOMMENDED and not (options.reason.strip() and options.by.strip()):
        raise InputError("--choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
    check_signature(options)
    pooled = None if options.pooled is None else read_pooled(options.pooled)
    return Choice(options.choose, options.reason, options.by or "unattended run (--choose recommended)", pooled)


def check_signature(options: argparse.Namespace) -> None:
    """Check that name and reason are one line of printable characters, as a page and a terminal show them."""
    for flag, text in (("--by", options.by), ("--reason", options.reason)):
        if not text.isprintable():
            raise InputError(f"{flag}: {text!r} has a line break or a control character; write it on one line.")


OF_A_DECISION = [
    "cells",
    "judge",
    "live",
    "rehearse",
    "choose",
    "reason",
    "by",
    "pooled",
    "post-bulk",
    "adopt-baseline",
    "bulk-gate",
    "new-version",
    "abandon",
]
"""Flags that a collection, which is compared and never decided, has no use for."""
