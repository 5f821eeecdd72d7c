"""`fetch`: documents of a source from its publisher, a seeded draw or those of a manifest again."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.canonical import read_jsonl
from runner.base.errors import InputError, IntegrityError
from runner.base.progress import say
from runner.eval_set.catalog import source
from runner.eval_set.version import CHECKOUT, DRIVER, cache_folder
from runner.tools.console import answer, command_parser

if TYPE_CHECKING:
    from samplers.feeds.request import FetchReport, FetchRequest

_DESCRIPTION = """\
Downloads a source's documents from its official publisher into a folder, for --corpus-path: a seeded, stratified draw
of what is published, or with --again the documents of a manifest, each held to the manifest's digest.
"""
_EPILOG = """\
Keys of api.data.gov come from the environment: PER_SOURCE_EVAL_GOVINFO_KEY, PER_SOURCE_EVAL_CONGRESS_KEY.
docs/feeds.md says what each feed lists. A run that was stopped goes on with the same files when it is run again.
exit codes: 0 done, 2 usage or input error, 4 a document is changed or missing, 5 server, network, disk or limit
"""
_N_NAMED = 20


def fetch(arguments: Sequence[str]) -> int:
    """0 where everything that was asked for is in the folder; documents that differ end in an IntegrityError."""
    options = _options(arguments)
    from samplers.feeds.fetch import fetch as fetch_source

    report = fetch_source(source(options.source).name, options.to, _request(options), say)
    for note in report.notes:
        say(f"note: {note}")
    if options.again:
        _check_same(report, options.to)
        answer(f"{report.n_listed:,} documents of {options.again} are in {options.to}, each as the manifest has it.")
        return 0
    answer(_summary(report, options))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser("fetch", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add("--source", required=True, metavar="NAME", help="bills, us_code, federal_register, ...")
    add("--to", required=True, type=Path, metavar="FOLDER", help="a new folder, or one that a fetch began to fill")
    add("--size", type=int, default=750, metavar="N", help="documents wanted, 750; some more are drawn")
    add("--seed", type=int, default=2026, metavar="N", help="of the draw, 2026")
    add("--since", type=_day, metavar="DATE", help="published on or after YYYY-MM-DD")
    add("--until", type=_day, metavar="DATE", help="published on or before YYYY-MM-DD")
    add("--congress", type=int, action="append", default=[], metavar="N", help="of this Congress (repeatable)")
    add("--feed", default="", metavar="NAME", help="another feed of the source than its first")
    add("--option", action="append", default=[], metavar="WORD", help="an option of the source's reader (repeatable)")
    add("--again", type=Path, metavar="FILE", help="a version's corpus.jsonl: its documents and no others")
    add("--rate", type=float, default=2.0, metavar="X", help="requests a second to one host, 2")
    add("--max-mb", type=int, default=500, metavar="N", help="most that the folder may hold, 500")
    add("--demo-key", action="store_true", help="DEMO_KEY where the environment has no key: 30 requests an hour")
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
    documents, words = _manifest(options.again, options.source) if options.again else ({}, ())
    return FetchRequest(
        size=options.size,
        seed=options.seed,
        since=options.since,
        until=options.until,
        congresses=tuple(options.congress),
        feed=options.feed,
        options=frozenset((*options.option, *words)),
        documents=documents,
        rate=options.rate,
        max_mb=options.max_mb,
        endpoints=mirrors,
        demo_key=options.demo_key,
        cache=cache_folder(CHECKOUT),
    )


def _manifest(path: Path, source: str) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Ids with digests of a corpus.jsonl, and the options that its documents were read with."""
    rows = [row for _, row in read_jsonl(path)]
    header = rows[0] if rows else {}
    sample = header.get("sample")
    if not isinstance(sample, dict) or header.get("source") != source:
        raise InputError(f"{path} is no manifest of {source}. Give the corpus.jsonl of one of its versions.")
    documents = {str(row.get("doc_id")): str(row.get("sha256")) for row in rows[1:]}
    if not documents:
        raise InputError(f"{path} names no document.")
    return documents, tuple(sample.get("options") or ())


def _check_same(report: "FetchReport", folder: Path) -> None:
    differing = [*report.changed, *report.missing]
    if not differing:
        return
    named = "\n".join(f"  - {doc_id}: {how}" for doc_id, how in differing[:_N_NAMED])
    more = (
        f"\n  and {len(differing) - _N_NAMED} more, all in {folder}/differences.jsonl" if differing[_N_NAMED:] else ""
    )
    rest = f"{report.n_same or 'None'} of them are in {folder} as the manifest has them."
    raise IntegrityError(
        f"{len(report.changed)} of {report.n_listed} documents are changed and {len(report.missing)} missing:\n"
        f"{named}{more}\n{rest} Put the version's archive back, or open a new version."
    )


def _summary(report: "FetchReport", options: argparse.Namespace) -> str:
    kept = f", {report.n_kept:,} were there" if report.n_kept else ""
    failed = f", {len(report.failed):,} could not be had" if report.failed else ""
    return (
        f"{report.n_files:,} of {report.n_listed:,} listed files were drawn: {report.n_fetched:,} fetched{kept}{failed}"
        f"; {report.n_bytes / 1e6:,.1f} MB in {options.to}.\n"
        f"Next: {DRIVER} --source={options.source} --corpus-path {options.to}"
    )
