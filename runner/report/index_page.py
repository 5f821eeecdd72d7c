"""One page over all sources: what is decided, by how much, how old it is, what is open, and what comes next.

A pure function of the eval sets' files, of a date that is given, and of the folder that the page is to lie in.
"""

import os
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from runner.base.canonical import file_sha256
from runner.base.errors import InputError
from runner.base.figures import fitting_signed
from runner.base.places import DRIVER
from runner.base.schema import is_date
from runner.decide.roster import Standing, moved_on, next_to_evaluate, standing
from runner.decide.tiers import interval_of
from runner.eval_set.catalog import SOURCES
from runner.eval_set.history import abandoned, versions_of
from runner.eval_set.lock import report_folders
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_receipt, load_results
from runner.report.chart import Axis, Whisker, axis_over
from runner.report.page_frame import inert, rendered

TEMPLATE_VERSION = 1
"""Raised with every change of a template or of this module that changes the page; the page names it."""

STYLES = ("_forest.css.j2", "_index.css.j2")

_STEPS = (
    ("plan.yaml", "plan"),
    ("corpus.jsonl", "sample"),
    ("queries.yaml", "queries"),
    ("preregistration.json", "preregistered"),
    ("labels.jsonl", "labels"),
    ("results.json", "results"),
)
"""What an open version comes to have, in this order."""


class GainShown(NamedTuple):
    """Of the decided cell, in nDCG@10 over the baseline, or of the best other one if that is the baseline.

    `alone` if the interval is that of one cell outside the tested family; `place` is where it is drawn.
    """

    cell: str
    is_chosen: bool
    ends: tuple[float, float, float]
    alone: bool
    texts: Sequence[str]
    level: float
    place: Whisker | None = None


class SampleAge(NamedTuple):
    """The day by which the documents were drawn and how long ago that is; "" and None if nothing says so."""

    since: str
    days: int | None


class OpenVersion(NamedTuple):
    """A version that is neither decided nor given up, with what it has, and the command that goes on with it."""

    number: int
    has: Sequence[str]
    lacks: Sequence[str]
    rehearsed: bool
    command: str


class SourceRow(NamedTuple):
    """A source, the decision in force, and what is open; `version` is None if nothing has begun."""

    order: int
    source: str
    policy: str
    state: str
    version: int | None
    live: str
    decision: Decision | None
    decided_days: int | None
    gain: GainShown | None
    queries: int | None
    predicted: str
    observed: str
    corpus: SampleAge | None
    moved_on: Sequence[str]
    open: Sequence[OpenVersion]
    abandoned: Sequence[int]
    links: Sequence[tuple[str, str]]


def index_page(standings: Sequence[Standing], today: str, folder: Path) -> bytes:
    """UTF-8 HTML without script, network or clock; `folder` is where it will lie, which its links start from.

    Sources outside of the roster come last. Raises InputError for a date that is none, or that lies before a record.
    """
    if not is_date(today):
        raise InputError(f"{today} is no date; the index is of a day like 2026-03-01.")
    rows = [_row(one, today, folder) for one in standings]
    roster = [one for one in standings if one.source.trigger_order]
    ends = [end for row in rows if row.gain for end in row.gain.ends]
    axis = axis_over(ends, include=(0.0,), ticks=3) if ends else None
    return rendered(
        "index.html.j2",
        styles=STYLES,
        today=today,
        rows=[_placed(row, axis) for row in inert(rows)],
        axis=axis,
        following=inert(_next(roster)),
        waiting=inert([s.source.name for s in roster if s.source.policy == "baseline" and not s.is_decided]),
        counts={
            "all": len(roster),
            "decided": sum(s.is_decided for s in roster),
            "stale": sum(bool(row.moved_on) for row in rows),
            "open": sum(bool(row.open) for row in rows),
        },
        template_version=TEMPLATE_VERSION,
    )


def _row(stands: Standing, today: str, folder: Path) -> SourceRow:
    source, decision, version = stands.source, stands.decision, stands.version
    results = _results(version) if decision is not None and decision.kind == "production" else None
    return SourceRow(
        order=source.trigger_order,
        source=source.name,
        policy=source.policy,
        state=stands.state,
        version=version.number if stands.state != "not begun" else None,
        live=stands.live,
        decision=decision,
        decided_days=None if decision is None else _days(decision.decided_on, today, f"{version.name}'s decision"),
        gain=None if results is None or decision is None else _gain(results, decision),
        queries=None if results is None else len(results.queries),
        predicted=source.predicted_best,
        observed=stands.observed_best,
        corpus=_corpus(version, today),
        moved_on=moved_on(stands),
        open=_open_versions(version),
        abandoned=[one.number for one in versions_of(version) if abandoned(one) is not None],
        links=_links(version, folder),
    )


