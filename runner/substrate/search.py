"""The eval set's queries through the substrate's own indexes, ranked as everywhere, and held to exact search."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import RUN_DEPTH, Chunk, Hit, Run, Span
from runner.retrieve.ranking import SCORE_STEPS
from runner.retrieve.sums import summed
from runner.retrieve.variants import OVERSAMPLE
from runner.substrate.database import AMONG_DOCUMENTS, Substrate, json_array
from runner.substrate.shapes import Metric

EXACT = "vec0 exact"
BINARY = "vec0 bq + rescore"
KEYWORD = "fts5 bm25"
SUM = "sum(fts5 bm25, vec0 bq + rescore)"
ARMS = (EXACT, BINARY, KEYWORD, SUM)

FTS5_K1 = 1.2
"""Fixed in FTS5, whose bm25() has k1 + 1 as a factor."""

LEAST_IDF = 1e-6
"""What FTS5 takes for the idf of a phrase that half of the rows have or more."""

MOST_NEAREST = 4096
"""sqlite-vec's limit for the k of one search, and what is taken of full text."""

LARGEST_SCORE = 1e9
"""Scores past it, which no unit vector has, are held at it."""

RECALL_DEPTHS = (10, RUN_DEPTH)

SIMILARITY: dict[Metric, Callable[[float], float]] = {
    "cosine": lambda distance: 1 - distance,
    "l2": lambda distance: 1 - distance * distance / 2,
    "l1": lambda distance: -distance,
}
"""A score from the declared distance, in its order; the cosine of unit vectors, but for l1."""

Hits = tuple[Hit, ...]

IndexRecall = Mapping[int, tuple[float, ...]]
"""By depth, 10 and 100, each query's share of exact search's first chunks that bq + rescore finds, in query order."""


Ranked = list[tuple[int, int]]
"""Scores in whole steps of 1e-5, which never rise, with their chunks' ids."""


