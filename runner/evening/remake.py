"""A decided record made anew from its runs and labels, and held against what lies there."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from runner import __version__
from runner.base.canonical import json_bytes, read_json
from runner.base.errors import EvalError, IntegrityError
from runner.base.records import Run
from runner.decide.decide import remade
from runner.decide.results import Scored, make_results
from runner.eval_set.door import LOCK_NAME, from_git
from runner.eval_set.plan import read_plan
from runner.eval_set.preregistration import registered_cells, verified_preregistration
from runner.eval_set.shapes.plan import Plan, Preregistration
from runner.eval_set.shapes.results import Kind
from runner.eval_set.version import Version, load_decision, load_receipt
from runner.gate.graded_gate import GradedGate
from runner.report.results_page.render import TEMPLATE_VERSION, page, template_of
from runner.score.comparison import load_comparison


def results_of(version: Version, plan: Plan, frozen: Preregistration, runs: Mapping[str, Run] | None = None) -> Scored:
    """Return results and lists that a version's runs and labels make; `runs` are those of the plan, if already read."""
    registered = registered_cells(frozen, rehearsal=version.rehearsal)
    comparison = load_comparison(version, plan, registered, runs=runs)
    kind: Kind = "rehearsal" if version.rehearsal else "production"
    return make_results(version, comparison, GradedGate.over(comparison), kind=kind)


def files_of(version: Version, scored: Scored) -> dict[str, bytes]:
    """Return results.json, lists.json, page and decision.json by name, as scores and a person make them."""
    decision = remade(load_decision(version), scored.results)
    results, lists = (json_bytes(each.model_dump()) for each in scored)
    return {
        "results.json": results,
        "lists.json": lists,
        "results.html": page(results, lists, load_receipt(version.record / "receipt.json"), decision),
        "decision.json": json_bytes(decision.model_dump()),
    }


def differing(version: Version, made: Mapping[str, bytes]) -> list[str]:
    """The names of those files that lie in the record otherwise, or not at all."""
    paths = ((name, version.record / name, content) for name, content in made.items())
    return [name for name, path, content in paths if not path.is_file() or path.read_bytes() != content]


def remake(version: Version) -> str:
    """In words, what of a locked record came out of its runs and labels anew, byte for byte.

    An IntegrityError if something did not; of a record that another release made this is said and no error, since what
    that release would make is not known here. The caller has verified the lock.
    """
    if read_json(version.record / "decision.json").get("kind") == "policy":
        return "decided by policy, which rests on nothing that could be made anew"
    needed = (version.results_path, version.lists_path, version.record / "receipt.json", version.labels_path)
    if gone := [path for path in needed if not path.is_file()]:
        raise IntegrityError(f"{gone[0]} is not there, so nothing can be made anew. Restore it from git.")
    other = _another_release(version)
    try:
        with _as_scored(version, read_json(version.results_path)["labels"]["lines"]) as scored:
            plan = read_plan(scored.plan_path(rehearsal=version.rehearsal))
            frozen = verified_preregistration(scored)
            made = files_of(scored, results_of(scored, plan, frozen))
    except (EvalError, ValueError) as error:
        if other:
            return f"made by {other}: results, lists, page and decision cannot be made anew ({error})"
        raise IntegrityError(f"{version.record} cannot be made anew from its runs and labels: {error}") from error
    wrong = differing(version, made)
    if wrong and not other:
        raise IntegrityError(
            f"{version.record}: runs and labels do not make {', '.join(wrong)}{_fields(version, made)}. What is locked "
            f"was not scored from them. Restore it ({from_git(version.record)})."
        )
    alike = ", ".join(name for name in made if name not in wrong)
    said = f"{alike} made anew byte for byte" if alike else "nothing made anew"
    if not wrong:
        return said
    return f"{said}; made by {other}, so not held against it: {', '.join(wrong)}{_fields(version, made)}"


def _fields(version: Version, made: Mapping[str, bytes]) -> str:
    """Which parts of results.json differ, "" for none."""
    then, now = read_json(version.results_path), json.loads(made["results.json"])
    names = [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
    return f" (of results.json: {', '.join(names)})" if names else ""


def _another_release(version: Version) -> str:
    """Which other release made the record, by its own files; "" if it was this one."""
    template = template_of(version.record / "results.html")
    then = {
        "release": (read_json(version.record / "receipt.json").get("tool_version"), __version__),
        "page template": (template, TEMPLATE_VERSION),
    }
    return ", ".join(f"{what} {was} (here {here})" for what, (was, here) in then.items() if was not in (None, here))


@contextmanager
def _as_scored(version: Version, n_scored: int) -> Iterator[Version]:
    """The version with the labels that results were scored with: more may have been added since."""
    lines = version.labels_path.read_bytes().splitlines(keepends=True)
    if n_scored == len(lines):
        yield version
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / version.folder.name
        folder.mkdir()
        for path in (*version.folder.parent.iterdir(), *version.folder.iterdir()):
            place = Path(scratch) if path.parent == version.folder.parent else folder
            if path not in (version.folder, version.labels_path, version.folder / LOCK_NAME):
                (place / path.name).symlink_to(path.resolve())
        (folder / version.labels_path.name).write_bytes(b"".join(lines[:n_scored]))
        yield replace(version, folder=folder, record=folder / version.record.relative_to(version.folder))
