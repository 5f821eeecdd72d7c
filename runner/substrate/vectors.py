"""Checks of the vectors: that every chunk has one, of the expected model, sound, and rightly quantised."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.embed.encoder import UNIT_TOLERANCE
from runner.substrate.database import Substrate, json_array
from runner.substrate.shapes import FindingResult, chunk_names, finding

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Unit rows for texts, as the production encoder embeds documents."""

Ids = NDArray[np.int64]

SAMPLE = 64
"""Chunks embedded again."""

LEAST_COSINE = 0.99
"""Between a stored vector and the model's own: bfloat16 moves it to 0.998, another prompt or text further."""

_BATCH = 4096


class Vectors(NamedTuple):
    """All chunk_ids of the vec0 table, ascending, and those whose vector is unsound, by what is wrong with it."""

    ids: Ids
    not_finite: list[int]
    not_unit: list[int]
    other_bits: list[int]


@dataclass(frozen=True)
class Model:
    """The model that the chunks are expected to be embedded with."""

    model_id: str
    version: str

    def __str__(self) -> str:
        return f"{printable(self.model_id)} version {printable(self.version)}"


def read_vectors(substrate: Substrate) -> Vectors:
    """Every vector read once, in batches."""
    rows = substrate.rows("SELECT chunk_id, embedding, embedding_bq IS vec_quantize_binary(embedding) FROM {vectors}")
    parts, not_finite, not_unit, other_bits = [np.zeros(0, np.int64)], [], [], []
    while batch := list(islice(rows, _BATCH)):
        ids = np.array([row[0] for row in batch], np.int64)
        vectors = np.frombuffer(b"".join(row[1] for row in batch), "<f4").reshape(len(ids), substrate.dim)
        finite = np.isfinite(vectors).all(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            unit = np.abs(norms - 1) <= UNIT_TOLERANCE
        parts.append(ids)
        not_finite += ids[~finite].tolist()
        not_unit += ids[finite & ~unit].tolist()
        other_bits += [row[0] for row in batch if not row[2]]
    return Vectors(np.sort(np.concatenate(parts)), not_finite, not_unit, other_bits)


def vector_findings(substrate: Substrate, vectors: Vectors, chunk_ids: Ids) -> Iterator[FindingResult]:
    """Findings on vectors without chunks, chunks without vectors, and vectors that are unsound."""
    rows = substrate.rows("SELECT chunk_id FROM {chunks} WHERE embedded_at IS NULL")
    unmarked = np.array([chunk_id for (chunk_id,) in rows], np.int64)
    missing = np.union1d(np.setdiff1d(chunk_ids, vectors.ids), unmarked).tolist()
    yield finding(
        "missing vectors",
        chunk_names(missing),
        len(chunk_ids),
        "chunks have no vector, or no embedded_at",
        "no search of vectors finds them",
    )
    orphans = np.setdiff1d(vectors.ids, chunk_ids).tolist()
    not_exact = "sqlite-vec can then miss sound vectors, so that exact search is not exact"
    off = f"vectors are off length 1 by more than {UNIT_TOLERANCE:g}"
    misled = "the binary index looks for other vectors than the ones stored"
    other_bits = "binary vectors are not vec_quantize_binary of the float vector beside them"
    for name, ids, what, so in (
        ("orphan vectors", orphans, "vectors belong to no chunk", "they take places in every search"),
        ("vectors not finite", vectors.not_finite, "vectors hold NaN or infinity", not_exact),
        ("vectors not unit", vectors.not_unit, off, "they were not normalised"),
        ("quantisation differs", vectors.other_bits, other_bits, misled),
    ):
        yield finding(name, chunk_names(ids), len(vectors.ids), what, so)


def model_finding(substrate: Substrate, model: Model) -> FindingResult:
    """Whether every embedded chunk names the expected model and version."""
    rows = list(
        substrate.rows(
            "SELECT embedded_model_id, embedded_model_version, count(*) FROM {chunks} "
            "WHERE embedded_at IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
        )
    )
    stale = [row for row in rows if row[:2] != (model.model_id, model.version)]
    return finding(
        "stale model",
        [f"{Model(str(row[0]), str(row[1]))}: {row[2]:,} chunks" for row in stale],
        sum(row[2] for row in rows),
        f"embedded chunks do not name {model} as their model",
        "queries are embedded by a model that these vectors were not made for",
        count=sum(row[2] for row in stale),
    )


def jobs_finding(substrate: Substrate, model: Model, vector_ids: Ids, chunk_ids: Ids) -> FindingResult:
    """Whether the queue's jobs of this model are done, and done means that there is a vector."""
    key = (substrate.layout.chunks, model.model_id, model.version)
    counts = list(
        substrate.rows(
            "SELECT status, count(*) FROM {jobs} WHERE chunk_table = ? AND model_id = ? AND model_version = ? "
            "GROUP BY 1 ORDER BY 1",
            key,
        )
    )
    done = substrate.rows(
        "SELECT chunk_id FROM {jobs} WHERE chunk_table = ? AND model_id = ? AND model_version = ? "
        "AND status = 'done' AND typeof(chunk_id) = 'integer'",
        key,
    )
    done_ids = np.array([chunk_id for (chunk_id,) in done], np.int64)
    without = np.setdiff1d(np.intersect1d(done_ids, chunk_ids), vector_ids).tolist()
    unfinished = [(status, count) for status, count in counts if status != "done"]
    return finding(
        "unfinished jobs",
        [
            *(f"{printable(str(status))}: {count:,}" for status, count in unfinished),
            *(f"chunk {chunk_id}: done without a vector" for chunk_id in without),
        ],
        sum(count for _, count in counts),
        f"embedding jobs of {model} are not done, or done without a vector",
        count=sum(count for _, count in unfinished) + len(without),
    )


def embedded_again(substrate: Substrate, vector_ids: Ids, embed: Embed, seed: int) -> FindingResult:
    """Whether SAMPLE chunks drawn by `seed` have the vectors that `embed` makes; InputError for another dimension."""
    generator = np.random.default_rng(np.random.PCG64(seed))
    sample = np.sort(generator.choice(vector_ids, min(SAMPLE, len(vector_ids)), replace=False)).tolist()
    bindings = (json_array(sample),)
    stored = dict(
        substrate.rows(
            "SELECT chunk_id, embedding FROM {vectors} WHERE chunk_id IN (SELECT value FROM json_each(?))", bindings
        )
    )
    rows = substrate.rows(
        "SELECT chunk_id, context, text FROM {chunks} WHERE chunk_id IN (SELECT value FROM json_each(?))", bindings
    )
    texts = {row[0]: f"{row[1]}\n{row[2]}" if row[1] else str(row[2]) for row in rows if row[0] in stored}
    cosines = _cosines(stored, texts, embed) if texts else {}
    return finding(
        "stored vectors are not the model's",
        [f"chunk {chunk_id}: cosine {value:.4f}" for chunk_id, value in cosines.items() if not value >= LEAST_COSINE],
        len(cosines),
        f"chunks embedded again have a cosine below {LEAST_COSINE} to their stored vector",
        "another model, prompt or text made it",
    )


def _cosines(stored: Mapping[int, bytes], texts: Mapping[int, str], embed: Embed) -> dict[int, float]:
    """By chunk, between the stored vector and the one that `embed` makes; NaN if one is not finite or 0."""
    again = embed(list(texts.values()))
    dim = len(next(iter(stored.values()))) // 4
    if again.shape != (len(texts), dim):
        raise InputError(
            f"The encoder made vectors {again.shape} of {len(texts)} chunks, the substrate's have {dim} dimensions. "
            "Give the encoder that the substrate was embedded with."
        )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rows = np.array([np.frombuffer(stored[chunk_id], "<f4") for chunk_id in texts]).astype(np.float64)
        products = (rows * again).sum(axis=1)
        cosines = products / np.linalg.norm(rows, axis=1) / np.linalg.norm(again, axis=1)
    return dict(zip(texts, cosines.tolist(), strict=True))
