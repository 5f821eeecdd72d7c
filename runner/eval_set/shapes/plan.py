"""The shape of what people and the stages before scoring write: an unknown field or a missing value is an error.

docs/eval-architecture.md prints them all, and a test holds committed files to them. result_schemas.py and
decision_schemas.py have the rest.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from runner.base.field_types import Count, Sha256, Share
from runner.base.schema import Sparse, Strict
from runner.eval_set.shapes.labels import Judges


class Sample(Sparse):
    """How many documents are drawn, the seed of the draw, and what the source's reader is told ("notices")."""

    size: Annotated[int, Field(ge=1)]
    seed: Count
    options: list[str] = Field(default_factory=list)


class Rule(Strict):
    """The spec's criterion 5: what a cell must gain, and what it may lose, to be a candidate."""

    min_gain: Share
    max_recall_loss: Share


class Bootstrap(Strict):
    """Percentile bootstrap over queries."""

    resamples: Annotated[int, Field(ge=100)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    seed: Count


class Significance(Strict):
    """The test against the baseline by its versioned name, its draws, and the family-wise error that is allowed."""

    method: Literal["sign-flip max-T v1"]
    draws: Annotated[int, Field(ge=1_000)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    seed: Count


class NullGate(Strict):
    """Nulls by versioned name, draws of each, the smallest difference from a null that counts, and the p-value."""

    nulls: Literal["graded v1"]
    draws: Annotated[int, Field(ge=100)]
    tau: Share
    alpha: Annotated[float, Field(gt=0, lt=1)]
    seed: Count


class Reuse(Strict):
    """A structural chunker that was written for a sibling source, and what is known of it there."""

    chunker: str
    source: str
    result: str


class Plan(Sparse):
    """plan.yaml: what the operator decides before anything is judged."""

    schema_version: Literal[2]
    source: str
    version: Annotated[int, Field(ge=1)]
    baseline: str
    cells: list[str]
    sample: Sample
    pool_depth: Annotated[int, Field(ge=1, le=100)]
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    rule: Rule
    bootstrap: Bootstrap
    significance: Significance
    null_gate: NullGate
    reuse: Reuse | None = None
    judges: Judges | None = None


class PlanDigest(Strict):
    """What a preregistration holds of one plan."""

    rule_sha256: Sha256
    baseline: str
    cells: list[str]


class Preregistration(Strict):
    """preregistration.json: written before the first pair is exported for judging."""

    schema_version: Literal[1]
    source: str
    version: int
    queries_sha256: Sha256
    corpus_sha256: Sha256
    judge_prompt_sha256: Sha256
    production: PlanDigest
    rehearsal: PlanDigest | None


class QueryRow(Strict):
    """One query of queries.yaml."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
    text: Annotated[str, Field(pattern=r"\S")]
    kind: Annotated[str, Field(min_length=1)]
    origin: Literal["hand", "generated", "harvested"]
    source_document: str = ""
    stratum: str = ""
    note: str = ""


class Queries(Strict):
    """queries.yaml."""

    schema_version: Literal[1]
    queries: list[QueryRow]


class Quarantined(Strict):
    """A file that could not be read, and why."""

    file: str
    reason: str


class CorpusHeader(Strict):
    """The first row of corpus.jsonl: how the sample was drawn and from what."""

    schema_version: Literal[1]
    source: str
    reader: str
    sample: Sample
    n_read: Count
    n_documents: Count
    quarantined: list[Quarantined]
    archive_sha256: Sha256


class CollectionFacts(Strict):
    """What an external collection held, and the digests of its files.

    `missing_documents` are judged and not in the corpus; they stay in the qrels, as published figures have it.
    `queries_unjudged` belong to other splits and were left out.
    """

    schema_version: Literal[1]
    name: Annotated[str, Field(min_length=1)]
    split: str
    documents: Count
    empty_documents: Count
    queries: Count
    queries_unjudged: Count
    judged_pairs: Count
    missing_documents: Count
    corpus_sha256: Sha256
    queries_sha256: Sha256
    qrels_sha256: Sha256


class CollectionFile(CollectionFacts):
    """collection.json: the facts, and the digests of what the collection became, by file name."""

    made: dict[str, Sha256]


class CorpusRow(Sparse):
    """A further row of corpus.jsonl: one sampled document, without its text; `status` is as in the record."""

    doc_id: str
    url: str
    sha256: Sha256
    stratum: str
    family: str
    n_chars: Count
    status: str = ""


class Lengths(Strict):
    """How many chunks have how many tokens: bin i counts those of i * width + 1 to (i + 1) * width tokens.

    The first bin counts empty chunks too, the last all longer ones. `limit` is where an encoder stops reading, or the
    size that a chunker keeps to, 0 for none.
    """

    width: Annotated[int, Field(ge=1)]
    limit: Count
    counts: Annotated[list[Count], Field(min_length=1)]


class Truncation(Strict):
    """What an encoder never read of a cell's chunks: its own tokens past its maximum."""

    tokens: Count
    tokens_p50: Count
    tokens_p95: Count
    tokens_max: Count
    lost: Count
    share: Share
    chunks: Count
    chunks_cut: Count
    lengths: Lengths


class ChunkHealth(Strict):
    """What a reader should know of a cell's chunks; `runner.embed.chunk_health.chunk_health` defines each figure."""

    count: Count
    tokens_p50: Count
    tokens_p95: Count
    tokens_max: Count
    empty: Count
    duplicate_share: Share
    coverage: Share
    outside_sections_share: Share
    boilerplate_share: Share
    chunks_per_document_max: Count
    lengths: Lengths
    degenerate: list[str]


class ImportedRun(Strict):
    """A TREC run file that became a cell, and what was done where it and the collection differ.

    `queries_missing` of the collection score 0; `queries_left_out` and `documents_left_out` (hits of documents that
    are in the collection but not in the sample) were not scored; `queries_contradicted` have ranks that contradict
    the scores, by which they were ordered; `ties` are hits whose place the document id decided.
    """

    file_sha256: Sha256
    tag: str
    queries_missing: Count
    queries_left_out: Count
    queries_contradicted: Count
    documents_left_out: Count
    ties: Count


class Provenance(Strict):
    """Where a cell's run comes from: of an encoder the model and how it is applied, the same on every backend.

    `probe` holds the figures that it passed its probe with. An imported run has neither chunks nor an encoder, and
    `imported` in their place.
    """

    schema_version: Literal[4]
    cell: str
    queries_sha256: Sha256
    corpus_sha256: Sha256
    run_sha256: Sha256
    chunk_run_sha256: Sha256 | None
    chunks: ChunkHealth | None
    encoder: dict[str, Any] | None
    probe: dict[str, Any] | None
    truncation: Truncation | None
    bm25: dict[str, Any] | None
    imported: ImportedRun | None = None
    method: str


class BackendRecord(Strict):
    """Where a cell's vectors were made; results depend on it through the vectors alone.

    `identity` is what the backend says that it fixes (number format, grouping, versions), `served` what its answers
    said of where they ran.
    """

    name: Literal["local", "modal", "http"]
    identity: dict[str, Any]
    served: dict[str, str]


class CellFile(Provenance):
    """cells/<cell>.json: the provenance, what embedded it, the chunkers' digest, and the chunks of every document.

    `backend` is null for a cell without an encoder. `index_bytes` are those of what was searched: vectors as float32,
    8 a posting of BM25; null for an imported run, which counts one chunk a document.
    """

    backend: BackendRecord | None
    chunkers_sha256: Sha256 | None
    index_bytes: Count | None
    chunks_per_document: dict[str, Count]
