"""What is wrong with a substrate before anything is searched: findings with stable names, always in one order.

Most are rows of one table of SQL. A sample of vectors is embedded again, and a sample of chunks looked up in the
full-text index.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.given_files import printable
from runner.base.records import Chunk, Document
from runner.embed.encoder import UNIT_TOLERANCE
from runner.substrate.database import Substrate, json_array
from runner.substrate.documents import document_findings
from runner.substrate.search import phrases
from runner.substrate.shapes import EXAMPLES, FindingResult, finding
from runner.substrate.tables import TOKENIZER

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Unit rows for texts, as the production encoder embeds documents."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the substrate should hold; `chunks` are the chunker's of the documents, `version` is the one seen before."""

    model_id: str
    model_version: str
    chunker: str
    chunks: Sequence[Chunk]
    version: str | None = None


class Check(NamedTuple):
    """What one query finds, said as "{count} of {of} {what}: {so}".

    A row of `query` ends with the number of things that it stands for; `example` names them by all of its values.
    """

    name: str
    query: str
    of: str
    what: str
    so: str = ""
    example: str = "chunk {}"


_CHUNKS = "SELECT count(*) FROM {chunks}"
_VECTORS = "SELECT count(*) FROM {vectors}"
_OF_MODEL = "chunk_table = :chunk_table AND model_id = :model_id AND model_version = :model_version"

CHECKS = (
    Check(
        "stale model",
        """SELECT embedded_model_id, embedded_model_version, count(*) FROM {chunks}
        WHERE embedded_at IS NOT NULL AND NOT (embedded_model_id COLLATE BINARY IS :model_id
            AND embedded_model_version COLLATE BINARY IS :model_version)
        GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2""",
        _CHUNKS + " WHERE embedded_at IS NOT NULL",
        "embedded chunks do not name {model} as their model",
        "queries are embedded by a model that these vectors were not made for",
        example="{} version {}: {:,} chunks",
    ),
    Check(
        "missing vectors",
        f"""SELECT chunk_id, 1 FROM {{chunks}}
        WHERE embedded_at IS NULL OR chunk_id NOT IN (SELECT chunk_id FROM {{vectors}})
            OR chunk_id IN (SELECT chunk_id FROM {{jobs}} WHERE {_OF_MODEL} AND status IS NOT 'done')
        ORDER BY chunk_id""",
        _CHUNKS,
        "chunks have no vector, no embedded_at, or a job that is not done",
        "no search of vectors finds them as they should be",
    ),
    Check(
        "orphan vectors",
        "SELECT chunk_id, 1 FROM {vectors} WHERE chunk_id NOT IN (SELECT chunk_id FROM {chunks}) ORDER BY chunk_id",
        _VECTORS,
        "vectors belong to no chunk",
        "they take places in every search",
    ),
    Check(
        "vectors not unit",
        # The length is the distance to the vector of zeros; with NaN or infinity it is none.
        f"""SELECT chunk_id, 1 FROM {{vectors}}
        WHERE (abs(vec_distance_l2(embedding, :zero) - 1) <= {UNIT_TOLERANCE!r}) IS NOT TRUE ORDER BY chunk_id""",
        _VECTORS,
        f"vectors are off length 1 by more than {UNIT_TOLERANCE:g}, or hold NaN or infinity",
        "they were not normalised; with NaN sqlite-vec can miss sound vectors, so that exact search is not exact",
    ),
    Check(
        "quantisation differs",
        """SELECT chunk_id, 1 FROM {vectors}
        WHERE embedding_bq IS NOT vec_quantize_binary(embedding) ORDER BY chunk_id""",
        _VECTORS,
        "binary vectors are not vec_quantize_binary of the float vector beside them",
        "the binary index looks for other vectors than the ones stored",
    ),
)


def check_substrate(
    substrate: Substrate,
    documents: Sequence[Document],
    expected: Expected,
    *,
    embed: Embed | None = None,
    seed: int = 0,
) -> list[FindingResult]:
    """Return every finding about the source's tables, also those with nothing to say.

    `documents` are the eval set's, as archived. Tables are read row by row; of chunks, ids and places alone stay in
    memory. `embed` embeds a sample of chunks again, drawn by `seed`; without it that finding is left out.
    """
    bindings = {
        "chunk_table": substrate.names["chunks"],
        "model_id": expected.model_id,
        "model_version": expected.model_version,
        "model": f"{printable(expected.model_id)} version {printable(expected.model_version)}",
        "zero": np.zeros(substrate.facts.dim, "<f4").tobytes(),
    }
    return [
        _version_finding(substrate.facts.version, expected.version),
        *(_found_by(substrate, check, bindings) for check in CHECKS),
        *([embedded_again(substrate, embed, seed)] if embed is not None else []),
        *document_findings(substrate, documents, expected.chunker, expected.chunks),
        tokenizer_finding(substrate.facts.tokenizer),
        _stale_index(substrate, seed),
    ]


