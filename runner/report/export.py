"""Tables of a version's results as CSV or Parquet files, for a notebook, a spreadsheet or a database.

results.json, receipt.json and judgments as flat tables: which columns there are, of what type, and their rows.

Names and order of columns are an interface: a column may be added at the end of its table, none is renamed or moved.
"""

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal, NamedTuple

from runner.base.canonical import JSON, file_sha256, json_bytes, read_json, sha256, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display
from runner.base.records import BM25Cell, CrossCell, HybridCell, parse_cell
from runner.base.store import disk_errors
from runner.eval_set.collection import published_qrels
from runner.eval_set.labels import scored, version_labels
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.paired import MeasureResult
from runner.eval_set.shapes.results import CellResult, Results
from runner.eval_set.version import Version, load_corpus
from runner.score.bootstrap import holm
from runner.score.power import t_tails
from runner.score.score import COMPARED, MEASURES

if TYPE_CHECKING:
    from pandas import DataFrame


Type = Literal["string", "Int64", "Float64", "boolean"]
"""A column's type by pandas' name; in each of them a value can be missing."""

Row = dict[str, JSON]

_UNIT_PLACES = 9

_OF_ALL: dict[str, Type] = {"source": "string", "version": "Int64", "kind": "string"}

_MEASURED: dict[str, Type] = {f"{name}_{part}": "Float64" for name in MEASURES for part in ("mean", "low", "high")}

_DIFFERENCES: dict[str, Type] = {
    f"difference_{name}_{part}": "Float64" if part in ("mean", "low", "high") else "Int64"
    for name in COMPARED
    for part in ("mean", "low", "high", "wins", "ties", "losses")
}

_TEST: dict[str, Type] = {
    "p": "Float64",
    "p_exact": "boolean",
    "p_t": "Float64",
    "p_adjusted": "Float64",
    "p_gain": "Float64",
    "p_step": "Float64",
    "e_value": "Float64",
    "p_holm": "Float64",
    "interval_low": "Float64",
    "interval_high": "Float64",
    "simultaneous_low": "Float64",
    "simultaneous_high": "Float64",
    "cohens_d": "Float64",
    "sd": "Float64",
    "left_out_low": "Float64",
    "left_out_high": "Float64",
    "influential": "string",
}

_VERDICTS: dict[str, Type] = {
    "recall_state": "string",
    "recall_low": "Float64",
    "recall_high": "Float64",
    "recall_losses": "Int64",
    "gate": "string",
    "meets_criterion_5": "boolean",
    "confirmed": "boolean",
    "short_of": "string",
    "unjudged": "Int64",
    "bound_low": "Float64",
    "bound_high": "Float64",
}

_MADE: dict[str, Type] = {
    "chunks": "Int64",
    "chunk_tokens_p50": "Int64",
    "chunk_tokens_p95": "Int64",
    "chunk_tokens_max": "Int64",
    "encoder_tokens": "Int64",
    "encoder_tokens_lost": "Int64",
    "truncated_share": "Float64",
    "embed_seconds": "Float64",
    "retrieve_seconds": "Float64",
    "index_bytes": "Int64",
    "backend": "string",
}

COLUMNS: dict[str, dict[str, Type]] = {
    "cells": _OF_ALL
    | {"place": "Int64", "cell": "string", "role": "string"}
    | {"retrieval": "string", "encoder": "string", "chunker": "string"}
    | _MEASURED
    | _DIFFERENCES
    | _TEST
    | _VERDICTS
    | _MADE
    | {"tied": "Float64"},
    "queries": _OF_ALL
    | {"query": "string", "query_kind": "string", "origin": "string", "stratum": "string"}
    | {"cell": "string", "measure": "string", "value": "Float64"},
    "judgments": _OF_ALL
    | {"query": "string", "doc_id": "string", "url": "string", "scored": "boolean"}
    | {"judge": "string", "model": "string", "round": "Int64", "grade": "Int64"},
    "hits": _OF_ALL
    | {"query": "string", "cell": "string", "rank": "Int64", "doc_id": "string", "grade": "Int64"}
    | {"start": "Int64", "end": "Int64"},
}
"""Every table's columns, in order."""


