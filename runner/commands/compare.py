"""The command `compare`: intervals and paired tests on per-query scores."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from runner.commands.console import add_output_flags, command_parser, tell

_EPILOG = """\
RUN and OTHER hold per-query scores: {"perQuery": [{"qid": ..., "ndcg10": ...}]}, with `baselines` {name: mean} of
nDCG@10 if there are any; or they are a results.json, of which --cell and --other-cell choose a cell. mulberry32 gives
the figures and labels of ruflo's script, except that --seed 0 means 0 (the script takes 42) and that unmatched and
repeated queries are errors. Exit code 0 whatever the comparison says: it is no gate. 2 where an input is wrong.
"""


def compare(arguments: Sequence[str]) -> int:
    """`compare`: a run against published means and, paired, against another run."""
    options = _options(arguments)
    from dataclasses import asdict, replace

    from runner.tools.compare.compare import Settings, comparison_lines
    from runner.tools.compare.compare import compare as compared
    from runner.tools.compare.query_scores import read_baselines, read_scores

    run = read_scores(options.run, options.measure, options.cell)
    if options.baselines is not None:
        run = replace(run, baselines=read_baselines(options.baselines))
    other = None
    if options.paired is not None:
        other = read_scores(options.paired, options.measure, options.other_cell)
    settings = Settings(options.rng, options.seed, options.resamples, options.allow_unmatched)
    found = compared(run, other, settings)
    tell(options, asdict(found), lambda signs: comparison_lines(found, signs))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command_parser("compare", "Intervals and labels for one run; a paired test for two.", _EPILOG)
    parser.add_argument("run", type=Path, metavar="RUN", help="per-query scores, or - for standard input")
    parser.add_argument("--paired", type=Path, metavar="OTHER", help="the run to compare with, query by query")
    parser.add_argument("--measure", default="ndcg@10", metavar="NAME", help="default ndcg@10; ndcg10 is the same")
    parser.add_argument("--cell", metavar="CELL", help="which cell, where RUN is a results.json")
    parser.add_argument("--other-cell", metavar="CELL", help="which cell, where OTHER is a results.json")
    parser.add_argument("--baselines", type=Path, metavar="FILE", help="published means, {name: mean}, for RUN's own")
    parser.add_argument("--resamples", type=int, default=10_000, metavar="N", help="bootstrap resamples, default 10000")
    parser.add_argument("--seed", type=int, metavar="N", help="default 2026, with mulberry32 42")
    parser.add_argument("--rng", choices=["default", "mulberry32"], default="default", help="mulberry32: as ruflo's")
    parser.add_argument("--allow-unmatched", action="store_true", help="pair what both have; say what is left out")
    add_output_flags(parser, "one JSON object")
    options = parser.parse_args(arguments)
    if options.paired is None and (options.other_cell is not None or options.allow_unmatched):
        parser.error("--other-cell and --allow-unmatched belong to --paired OTHER")
    return options
