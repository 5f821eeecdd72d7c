"""results.html: one self-contained page, a pure function of results, receipt and the templates."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from runner.base.canonical import rounded, sha256
from runner.base.places import COMMAND
from runner.eval_set import catalog
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.results import CellResult, Results
from runner.judge.agreement.kappa import left_open
from runner.report.page_frame import inert, rendered
from runner.report.results_page.by_query import AT_FIRST, fragment, matrix
from runner.report.results_page.challenger import left_out
from runner.report.results_page.chunks import chunk_tables
from runner.report.results_page.first_screen import first_screen
from runner.report.results_page.forest import forest
from runner.report.results_page.null_strips import null_strips
from runner.report.results_page.where_embedded import embedded
from runner.report.sentences import can_say, weaknesses
from runner.score.slices import slices

TEMPLATE_VERSION = 1
"""Raised by every change of the page's bytes, once a release: of a template, of this module, or of what lies under
runner/report for it; the page names it. The report of `post-bulk` has its own."""

_TEMPLATE = re.compile(rb'<meta name="generator" content="per-source-eval, page template (\d+)">')

STYLES = ("_forest.css.j2", "_strips.css.j2", "_results.css.j2")
SCRIPTS = ("results.js.j2",)
"""The templates that make the page's one style, after what all pages share, and its one script."""


def page(
    written: bytes,
    listed: bytes,
    receipt: Receipt | None,
    decision: Decision | None = None,
    *,
    local_copy: bool = False,
) -> bytes:
    """UTF-8 HTML without network or clock: the same bytes for the same inputs; whole without its script, too.

    `written` is results.json, `listed` lists.json. Text from documents, queries and labels is shown, never interpreted.
    A `local_copy` has passages of documents that are not ours, and says so.
    """
    stored = Results.model_validate_json(written)
    shown, lists = inert(stored), inert(RankedLists.model_validate_json(listed))
    decided = None if decision is None else inert(decision)
    measured = None if receipt is None else inert(Receipt.model_validate(rounded(receipt.model_dump())))
    by_query = matrix(shown, lists)
    whole = shown.plan.model_dump() | {"switching_cost": shown.plan.switching_cost}  # though it is the default
    plan = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=1000)
    return rendered(
        "results.html.j2",
        styles=STYLES,
        scripts=SCRIPTS,
        filters=(ranked, confirmation, fragment),
        results=shown,
        lists=lists,
        plots={
            "first": first_screen(shown, decided),
            "forest": forest(shown),
            "matrix": by_query,
            "shown": frozenset(row.query.id for row in by_query.rows),
            "left_out": left_out(shown),
            "nulls": null_strips(shown),
        },
        chunks=chunk_tables(shown),
        slices=slices(shown),
        at_first=AT_FIRST,
        decision=decided,
        local_copy=local_copy,
        receipt=measured,
        embedded=embedded(measured.backends if measured else {}, shown.plan.baseline),
        results_sha256=sha256(written),
        plan_lines=plan.splitlines(),
        commands=inert(_commands(stored)),
        double_command=inert(f"{COMMAND} labels double {shlex.quote(stored.source)}"),
        weaknesses=weaknesses(shown),
        judges_say=inert(_judges_say(stored)),
        drift_says=inert(_drift_says(stored)),
        template_version=TEMPLATE_VERSION,
    )


def template_of(path: Path) -> int | None:
    """Return the number of the template that a page says it was made with; None if it says none or is not there."""
    found = _TEMPLATE.search(path.read_bytes()[:4_000] if path.is_file() else b"")
    return int(found[1]) if found else None


def _judges_say(stored: Results) -> list[str]:
    """One sentence a second judge on what its readings can show, from figures as they are stored."""
    seconds = stored.judging.seconds if stored.judging else []
    return [f"{second.judge}: {can_say(second, stored.plan)}" for second in seconds]


def _drift_says(stored: Results) -> list[str]:
    """One sentence for each judge whose repeats were all, or none, graded alike."""
    drifts = stored.judging.drift if stored.judging else []
    unseen = {row.judge: left_open(row.same, row.repeats, stored.plan.bootstrap.confidence) for row in drifts}
    return [f"{judge}: {said}." for judge, said in unseen.items() if said]


def _commands(results: Results) -> list[str]:
    """Commands that make these results, and check a record: its locks, and all that was made from runs and labels."""
    source = shlex.quote(results.source)
    known = catalog.SOURCES.get(results.source)
    # An exploration does not say whose cells it was compared with; a baseline of a rehearsal gives it away.
    elsewhere = known is not None and results.plan.baseline != known.baseline
    rehearse = " --rehearse" if results.kind == "rehearsal" or (results.kind == "exploration" and elsewhere) else ""
    run = f"{COMMAND} run {source}{rehearse}"
    if results.kind == "exploration":
        cells = [row.cell for row in results.cells if row.role != "baseline"]
        return [" \\\n    ".join([f"{COMMAND} explore {source}{rehearse}", *map(shlex.quote, cells)])]
    if results.collection is not None:
        place = "--eval-set-path FOLDER"
        imported = "".join(" --trec-run FILE" for row in results.cells if row.provenance.imported)
        given = f"--corpus-path {shlex.quote(results.collection.name)} {place}{imported}"
        return [f"{run} {place if results.collection.judged_by else given}"]
    if results.provisional:
        return [run]
    return [run, f"{COMMAND} verify {source} --deep"]


def ranked(rows: Iterable[Any], cells: Iterable[CellResult]) -> list[Any]:
    """Rows with a `cell`, or names of cells, in the order of the ranking; those that are not in it come last."""
    places_of = {row.cell: place for place, row in enumerate(cells)}
    return sorted(rows, key=lambda row: places_of.get(row if isinstance(row, str) else row.cell, len(places_of)))


def confirmation(row: CellResult) -> str:
    """Whether a cell is confirmed, in words, with what keeps it from being so."""
    if row.role == "baseline":
        return "is the baseline"
    if not row.meets_criterion_5:
        return "no candidate"
    return "yes" if row.confirmed else f"no: {'; '.join(row.short_of)}"
