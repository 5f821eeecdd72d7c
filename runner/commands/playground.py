"""`playground`: a page in which the null gate is played with."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.given_files import display
from runner.commands.console import answer, command_parser
from runner.eval_set.version import WORKPLACE

_DESCRIPTION = """\
Writes one offline page in which sliders choose a predictor, the number of queries, how skewed their right answers are
and the gate's threshold, and the four nulls and the gate's verdict follow.
"""
_EPILOG = """\
docs/playground.md says how the page reckons.
exit codes: 0 written, 2 usage, a place in a record, or another file is there already, 5 the page cannot be written
"""


def playground(arguments: Sequence[str]) -> int:
    """0; the page's path on stdout."""
    parser = command_parser("playground", _DESCRIPTION, _EPILOG)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="where the page goes; default .work/playground.html"
    )
    path = parser.parse_args(arguments).output or WORKPLACE / ".work" / "playground.html"
    from runner.report.comparison.file import write_html
    from runner.report.playground import page

    answer(display(write_html(path, page(), None)))
    return 0
