"""The actions of `labels`: answers in, a page to judge by, second readings out, agreement, a judge withdrawn."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import today
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.commands.console import Parser, add_trial_flag, answer, answer_json, version_of, version_parser
from runner.eval_set.version import Version

_CODES = "exit codes: 0 done, 2 usage or input (file and line are named), 4 a frozen file changed, 5 disk"


def import_(arguments: Sequence[str]) -> int:
    """`labels import`: all answers of a file, or none, into labels.jsonl."""
    parser = version_parser("labels import", epilog=f"docs/judging.md has the form of a line.\n{_CODES}")
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="answers, one JSON object a line")
    add("--judge", default="", metavar="NAME", help="who judged, where the lines do not say")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", metavar="ID", help="a language model judged; its id, where the lines do not say")
    who.add_argument("--person", action="store_true", help="a person judged")
    version, options = _asked(parser, arguments)
    from runner.evening.stops import counting
    from runner.tools.labels import import_files

    added = import_files(version, options.files, judge=options.judge, model=options.model, judged_on=today())
    say(f"note: {counting(version)}")
    answer(f"{version.name}: {added} labels added")
    return 0


def double(arguments: Sequence[str]) -> int:
    """`labels double`: batches for a second judge, without the first grades."""
    parser = version_parser("labels double", epilog=_CODES)
    parser.add_argument("--share", type=float, metavar="PART", help="of the judged pairs, above 0 to 1; default 0.1")
    version, options = _asked(parser, arguments)
    from runner.eval_set.labels import version_labels
    from runner.judge.second_reading import SHARE, export_doubles
    from runner.tools.labels import open_for_labels

    share = SHARE if options.share is None else options.share
    if not 0 < share <= 1:
        raise InputError(f"--share {share:g}: a part of the judged pairs is wanted, above 0 and at most 1.")
    with open_for_labels(version):
        done = export_doubles(version, version_labels(version), share)
    if not done.waiting:
        more = " A larger --share takes more." if share < 1 else ""
        answer(
            f"{version.name}: nothing is left for a second judge: of {done.judged} judged pairs, those that a share of "
            f"{share:g} takes are read by two judges already.{more}"
        )
        return 0
    answer(
        f"{version.name}: {done.pairs} of {done.judged} judged pairs are for a second judge, {done.waiting} of them "
        f"not read yet: {' '.join(map(str, done.paths)) or 'none'}\n"
        f"Give them to somebody who does not see the first grades, then: {DRIVER} labels import {version.flags} "
        "--judge=OTHER-NAME --person FILE ... (or --model=ID)"
    )
    return 0


def agreement(arguments: Sequence[str]) -> int:
    """`labels agreement`: how far judges agree, and whether one repeats itself."""
    parser = version_parser("labels agreement", epilog=_CODES)
    parser.add_argument("--json", action="store_true", help="as JSON")
    version, options = _asked(parser, arguments)
    from runner.tools.labels import agreement_of

    data, lines = agreement_of(version)
    if options.json:
        answer_json(data)
    else:
        answer("\n".join(lines))
    return 0


def page(arguments: Sequence[str]) -> int:
    """`labels page`: one offline HTML file in which a person judges batches by keyboard."""
    parser = version_parser("labels page", epilog=_CODES)
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="BATCH", help="these batches; default: those that wait")
    add("--judge", default="", metavar="NAME", help="who will judge; the page asks otherwise")
    add("--output", type=Path, metavar="FILE", help="where the page goes")
    version, options = _asked(parser, arguments)
    from runner.eval_set.lock import verify_version
    from runner.eval_set.preregistration import verified_preregistration
    from runner.report.labels_page import write_labels_page

    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    written = write_labels_page(version, options.files, options.output, judge=options.judge)
    say("Open this file in a browser and judge; `labels import` takes the answers that it saves.")
    answer(str(written))
    return 0


def withdraw(arguments: Sequence[str]) -> int:
    """`labels withdraw`: a row that voids each grade of one judge, before the lock; nothing is deleted."""
    epilog = f"Its pairs wait for a judge again. Grades are final once the version is decided.\n{_CODES}"
    parser = version_parser("labels withdraw", epilog=epilog)
    parser.add_argument("--judge", required=True, metavar="NAME", help="whose grades, as labels.jsonl names the judge")
    parser.add_argument("--reason", default="", help="why; it is kept in the rows")
    version, options = _asked(parser, arguments)
    from runner.tools.labels import withdraw_judge

    n_voided = withdraw_judge(version, options.judge, reason=options.reason, today=today())
    answer(
        f"{version.name}: {n_voided} labels of {options.judge} are void; their lines stay in {version.labels_path}\n"
        f"next: {DRIVER} run {version.flags}"
    )
    return 0


def _asked(parser: Parser, arguments: Sequence[str]) -> tuple[Version, argparse.Namespace]:
    """The version and the options; a rehearsal has the labels of its version, a trial its own."""
    parser.add_argument("--rehearse", action="store_true", help="seen as the rehearsal; grades are the same")
    add_trial_flag(parser)
    options = parser.parse_args(arguments)
    version = version_of(options)
    if not version.preregistration_path.exists() and version.tried_from is None:
        from runner.evening.exploration import trial_of

        if trial_of(version).preregistration_path.exists():
            say(f"note: a trial of {version.name} waits for grades; --try means that one")
    return version, options