def _results(version: Version) -> Results | None:
    return load_results(version) if version.results_path.exists() else None


def _gain(results: Results, decision: Decision) -> GainShown | None:
    """The gain that a row shows; None if nothing was compared."""
    rows = [row for row in results.cells if row.test is not None]
    chosen = next((row for row in rows if row.cell == decision.chosen.cell), None)
    row = chosen or next(iter(rows), None)
    if row is None or row.test is None:
        return None
    low, high = interval_of(row.test)
    ends = (row.differences["ndcg@10"].mean, low, high)
    return GainShown(
        cell=row.cell,
        is_chosen=chosen is not None,
        ends=ends,
        alone=row.test.simultaneous is None,
        texts=[fitting_signed(value, low, high) for value in ends],
        level=100 * (1 - results.plan.significance.alpha),
    )


def _corpus(version: Version, today: str) -> SampleAge | None:
    """How old the documents are at least: what first finished with this very manifest says so; None without one.

    The manifest has no date of its own: a version that was opened from another may have taken over its documents.
    """
    if not version.corpus_path.exists():
        return None
    manifest = file_sha256(version.corpus_path)
    alike = [
        one for one in versions_of(version) if one.corpus_path.exists() and file_sha256(one.corpus_path) == manifest
    ]
    days = sorted(day for one in alike for day in _finished(one))
    if not days:
        return SampleAge("", None)
    return SampleAge(days[0], _days(days[0], today, f"{version.name}'s receipt"))


def _finished(version: Version) -> list[str]:
    """The days on which the record and its rehearsal were finished, as far as they were."""
    paths = [folder / "receipt.json" for folder in (version.folder, version.folder / "rehearsal")]
    return [load_receipt(path).finished_on[:10] for path in paths if path.exists()]


def _days(since: str, today: str, what: str) -> int:
    if not is_date(since):
        raise InputError(f"{what} is dated {since}, which is no day. Restore it from git.")
    days = (date.fromisoformat(today) - date.fromisoformat(since)).days
    if days < 0:
        raise InputError(f"{what} is of {since}, after {today}. Set this machine's clock, or give a later day.")
    return days


def _open_versions(version: Version) -> list[OpenVersion]:
    found = [
        one for one in versions_of(version) if not (one.folder / "decision.json").exists() and abandoned(one) is None
    ]
    return [
        OpenVersion(
            number=one.number,
            has=[name for file, name in _STEPS if (one.folder / file).exists()],
            lacks=[name for file, name in _STEPS if not (one.folder / file).exists()],
            rehearsed=(one.folder / "rehearsal" / "decision.json").exists(),
            command=f"{DRIVER} run {one.flags}",
        )
        for one in found
    ]


def _links(version: Version, folder: Path) -> list[tuple[str, str]]:
    """Pages of the version that are there, by what they are, with addresses relative to `folder`."""
    pages = [("results", version.folder / "results.html"), ("rehearsal", version.folder / "rehearsal" / "results.html")]
    if reports := report_folders(version.folder):
        pages.append((f"substrate {reports[-1].name}", reports[-1] / "post-bulk.html"))
    return [
        (text, quote(Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()))
        for text, path in pages
        if path.exists()
    ]


def _next(standings: Sequence[Standing]) -> dict[str, str] | None:
    """The source that the roster has next, and the command that begins it."""
    following = next_to_evaluate(list(standings))
    if following is None:
        return None
    command = f"{DRIVER} run {following.version.flags} --corpus-path FOLDER"
    return {"source": following.source.name, "command": command}


def _placed(row: SourceRow, axis: Axis | None) -> SourceRow:
    if row.gain is None or axis is None:
        return row
    return row._replace(gain=row.gain._replace(place=axis.whisker(*row.gain.ends)))


def sources_outside(versions: Callable[[str], Version]) -> list[Standing]:
    """Sources of the catalog that have no place in the roster and yet a version here; collections have none."""
    found = [spec.name for spec in SOURCES.values() if not spec.trigger_order and spec.policy != "external"]
    standings = [standing(versions(name)) for name in found]
    return [one for one in standings if one.state != "not begun"]
