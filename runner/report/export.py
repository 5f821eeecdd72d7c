"""A version's results as tables, for a notebook, a spreadsheet or a database; results.json is the interface."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.base.canonical import JSON, write_atomic
from runner.base.errors import InputError
from runner.base.given_files import display
from runner.base.records import SCORE_UNIT
from runner.base.store import disk_errors
from runner.eval_set.asked import asked
from runner.eval_set.shapes.judges import Estimate, SourceFound
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.results import CellResult, Results, Turning

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, JSON]

TABLES = ("cells", "queries", "hits", "mix")


def table(results: Results, lists: RankedLists, name: str) -> "DataFrame":
    """Return one of TABLES: a row per cell, per score of a query, or per place in a list."""
    try:
        import pandas
    except ImportError as error:
        raise InputError(_missing(error)) from error
    if name == "cells":
        found = {row.cell: row for row in results.sources.cells} if results.sources else {}
        ranking = enumerate(results.cells, start=1)
        return pandas.DataFrame([_cell(place, row) | _sources(found.get(row.cell)) for place, row in ranking])
    if name == "queries":
        columns = ["query", "query_kind", "origin", "stratum", "weight", "wording", "cell", "measure", "value"]
        return pandas.DataFrame(_queries(results), columns=columns)
    if name == "mix":
        return pandas.DataFrame([turn.model_dump() for turn in results.turnings], columns=[*Turning.model_fields])
    columns = ["query", "cell", "rank", "doc_id", "grade", "start", "end"]
    return pandas.DataFrame(_hits(results, lists), columns=columns).astype({"grade": "Int64"})


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


def _queries(results: Results) -> Iterator[tuple[JSON, ...]]:
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
            for rank, (place, start, end) in enumerate(query.hits.get(cell, ()), start=1):
                pair = query.documents[place]
                yield query.id, cell, rank, lists.documents[pair.document].doc_id, pair.grade, start, end


def write_tables(
    results: Results, lists: RankedLists, folder: Path, form: Literal["csv", "parquet"]
) -> dict[Path, int]:
    """Write every table and return the rows of each file; InputError if one is there, before any is written."""
    frames = {folder / f"{name}.{form}": table(results, lists, name) for name in TABLES}
    there = [path for path in frames if path.exists()]
    if there or folder.is_file():
        raise InputError(f"{display([*there, folder][0])} exists already. Give --output another folder.")
    with disk_errors(folder):
        for path, frame in frames.items():
            write_atomic(path, _bytes(frame, form))
    return {path: len(frame) for path, frame in frames.items()}


def _bytes(frame: "DataFrame", form: str) -> bytes:
    if form == "csv":
        # Line ends of RFC 4180: with "\n" alone, a text that holds "\r" would be written without quotes.
        return frame.to_csv(index=False, lineterminator="\r\n").encode()
    target = io.BytesIO()
    try:
        frame.to_parquet(target, engine="pyarrow", index=False)
    except ImportError as error:
        raise InputError(_missing(error)) from error
    return target.getvalue()


def _missing(error: ImportError) -> str:
    return (
        f"A table needs the package {error.name or 'pyarrow'}, which is not installed. Install the extra `export`: "
        "pip install 'per-source-eval[export]', in a checkout `make setup`."
    )
