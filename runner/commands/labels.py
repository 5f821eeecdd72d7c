"""`labels`: answers in, second readings out, agreement, and a page to judge by keyboard."""

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from runner.base.errors import InputError
from runner.commands.console import answer, answer_json, version_parser
from runner.eval_set.version import DRIVER, Version, newest_version

_FORMS = """\
labels import     FILE ...     answers of a judge, one JSON object a line, into labels.jsonl
labels double     --share 0.1  a share of the judged pairs once more, for another judge, without the first grades
labels agreement               how far judges agree, and whether one repeats itself
labels page       [BATCH ...]  one offline HTML file in which a person judges batches by keyboard
"""


def labels(arguments: Sequence[str]) -> int:
    """The subcommand: its first word says what is to be done."""
    parser = version_parser("labels", "Judgments: batches out, answers in, and how far judges agree.", _FORMS)
    parser.add_argument("action", choices=list(_ACTIONS))
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="answers, or batches for a page (default: those waiting)")
    add("--judge", default="", metavar="NAME", help="who judged, where the lines do not say")
    add("--model", default="", help="the judge's model id, where the lines do not say; empty for a person")
    add("--judged-on", metavar="DATE", help="YYYY-MM-DD, default today")
    add("--unbatched", action="store_true", help="import pairs of no batch too, judged on whole documents")
    add("--share", type=float, metavar="PART", help="of the judged pairs, above 0 to 1 (double)")
    add("--rehearse", action="store_true", help="agreement over the rehearsal's cells")
    add("--output", type=Path, metavar="FILE", help="where the page goes")
    add("--json", action="store_true", help="agreement as JSON")
    options = parser.parse_intermixed_args(arguments)
    for action, flags in _FLAGS.items():
        if given := [flag for flag in flags if _is_given(options, flag) and options.action != action]:
            parser.error(f"--{given[0]} belongs to labels {action}")
    if options.judge and options.action not in ("import", "page"):
        parser.error("--judge belongs to labels import and labels page")
    if options.files and options.action not in ("import", "page"):
        parser.error(f"labels {options.action} takes no files: it reads the version's labels and batches")
    version = newest_version(options.source, options.eval_set_path, rehearsal=options.rehearse)
    return _ACTIONS[options.action](version, options, parser)


def _is_given(options: argparse.Namespace, flag: str) -> bool:
    value = getattr(options, flag.replace("-", "_"))
    return value is not None and value is not False and value != ""  # a share of 0 is given, and wrong


def _import(version: Version, options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from runner.base.schema import is_date
    from runner.tools.labels import import_files

    if not options.files:
        parser.error("labels import needs a FILE")
    judged_on = options.judged_on or datetime.now(UTC).date().isoformat()
    if not is_date(judged_on):
        raise InputError(f"--judged-on: {judged_on!r} is not a date (YYYY-MM-DD).")
    given = {"judge": options.judge, "model": options.model, "judged_on": judged_on, "unbatched": options.unbatched}
    added = import_files(version, options.files, **given)
    answer(f"{version.name}: {added} labels added")
    return 0


def _double(version: Version, options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
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
        "--judge=OTHER-NAME FILE ..."
    )
    return 0


def _agreement(version: Version, options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from runner.tools.labels import agreement_of

    data, lines = agreement_of(version)
    if options.json:
        answer_json(data)
    else:
        answer("\n".join(lines))
    return 0


def _page(version: Version, options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from runner.eval_set.lock import verify_version
    from runner.eval_set.preregistration import verified_preregistration
    from runner.report.labels_page import write_labels_page

    verify_version(version)
    if version.preregistration_path.exists():
        verified_preregistration(version)
    answer(str(write_labels_page(version, options.files, options.output, judge=options.judge)))
    return 0


_Action = Callable[[Version, argparse.Namespace, argparse.ArgumentParser], int]
_ACTIONS: dict[str, _Action] = {"import": _import, "double": _double, "agreement": _agreement, "page": _page}
_FLAGS = {
    "import": ("model", "judged-on", "unbatched"),
    "double": ("share",),
    "agreement": ("rehearse", "json"),
    "page": ("output",),
}
