"""The command `compare`: intervals and paired tests on per-query scores."""

from collections.abc import Sequence
from pathlib import Path

from runner.commands.console import add_output_flags, command_parser, tell

_EPILOG = """\
RUN and OTHER hold per-query nDCG@10: {"perQuery": [{"qid": ..., "ndcg10": ...}]}, with `baselines` {name: mean} if
there are any; or they are a results.json, of which --cell and --other-cell choose a cell. mulberry32 gives the figures
of ruflo's script (seed 42, 10,000 resamples), except that queries that one run lacks and repeated queries are errors.
Exit code 0 whatever the comparison says: it is no gate. 2 where an input is wrong.
"""


def compare(arguments: Sequence[str]) -> int:
    """`compare`: a run against published means and, paired, against another run."""
    parser = command_parser("compare", "Intervals and labels for one run; a paired test for two.", _EPILOG)
    parser.add_argument("run", type=Path, metavar="RUN", help="per-query scores, or - for standard input")
    parser.add_argument("--paired", type=Path, metavar="OTHER", help="the run to compare with, query by query")
    parser.add_argument("--cell", metavar="CELL", help="which cell, where RUN is a results.json")
    parser.add_argument("--other-cell", metavar="CELL", help="which cell, where OTHER is a results.json")
    parser.add_argument("--baselines", type=Path, metavar="FILE", help="published means, {name: mean}, for RUN's own")
    parser.add_argument("--rng", choices=["default", "mulberry32"], default="default", help="mulberry32: as ruflo's")
    add_output_flags(parser, "one JSON object")
    options = parser.parse_args(arguments)
    if options.other_cell is not None and options.paired is None:
        parser.error("--other-cell belongs to --paired OTHER")
    from dataclasses import asdict, replace

    from runner.tools.compare.compare import compare as compared
    from runner.tools.compare.compare import comparison_lines
    from runner.tools.compare.query_scores import read_baselines, read_scores

    run = read_scores(options.run, options.cell)
    other = None if options.paired is None else read_scores(options.paired, options.other_cell)
    if options.baselines is not None:
        run = replace(run, baselines=read_baselines(options.baselines))
    found = compared(run, other, options.rng)
    tell(options, asdict(found), lambda: comparison_lines(found))
    return 0
