"""A version's results, queries and grades as tables, for a notebook, a spreadsheet or a database."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.canonical import JSON, write_atomic
from runner.base.csv_files import inert_text
from runner.base.errors import InputError
from runner.base.given_files import display
from runner.base.records import SCORE_UNIT
from runner.base.store import disk_errors
from runner.eval_set.asked import asked
from runner.eval_set.labels import load_labels
from runner.eval_set.shapes.judges import Estimate, SourceFound
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.results import CellResult, Results, Turning
from runner.eval_set.trec import read_trec_qrels
from runner.eval_set.version import Version, load_lists, load_results

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, JSON]

TABLES = ("cells", "scores", "hits", "queries", "mix")
"""What results.json and lists.json.bz2 hold."""

GRADES = "grades"
"""The table of what judges said, which is a version's own."""

_COLUMNS = {
    "scores": ("query", "query_kind", "origin", "stratum", "weight", "wording", "cell", "measure", "value"),
    "hits": ("query", "cell", "rank", "doc_id", "grade", "start", "end"),
    "queries": ("query_id", "query", "paraphrased", "document", "kind", "origin", "stratum", "note"),
    "mix": tuple(Turning.model_fields),
    GRADES: ("query_id", "doc_id", "grade", "reason", "judge", "round"),
}

Content = tuple[Sequence[str], list[tuple[JSON, ...]]]
"""Columns and rows."""


def table(results: Results, lists: RankedLists, name: str) -> "DataFrame":
    """Return one of TABLES: a row per cell, per score of a query, per place in a list, or per query."""
    try:
        import pandas
    except ImportError as error:
        raise InputError(
            "A table needs the package pandas, which is not installed. Install the extra `export`: pip install "
            "'per-source-eval[export]', in a checkout `make setup`."
        ) from error
    columns, rows = _content(results, lists, name)
    frame = pandas.DataFrame(rows, columns=[*columns])
    return frame.astype({"grade": "Int64"}) if "grade" in columns else frame


def _content(results: Results, lists: RankedLists, name: str) -> Content:
    if name == "cells":
        found = results.sources.cells if results.sources else {}
        rows = [_cell(place, row) | _sources(found.get(row.cell)) for place, row in enumerate(results.cells, start=1)]
        columns = [*dict.fromkeys(column for row in rows for column in row)]
        return columns, [tuple(row.get(column) for column in columns) for row in rows]
    made = {
        "scores": _scores(results),
        "hits": _hits(results, lists),
        "queries": map(_query, results.queries),
        "mix": (tuple(turn.model_dump().values()) for turn in results.turnings),
    }
    return _COLUMNS[name], [*made[name]]


def _cell(place: int, row: CellResult) -> Row:
    made: Row = {"place": place, "cell": row.cell, "role": row.role}
    for name, scores in row.scores.items():
        made |= {f"{name}_{part}": getattr(scores, part) for part in ("mean", "low", "high")}
    # The baseline has no test: its columns are there, and empty.
    test = row.test
    for name, found in (row.differences if test else {}).items():
        made |= {f"difference_{name}_{part}": value for part, value in found.model_dump().items()}
    for part in ("p", "p_gain", "bar", "p_adjusted", "sd"):
        made[part] = getattr(test, part, None)
    for part in ("interval", "simultaneous"):
        low, high = getattr(test, part, None) or (None, None)
        made |= {f"{part}_low": low, f"{part}_high": high}
    return made | {"gate": row.gate.verdict, "confirmed": row.confirmed, "short_of": "; ".join(row.short_of)}


def _sources(found: SourceFound | None) -> Row:
    """Return the columns of how a cell ranks source documents; empty if no query names one."""
    made: Row = {}
    for name in ("first_ten", "mrr", "difference"):
        figure: Estimate | None = getattr(found, name, None)
        for part in ("value", "low", "high"):
            made[f"source_{name}" + ("" if part == "value" else f"_{part}")] = getattr(figure, part, None)
    return made


def _query(row: QueryRow) -> tuple[JSON, ...]:
    """Return a query as `queries add` reads it, and as `try` does, to which its document is the one that it wants."""
    text = row.text or row.plain
    return row.id, text, row.paraphrased, row.source_document, row.kind, row.origin, row.stratum, row.note


def _scores(results: Results) -> Iterator[tuple[JSON, ...]]:
    """Yield the scores by query, and those of each wording after them."""
    topics = {query.id: (query.kind, query.origin, query.stratum) for query in results.queries}
    weights = dict(zip(topics, results.topic_weights, strict=True))
    for number, query_id in enumerate(topics):
        for row in results.cells:
            for measure, scores in row.scores.items():
                value = scores.per_query[number] / SCORE_UNIT
                yield query_id, *topics[query_id], weights[query_id], "", row.cell, measure, value
    for number, one in enumerate(asked(results.queries)):
        for row in results.cells if one.wording else ():
            for measure, units in row.by_wording.items():
                value = units[number] / SCORE_UNIT
                yield one.topic, *topics[one.topic], weights[one.topic], one.wording, row.cell, measure, value


def _hits(results: Results, lists: RankedLists) -> Iterator[tuple[JSON, ...]]:
    for query in lists.queries:
        for cell in (row.cell for row in results.cells):
            for rank, (place, *span) in enumerate(query.hits.get(cell, ()), start=1):
                pair = query.documents[place]
                ends = span or ("", "")
                yield query.id, cell, rank, lists.documents[pair.document].doc_id, pair.grade, *ends


def write_tables(version: Version, output: Path) -> dict[Path, int]:
    """Write every table as CSV into a folder, and return the rows of each file; InputError if one is there."""
    results, lists = load_results(version), load_lists(version)
    contents = {output / f"{name}.csv": _content(results, lists, name) for name in TABLES}
    contents[output / f"{GRADES}.csv"] = _COLUMNS[GRADES], _grades(version)
    there = [path for path in (output, *contents) if path.is_file()]
    if there:
        raise InputError(f"{display(there[0])} exists already. Give --output another place.")
    with disk_errors(output):
        for path, content in contents.items():
            write_atomic(path, _csv(content))
    return {path: len(rows) for path, (_, rows) in contents.items()}


def _grades(version: Version) -> list[tuple[JSON, ...]]:
    """Return every reading in force, or the published grades of a collection."""
    if version.source.policy == "external":
        qrels = read_trec_qrels(version.qrels_path)
        return [(query, doc_id, grade, "", "", 1) for query in qrels for doc_id, grade in qrels[query].items()]
    labels = load_labels(version.labels_path)
    return [(each.query_id, each.doc_id, each.grade, each.reason, each.judge, each.round) for each in labels]


def _csv(content: Content) -> bytes:
    # Line ends of RFC 4180: with "\n" alone, a text that holds "\r" would be written without quotes.
    target = io.StringIO(newline="")
    rows = ([inert_text(value) if isinstance(value, str) else value for value in row] for row in content[1])
    csv.writer(target, lineterminator="\r\n").writerows([content[0], *rows])
    return target.getvalue().encode()