class Reading(NamedTuple):
    """What one judge said of a pair, in one round; `judge`, `model` and `url` may be empty, `round` None."""

    query_id: str
    doc_id: str
    url: str
    scored: bool
    judge: str
    model: str
    round: int | None
    grade: int


def tables(results: Results, receipt: Receipt | None, readings: Iterable[Reading]) -> dict[str, list[Row]]:
    """The rows of every table of COLUMNS; a column that a row does not name is missing there.

    `readings` are all that the results were scored with, those of documents that no cell lists among them.
    """
    classic = _classic(results)
    return {
        "cells": [
            _cell(results, place, row, receipt) | classic.get(row.cell, {})
            for place, row in enumerate(results.cells, start=1)
        ],
        "queries": list(_queries(results)),
        "judgments": [_judgment(results, one) for one in readings],
        "hits": list(_hits(results)),
    }


def _of_all(results: Results) -> Row:
    return {"source": results.source, "version": results.version, "kind": results.kind}


def _classic(results: Results) -> dict[str, Row]:
    """Checks beside the tests, which decide nothing: paired t test, Cohen's d, Holm over the preregistered cells."""
    of = {row.cell: row.scores["ndcg@10"].per_query for row in results.cells}
    tests = {row.cell: row.test for row in results.cells if row.test is not None}
    found: dict[str, Row] = {}
    for cell in tests:
        gains = [own - other for own, other in zip(of[cell], of[results.plan.baseline], strict=True)]
        n, mean, sd = len(gains), fmean(gains), stdev(gains) if len(gains) > 1 else 0.0
        p_t = t_tails(mean / sd * math.sqrt(n), n - 1) if sd else float(n == 1 or mean == 0)
        found[cell] = {"p_t": p_t, "cohens_d": mean / sd if sd else 0.0}
    family = {cell: test.p for cell, test in tests.items() if test.p_adjusted is not None}
    for cell, p in zip(family, holm(list(family.values())) if family else [], strict=True):
        found[cell]["p_holm"] = p
    return found


def _cell(results: Results, place: int, row: CellResult, receipt: Receipt | None) -> Row:
    made = _of_all(results) | {"place": place, "cell": row.cell, "role": row.role} | _parts(row.cell)
    for name in MEASURES:
        if name in row.scores:
            made |= _prefixed(name, row.scores[name].model_dump(include={"mean", "low", "high"}))
    if row.test is not None:
        for name in COMPARED:
            if name in row.differences:
                made |= _prefixed(f"difference_{name}", row.differences[name].model_dump())
    return made | _tested(row) | _judged(row) | _how_made(row) | _measured(row.cell, receipt)


def _prefixed(prefix: str, values: Row) -> Row:
    return {f"{prefix}_{name}": value for name, value in values.items()}


def _parts(name: str) -> Row:
    """What a cell consists of; an imported one of nothing that is known."""
    try:
        cell = parse_cell(name)
    except InputError:
        return {"retrieval": "imported"}
    if isinstance(cell, BM25Cell):
        return {"retrieval": "bm25", "chunker": cell.chunker}
    if isinstance(cell, CrossCell):
        return {"retrieval": "cross-encoder", "encoder": cell.model, "chunker": cell.chunker}
    retrieval = cell.method if isinstance(cell, HybridCell) else "dense"
    return {"retrieval": retrieval, "encoder": cell.encoder, "chunker": cell.chunker}


def _tested(row: CellResult) -> Row:
    test = row.test
    if test is None:
        return {}
    ends: Row = {}
    for name, found in (("interval", test.interval), ("simultaneous", test.simultaneous), ("left_out", test.left_out)):
        if found is not None:
            ends |= {f"{name}_low": found[0], f"{name}_high": found[1]}
    same = {"p", "p_adjusted", "p_gain", "p_step", "e_value", "sd", "influential"}
    return test.model_dump(include=same) | ends | {"p_exact": test.exact}


def _judged(row: CellResult) -> Row:
    bound: Row = {} if row.recall_bound is None else _prefixed("recall", row.recall_bound.model_dump())
    return bound | {
        "gate": row.gate.verdict,
        "meets_criterion_5": row.meets_criterion_5,
        "confirmed": row.confirmed,
        "short_of": "; ".join(row.short_of) or None,
        "unjudged": row.unjudged,
        "tied": row.tied,
        "bound_low": row.bounds[0],
        "bound_high": row.bounds[1],
    }


