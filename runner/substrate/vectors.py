"""Checks of the vectors: that every chunk has one, of the expected model, sound, and rightly quantised."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.embed.encoder import UNIT_TOLERANCE
from runner.substrate.database import Substrate, json_array
from runner.substrate.shapes import FindingResult, chunk_names, finding

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Unit rows for texts, as the production encoder embeds documents."""

SAMPLE = 64
"""Chunks embedded again."""

LEAST_COSINE = 0.99
"""Between a stored vector and the model's own: bfloat16 moves it to 0.998, another prompt or text further."""

VECTORS = """
    SELECT chunk_id, vec_distance_l2(embedding, embedding) IS NOT NULL, vec_distance_l2(embedding, ?),
        embedding_bq IS vec_quantize_binary(embedding)
    FROM {vectors} ORDER BY chunk_id"""
"""Of every vector: whether it is finite, as NaN and infinity have no distance to themselves; its length; its bits."""

MISSING = """
    SELECT chunk_id FROM {chunks}
    WHERE embedded_at IS NULL OR chunk_id NOT IN (SELECT chunk_id FROM {vectors}) ORDER BY chunk_id"""

MODELS = """
    SELECT embedded_model_id, embedded_model_version, count(*) FROM {chunks}
    WHERE embedded_at IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"""

JOBS = """
    SELECT status, count(*) FROM {jobs} WHERE chunk_table = ? AND model_id = ? AND model_version = ?
    GROUP BY 1 ORDER BY 1"""

DONE_WITHOUT = """
    SELECT DISTINCT chunk_id FROM {jobs} WHERE chunk_table = ? AND model_id = ? AND model_version = ?
        AND status = 'done' AND typeof(chunk_id) = 'integer' AND chunk_id IN (SELECT chunk_id FROM {chunks})
        AND chunk_id NOT IN (SELECT chunk_id FROM {vectors}) ORDER BY 1"""


@dataclass(frozen=True)
class Model:
    """The model that the chunks are expected to be embedded with."""

    model_id: str
    version: str

    def __str__(self) -> str:
        return f"{printable(self.model_id)} version {printable(self.version)}"


def vector_ids(substrate: Substrate) -> list[int]:
    """Return all chunk_ids of the vec0 table, ascending."""
    return [chunk_id for (chunk_id,) in substrate.rows("SELECT chunk_id FROM {vectors} ORDER BY chunk_id")]


def vector_findings(substrate: Substrate, chunk_ids: Sequence[int]) -> Iterator[FindingResult]:
    """Yield findings on chunks without vectors, vectors without chunks, and vectors that are unsound."""
    missing = [chunk_id for (chunk_id,) in substrate.rows(MISSING)]
    yield finding(
        "missing vectors",
        chunk_names(missing),
        len(chunk_ids),
        "chunks have no vector, or no embedded_at",
        "no search of vectors finds them",
    )
    zero = np.zeros(substrate.dim, "<f4").tobytes()
    rows, known = list(substrate.rows(VECTORS, (zero,))), set(chunk_ids)
    off = [chunk_id for chunk_id, finite, length, _ in rows if finite and not abs(length - 1) <= UNIT_TOLERANCE]
    for name, ids, what, so in (
        (
            "orphan vectors",
            [row[0] for row in rows if row[0] not in known],
            "vectors belong to no chunk",
            "they take places in every search",
        ),
        (
            "vectors not finite",
            [row[0] for row in rows if not row[1]],
            "vectors hold NaN or infinity",
            "sqlite-vec can then miss sound vectors, so that exact search is not exact",
        ),
        (
            "vectors not unit",
            off,
            f"vectors are off length 1 by more than {UNIT_TOLERANCE:g}",
            "they were not normalised",
        ),
        (
            "quantisation differs",
            [row[0] for row in rows if not row[3]],
            "binary vectors are not vec_quantize_binary of the float vector beside them",
            "the binary index looks for other vectors than the ones stored",
        ),
    ):
        yield finding(name, chunk_names(ids), len(rows), what, so)


def model_finding(substrate: Substrate, model: Model) -> FindingResult:
    """Whether every embedded chunk names the expected model and version."""
    rows = list(substrate.rows(MODELS))
    stale = [row for row in rows if row[:2] != (model.model_id, model.version)]
    return finding(
        "stale model",
        [f"{Model(str(row[0]), str(row[1]))}: {row[2]:,} chunks" for row in stale],
        sum(row[2] for row in rows),
        f"embedded chunks do not name {model} as their model",
        "queries are embedded by a model that these vectors were not made for",
        count=sum(row[2] for row in stale),
    )


def jobs_finding(substrate: Substrate, model: Model) -> FindingResult:
    """Whether the queue's jobs of this model are done, and done means that there is a vector."""
    key = (substrate.layout.chunks, model.model_id, model.version)
    counts = list(substrate.rows(JOBS, key))
    without = [chunk_id for (chunk_id,) in substrate.rows(DONE_WITHOUT, key)]
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


def embedded_again(substrate: Substrate, embed: Embed, seed: int) -> FindingResult:
    """Whether SAMPLE chunks drawn by `seed` have the vectors that `embed` makes; InputError for another dimension."""
    generator, ids = np.random.default_rng(np.random.PCG64(seed)), np.array(vector_ids(substrate), np.int64)
    sample = np.sort(generator.choice(ids, min(SAMPLE, len(ids)), replace=False)).tolist()
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