@dataclass(frozen=True)
class Searches:
    """The four searches of one source: `texts` by query id, and their unit vectors, float32 (queries, dim), in order.

    `doc_ids` are the eval set's documents; `restricted` searches their chunks alone, else everything is searched. The
    binary index is asked for `oversample` times RUN_DEPTH chunks, of MOST_NEAREST at most.
    """

    substrate: Substrate
    texts: Mapping[str, str]
    vectors: NDArray[np.float32]
    doc_ids: Sequence[str]
    restricted: bool = True
    oversample: int = OVERSAMPLE

    def runs(self) -> dict[str, Run]:
        """Return the run of every arm: MaxP to RUN_DEPTH documents, keyed by the eval set's document ids.

        The exact arm goes as deep as its documents need, to MOST_NEAREST chunks; the binary arm ranks its candidates'
        documents alone, which can be fewer than RUN_DEPTH. FTS5's statistics are over the whole source in either mode.
        A vector that is not finite can make sqlite-vec miss sound ones; the checks find it.
        """
        hits: dict[str, dict[str, Hits]] = {arm: {} for arm in ARMS}
        for query_id, text, vector in self._queries:
            for arm, answer in self._answers(text, vector).items():
                hits[arm][query_id] = answer
        return {arm: Run(arm, by_query) for arm, by_query in hits.items()}

    def index_recall(self) -> IndexRecall:
        """Return how much of the exact ranking of chunks the binary index keeps; 1.0 if there is nothing to find.

        A chunk counts as found if it scores as high as exact search's last, to 1e-5, so that ties cost nothing.
        """
        shares: dict[int, list[float]] = {depth: [] for depth in RECALL_DEPTHS}
        for _, _, vector in self._queries:
            # Exact search gives the score that a chunk must reach; bits are asked for candidates only.
            exact = [score for score, _ in self._nearest(vector, RUN_DEPTH)]
            rescored = np.array([score for score, _ in self._rescored(vector, self._candidates)], np.int64)
            for depth in RECALL_DEPTHS:
                wanted = exact[:depth]
                kept = float((rescored >= wanted[-1]).sum()) / len(wanted) if wanted else 1.0
                shares[depth].append(min(1.0, kept))
        return {depth: tuple(of_depth) for depth, of_depth in shares.items()}

    @property
    def _queries(self) -> list[tuple[str, str, bytes]]:
        """Id, text and vector as sqlite-vec reads it."""
        vectors = self.vectors.astype("<f4")
        return [(*row, vector.tobytes()) for row, vector in zip(self.texts.items(), vectors, strict=True)]

    def _answers(self, text: str, vector: bytes) -> dict[str, Hits]:
        """Return by arm its hits for one query.

        The sum takes more candidates of the binary index while their documents are fewer than RUN_DEPTH: its floor is
        the last document's cosine, which is higher in a shorter list.
        """
        keyword = self._documents(self._matching(match_expression(text)))
        deep = self._deep_enough(partial(self._rescored, vector))
        return {
            EXACT: self._deep_enough(partial(self._nearest, vector)),
            BINARY: self._documents(self._rescored(vector, self._candidates)),
            KEYWORD: keyword,
            SUM: tuple(arms.hit for arms in summed(keyword, self.bound(text), deep)[:RUN_DEPTH]),
        }

    @property
    def _candidates(self) -> int:
        return self.oversample * RUN_DEPTH

    def bound(self, text: str) -> float:
        """Return the most that FTS5's bm25() could give any chunk for a query: (k1 + 1) times the sum of idf.

        The rows that have a phrase are counted as bm25() counts them, by a search for it: fts5vocab knows single terms,
        and "78dd-1" is a phrase of two.
        """
        counts = (self._count("{fts} WHERE {fts} MATCH ?", phrase) for phrase in phrases(text))
        odds = ((self._n_rows - n + 0.5) / (n + 0.5) for n in counts)
        return (FTS5_K1 + 1) * math.fsum(max(math.log(each), LEAST_IDF) for each in odds)

    @cached_property
    def _n_rows(self) -> int:
        return self._count("{docsize}")

    def _count(self, rows: str, *bindings: str) -> int:
        ((count,),) = self.substrate.rows(f"SELECT count(*) FROM {rows}", bindings)
        return int(count)

    def _deep_enough(self, search: Callable[[int], Ranked]) -> Hits:
        """Return the documents of a search, of more chunks while fewer than RUN_DEPTH stand above the last of them."""
        count = self._candidates
        while True:
            ranked = search(count)
            hits = self._documents(ranked)
            is_final = len(hits) == RUN_DEPTH and round(hits[-1].score * SCORE_STEPS) > ranked[-1][0]
            if is_final or len(ranked) < count or count >= MOST_NEAREST:
                return hits
            count = min(2 * count, MOST_NEAREST)

    def _documents(self, ranked: Ranked) -> Hits:
        """Return the first RUN_DEPTH documents by their best chunk, in the order of ties of runner.retrieve.ranking."""
        places = self._places([chunk_id for _, chunk_id in ranked])
        best: dict[str, tuple[int, int, Span]] = {}
        for score, chunk_id in ranked:
            # A chunk that is gone has no place. Of those that score alike the first of the document is its evidence.
            if chunk := places.get(chunk_id):
                found = (-score, chunk.index, chunk.span)
                best[chunk.doc_id] = min(best.get(chunk.doc_id, found), found, key=lambda each: each[:2])
        ordered = sorted(best, key=lambda doc_id: (-best[doc_id][0], doc_id), reverse=True)[:RUN_DEPTH]
        return tuple(Hit(doc_id, -best[doc_id][0] / SCORE_STEPS, best[doc_id][2]) for doc_id in ordered)

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        return self.substrate.ids_of(self.doc_ids)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The eval set's id of each of its documents, by the substrate's."""
        return {document: doc_id for doc_id, document in self._ids.items()}

    @cached_property
    def _among(self) -> tuple[str, tuple[str, ...]]:
        """The clause that keeps a search to the chunks that may be found, and its binding."""
        if not self.restricted:
            return "", ()
        chunks = "SELECT chunk_id FROM {chunks} WHERE " + AMONG_DOCUMENTS
        rows = self.substrate.rows(chunks, (json_array(self._ids.values()),))
        return " AND chunk_id IN (SELECT value FROM json_each(?))", (json_array(row[0] for row in rows),)

    def _nearest(self, vector: bytes, count: int) -> Ranked:
        """Return the `count` chunks nearest by the declared distance."""
        among, allowed = self._among
        query = "SELECT chunk_id, distance FROM {vectors} WHERE embedding MATCH ? AND k = ?" + among
        return self._by_score(self.substrate.rows(query, (vector, count, *allowed)))

    def _rescored(self, vector: bytes, count: int) -> Ranked:
        """Return the `count` chunks nearest by Hamming distance of bits, by the declared distance of their floats."""
        among, allowed = self._among
        query = (
            f"SELECT chunk_id, vec_distance_{self.substrate.facts.metric}(embedding, ?) FROM {{vectors}} "
            "WHERE embedding_bq MATCH vec_quantize_binary(?) AND k = ?" + among
        )
        return self._by_score(self.substrate.rows(query, (vector, vector, count, *allowed)))

    def _by_score(self, rows: Iterable[tuple[Any, ...]]) -> Ranked:
        """Return the rows by score; without those whose distance is NULL, since a vector is not finite."""
        similarity = SIMILARITY[self.substrate.facts.metric]
        scored = ((_steps(similarity(distance)), chunk_id) for chunk_id, distance in rows if distance is not None)
        return sorted(scored, key=lambda pair: -pair[0])

    def _matching(self, expression: str) -> Ranked:
        """Return the first MOST_NEAREST chunks that match by the table's own rank function, none for "".

        InputError if it makes no numbers.
        """
        if not expression:
            return []
        among, allowed = self._among
        query = "SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? ORDER BY rank"
        if among:
            # The signs keep SQLite from asking FTS5 for one row after the other, and from ranking what is left out.
            query = (
                "SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? "
                "AND +rowid IN (SELECT value FROM json_each(?)) ORDER BY +rank"
            )
        rows = self.substrate.rows(query, (expression, *allowed))
        return [(_steps(-self._number(value)), chunk_id) for chunk_id, value in islice(rows, MOST_NEAREST)]

    def _number(self, value: object) -> float:
        if isinstance(value, float):
            return value
        raise InputError(
            f"{self.substrate.names['fts']} ranks its rows by {printable(repr(value))}, which is no number. Set its "
            "rank option to bm25()."
        )

    def _places(self, ids: Sequence[int]) -> dict[int, Chunk]:
        """Return the places of chunks by chunk_id, without chunks that are gone; an InputError if a chunk has no place.

        A document outside the eval set keeps the substrate's id.
        """
        rows = self.substrate.rows(
            "SELECT chunk_id, document_id, chunk_index, char_start, char_end FROM {chunks} "
            "WHERE chunk_id IN (SELECT value FROM json_each(?))",
            (json_array(ids),),
        )
        places = {}
        for chunk_id, document, index, start, end in rows:
            are_numbers = isinstance(index, int) and isinstance(start, int) and isinstance(end, int)
            if not (isinstance(document, str) and document and are_numbers and 0 <= start < end):
                shown = ", ".join(printable(repr(value)) for value in (document, index, start, end))
                raise InputError(
                    f"{self.substrate.names['chunks']}: chunk {chunk_id} has document_id, chunk_index, char_start and "
                    f"char_end {shown}. A chunk needs a document, a place in it, and characters."
                )
            places[chunk_id] = Chunk(self._names.get(document, document), index, Span(start, end), "", 0)
        return places


def match_expression(text: str) -> str:
    """Return an FTS5 MATCH expression that no text can break: its phrases joined by OR, or ""."""
    return " OR ".join(phrases(text))


def phrases(text: str) -> list[str]:
    """Return the words of a text, each once, quoted as FTS5's phrases, which no text can break.

    Stop words stay. FTS5's tokenizer cuts what is quoted: "78dd-1" becomes the phrase 78dd 1.
    """
    encodable = text.encode("utf-8", "ignore").decode().replace("\0", " ")  # SQLite's strings end at the first NUL
    words = dict.fromkeys(word for word in encodable.split() if re.search(r"[^\W_]", word))
    return ['"' + word.replace('"', '""') + '"' for word in words]


def _steps(score: float) -> int:
    """Whole steps of 1e-5, halves to even."""
    return round(max(-LARGEST_SCORE, min(LARGEST_SCORE, score)) * SCORE_STEPS)
