"""Tables of a version's results as CSV or Parquet files, for a notebook, a spreadsheet or a database."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.base.canonical import JSON, file_sha256, json_bytes, read_json, sha256, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.given_files import display
from runner.base.store import disk_errors
from runner.eval_set.collection import published_qrels
from runner.eval_set.labels import scored, version_labels
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import Version, load_corpus
from runner.report.export_tables import COLUMNS, Reading, Row

if TYPE_CHECKING:
    from pandas import DataFrame

Format = Literal["csv", "parquet"]

MANIFEST = "export.json"
"""Which files of a folder an export wrote, with their digests: it overwrites these and no others."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")


def write_tables(rows: Mapping[str, Sequence[Row]], folder: Path, form: Format, origin: JSON) -> dict[str, int]:
    """How many rows each file got, by file name; `origin` goes to the manifest beside each of them.

    Every file is made before the first is written. InputErrors: a package is missing, the folder is a file, or it
    holds a file of such a name that no export wrote or that was changed since. What an export that was cut short left
    behind is written over: while files are written, the manifest has their digests of before as well.
    """
    frames = {name: _frame(name, rows[name]) for name in COLUMNS}
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

    An IntegrityError where the labels or the manifest are not those that results.json names.
    """
    _check_inputs(version, results)
    urls = {row.doc_id: row.url for row in load_corpus(version.corpus_path)[1]}
    if results.collection is not None:
        return [
            Reading(query_id, doc_id, urls.get(doc_id, ""), scored=True, judge="", model="", round=None, grade=grade)
            for query_id, grades in published_qrels(version).items()
            for doc_id, grade in grades.items()
        ]
    labels = version_labels(version)[: results.labels.lines]
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
    """Nothing where documents and judgments are those that were scored."""
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


def _frame(name: str, rows: Sequence[Row]) -> "DataFrame":
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
    """A text that no spreadsheet takes for a formula: with an apostrophe before it where one could.

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
    """The digest of what is there, None where `path` is free; an InputError for what no export left there."""
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
        f"An export needs the package {package}, which is not installed. Run `make setup`, or install the extra export."
    )
