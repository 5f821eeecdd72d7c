"""The substrate's indexes asked for chunks (floats, bits rescored, FTS5), and the ranking of documents they make."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import RUN_DEPTH, Hit, Span
from runner.retrieve.ranking import SCORE_STEPS, best_chunks, rank
from runner.substrate.database import Substrate, json_array
from runner.substrate.tables import Metric


class Place(NamedTuple):
    """Where a chunk belongs."""

    doc_id: str
    chunk_index: int
    span: Span


class Found(NamedTuple):
    """Chunk ids, and their scores in whole steps of 1e-5, which never rise; `more` if others may follow."""

    ids: list[int]
    scores: list[int]
    more: bool


@dataclass(frozen=True)
class Places:
    """Looks up chunks; `ids` holds the substrate's id of each document of the eval set."""

    substrate: Substrate
    ids: Mapping[str, str]

    @cached_property
    def _names(self) -> dict[str, str]:
        return {document: doc_id for doc_id, document in self.ids.items()}

    def of(self, ids: Sequence[int]) -> dict[int, Place]:
        """Places by chunk_id, without chunks that are gone; an InputError if a chunk has no place.

        A document outside the eval set keeps the substrate's id.
        """
        rows = self.substrate.rows(
            "SELECT chunk_id, document_id, chunk_index, char_start, char_end FROM {chunks} "
            "WHERE chunk_id IN (SELECT value FROM json_each(?))",
            (json_array(ids),),
        )
        return {row[0]: self._place(row) for row in rows}

    def _place(self, row: tuple[Any, ...]) -> Place:
        chunk_id, document, index, start, end = row
        numbers = isinstance(index, int) and isinstance(start, int) and isinstance(end, int)
        if isinstance(document, str) and document and numbers and 0 <= start < end:
            return Place(self._names.get(document, document), index, Span(start, end))
        shown = (printable(repr(value)) for value in row[1:])
        raise InputError(
            f"{self.substrate.layout.chunks}: chunk {chunk_id} has document_id, chunk_index, char_start and char_end "
            f"{', '.join(shown)}. A chunk needs a document, a place in it, and characters."
        )


class Ranking:
    """The chunks found for one query so far, and the documents whose rank no further chunk can change."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._chunks: list[Place] = []
        self._scores: list[int] = []
        self._best: dict[str, int] = {}
        self._last: int | None = None

    def add(self, found: Found) -> None:
        """Takes the next chunks of the search; none of them may score above those added before."""
        if not found.ids:
            return
        places = self._places.of(found.ids)
        for chunk_id, score in zip(found.ids, found.scores, strict=True):
            if chunk_id in places:
                place = places[chunk_id]
                self._chunks.append(place)
                self._scores.append(score)
                self._best.setdefault(place.doc_id, score)
        self._last = found.scores[-1]

    def settled(self) -> list[str]:
        """Documents that score above the last chunk added, and so above every chunk that is still to come."""
        return [doc_id for doc_id, best in self._best.items() if self._last is not None and best > self._last]

    def is_final(self) -> bool:
        """Whether the first RUN_DEPTH documents, with their ties and evidence, are those of the whole search."""
        return len(self.settled()) >= RUN_DEPTH

    def hits(self) -> tuple[Hit, ...]:
        """The first RUN_DEPTH documents by their best chunk, in runner.retrieve.ranking's order of ties."""
        numbers = {doc_id: number for number, doc_id in enumerate(sorted(self._best))}
        documents = np.array([numbers[place.doc_id] for place in self._chunks], np.int64)
        indices = np.array([place.chunk_index for place in self._chunks], np.int64)
        order = rank(np.array(self._scores, np.int64), documents, indices)
        best = order[best_chunks(documents[order])][:RUN_DEPTH].tolist()
        return tuple(
            Hit(self._chunks[row].doc_id, self._scores[row] / SCORE_STEPS, self._chunks[row].span) for row in best
        )


MOST_NEAREST = 4096
"""sqlite-vec's limit for the k of one search."""

LARGEST_SCORE = 1e9
"""Scores past it, which no unit vector has, are held at it."""

_BATCH = 4 * RUN_DEPTH

_SIMILARITY: dict[Metric, Callable[[float], float]] = {
    "cosine": lambda distance: 1 - distance,
    "l2": lambda distance: 1 - distance * distance / 2,
    "l1": lambda distance: -distance,
}
"""A score from the declared distance, in its order; the cosine of unit vectors, but for l1."""


