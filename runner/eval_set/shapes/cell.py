"""The shape of a cell's file: how it was chunked, embedded and searched, and on what."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from runner.base.schema import Count, FrozenModel, Sha256, Share, Sparse
from runner.eval_set.shapes.labels import CharacterSpan


class Truncation(FrozenModel):
    """What an encoder never read of a cell's chunks: its own tokens past its maximum."""

    tokens: Count
    lost: Count
    share: Share
    chunks_cut: Count


class ChunkHealth(FrozenModel):
    """What a reader should know of a cell's chunks; `runner.embed.chunk_health.chunk_health` defines each figure."""

    count: Count
    tokens_p50: Count
    tokens_p95: Count
    tokens_max: Count
    duplicate_share: Share
    coverage: Share
    chunks_per_document_max: Count
    degenerate: list[str]


class ImportedRun(FrozenModel):
    """A TREC run file that became a cell, and what was done where it and the collection differ.

    `queries_missing` of the collection score 0, `queries_left_out` were not scored; `ties` are hits whose place the
    document id decided.
    """

    file_sha256: Sha256
    tag: str
    queries_missing: Count
    queries_left_out: Count
    ties: Count


def _named(encoder: dict[str, Any]) -> dict[str, Any]:
    """Return what an encoder says of itself, of which a page shows these fields."""
    for field, kind, default in (("encoder", str, None), ("revision", str, ""), ("max_tokens", int, 0)):
        if not isinstance(encoder.get(field, default), kind):
            raise PydanticCustomError("encoder", "{field} is missing or not usable", {"field": field})
    return encoder


class Provenance(Sparse):
    """Where a cell's run comes from: of an encoder the model and how it is applied, the same on every backend.

    `probe` holds the figures that it passed its probe with. An imported run has neither chunks nor an encoder, and
    `imported` in their place.
    """

    run_sha256: Sha256
    chunk_run_sha256: Sha256 | None
    chunks: ChunkHealth | None
    encoder: Annotated[dict[str, Any], AfterValidator(_named)] | None
    probe: dict[str, Any] | None
    truncation: Truncation | None
    bm25: dict[str, Any] | None
    imported: ImportedRun | None
    method: str


class BackendRecord(FrozenModel):
    """Where a cell's vectors were made; results depend on it through the vectors alone.

    `identity` is what the backend says that it fixes (number format, grouping, versions), `served` what its answers
    said of where they ran.
    """

    name: Literal["local", "modal", "http"]
    identity: dict[str, Any]
    served: dict[str, str]


class CellFile(Provenance):
    """cells/<cell>.json: where the run comes from, what it answers and what embedded it.

    `backend` is null for a cell without an encoder. `index_bytes` are those of what was searched: vectors as they
    are stored (float32 for a plain cell), 8 a posting of BM25; null for an imported run, which counts one chunk a
    document. `chunks_per_document` has a count per document, in the order of corpus.jsonl. `unread` are the characters
    of each document that the encoder read in no chunk (`runner.embed.chunk_health.unread_spans`); null if that was not
    recorded, or the cell has no encoder.
    """

    schema_version: Literal[1]
    cell: str
    queries_sha256: Sha256
    corpus_sha256: Sha256
    backend: BackendRecord | None
    chunkers_sha256: Sha256 | None
    index_bytes: Count | None
    chunks_per_document: list[Count]
    unread: dict[str, list[CharacterSpan]] | None = None
