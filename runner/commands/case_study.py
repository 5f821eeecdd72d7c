"""The command `case-study`: real engines and broken predictors through both null gates."""

from collections.abc import Sequence
from pathlib import Path

from runner.base.given_files import display
from runner.commands.console import answer, command_parser, tell

_EPILOG = """\
FOLDER is what a run with --source=beir wrote: its plan, queries, qrels, runs and results. Its engines, and some twenty
predictors that are broken on purpose, are scored and sent through both null gates. Nothing is written without --write.
exit codes: 0 done, or the page is current; 2 usage or input; 4 --check: the page is not what FOLDER gives; 5 disk
"""


def case_study(arguments: Sequence[str]) -> int:
    """`case-study`: a table on stdout, or the blocks of a page."""
    parser = command_parser("case-study", "Real engines and broken predictors through both null gates.", _EPILOG)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a version folder of an external evaluation")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--write", type=Path, metavar="PAGE", help="replace the page's blocks, and the JSON beside it")
    forms.add_argument("--check", type=Path, metavar="PAGE", help="compare with the page and the JSON; write nothing")
    forms.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--ascii", action="store_true", help="plain signs, nothing but ASCII")
    options = parser.parse_args(arguments)
    from runner.tools.case_study.case_study import read_subject, study
    from runner.tools.case_study.page import check_page, check_study, study_lines, write_study

    # A study takes its time: what is wrong with the page is said before it.
    if page := options.check or options.write:
        check_page(page, written=options.check is not None)
    found = study(read_subject(options.folder))
    if options.check is not None:
        answer(check_study(found, options.check))
    elif options.write is not None:
        answer("\n".join(f"wrote {display(path)}" for path in write_study(found, options.write)))
    else:
        tell(options, found, lambda signs: study_lines(found, signs))
    return 0
