"""`fetch`: documents of a source from its publisher."""

import argparse

from runner.base.errors import InputError
from runner.base.progress import say
from runner.commands.console import answer
from runner.eval_set.catalog import source
from runner.tools.fetch import check_same, manifest, summary
from samplers.feeds.fetch import fetch as fetch_source
from samplers.feeds.request import FetchRequest


def fetch(options: argparse.Namespace) -> None:
    """Fetch a seeded draw, or a manifest's documents again; documents that differ end in an IntegrityError."""
    if options.again and (options.since or options.until or options.congress):
        raise InputError("--again fetches the documents of a manifest; --since, --until and --congress draw new ones.")
    # A manifest names its documents and how they were read; the flags then add what is not in it.
    listed = manifest(options.again, options.source) if options.again else {}
    words = listed.pop("options", frozenset())
    request = FetchRequest(
        size=options.size,
        seed=options.seed,
        since=options.since,
        until=options.until,
        congresses=tuple(options.congress),
        options=words.union(options.option),
        max_mb=options.max_mb,
        **listed,
    )
    report = fetch_source(source(options.source).name, options.to, request, say)
    if options.again:
        check_same(report, options.to)
        answer(f"{report.n_listed:,} documents of {options.again} are in {options.to}, each as the manifest has it.")
    else:
        answer(summary(report, options.source, options.to))
