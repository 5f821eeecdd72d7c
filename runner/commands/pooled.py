"""The command `pooled`: what the locked results of all sources say together."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputError, InputNeeded
from runner.commands.console import add_output_flags, command_parser, tell

_EPILOG = """\
Without FOLDER, the newest locked version of every source of the roster. Each cell's gain over its source's baseline is
taken as what its encoder adds, what its kind of chunker adds, and what is its own; the first two are the same in every
source. Exit 3 if nothing is locked yet. docs/pooled.md says what the figures rest on.

example: per-source-eval.py pooled --rehearse --html pooled.html
"""


def pooled(arguments: Sequence[str]) -> int:
    """`pooled`: effects of encoders and chunkers over all sources, and what each source's figures shrink to."""
    options = _options(arguments)
    from runner.base.canonical import json_bytes, write_atomic
    from runner.base.store import disk_errors
    from runner.decide.roster import newest_locked
    from runner.tools.pooled.model import Priors
    from runner.tools.pooled.records import checked_together, read_given
    from runner.tools.pooled.report import pooled_lines, pooled_page, pooled_report

    priors = Priors(options.effect_sd, options.tau_scale, options.min_gain)
    if min(priors) <= 0:
        raise InputError("--effect-sd, --tau-scale and --min-gain are gains in nDCG@10 above 0.")
    paths = options.folder or newest_locked(rehearsal=options.rehearse)
    if not paths:
        what = "rehearsal" if options.rehearse else "evaluation"
        raise InputNeeded(f"No source has a locked {what} yet, so there is nothing to pool. Finish an evening first.")
    given = checked_together([read_given(path) for path in paths])
    if options.rehearse != (given[0].kind == "rehearsal"):
        raise InputError(
            f"{given[0].path} is of kind {given[0].kind}. --rehearse pools rehearsals, and nothing else does."
        )
    report = pooled_report(given, priors)
    if options.html is not None:
        with disk_errors(options.html):
            write_atomic(options.html, pooled_page(report))
    if options.output is not None:
        with disk_errors(options.output):
            write_atomic(options.output, json_bytes(report))
    tell(options, report, lambda signs: pooled_lines(report, signs))
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    from runner.tools.pooled.model import Priors

    priors = Priors()
    parser = command_parser("pooled", "What the locked results of all sources say together.", _EPILOG)
    parser.add_argument(
        "folder", type=Path, nargs="*", metavar="FOLDER", help="a locked version, as eval-sets/bills/v1"
    )
    parser.add_argument("--rehearse", action="store_true", help="pool rehearsals, which decide nothing")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON, with the digests of all inputs")
    for name, what in (
        ("effect_sd", "SD of an effect before any result"),
        ("tau_scale", "scale of the scatter that no effect explains"),
        ("min_gain", "gain that counts"),
    ):
        default = getattr(priors, name)
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=float, default=default, metavar="GAIN", help=f"{what}, default {default:g}")
    add_output_flags(parser, "the same as --output, to stdout")
    return parser.parse_args(arguments)
