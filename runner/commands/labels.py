"""`labels`: answers in, second readings out, agreement, and a page to judge by keyboard."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from runner.base.errors import InputError
from runner.base.progress import say
from runner.eval_set.version import DRIVER, Version, newest_version
from runner.tools.console import answer, answer_json, version_parser

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
    add(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="answers to import; batches for a page (default: those that wait for a judge)",
    )
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
    from runner.judge.answers import Importer

    if not options.files:
        parser.error("labels import needs a FILE")
    judged_on = options.judged_on or datetime.now(UTC).date().isoformat()
    if not is_date(judged_on):
        raise InputError(f"--judged-on: {judged_on!r} is not a date (YYYY-MM-DD).")
    added = 0
    with _open_for_labels(version):
        importer = Importer(version, unbatched=options.unbatched)
        for path in options.files:
            _tell_of_its_form(path)
            done = importer.take_file(path, judge=options.judge, model=options.model, judged_on=judged_on)
            added += done.added
            say(f"{path}: {done.added} labels added" + (f", {done.known} known already" if done.known else ""))
    answer(f"{version.name}: {added} labels added")
    return 0


def _tell_of_its_form(path: Path) -> None:
    """What an editor left in a file and a reader passes over is said, with its place."""
    if not path.is_file():
        return
    content = path.read_bytes()
    found = {1: "a byte order mark"} if content.startswith(b"\xef\xbb\xbf") else {}
    if b"\r\n" in content:
        line = content[: content.index(b"\r\n")].count(b"\n") + 1
        found[line] = f"{found[line]} and CRLF line ends" if line in found else "CRLF line ends"
    for line, form in found.items():
        say(f"{path}:{line}: {form}; read as plain lines")


@contextmanager
def _open_for_labels(version: Version) -> Iterator[None]:
    """The version to oneself while labels may be added to it; else an InputError says why they may not."""
    from runner.base.store import disk_errors, exclusive
    from runner.eval_set.labels import closed
    from runner.eval_set.lock import verify_version
    from runner.eval_set.preregistration import verified_preregistration
    from runner.judge.carried_labels import carry_labels

    with disk_errors(version.folder), exclusive(version.work / "version.lock", f"another run of {version.name}"):
        verify_version(version)
        if reason := closed(version):
            raise InputError(reason)
        if not version.preregistration_path.exists():
            raise InputError(f"{version.name} has no preregistration yet, so nothing of it was given to a judge.")
        verified_preregistration(version)
        if said := carry_labels(version).sentence:  # of a run that was killed between the two
            say(said)
        yield


def _double(version: Version, options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from runner.eval_set.labels import version_labels
    from runner.judge.second_reading import SHARE, export_doubles

    share = SHARE if options.share is None else options.share
    if not 0 < share <= 1:
        raise InputError(f"--share {share:g}: a part of the judged pairs is wanted, above 0 and at most 1.")
    with _open_for_labels(version):
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
    from runner.decide.judge_agreement import judge_agreement, summary_lines
    from runner.eval_set.labels import version_labels
    from runner.eval_set.lock import verify_version
    from runner.eval_set.runs import read_run
    from runner.eval_set.version import load_queries

    verify_version(version)
    found = version_labels(version)
    if not found:
        raise InputError(f"{version.name} has no labels yet. Judge its batches, import the answers, and ask again.")
    plan = version.plan()
    query_ids = [query.query_id for query in load_queries(version.queries_path)]
    cells = [cell for cell in plan.cells if version.run_path(cell).exists()]
    runs = {cell: read_run(version.run_path(cell), cell, query_ids) for cell in cells}
    panel = judge_agreement(found, runs, query_ids, plan)
    if options.json:
        answer_json(panel.model_dump())
    else:
        answer("\n".join([f"{version.name}: {len(found)} labels", *summary_lines(panel)]))
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
