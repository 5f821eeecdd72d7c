"""What a tripwire reads of run files, what it writes, and what it says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.base.canonical import JSON, json_bytes, write_atomic
from runner.base.errors import InputError
from runner.base.given_files import LONGEST_LINE, STDIN, decoded, display, numbered_lines, printable
from runner.base.store import disk_errors
from runner.eval_set.lock import verify_lock
from runner.eval_set.runs import RUN_HEADER, read_run
from runner.eval_set.trec import read_trec_run
from runner.tools.tripwire.tripwire import Diff, GoldenQuery, Report, changes, listed, load_snapshot


def read_rankings(path: Path, golden: Sequence[GoldenQuery], limit: int) -> dict[str, list[str]]:
    """Return each golden query's best `limit` documents or more in a run file; its name is the query's id in the run.

    The file is a cell's run of ours, held to the lock of its version, or a TREC run. A query without a line is an
    InputError: it may never have been asked.
    """
    if str(path) == STDIN:
        raise InputError("A run is read from a file, not from standard input.")
    if next(numbered_lines(path), (0, b""))[1] != RUN_HEADER.encode():
        run = read_trec_run(path, depth=limit).run
    else:
        if path.absolute().parent.name == "runs":
            verify_lock(path.absolute().parent.parent)
        lines = (decoded(line, f"{display(path)}:{number}") for number, line in numbered_lines(path) if number > 1)
        run = read_run(path, display(path), list(dict.fromkeys(line.partition("\t")[0] for line in lines)))
    if absent := [query.name for query in golden if query.name not in run.hits]:
        raise InputError(
            f"{display(path)} has no query {', '.join(map(printable, absent))}. A golden query's name is the query's "
            "id in the run; retrieve for all of them."
        )
    return {query.name: [hit.doc_id for hit in run.hits[query.name]] for query in golden}


def fallen_rows(report: Report, snapshot: Report, diff: Diff) -> list[dict[str, Any]]:
    """Return the queries that fell, each with its documents before and after."""
    before = {row.name: row.result_ids for row in snapshot.queries}
    return [
        {"name": row.name, "before": before[row.name], "after": row.result_ids}
        for row in report.queries
        if row.name in diff.fallen
    ]


def check_lines(
    report: Report, diff: Diff, fallen: Sequence[Mapping[str, Any]], snapshot: Path, tolerance: float
) -> list[str]:
    """Return what a check found: that nothing fell, or every fall with the documents before and after."""
    means = f"hit@{report.k} {report.hit_at_k:.2f}, mrr {report.mrr:.2f}"
    if diff.ok:
        kept = f"nothing fell by more than {tolerance:g} below {snapshot}"
        return [printable(f"✓ {len(report.queries)} golden queries: {means}; {kept}", LONGEST_LINE)]
    lines = [f"✗ the tripwire fired: {means}; against {snapshot}, tolerance {tolerance:g}"]
    lines += [f"  {text.replace('->', '→')}" for text in diff.regressions]
    for row in fallen:
        lines += [f"  {row['name']} {when}: {listed(row[when])}" for when in ("before", "after")]
    return [printable(line, LONGEST_LINE) for line in lines]


def update_snapshot(report: Report, path: Path) -> tuple[dict[str, JSON], list[str]]:
    """Write the report to the snapshot if it changes anything; return what it changes, as data and as lines."""
    is_new = not path.exists()
    changed = [] if is_new else changes(report, load_snapshot(path))
    written = is_new or bool(changed)
    if written:
        with disk_errors(path):
            write_atomic(path, json_bytes(report.model_dump()))
    lines = [f"{path}: {'written' if written else 'nothing changed'}", *(f"  {line}" for line in changed)]
    if is_new:
        lines = [f"{path}: a first snapshot, of {len(report.queries)} golden queries"]
    data = {"written": written, "changes": changed, "report": report.model_dump()}
    return data, [printable(line, LONGEST_LINE) for line in lines]
