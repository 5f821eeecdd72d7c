"""The index as a folder of Parquet shards, one a bucket, which any store of vectors takes."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from runner.base.canonical import json_bytes, read_json, remove_stale, sha256, write_atomic
from runner.base.errors import InputError, PackageMissing
from runner.base.given_files import display
from runner.base.schema import checked
from runner.base.store import disk_errors
from runner.retrieve.variants import int8_codes
from runner.substrate.index import Change, Embedded, Fingerprint, Held, document_key

if TYPE_CHECKING:
    import pyarrow

FINGERPRINT = "_fingerprint.json"
"""Readers of a folder of Parquet leave out what begins with an underscore."""


class ParquetIndex:
    """Shards below a folder: a row a chunk, with its id, document, span, context, its text's digest and its vector.

    `document_sha256` is the digest of all that a chunker sees of the document, and `vanished` says that it was gone
    when the source was last read. Vectors are float32, or codes of int8 for a cell that searches these.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: Fingerprint | None = None

    def fingerprint(self) -> Fingerprint | None:
        """Return the fingerprint; None if the folder is missing or empty."""
        path = self.folder / FINGERPRINT
        if path.exists():
            self._made = checked(Fingerprint, read_json(path), path)
        elif self.folder.is_dir() and any(not entry.name.startswith(".") for entry in self.folder.iterdir()):
            raise InputError(
                f"{display(self.folder)} is not empty and holds no index. Give --to a new folder, or a name that ends "
                "in .db for a database."
            )
        return self._made

    def begin(self, fingerprint: Fingerprint) -> None:
        """Write the fingerprint, after which shards may follow."""
        _arrow()  # before anything is embedded
        self._made = fingerprint
        with disk_errors(self.folder):
            write_atomic(self.folder / FINGERPRINT, json_bytes(fingerprint.model_dump()))

    def held(self, bucket: int) -> Mapping[str, Held]:
        """Return a bucket's documents by id."""
        table = self._shard(bucket, ["document", "document_sha256", "vanished"])
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True) if table is not None else ()
        return {document: Held(digest, vanished) for document, digest, vanished in rows}

    def write(self, changes: Sequence[Change]) -> None:
        """Write each changed shard anew, whole or not at all."""
        _, parquet = _arrow()
        with disk_errors(self.folder):
            remove_stale(self.folder)
            for change in changes:
                table, path = self._changed(change), self._path(change.bucket)
                if not table.num_rows:
                    path.unlink(missing_ok=True)
                    continue
                stream = BytesIO()
                parquet.write_table(table, stream, compression="zstd")
                write_atomic(path, stream.getvalue())

    def _changed(self, change: Change) -> "pyarrow.Table":
        """Return the shard's rows after a change, by id."""
        pa, _ = _arrow()
        added = [self._rows(embedded) for embedded in change.written]
        table = pa.concat_tables([pa.Table.from_batches([], self._schema), *added])
        if (held := self._shard(change.bucket)) is not None:
            out = {*change.removed, *(embedded.document.doc_id for embedded in change.written)}
            kept = [document not in out for document in held["document"].to_pylist()]
            table = pa.concat_tables([table, held.filter(pa.array(kept, pa.bool_()))])
        documents, vanished = table["document"].to_pylist(), table["vanished"].to_pylist()
        marks = [change.vanished.get(*pair) for pair in zip(documents, vanished, strict=True)]
        place = table.schema.get_field_index("vanished")
        return table.set_column(place, "vanished", pa.array(marks, pa.bool_())).sort_by("id").combine_chunks()

    def _rows(self, embedded: Embedded) -> "pyarrow.Table":
        pa, _ = _arrow()
        document, chunks = embedded.document, embedded.chunks
        key, n = document_key(document.doc_id), len(chunks)
        columns = {
            "id": [key + chunk.index for chunk in chunks],
            "document": [document.doc_id] * n,
            "start": [chunk.span.start for chunk in chunks],
            "end": [chunk.span.end for chunk in chunks],
            "context": [chunk.context for chunk in chunks],
            "text_sha256": [sha256(document.text[chunk.span.start : chunk.span.end]) for chunk in chunks],
            "document_sha256": [document.sha256] * n,
            "vanished": [False] * n,
        }
        if embedded.rows is not None:
            assert self._made is not None
            stored = int8_codes(embedded.rows) if self._made.variant == "int8" else embedded.rows
            flat = pa.array(np.ascontiguousarray(stored).ravel())
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, stored.shape[1])
        return pa.table(columns, self._schema)

    @property
    def _schema(self) -> "pyarrow.Schema":
        pa, _ = _arrow()
        assert self._made is not None
        texts = ("document", "context", "text_sha256", "document_sha256")
        kinds = {"id": pa.int64(), "start": pa.int64(), "end": pa.int64(), "vanished": pa.bool_()}
        names = ("id", "document", "start", "end", "context", "text_sha256", "document_sha256", "vanished")
        fields = [(name, pa.string() if name in texts else kinds[name]) for name in names]
        number = pa.int8() if self._made.variant == "int8" else pa.float32()
        return pa.schema([*fields, *([("vector", pa.list_(number, self._made.dim))] if self._made.dim else [])])

    def _shard(self, bucket: int, columns: list[str] | None = None) -> "pyarrow.Table | None":
        """Return a shard's rows, None if it has none; an InputError names one that is damaged."""
        pa, parquet = _arrow()
        path = self._path(bucket)
        if not path.exists():
            return None
        try:
            return parquet.ParquetFile(BytesIO(path.read_bytes())).read(columns)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(
                f"{display(path)} cannot be read ({error}). Restore it, or delete it and run `embed` again, which "
                "embeds its documents anew."
            ) from error

    def _path(self, bucket: int) -> Path:
        return self.folder / f"{bucket:02x}.parquet"


def _arrow() -> Any:  # noqa: ANN401  # two modules, which are not installed everywhere
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PackageMissing(
            "Parquet needs the package pyarrow, which is not installed. Install the extra `export`: pip install "
            "'per-source-eval[export]'."
        ) from error
    return pyarrow, pyarrow.parquet