def _how_made(row: CellResult) -> Row:
    chunks, cut = row.provenance.chunks, row.provenance.truncation
    found: Row = {}
    if chunks is not None:
        tokens = chunks.model_dump(include={"tokens_p50", "tokens_p95", "tokens_max"})
        found |= {"chunks": chunks.count} | _prefixed("chunk", tokens)
    if cut is not None:
        found |= {"encoder_tokens": cut.tokens, "encoder_tokens_lost": cut.lost, "truncated_share": cut.share}
    return found


def _measured(cell: str, receipt: Receipt | None) -> Row:
    if receipt is None:
        return {}
    times: dict[str, JSON] = {**receipt.cells.get(cell, {})}
    if "index_bytes" in times:
        times["index_bytes"] = int(times["index_bytes"])
    backend = receipt.backends.get(cell)
    return times | {"backend": None if backend is None else backend.name}


def _queries(results: Results) -> Iterator[Row]:
    """A row for every query, cell and measure that scores per query."""
    for number, query in enumerate(results.queries):
        known: Row = {"query": query.id, "query_kind": query.kind, "origin": query.origin}
        known |= {"stratum": query.stratum or None}
        for row in results.cells:
            for measure in MEASURES:
                if measure in row.scores:
                    value = _value(row.scores[measure], number)
                    yield _of_all(results) | known | {"cell": row.cell, "measure": measure, "value": value}


def _value(scores: MeasureResult, number: int) -> float:
    """A query's score in [0, 1] from units of 1e-9, whatever the unit's own rounding."""
    return round(scores.per_query[number] * 10.0**-_UNIT_PLACES, _UNIT_PLACES)


def _judgment(results: Results, one: Reading) -> Row:
    named = {"query": one.query_id, "doc_id": one.doc_id, "url": one.url or None, "scored": one.scored}
    said = {"judge": one.judge or None, "model": one.model or None, "round": one.round, "grade": one.grade}
    return _of_all(results) | named | said


def _hits(results: Results) -> Iterator[Row]:
    """Every list of every query, down to the depth that results.json keeps."""
    documents = results.lists.documents
    for query in results.lists.queries:
        for cell in (row.cell for row in results.cells):
            for rank, (place, start, end) in enumerate(query.hits.get(cell, ()), start=1):
                pair = query.documents[place]
                yield _of_all(results) | {
                    "query": query.id,
                    "cell": cell,
                    "rank": rank,
                    "doc_id": documents[pair.document].doc_id,
                    "grade": pair.grade,
                    "start": start,
                    "end": end,
                }


Format = Literal["csv", "parquet"]

