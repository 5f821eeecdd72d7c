"""`fetch`: documents of a source from its publisher."""

import argparse
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.places import cache_folder
from runner.base.progress import say
from runner.commands.console import answer, command_parser
from runner.eval_set.catalog import source
from runner.tools.fetch import check_same, manifest, summary

if TYPE_CHECKING:
    from samplers.feeds.request import FetchRequest

_DESCRIPTION = """\
Downloads a source's documents from its official publisher into a folder, for --corpus-path: a seeded, stratified draw
of what is published, or with --again the documents of a manifest, each held to the manifest's digest.
"""
_EPILOG = """\
Keys of api.data.gov come from the environment: PER_SOURCE_EVAL_GOVINFO_KEY, PER_SOURCE_EVAL_CONGRESS_KEY.
docs/feeds.md says what each feed lists. A run that was stopped goes on with the same files when it is run again.
exit codes: 0 done, 2 usage or input error, 4 a document is changed or missing, 5 server, network, disk or limit
"""


def fetch(arguments: Sequence[str]) -> int:
    """`fetch`, a seeded draw or a manifest's documents again: 0 if all are in the folder.

    Documents that differ from the manifest end in an IntegrityError.
    """
    options = _options(arguments)
    from samplers.feeds.fetch import fetch as fetch_source

    report = fetch_source(source(options.source).name, options.to, _request(options), say)
    for note in report.notes:
        say(f"note: {note}")
    if options.again:
        check_same(report, options.to)
        answer(f"{report.n_listed:,} documents of {options.again} are in {options.to}, each as the manifest has it.")
        return 0
    answer(summary(report, options.source, options.to))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser("fetch", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add("source", metavar="SOURCE", help="bills, us_code, federal_register, ...")
    add("--to", required=True, type=Path, metavar="FOLDER", help="a new folder, or one that a fetch began to fill")
    add("--size", type=int, default=750, metavar="N", help="documents wanted, 750; some more are drawn")
    add("--seed", type=int, default=2026, metavar="N", help="of the draw, 2026")
    add("--since", type=_day, metavar="DATE", help="published on or after YYYY-MM-DD")
    add("--until", type=_day, metavar="DATE", help="published on or before YYYY-MM-DD")
    add("--congress", type=int, action="append", default=[], metavar="N", help="of this Congress (repeatable)")
    add("--feed", default="", metavar="NAME", help="another feed of the source than its first")
    add("--option", action="append", default=[], metavar="WORD", help="an option of the source's reader (repeatable)")
    add("--again", type=Path, metavar="FILE", help="a version's corpus.jsonl: its documents and no others")
    add("--max-mb", type=int, default=500, metavar="N", help="most that the folder may hold, 500")
    add("--endpoint", action="append", default=[], metavar="NAME=URL", help="a mirror in place of a service")
    options = parser.parse_args(arguments)
    if options.again and (options.since or options.until or options.congress or options.feed):
        parser.error(
            "--again fetches the documents of a manifest; --since, --until, --congress and --feed draw new ones"
        )
    return options


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date (YYYY-MM-DD)") from error


def _request(options: argparse.Namespace) -> "FetchRequest":
    from samplers.feeds.request import FetchRequest

    mirrors = dict(endpoint.partition("=")[::2] for endpoint in options.endpoint)
    listed = manifest(options.again, options.source) if options.again else {}
    words = listed.pop("options", frozenset())
    return FetchRequest(
        size=options.size,
        seed=options.seed,
        since=options.since,
        until=options.until,
        congresses=tuple(options.congress),
        feed=options.feed,
        options=words.union(options.option),
        max_mb=options.max_mb,
        endpoints=mirrors,
        cache=cache_folder(),
        **listed,
    )
