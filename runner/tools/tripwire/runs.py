"""What a tripwire is run on (rankings of run files, a tolerance, also from measured noise) and what it says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.base.canonical import JSON, file_sha256, json_bytes, read_json, write_atomic
from runner.base.errors import InputError
from runner.base.given_files import LONGEST_LINE, STDIN, decoded, display, numbered_lines, printable
from runner.base.places import DRIVER
from runner.base.records import Run, parse_cell
from runner.base.schema import checked
from runner.base.store import disk_errors
from runner.base.terminal import Signs
from runner.eval_set.lock import verified, verify_lock
from runner.eval_set.runs import RUN_HEADER, read_run
from runner.eval_set.shapes.results import NoiseFloor
from runner.eval_set.trec import read_trec_run
from runner.eval_set.version import existing_version, load_cell_file, load_queries
from runner.tools.tripwire.tripwire import Diff, GoldenQuery, Report, changes, listed, load_snapshot


def read_rankings(path: Path, golden: Sequence[GoldenQuery], limit: int) -> dict[str, list[str]]:
    """Each golden query's best `limit` documents or more in a run file; a query's name is its id in the run.

    The file is a cell's run of ours or a TREC run. A run of ours in its version is held to the version's lock and
    queries, and may have no hit for a query. Elsewhere a query without a line is an InputError: it may never have been
    asked.
    """
    if str(path) == STDIN:
        raise InputError("A run is read from a file, not from standard input.")
    queries_path = _queries_path(path)
    if next(numbered_lines(path), (0, b""))[1] != RUN_HEADER.encode():
        run = read_trec_run(path, depth=limit).run
    elif queries_path is None:
        run = read_run(path, display(path), _ids(path))
    else:
        run = _recorded_run(path, queries_path, golden)
    if absent := [query.name for query in golden if query.name not in run.hits]:
        raise InputError(
            f"{display(path)} has no query {', '.join(map(printable, absent))}. A golden query's name is the query's "
            "id in the run; retrieve for all of them."
        )
    return {query.name: [hit.doc_id for hit in run.hits[query.name]] for query in golden}


def _ids(path: Path) -> list[str]:
    lines = (decoded(line, f"{display(path)}:{number}") for number, line in numbered_lines(path) if number > 1)
    return list(dict.fromkeys(line.partition("\t")[0] for line in lines))


def _queries_path(run: Path) -> Path | None:
    """queries.yaml of the version that a run lies in, as record or as rehearsal; None for a run elsewhere."""
    runs = run.absolute().parent
    record = runs.parent
    path = (record.parent if record.name == "rehearsal" else record) / "queries.yaml"
    return path if runs.name == "runs" and path.exists() else None


def _recorded_run(path: Path, queries_path: Path, golden: Sequence[GoldenQuery]) -> Run:
    record = path.absolute().parent.parent
    verify_lock(record)
    texts = {query.query_id: query.text for query in load_queries(queries_path)}
    for query in golden:
        if query.name not in texts:
            raise InputError(f"{queries_path} has no query {printable(query.name)}; a golden query's name is its id.")
        if texts[query.name] != query.text:
            raise InputError(
                f"Golden query {printable(query.name)} has another text than {queries_path}, whose text was retrieved "
                "for. Correct the golden query."
            )
    cell_path = record / "cells" / f"{path.stem}.json"
    facts = load_cell_file(cell_path)
    if facts.run_sha256 != file_sha256(path) or facts.queries_sha256 != file_sha256(queries_path):
        raise InputError(
            f"{path} is not the run that {cell_path} names, or was made for other queries. Run the driver again."
        )
    return read_run(path, facts.cell, list(texts))


def noise_tolerance(results: Path) -> tuple[float, str]:
    """The measured noise as a tolerance, and the cell that it was measured on.

    It is noise_floor.max_change of results.json: the most that nDCG@10 of one query moved when the same texts were
    embedded again in other batches. No mean can have moved by more. It knows nothing of other machines.
    """
    value = read_json(verified(results))
    floor = value.get("noise_floor") if isinstance(value, dict) else None
    if floor is None:
        raise InputError(f"{display(results)} has no noise floor; none was measured. Give a number as the tolerance.")
    measured = checked(NoiseFloor, floor, f"{display(results)}: noise_floor")
    return measured.max_change, measured.cell


def cell_run_path(source: str, eval_set_path: Path | None, asked: str) -> Path:
    """The run of a cell in the newest version of a source; an InputError if it has none."""
    version, cell = existing_version(source, eval_set_path), str(parse_cell(asked))
    path = version.run_path(cell)
    if not path.exists():
        raise InputError(f"{version.name} has no run of {cell} ({path}). Run: {DRIVER} run {version.flags}")
    return path


def asked_tolerance(given: str, results: Path | None) -> tuple[float, str]:
    """The number given or, with `results`, their measured noise; and in words where that comes from."""
    origin = ""
    if results is not None:
        tolerance, cell = noise_tolerance(results)
        origin = f" (A/A noise of {cell})"
    else:
        try:
            tolerance = float(given)
        except ValueError as error:
            raise InputError(f"--tolerance {given!r} is neither a number nor 'noise'.") from error
    if not 0 <= tolerance < 1:
        raise InputError(f"A tolerance of {tolerance:g}{origin} compares nothing; from 0 to less than 1 is possible.")
    return tolerance, origin


def fallen_rows(report: Report, snapshot: Report, diff: Diff) -> list[dict[str, Any]]:
    """The queries that fell, each with its documents before and after."""
    before = {row.name: row.result_ids for row in snapshot.queries}
    return [
        {"name": row.name, "before": before[row.name], "after": row.result_ids}
        for row in report.queries
        if row.name in diff.fallen
    ]


def check_lines(
    report: Report, diff: Diff, fallen: Sequence[Mapping[str, Any]], snapshot: Path, tolerance: str, signs: Signs
) -> list[str]:
    """What a check found, for a terminal: that nothing fell, or every fall with the documents before and after."""
    means = f"hit@{report.k} {report.hit_at_k:.2f}, mrr {report.mrr:.2f}"
    if diff.ok:
        kept = f"nothing fell by more than {tolerance} below {snapshot}"
        return [printable(f"{signs.ok} {len(report.queries)} golden queries: {means}; {kept}", LONGEST_LINE)]
    lines = [f"{signs.no} the tripwire fired: {means}; against {snapshot}, tolerance {tolerance}"]
    lines += [f"  {text.replace('->', signs.arrow)}" for text in diff.regressions]
    for row in fallen:
        lines += [f"  {row['name']} {when}: {listed(row[when])}" for when in ("before", "after")]
    return [printable(line, LONGEST_LINE) for line in lines]


def update_snapshot(report: Report, path: Path) -> tuple[dict[str, JSON], list[str]]:
    """What the report changes in the snapshot, as data and as lines; the file is written if it changes anything."""
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
