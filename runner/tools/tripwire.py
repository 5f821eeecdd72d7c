"""The tripwire: golden queries whose right answers are known, scored and compared with a committed snapshot.

In: rankings, the right answers, a snapshot and a tolerance. Out: each figure that fell, or a new snapshot. It must not
know how a ranking was made. Measures and messages are those of VaultMind's baseline package; a query deleted, added or
edited is an error here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from runner.base.canonical import JSON, json_bytes, read_json, write_atomic
from runner.base.errors import InputError
from runner.base.given_files import LONGEST_LINE, STDIN, display, printable, quoted
from runner.base.plain_yaml import read_yaml
from runner.base.records import SCORE_UNIT
from runner.base.schema import FrozenModel, Share, checked
from runner.base.store import disk_errors
from runner.eval_set.lock import verify_lock
from runner.eval_set.runs import is_run, read_run
from runner.eval_set.trec import read_trec_run

UPDATE = "If that is meant, run `tripwire update` with the same arguments and commit the snapshot."

_Text = Annotated[str, Field(pattern=r"\S")]
_Cutoff = Annotated[int, Field(ge=1)]


class GoldenQuery(FrozenModel):
    """A query and the documents of which a retriever should find one early; their order says nothing."""

    name: _Text
    text: _Text
    expected: Annotated[list[_Text], Field(min_length=1)]


class QueryResult(GoldenQuery):
    """A golden query with what was retrieved for it, best first."""

    result_ids: list[_Text]
    hit_at_k: Share
    reciprocal_rank: Share


class Report(FrozenModel):
    """What a tripwire run found, and what a snapshot holds; `hit_at_k` and `mrr` are means over the queries."""

    k: _Cutoff
    limit: _Cutoff
    queries: Annotated[list[QueryResult], Field(min_length=1)]
    hit_at_k: Share
    mrr: Share


class Diff(NamedTuple):
    """Every fall in words, aggregates first, and the queries that fell, each with its documents before and after."""

    regressions: list[str]
    fallen: list[dict[str, Any]]

    @property
    def ok(self) -> bool:
        """Whether nothing fell."""
        return not self.regressions


def load_golden(path: str | Path) -> list[GoldenQuery]:
    """Return the golden queries of a YAML file, a list of them; an InputError names file and entry."""
    where = display(path)
    try:
        rows = read_yaml(Path(path))
    except OSError as error:
        raise InputError(f"{where} cannot be read ({error.strerror}).") from error
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{where}: a list of at least one query (name, text, expected) is expected.")
    golden = [checked(GoldenQuery, row, f"{where}, entry {number}") for number, row in enumerate(rows, start=1)]
    if repeated := _repeated(golden):
        raise InputError(f"{where}: {', '.join(map(quoted, repeated))} names two entries. Give each its own name.")
    return golden


def load_snapshot(path: str | Path) -> Report:
    """Return the report in a file; an InputError if its figures do not follow from its result ids."""
    where = display(path)
    report = checked(Report, read_json(Path(path)), where)
    # Scored once more from its own result ids, it must come out the same.
    rankings = {row.name: row.result_ids for row in report.queries}
    if _content(report) != _content(rankings_report(rankings, report.queries, k=report.k, limit=report.limit)):
        raise InputError(
            f"{where} was edited: its figures do not follow from its result ids. Restore it from git or a backup."
        )
    return report


def hit_at_k(results: Sequence[str], expected: Sequence[str], k: int) -> float:
    """Return 1.0 if any expected document is among the first k results, else 0.0; 0.0 if either is empty or k < 1."""
    return float(not set(expected).isdisjoint(results[: max(k, 0)]))


def reciprocal_rank(results: Sequence[str], expected: Sequence[str]) -> float:
    """Return 1 / the best rank of an expected document over the whole list, 0.0 if none is found."""
    wanted = set(expected)
    return next((1 / rank for rank, result in enumerate(results, start=1) if result in wanted), 0.0)


def rankings_report(
    rankings: Mapping[str, Sequence[str]],
    golden: Sequence[GoldenQuery],
    *,
    k: int = 5,
    limit: int = 10,
) -> Report:
    """Return the report of rankings, each under its golden query's name; the first `limit` ids count.

    InputError for a cutoff that is none, KeyError for a query without a ranking.

    >>> golden = [GoldenQuery(name="fees", text="who pays the fee", expected=["b2"])]
    >>> rankings_report({"fees": ["b1", "b2"]}, golden).mrr
    0.5
    """
    if not 1 <= k <= limit:
        raise InputError(f"--k {k} and --limit {limit}: 1 <= k <= limit is needed.")
    queries = []
    for query in golden:
        ids = list(rankings[query.name][:limit])
        measured = {
            "hit_at_k": hit_at_k(ids, query.expected, k),
            "reciprocal_rank": reciprocal_rank(ids, query.expected),
        }
        row = query.model_dump(include={*GoldenQuery.model_fields}) | {"result_ids": ids} | measured
        queries.append(checked(QueryResult, row, f"query {quoted(query.name)}"))
    hit = sum(row.hit_at_k for row in queries) / len(queries)
    mrr = sum(row.reciprocal_rank for row in queries) / len(queries)
    return Report(k=k, limit=limit, queries=queries, hit_at_k=hit, mrr=mrr)


def compare_to_snapshot(current: Report, snapshot: Report, tolerance: float = 0.02) -> Diff:
    """Return every measure, of all queries and of each, that lies more than `tolerance` below the snapshot's.

    InputError if the two cannot be compared (see `incomparable`), and for a tolerance outside of [0, 1).
    """
    if not 0 <= tolerance < 1:
        raise InputError(f"--tolerance {tolerance:g} compares nothing; from 0 to less than 1 is possible.")
    if current.k != snapshot.k:
        raise InputError(f"k mismatch: snapshot k={snapshot.k}, current k={current.k}. {UPDATE}")
    if reasons := "\n  ".join(incomparable(current, snapshot)):
        raise InputError(f"The golden queries are not those of the snapshot:\n  {reasons}\n{UPDATE}")
    fell = [
        (name, f"{what} dropped: {then:.2f} -> {now:.2f} (tolerance {tolerance:.2f})")
        for name, what, then, now in _pairs(current, snapshot)
        if _units(then) - _units(now) > _units(tolerance)
    ]
    names, before = {name for name, _ in fell}, _by_name(snapshot)
    fallen = [
        {"name": row.name, "before": before[row.name].result_ids, "after": row.result_ids}
        for row in current.queries
        if row.name in names
    ]
    return Diff([text for _, text in fell], fallen)


def incomparable(current: Report, snapshot: Report) -> list[str]:
    """Return why a report cannot be held against a snapshot, a line per reason; order of expected documents is none."""
    reasons = [f"limit {current.limit} instead of {snapshot.limit}"] if current.limit != snapshot.limit else []
    for where, report in (("golden queries", current), ("snapshot", snapshot)):
        reasons += [f"query {quoted(name)} is twice in the {where}" for name in _repeated(report.queries)]
    now, then = _by_name(current), _by_name(snapshot)
    reasons += [f"query {quoted(name)} is not in the snapshot" for name in now if name not in then]
    reasons += [f"query {quoted(name)} is in the snapshot alone" for name in then if name not in now]
    for name in (name for name in now if name in then):
        if now[name].text != then[name].text:
            reasons.append(f"query {quoted(name)} had the text {quoted(then[name].text)}")
        if set(now[name].expected) != set(then[name].expected):
            reasons.append(f"query {quoted(name)} expected {listed(then[name].expected)}")
    return reasons


def _pairs(current: Report, snapshot: Report) -> Iterator[tuple[str | None, str, float, float]]:
    """Yield (query or None, what in words, then, now) of every measure that both have, aggregates first."""
    yield None, "aggregate hit_at_k", snapshot.hit_at_k, current.hit_at_k
    yield None, "aggregate mrr", snapshot.mrr, current.mrr
    before = _by_name(snapshot)
    for row in current.queries:
        if then := before.get(row.name):
            yield row.name, f"query {quoted(row.name)} hit_at_k", then.hit_at_k, row.hit_at_k
            yield row.name, f"query {quoted(row.name)} reciprocal_rank", then.reciprocal_rank, row.reciprocal_rank


def _content(report: Report) -> bytes:
    """Return the snapshot's bytes, in which figures have nine places."""
    return json_bytes(report.model_dump())


