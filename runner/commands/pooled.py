"""The command `pooled`: what the locked results of all sources say together."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.errors import InputError, InputNeeded
from runner.commands.console import add_output_flags, command_parser, tell

_EPILOG = """\
Without FOLDER, the newest locked version of every source of the roster. Each cell's gain over its source's baseline is
taken as what its encoder adds, what its kind of chunker adds, and what is its own; the first two are the same in every
source. Exit 3 if nothing is locked yet. docs/pooled.md says what the figures rest on.
"""


def pooled(arguments: Sequence[str]) -> int:
    """`pooled`: effects of encoders and chunkers over all sources, and what each source's figures shrink to."""
    parser = command_parser("pooled", "What the locked results of all sources say together.", _EPILOG)
    parser.add_argument(
        "folder", type=Path, nargs="*", metavar="FOLDER", help="a locked version, as eval-sets/bills/v1"
    )
    parser.add_argument("--rehearse", action="store_true", help="pool rehearsals, which decide nothing")
    add_output_flags(parser, "print every figure as JSON, with the digests of all inputs")
    options = parser.parse_args(arguments)
    from runner.decide.roster import newest_locked
    from runner.tools.pooled.records import checked_together, read_given
    from runner.tools.pooled.report import pooled_lines, pooled_report

    paths = options.folder or newest_locked(rehearsal=options.rehearse)
    if not paths:
        what = "rehearsal" if options.rehearse else "evaluation"
        raise InputNeeded(f"No source has a locked {what} yet, so there is nothing to pool. Finish an evening first.")
    given = checked_together([read_given(path) for path in paths])
    if options.rehearse != (given[0].kind == "rehearsal"):
        raise InputError(
            f"{given[0].path} is of kind {given[0].kind}. --rehearse pools rehearsals, and nothing else does."
        )
    report = pooled_report(given)
    tell(options, report, lambda: pooled_lines(report))
    return 0