@dataclass(frozen=True)
class Indexes:
    """The indexes of one source; `allowed` holds the chunks that may be found, None for all."""

    substrate: Substrate
    places: Places
    allowed: frozenset[int] | None

    @cached_property
    def _among(self) -> tuple[str, tuple[str, ...]]:
        """The clause that keeps a search to the chunks allowed, and its binding."""
        if self.allowed is None:
            return "", ()
        return " AND chunk_id IN (SELECT value FROM json_each(?))", (json_array(self.allowed),)

    def nearest(self, vector: bytes, count: int) -> Found:
        """The `count` chunks nearest by the declared distance, at most MOST_NEAREST."""
        return self._nearest(vector, count, *self._among)

    def nearest_without(self, vector: bytes, count: int, chunk_ids: Iterable[int], doc_ids: Iterable[str]) -> Found:
        """The nearest chunks that are none of those given and belong to none of the documents given."""
        ids = [self.places.ids.get(doc_id, doc_id) for doc_id in doc_ids]
        clause, bindings = self._among
        others = (
            " AND chunk_id IN (SELECT chunk_id FROM {chunks} "
            "WHERE chunk_id NOT IN (SELECT value FROM json_each(?)) "
            "AND document_id NOT IN (SELECT value FROM json_each(?))"
        )
        return self._nearest(vector, count, f"{others}{clause})", (json_array(chunk_ids), json_array(ids), *bindings))

    def rescored(self, vector: bytes, candidates: int) -> Found:
        """The `candidates` chunks nearest by Hamming distance of bits, by the declared distance of their floats."""
        clause, bindings = self._among
        rows = self.substrate.rows(
            f"SELECT chunk_id, vec_distance_{self.substrate.metric}(embedding, ?) FROM {{vectors}} "  # noqa: S608
            f"WHERE embedding_bq MATCH vec_quantize_binary(?) AND k = ?{clause}",
            (vector, vector, candidates, *bindings),
        )
        return self._found(rows, candidates)

    def matching(self, expression: str) -> Iterator[Found]:
        """All chunks that match, best first by the table's own rank function, in batches.

        An InputError if that makes no numbers.
        """
        if self.allowed is None:
            rows = self.substrate.rows("SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? ORDER BY rank", (expression,))
        else:
            # The signs keep SQLite from asking FTS5 for one row after the other, and from ranking what is left out.
            rows = self.substrate.rows(
                "SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? "
                "AND +rowid IN (SELECT value FROM json_each(?)) ORDER BY +rank",
                (expression, *self._among[1]),
            )
        while batch := list(islice(rows, _BATCH)):
            scores = [_steps(-self._number(rank)) for _, rank in batch]
            yield Found([row[0] for row in batch], scores, more=len(batch) == _BATCH)

    def _number(self, rank: object) -> float:
        if isinstance(rank, float):
            return rank
        raise InputError(
            f"{self.substrate.layout.fts} ranks its rows by {printable(repr(rank))}, which is no number. Set its rank "
            "option to bm25()."
        )

    def _nearest(self, vector: bytes, count: int, clause: str, bindings: tuple[str, ...]) -> Found:
        rows = self.substrate.rows(
            "SELECT chunk_id, distance FROM {vectors} WHERE embedding MATCH ? AND k = ?" + clause,  # noqa: S608
            (vector, count, *bindings),
        )
        return self._found(rows, count)

    def _found(self, rows: Iterable[tuple[Any, ...]], count: int) -> Found:
        """The rows by score; without those whose distance is NULL, since a vector is not finite."""
        similarity = _SIMILARITY[self.substrate.metric]
        every = list(rows)
        scored = [(_steps(similarity(distance)), chunk_id) for chunk_id, distance in every if distance is not None]
        scored.sort(key=lambda pair: -pair[0])
        return Found([chunk_id for _, chunk_id in scored], [score for score, _ in scored], more=len(every) == count)


def indexes(substrate: Substrate, doc_ids: Sequence[str], *, restricted: bool) -> Indexes:
    """The source's indexes, over the chunks of the eval set's documents alone or over all."""
    ids = substrate.ids_of(doc_ids)
    places = Places(substrate, ids)
    if not restricted:
        return Indexes(substrate, places, None)
    rows = substrate.rows(
        "SELECT chunk_id FROM {chunks} WHERE document_id COLLATE BINARY IN (SELECT value FROM json_each(?))",
        (json_array(ids.values()),),
    )
    return Indexes(substrate, places, frozenset(chunk_id for (chunk_id,) in rows))


def _steps(score: float) -> int:
    """Whole steps of 1e-5, halves to even."""
    return round(max(-LARGEST_SCORE, min(LARGEST_SCORE, score)) * SCORE_STEPS)
