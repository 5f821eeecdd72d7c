"""What an index of a decided cell is: its fingerprint, the ids of its chunks, and what changes it.

The stores beside this module keep it: `sqlite_index` in the production schema, `parquet_index` as shards.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from runner.base.errors import IntegrityError
from runner.base.given_files import LONGEST_LINE, display, printable
from runner.base.records import WITHOUT_VECTORS, Chunk, DenseCell, Document, HybridCell, OwnCell, parse_cell
from runner.base.schema import Count, FrozenModel, Sha256
from runner.embed.chunk_corpus import chunkers_sha256
from runner.embed.encoder import Encoder
from runner.embed.probe import HALF_PRECISION_COSINE, SAME_COSINE, signature
from runner.embed.vectors import Matrix
from runner.eval_set.shapes.encoder import EncoderSpec
from runner.retrieve.variants import cut_rows

BUCKETS = 256
"""Parts of an index by the first byte of a document's hash, so that a part's content depends on its documents alone."""

_INDEX_BITS, _KEY_BITS = 15, 48
MOST_CHUNKS = 1 << _INDEX_BITS
"""Of one document."""


def document_key(doc_id: str) -> int:
    """Return the id of a document's first chunk; those of the others follow."""
    return int.from_bytes(sha256(doc_id.encode()).digest()[: _KEY_BITS // 8], "big") << _INDEX_BITS


def keys_of(bucket: int) -> tuple[int, int]:
    """Return the least and the largest key that a document of the bucket can have."""
    width = 1 << (_KEY_BITS + _INDEX_BITS - 8)
    return bucket * width, (bucket + 1) * width - 1


def bucket_of(key: int) -> int:
    """Return the bucket of a document's key."""
    return key >> (_KEY_BITS + _INDEX_BITS - 8)


class Held(NamedTuple):
    """What an index says of a document: its digest, and if it was gone when the source was last read."""

    sha256: str
    vanished: bool


class Embedded(NamedTuple):
    """A document as the decided cell has it; `rows` are its chunks' vectors as they are stored, if any."""

    document: Document
    chunks: Sequence[Chunk]
    rows: Matrix | None


class Change(NamedTuple):
    """What becomes of a bucket: documents to put in place of what it has of them, marks of vanished, ids to remove."""

    bucket: int
    written: Sequence[Embedded]
    vanished: Mapping[str, bool]
    removed: Sequence[str]


class Fingerprint(FrozenModel):
    """What an index was made with. `encoder` is "" and `row` null for a cell without vectors.

    `probe` has the rows of a few texts, as documents and as queries (`runner.embed.probe.signature`), and `dtype` the
    number format that made them, "" if it was not said. `decision_sha256` is that of decision.json.
    """

    schema_version: Literal[1]
    source: str
    version: Count
    decision_sha256: Sha256
    cell: str
    chunker: str
    chunkers_sha256: Sha256
    encoder: str
    row: EncoderSpec | None
    dtype: str
    probe: list[list[float]]

    @property
    def variant(self) -> str:
        """What is stored in place of whole vectors, as the cell says."""
        cell = parse_cell(self.cell)
        return cell.variant if isinstance(cell, DenseCell) else ""

    @property
    def dim(self) -> int:
        """Dimensions of a stored vector, 0 for none."""
        return 0 if self.row is None else int(self.variant) if self.variant.isdigit() else self.row.dim

    @property
    def reads_documents(self) -> bool:
        """Whether BM25 reads whole documents beside the chunks that are embedded."""
        cell = parse_cell(self.cell)
        return isinstance(cell, HybridCell) and cell.method != "sum"

    @property
    def spec(self) -> EncoderSpec | None:
        """The encoder's row with its name."""
        return None if self.row is None else self.row.model_copy(update={"name": self.encoder})

    def stored(self, rows: Matrix) -> Matrix:
        """Return unit rows in the dimensions that are stored."""
        return cut_rows(rows, self.dim) if self.dim < rows.shape[1] else rows


def fingerprint_of(
    source: str, version: int, decision_sha256: str, cell: OwnCell, encoder: Encoder | None
) -> Fingerprint:
    """Return what an index of the cell will say of itself, its probe still to be made; nothing is loaded."""
    return Fingerprint(
        schema_version=1,
        source=source,
        version=version,
        decision_sha256=decision_sha256,
        cell=str(cell),
        chunker=cell.chunker,
        chunkers_sha256=chunkers_sha256(cell.chunker),
        encoder="" if isinstance(cell, WITHOUT_VECTORS) else cell.encoder,
        row=None if encoder is None else encoder.spec,
        dtype="" if encoder is None else str(encoder.identity()["backend"].get("dtype", "")),
        probe=[],
    )


def probed(fingerprint: Fingerprint, encoder: Encoder) -> Fingerprint:
    """Return the fingerprint with the vectors that the encoder makes now; BackendError if it fails."""
    rows = signature(encoder).astype(np.float64).round(7).tolist()
    return fingerprint.model_copy(update={"probe": rows})


_OF_ALL = ("source", "version", "decision_sha256", "cell", "encoder", "chunker", "chunkers_sha256")
_OF_ROW = ("model", "revision", "weights_sha256", "query_prompt", "document_prompt", "pooling", "max_tokens", "dim")


def differences(index: Fingerprint, now: Fingerprint) -> list[str]:
    """Return what another fingerprint has otherwise than the index, a line each; probes count if both have one."""
    pairs = [(name, getattr(index, name), getattr(now, name)) for name in _OF_ALL]
    if index.row is not None and now.row is not None:
        pairs += [(name, getattr(index.row, name), getattr(now.row, name)) for name in _OF_ROW]
    lines = [f"{name}: {held!r} in the index, {given!r} now" for name, held, given in pairs if held != given]
    if not (index.probe and now.probe):
        return lines
    # A stranger's rows may have any length.
    if [len(row) for row in index.probe] != [len(row) for row in now.probe]:
        return [*lines, "vectors of the probe's texts: other dimensions than the index's"]
    held, given = np.array(index.probe), np.array(now.probe)
    lengths = np.linalg.norm(held, axis=1) * np.linalg.norm(given, axis=1)
    cosine = float(((held * given).sum(axis=1) / lengths).min())
    # Formats that are not both known to be whole precision keep fewer digits.
    required = SAME_COSINE.get(index.dtype if index.dtype == now.dtype else "", HALF_PRECISION_COSINE)
    if not cosine >= required:
        lines.append(f"vectors of the probe's texts: a cosine of {cosine:.6f} to the index's, {required} is needed")
    return lines


def refuse_other(index: Fingerprint, now: Fingerprint, where: Path) -> None:
    """Raise IntegrityError, which names what differs, unless the index was made as `now` says."""
    if lines := differences(index, now):
        listed = "\n".join(f"  - {printable(line, LONGEST_LINE)}" for line in lines)
        raise IntegrityError(
            f"{display(where)} was made otherwise, and vectors of two makers are never compared:\n{listed}\n"
            "Search it with what made it, or make a new index: `embed`, with --to another place."
        )