MANIFEST = "export.json"
"""Which files of a folder an export wrote, with their digests: it overwrites these and no others."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")


def write_tables(rows: Mapping[str, Sequence[Row]], folder: Path, form: Format, origin: JSON) -> dict[str, int]:
    """How many rows each file got, by file name; `origin` goes to the manifest beside each of them.

    Every file is made before the first is written. Raises InputError if a package is missing, the folder is a file, or
    a file there was not written by an export or has changed. An export that was cut short may be written over: while
    files are written, the manifest has their earlier digests too.
    """
    frames = {name: as_frame(name, rows[name]) for name in COLUMNS}
    files = {f"{name}.{form}": _bytes(frame, form) for name, frame in frames.items()}
    written = _written_before(folder)
    found = {name: _digest(folder / name, written.get(name)) for name in files}
    counts = {f"{name}.{form}": len(frame) for name, frame in frames.items()}
    made: dict[str, JSON] = {
        name: {"sha256": sha256(content), "rows": counts[name], **origin} for name, content in files.items()
    }
    halfway = {name: made[name] | {"replaces": digest} for name, digest in found.items() if digest is not None}
    with disk_errors(folder):
        write_atomic(folder / MANIFEST, json_bytes({"files": written | made | halfway}))
        for name, content in files.items():
            write_atomic(folder / name, content)
        write_atomic(folder / MANIFEST, json_bytes({"files": written | made}))
    return counts


def readings(version: Version, results: Results) -> list[Reading]:
    """Every reading that the results were scored with, in the order of labels.jsonl; of a collection its qrels.

    Raises IntegrityError if labels or manifest are not those that results.json names.
    """
    _check_inputs(version, results)
    urls = {row.doc_id: row.url for row in load_corpus(version.corpus_path)[1]}
    if results.collection is not None:
        return [
            Reading(query_id, doc_id, urls.get(doc_id, ""), scored=True, judge="", model="", round=None, grade=grade)
            for query_id, grades in published_qrels(version).items()
            for doc_id, grade in grades.items()
        ]
    labels = version_labels(version, results.labels.lines)
    counted = scored(labels)
    return [
        Reading(
            label.query_id,
            label.doc_id,
            urls.get(label.doc_id, ""),
            scored=counted.get((label.query_id, label.doc_id)) is label,
            judge=label.judge,
            model=label.model,
            round=label.round,
            grade=label.grade,
        )
        for label in labels
    ]


def _check_inputs(version: Version, results: Results) -> None:
    """Raise unless documents and judgments are those that were scored."""
    path = version.labels_path if results.collection is None else version.qrels_path
    content = path.read_bytes() if path.exists() else b""
    if results.collection is None:
        content = b"".join(content.splitlines(keepends=True)[: results.labels.lines])
    fit = {
        version.corpus_path: file_sha256(version.corpus_path) == results.corpus.manifest_sha256,
        path: sha256(content) == results.labels.sha256,
    }
    for other in (name for name, holds in fit.items() if not holds):
        raise IntegrityError(
            f"{other} is not what {version.record / 'results.json'} was made over. Restore both from git, or run the "
            "driver again."
        )


def as_frame(name: str, rows: Sequence[Row]) -> "DataFrame":
    """A table with its columns in order and of their types, though it may have no row."""
    try:
        import pandas
    except ImportError as error:
        raise InputError(_missing(error)) from error
    columns = COLUMNS[name]
    found = {column: [row.get(column) for row in rows] for column in columns}
    return pandas.DataFrame({column: pandas.array(found[column], dtype=kind) for column, kind in columns.items()})


def _bytes(frame: "DataFrame", form: Format) -> bytes:
    if form == "parquet":
        target = io.BytesIO()
        try:
            frame.to_parquet(target, engine="pyarrow", index=False)
        except ImportError as error:
            raise InputError(_missing(error)) from error
        return target.getvalue()
    texts = [name for name in frame.columns if frame[name].dtype == "string"]
    plain = frame.assign(**{name: frame[name].map(harmless, na_action="ignore") for name in texts})
    # Line ends of RFC 4180: with "\n" alone, a text that holds "\r" would be written without quotes.
    return plain.to_csv(index=False, lineterminator="\r\n").encode()


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: with an apostrophe before it if one could.

    >>> harmless("=1+1"), harmless("-q7"), harmless("BILLS-118hr1ih")
    ("'=1+1", "'-q7", 'BILLS-118hr1ih')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def _written_before(folder: Path) -> dict[str, JSON]:
    """The files that earlier exports say that they wrote."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{display(folder)} is a file. Give --output a folder, or one that does not exist yet.")
    path = folder / MANIFEST
    if not path.exists():
        return {}
    found = read_json(path)
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise InputError(f"{display(path)} is no list of exported files. Give --output another folder.")
    return files


def _digest(path: Path, entry: Mapping[str, JSON] | None) -> str | None:
    """The digest of what is there, None if `path` is free; an InputError for what no export left there."""
    if not path.exists():
        return None
    known = () if entry is None else (entry.get("sha256"), entry.get("replaces"))
    found = sha256(path.read_bytes()) if path.is_file() else None
    if found is None or found not in known:
        raise InputError(
            f"{display(path)} exists and is not as an export wrote it. Move it away, or give --output another folder."
        )
    return found


def _missing(error: ImportError) -> str:
    package = error.name or "pyarrow"
    return (
        f"A table needs the package {package}, which is not installed. Install the extra `export`: "
        "pip install 'per-source-eval[export]', in a checkout `make setup`."
    )