def _found_by(substrate: Substrate, check: Check, bindings: Mapping[str, Any]) -> FindingResult:
    """Return what the query of a check finds: its rows are counted, and only the first few named."""
    count = 0
    examples: list[str] = []
    for *values, number in substrate.rows(check.query, bindings):
        count += number
        if len(examples) < EXAMPLES:
            examples.append(check.example.format(*(printable(str(value)) for value in values), number))
    ((of,),) = substrate.rows(check.of, bindings)
    what = check.what.format(model=bindings["model"])
    return finding(check.name, count, of, what, check.so, examples)


def _version_finding(version: str, before: str | None) -> FindingResult:
    """Return a note if the substrate's version is another than the one seen before."""
    is_other = before is not None and version != before
    unlike = f", not {printable(str(before))!r}" if is_other else ""
    sentence = f"The substrate's version is {printable(version)!r}{unlike}."
    return finding("substrate version", int(is_other), 1, sentence=sentence, fault=False)


REEMBEDDED = 64
"""Chunks embedded again."""

LEAST_COSINE = 0.99
"""Between a stored vector and the model's own: bfloat16 moves it to 0.998, another prompt or text further."""

_AMONG = "IN (SELECT value FROM json_each(?))"


def _sample(substrate: Substrate, query: str, size: int, seed: int) -> tuple[str]:
    """Return as one binding `size` of the ids that a query lists ascending, all of them if there are no more."""
    ids = np.array([chunk_id for (chunk_id,) in substrate.rows(query)], np.int64)
    drawn = np.random.default_rng(np.random.PCG64(seed)).choice(ids, min(size, len(ids)), replace=False)
    return (json_array(np.sort(drawn).tolist()),)


def embedded_again(substrate: Substrate, embed: Embed, seed: int) -> FindingResult:
    """Return whether a sample of chunks has the vectors that `embed` makes, which has the substrate's dimension."""
    sample = _sample(substrate, "SELECT chunk_id FROM {vectors} ORDER BY chunk_id", REEMBEDDED, seed)
    stored: dict[int, bytes] = dict(
        substrate.rows(f"SELECT chunk_id, embedding FROM {{vectors}} WHERE chunk_id {_AMONG}", sample)
    )
    rows = substrate.rows(f"SELECT chunk_id, context, text FROM {{chunks}} WHERE chunk_id {_AMONG}", sample)
    # As `Chunk.reading` puts a chunk's context before its text.
    texts = {row[0]: f"{row[1]}\n{row[2]}" if row[1] else str(row[2]) for row in rows if row[0] in stored}
    cosines = {}
    if texts:
        again = embed(list(texts.values()))
        # The cosine of the stored vector and the one made now; NaN, if one is not finite or 0, is not above the floor.
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            held = np.array([np.frombuffer(stored[chunk_id], "<f4") for chunk_id in texts]).astype(np.float64)
            values = (held * again).sum(axis=1) / np.linalg.norm(held, axis=1) / np.linalg.norm(again, axis=1)
        cosines = dict(zip(texts, values.tolist(), strict=True))
    short = [
        f"chunk {chunk_id}: cosine {value:.4f}" for chunk_id, value in cosines.items() if not value >= LEAST_COSINE
    ]
    what = f"chunks embedded again have a cosine below {LEAST_COSINE} to their stored vector"
    so = "another model, prompt or text made it"
    return finding("stored vectors are not the model's", len(short), len(cosines), what, so, short)


def tokenizer_finding(declared: str) -> FindingResult:
    """Return whether the index is declared to be cut by TOKENIZER."""
    words = declared.lower().split()
    is_other = words != TOKENIZER.split() and words != ["porter"]  # which wraps unicode61 by itself
    sentence = f"The index is cut by {printable(declared)!r}{f', not by {TOKENIZER!r}' if is_other else ''}."
    return finding("FTS tokenizer mismatch", int(is_other), 1, sentence=sentence)


LOOKED_UP = 200
"""Chunks whose words are looked up in the index."""


def _stale_index(substrate: Substrate, seed: int) -> FindingResult:
    """Return how many rows are in chunk table or index alone, or, of a sample, not found by all of their words."""
    alone = (
        "SELECT chunk_id FROM {chunks} WHERE chunk_id NOT IN (SELECT id FROM {docsize}) "
        "UNION ALL SELECT id FROM {docsize} WHERE id NOT IN (SELECT chunk_id FROM {chunks}) ORDER BY 1"
    )
    wrong = [chunk_id for (chunk_id,) in substrate.rows(alone)]
    both = "SELECT chunk_id FROM {chunks} WHERE chunk_id IN (SELECT id FROM {docsize}) ORDER BY 1"
    sample = _sample(substrate, both, LOOKED_UP, seed)
    found = "SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid = ?"
    for chunk_id, *columns in substrate.rows(
        f"SELECT chunk_id, context, text FROM {{chunks}} WHERE chunk_id {_AMONG}", sample
    ):
        words = " AND ".join(phrases(" ".join(column for column in columns if isinstance(column, str))))
        if words and not list(substrate.rows(found, (words, chunk_id))):
            wrong.append(chunk_id)
    what = f"chunks are not in the full-text index as they read, of which {LOOKED_UP} at most were looked up by word"
    so = "keyword search answers from other text"
    examples = (f"chunk {chunk_id}" for chunk_id in wrong)
    return finding("FTS index stale", len(wrong), max(len(wrong), substrate.facts.chunks), what, so, examples)
