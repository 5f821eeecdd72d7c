"""The health of a source's chunks before anything is embedded: what a bulk embedding should be stopped by."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from chunkers.registry import limit_of
from runner.base.canonical import JSON
from runner.base.errors import InputNeeded
from runner.base.records import WITHOUT_VECTORS, Document, parse_cell
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.chunk_health import chunk_health
from runner.embed.local_encoder import encoder_class
from runner.embed.weights import is_here
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.corpus import archived_documents, listed_documents, sample_of, sample_to_draw
from runner.eval_set.plan import default_cells
from runner.eval_set.shapes.cell import ChunkHealth
from runner.eval_set.version import DRIVER, Version
from samplers.corpus.readiness import boilerplate_share, lines


@dataclass(frozen=True, slots=True)
class EncoderTokens:
    """A chunker's chunks as one encoder's own tokenizer counts them; `lost` is the share of tokens past its maximum."""

    encoder: str
    p50: int
    p95: int
    most: int
    lost: float


@dataclass(frozen=True, slots=True)
class ChunkerRow:
    """One chunker over the sample."""

    chunker: str
    health: ChunkHealth
    encoders: tuple[EncoderTokens, ...]


@dataclass(frozen=True, slots=True)
class ChunkStatus:
    """What `preflight` found; `absent` are encoders of the plan whose tokenizer is not on this machine."""

    version: str
    n_documents: int
    readiness: tuple[str, ...]
    rows: tuple[ChunkerRow, ...]
    absent: tuple[str, ...]


def chunk_status(version: Version, corpus_path: Path | None, chunkers: Sequence[str] = ()) -> ChunkStatus:
    """The plan's chunkers over a sample of `corpus_path`, else over the version's documents; InputNeeded if none."""
    is_planned = version.plan_path(rehearsal=version.rehearsal).exists()
    planned = version.plan().cells if is_planned else default_cells(version.source, rehearsal=version.rehearsal)
    own = version.plan().own if is_planned else {}
    cells = [parse_cell(cell) for cell in planned]
    documents, readiness = _documents(version, corpus_path)
    encoders = sorted({cell.encoder for cell in cells if not isinstance(cell, WITHOUT_VECTORS)})
    specs = {name: catalog.encoder(name, own) for name in encoders}
    here = [spec for spec in specs.values() if spec.service is None and is_here(spec)]
    common = boilerplate_share(documents)
    names = list(dict.fromkeys(chunkers or [cell.chunker for cell in cells]))
    rows = [_row(name, documents, here, common) for name in names]
    absent = tuple(name for name, spec in specs.items() if spec not in here)
    return ChunkStatus(version.name, len(documents), readiness, tuple(rows), absent)


def _documents(version: Version, corpus_path: Path | None) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """The documents, and the lines of the readiness report if they were read just now."""
    if corpus_path is not None:
        drawn = sample_of(version.source, sample_to_draw(version), corpus_path)
        return drawn.documents, tuple(lines(drawn.report))
    if not version.corpus_path.exists():
        raise InputNeeded(
            f"{version.name} has no corpus yet. Give its documents: {DRIVER} preflight {version.flags} "
            "--corpus-path PATH"
        )
    embedded = version.source.corpus
    documents = archived_documents(version)
    return documents or listed_documents(version, version.checkout / embedded if embedded else None), ()


def _row(name: str, documents: Sequence[Document], encoders: Sequence[EncoderSpec], common: float) -> ChunkerRow:
    chunks = chunk_corpus(documents, name)
    by_id = {document.doc_id: document for document in documents}
    texts = list(dict.fromkeys(chunk.reading(by_id[chunk.doc_id]) for chunk in chunks))
    counted = tuple(_tokens(encoder, texts) for encoder in encoders)
    return ChunkerRow(name, chunk_health(chunks, documents, limit_of(name), common), counted)


def _tokens(spec: EncoderSpec, texts: Sequence[str]) -> EncoderTokens:
    counts = encoder_class(spec.name)(spec).token_counts(texts, "document")
    p50, p95 = np.percentile(counts, [50, 95], method="inverted_cdf").astype(int).tolist()
    limit = spec.max_tokens
    lost = int(np.maximum(counts - limit, 0).sum()) / int(counts.sum()) if limit else 0.0
    return EncoderTokens(spec.name, p50, p95, int(counts.max()), lost)


def lines_of(found: ChunkStatus) -> list[str]:
    """For a terminal: what was read, then a line per chunker and one below it per encoder."""
    lines = [f"{found.version}: {found.n_documents} documents", *found.readiness]
    for row in found.rows:
        health = row.health
        lines.append(
            f"{row.chunker}: {health.count} chunks, tokens p50 {health.tokens_p50}, p95 {health.tokens_p95}, most "
            f"{health.tokens_max}; empty {health.empty}, repeated {health.duplicate_share:.1%}, covered "
            f"{health.coverage:.2%}, outside sections {health.outside_sections_share:.1%}, boilerplate "
            f"{health.boilerplate_share:.1%}"
        )
        lines += [
            f"  {c.encoder}: tokens p50 {c.p50}, p95 {c.p95}, most {c.most}; never read {c.lost:.1%}"
            for c in row.encoders
        ]
        lines += [f"  DEGENERATE: {problem}" for problem in health.degenerate]
    if found.absent:
        lines.append(f"tokenizers that are not on this machine: {', '.join(found.absent)}")
    return lines


def as_data(found: ChunkStatus) -> JSON:
    """The same as one JSON value."""
    rows = [
        {"chunker": row.chunker, "health": row.health.model_dump(), "encoders": [asdict(c) for c in row.encoders]}
        for row in found.rows
    ]
    return {
        "version": found.version,
        "documents": found.n_documents,
        "readiness": list(found.readiness),
        "chunkers": rows,
        "tokenizers_absent": list(found.absent),
    }