def _units(value: float) -> int:
    """Return whole units of 1e-9, as JSON holds them: .80 less .78 is then .02, and no bit more."""
    return round(value * SCORE_UNIT)


def _by_name(report: Report) -> dict[str, QueryResult]:
    return {row.name: row for row in report.queries}


def _repeated(queries: Sequence[GoldenQuery]) -> list[str]:
    return [name for name, times in Counter(query.name for query in queries).items() if times > 1]


def listed(ids: Sequence[str]) -> str:
    """Return document ids for people, "nothing" for none."""
    return ", ".join(map(printable, ids)) or "nothing"


def read_rankings(path: Path, golden: Sequence[GoldenQuery], limit: int) -> dict[str, list[str]]:
    """Return each golden query's best `limit` documents or more in a run file; its name is the query's id in the run.

    The file is a cell's run of ours, held to the lock of its version, or a TREC run. A query without a line is an
    InputError: it may never have been asked.
    """
    if str(path) == STDIN:
        raise InputError("A run is read from a file, not from standard input.")
    if not is_run(path):
        run = read_trec_run(path, depth=limit).run
    else:
        if path.absolute().parent.name == "runs":
            verify_lock(path.absolute().parent.parent)
        run = read_run(path, display(path))
    if absent := [query.name for query in golden if query.name not in run.hits]:
        raise InputError(
            f"{display(path)} has no query {', '.join(map(printable, absent))}. A golden query's name is the query's "
            "id in the run; retrieve for all of them."
        )
    return {query.name: [hit.doc_id for hit in run.hits[query.name]] for query in golden}


def check_lines(report: Report, diff: Diff, snapshot: Path, tolerance: float) -> list[str]:
    """Return what a check found: that nothing fell, or every fall with the documents before and after."""
    means = f"hit@{report.k} {report.hit_at_k:.2f}, mrr {report.mrr:.2f}"
    if diff.ok:
        nothing_fell = f"nothing fell by more than {tolerance:g} below {snapshot}"
        return [printable(f"✓ {len(report.queries)} golden queries: {means}; {nothing_fell}", LONGEST_LINE)]
    lines = [f"✗ the tripwire fired: {means}; against {snapshot}, tolerance {tolerance:g}"]
    lines += [f"  {text.replace('->', '→')}" for text in diff.regressions]
    for row in diff.fallen:
        lines += [f"  {row['name']} {when}: {listed(row[when])}" for when in ("before", "after")]
    return [printable(line, LONGEST_LINE) for line in lines]


def update_snapshot(report: Report, path: Path) -> tuple[dict[str, JSON], list[str]]:
    """Write the report to the snapshot unless it says the same; return what was done, as data and as a line."""
    is_new = not path.exists()
    written = is_new or _content(load_snapshot(path)) != _content(report)
    if written:
        with disk_errors(path):
            write_atomic(path, _content(report))
    done = f"a first snapshot, of {len(report.queries)} golden queries" if is_new else "written"
    line = printable(f"{path}: {done if written else 'nothing changed'}", LONGEST_LINE)
    return {"written": written, "report": report.model_dump()}, [line]
