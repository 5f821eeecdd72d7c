"""A version held to its locks, and a decided record held against what its runs and labels make anew."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runner.base.canonical import json_bytes, read_json
from runner.base.errors import EvalError, IntegrityError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.records import Run
from runner.decide.decide import remade
from runner.decide.results import Scored, make_results
from runner.eval_set.corpus import listed_documents
from runner.eval_set.door import LOCK_NAME, way_out
from runner.eval_set.lock import report_folders, unlocked, verify_lock, verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.preregistration import registered_cells, verified_preregistration
from runner.eval_set.runs import packed
from runner.eval_set.shapes.plan import Plan, Preregistration
from runner.eval_set.shapes.results import Kind
from runner.eval_set.version import Version, load_decision, load_lists, load_receipt
from runner.gate.gate import Gate
from runner.report.results_page import TEMPLATE_VERSION, page
from runner.score.comparison import load_comparison


def verify_record(version: Version, *, deep: bool = False) -> list[str]:
    """Return a line per lock with how many files are as it says; an IntegrityError for the first that does not hold.

    With `deep` also what was made anew from the runs and labels of a decided record, and of its rehearsal.
    """
    locks = verify_version(version)
    views = (replace(version, rehearsal=False), replace(version, rehearsal=True))
    lines = []
    for view, lock in zip(views, locks, strict=True):
        name = "rehearsal" if view.rehearsal else "record"
        if lock is None and (view.record / "decision.json").exists():
            raise IntegrityError(
                f"{view.record} has a decision.json and no lock.json, so nothing says that they are what was decided. "
                f"Restore the lock from git or a backup, or run {DRIVER} run {version.flags} to have both checked "
                "and locked."
            )
        if lock is not None:
            lines.append(f"{version.name} {name}: {len(lock.files)} files as locked, root {lock.root_sha256}")
            if strangers := unlocked(view.record, lock):
                named = ", ".join([*map(display, strangers[:5]), *(["..."] if strangers[5:] else [])])
                lines.append(f"{version.name} {name}: {len(strangers)} files that no lock holds: {named}")
        elif not view.rehearsal or view.results_path.exists():
            lines.append(f"{version.name} {name}: not locked")
    for report in (path for view in views for path in report_folders(view.record)):
        lock = verify_lock(report)
        assert lock is not None  # a report without its lock is an IntegrityError
        name = report.relative_to(version.folder).as_posix()
        lines.append(f"{version.name} {name}: {len(lock.files)} files as locked, root {lock.root_sha256}")
    # A lock holds what was frozen too; before there is one, the preregistration does.
    if not locks[0] and version.preregistration_path.exists():
        verified_preregistration(version)
        lines.append(f"{version.name}: plans, queries and judge's instructions as they were frozen")
    if deep:
        anew = [f"{view.name}: {remake(view)}" for view, lock in zip(views, locks, strict=True) if lock]
        lines += anew or [f"{version.name}: nothing was made anew, since nothing of it is locked"]
    return lines


def results_of(version: Version, plan: Plan, frozen: Preregistration, runs: Mapping[str, Run] | None = None) -> Scored:
    """Return results and lists that a version's runs and labels make; `runs` are those of the plan, if already read."""
    registered = registered_cells(frozen, rehearsal=version.rehearsal)
    comparison = load_comparison(version, plan, registered, runs=runs)
    kind: Kind = "rehearsal" if version.rehearsal else "production"
    return make_results(version, comparison, Gate.over(comparison), kind=kind)


def files_of(version: Version, scored: Scored) -> dict[str, bytes]:
    """Return results.json, lists.json.bz2, page and decision.json by name, as scores and a person make them."""
    decision = remade(load_decision(version), scored.results)
    results, lists = (json_bytes(each.model_dump()) for each in scored)
    return {
        "results.json": results,
        "lists.json.bz2": packed(lists),
        "results.html": page(results, lists, load_receipt(version.record / "receipt.json"), decision),
        "decision.json": json_bytes(decision.model_dump()),
    }


def differing(version: Version, made: Mapping[str, bytes]) -> list[str]:
    """Return the names of those files that lie in the record otherwise, or not at all."""
    paths = ((name, version.record / name, content) for name, content in made.items())
    return [name for name, path, content in paths if not path.is_file() or path.read_bytes() != content]


def remake(version: Version) -> str:
    """Say what of a locked record came out of its runs and labels anew, byte for byte; IntegrityError unless all did.

    The caller has verified the lock.
    """
    if read_json(version.record / "decision.json").get("kind") == "policy":
        return "decided by policy, which rests on nothing that could be made anew"
    needed = (version.results_path, version.lists_path, version.record / "receipt.json", version.labels_path)
    if gone := [path for path in needed if not path.is_file()]:
        raise IntegrityError(f"{gone[0]} is not there, so nothing can be made anew. Restore it from git or a backup.")
    recorded = read_json(version.results_path)
    try:
        with _as_scored(version, recorded["labels"]["lines"]) as scored:
            plan = read_plan(scored.plan_path(rehearsal=version.rehearsal))
            made = files_of(scored, results_of(scored, plan, verified_preregistration(scored)))
            if differing(version, made):
                _hold_documents(version)
    except (EvalError, ValueError) as error:
        raise IntegrityError(f"{version.record} cannot be made anew from its runs and labels: {error}") from error
    left = ""
    if _by_another_template(version.record / "results.html"):
        del made["results.html"]
        left = "; results.html is by another release's template, and was not made again"
    if wrong := differing(version, made):
        # Which fields moved tells a changed statistic from a changed run.
        now = json.loads(made["results.json"])
        fields = [name for name in sorted({*recorded, *now}) if recorded.get(name) != now.get(name)]
        which = f" (of results.json: {', '.join(fields)})" if fields else ""
        raise IntegrityError(
            f"{version.record}: runs and labels do not make {', '.join(wrong)}{which}. What is locked was not scored "
            f"from them by this release. {way_out(version.record)}"
        )
    return f"{', '.join(made)} made anew byte for byte{left}"


def _hold_documents(version: Version) -> None:
    """Raise InputError, which names them, if passages of the record are of documents that are gone or others now."""
    if load_lists(version).texts and version.embedded_corpus is not None:
        listed_documents(version, version.embedded_corpus)


def _by_another_template(page_path: Path) -> bool:
    """Return whether a page, whose bytes the lock holds, says that it is by another template than today's."""
    head = page_path.read_bytes()[:4_000] if page_path.is_file() else b""
    named = re.search(rb", page template (\d+)\"", head)
    return named is not None and int(named[1]) != TEMPLATE_VERSION


@contextmanager
def _as_scored(version: Version, n_scored: int) -> Iterator[Version]:
    """Make the version with the labels that results were scored with: more may have been added since."""
    lines = version.labels_path.read_bytes().splitlines(keepends=True)
    if n_scored == len(lines):
        yield version
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / version.folder.parent.name
        shutil.copytree(version.folder.parent, copy, ignore=shutil.ignore_patterns(LOCK_NAME, ".*"))
        folder = copy / version.folder.name
        (folder / version.labels_path.name).write_bytes(b"".join(lines[:n_scored]))
        yield replace(version, folder=folder)
