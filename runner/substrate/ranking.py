"""Chunks of the substrate as documents of the eval set: where a chunk belongs, and how deep a search must go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import RUN_DEPTH, Hit, Span
from runner.retrieve.ranking import SCORE_STEPS, best_chunks, rank
from runner.substrate.database import Substrate, json_array


class Place(NamedTuple):
    """Where a chunk belongs."""

    doc_id: str
    chunk_index: int
    span: Span


class Found(NamedTuple):
    """Chunk ids, and their scores in whole steps of 1e-5, which never rise; `more` where others may follow."""

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
        """The place of each chunk, by chunk_id; none for a row of an index whose chunk is gone.

        A document outside the eval set keeps the substrate's id. An InputError where a chunk has no place.
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
