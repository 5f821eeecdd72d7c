"""The eval set's queries through the substrate's own indexes, ranked as everywhere, and held to exact search."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import InputError
from runner.base.given_files import printable
from runner.base.records import RUN_DEPTH, Chunk, Hit, Run, Span
from runner.retrieve.ranking import SCORE_STEPS, rank
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
"""sqlite-vec's limit for the k of one search."""

FIRST_NEAREST = 4 * RUN_DEPTH
"""Chunks that exact search begins with: sqlite-vec is slow in choosing many, and few documents have four among them."""

BATCH = 4 * RUN_DEPTH
"""Chunks that full text is asked for at once."""

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


class RankedChunks(NamedTuple):
    """Chunk ids, and their scores in whole steps of 1e-5, which never rise."""

    ids: list[int]
    scores: list[int]


@dataclass
class Ranking:
    """The documents found for one query so far, each by its best chunk, and the score of the last chunk."""

    best: dict[str, tuple[int, int, Span]] = field(default_factory=dict)  # score negated, chunk index and span
    last: int | None = None

    def add(self, ranked: RankedChunks, places: Mapping[int, Chunk]) -> None:
        """Take the next chunks of a search, none of which may score above those before; gone ones have no place."""
        for chunk_id, score in zip(ranked.ids, ranked.scores, strict=True):
            if chunk_id in places:
                chunk = places[chunk_id]
                known = self.best.get(chunk.doc_id)
                # Of chunks that score alike the first of the document is its evidence.
                if known is None or (-score, chunk.index) < known[:2]:
                    self.best[chunk.doc_id] = (-score, chunk.index, chunk.span)
            self.last = score

    def is_final(self) -> bool:
        """Return whether the first RUN_DEPTH documents, with their ties and evidence, are those of the whole search.

        That many score above the last chunk, and so above every chunk that is still to come.
        """
        return self.last is not None and sum(-chunk[0] > self.last for chunk in self.best.values()) >= RUN_DEPTH

    def hits(self) -> Hits:
        """Return the first RUN_DEPTH documents in runner.retrieve.ranking's order of ties."""
        doc_ids = sorted(self.best)
        scores = np.array([-self.best[doc_id][0] for doc_id in doc_ids], np.int64)
        numbers = np.arange(len(doc_ids))
        order = rank(scores, numbers, np.zeros_like(numbers))[:RUN_DEPTH].tolist()
        return tuple(Hit(doc_ids[row], scores[row].item() / SCORE_STEPS, self.best[doc_ids[row]][2]) for row in order)


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

        The exact arm goes as deep as its documents need; the binary arm ranks its candidates' documents alone, which
        can be fewer than RUN_DEPTH. FTS5's statistics are over the whole source in either mode. A vector that is not
        finite can make sqlite-vec miss sound ones; the checks find it.
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
            exact = self._nearest(vector, RUN_DEPTH).scores
            rescored = np.array(self._rescored(vector).scores, np.int64)
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
        """Return by arm its hits for one query."""
        binary = self._documents([self._rescored(vector)])
        keyword = self._documents(self._matching(match_expression(text)))
        return {
            EXACT: self._documents(self._by_distance(vector)),
            BINARY: binary,
            KEYWORD: keyword,
            SUM: summed(keyword, self.bound(text), self._deep_enough(vector, binary)).hits,
        }

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

    def _deep_enough(self, vector: bytes, found: Hits) -> Hits:
        """Return the binary arm's documents, of more candidates while they are fewer than RUN_DEPTH.

        The floor of a sum is the last document's cosine: that of a shorter list would be higher.
        """
        candidates = self.oversample * RUN_DEPTH
        while len(found) < RUN_DEPTH and candidates < MOST_NEAREST:
            candidates = min(2 * candidates, MOST_NEAREST)
            ranked = self._rescored(vector, candidates)
            found = self._documents([ranked])
            if len(ranked.ids) < candidates:
                break  # there are no more chunks
        return found

    def _documents(self, batches: Iterable[RankedChunks]) -> Hits:
        """Return the documents of the batches, which are asked for as long as more chunks could change them."""
        ranking = Ranking()
        for ranked in batches:
            ranking.add(ranked, self._places(ranked.ids))
            if ranking.is_final():
                break
        return ranking.hits()

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

    def _by_distance(self, vector: bytes) -> Iterator[RankedChunks]:
        """Yield all chunks by the declared distance: a few first, then as many as a search returns."""
        ranked, seen = self._nearest(vector, FIRST_NEAREST), list[int]()
        while ranked.ids:  # none if vectors that are not finite are left alone, which would come again for ever
            yield ranked
            seen += ranked.ids
            ranked = self._nearest(vector, MOST_NEAREST, seen)

    def _nearest(self, vector: bytes, count: int, seen: Sequence[int] = ()) -> RankedChunks:
        """Return the `count` chunks nearest by the declared distance, without those that were seen."""
        clause, bindings = self._among
        if seen:
            # vec0 takes one list of ids, so that both conditions stand in one.
            clause = (
                " AND chunk_id IN (SELECT chunk_id FROM {chunks} "
                f"WHERE chunk_id NOT IN (SELECT value FROM json_each(?)){clause})"
            )
            bindings = (json_array(seen), *bindings)
        query = "SELECT chunk_id, distance FROM {vectors} WHERE embedding MATCH ? AND k = ?" + clause
        return self._by_score(self.substrate.rows(query, (vector, count, *bindings)))

    def _rescored(self, vector: bytes, candidates: int = 0) -> RankedChunks:
        """Return the candidates nearest by Hamming distance of bits, by the declared distance of their floats.

        They are `oversample` times RUN_DEPTH unless more are asked for.
        """
        among, allowed = self._among
        candidates = candidates or self.oversample * RUN_DEPTH
        query = (
            f"SELECT chunk_id, vec_distance_{self.substrate.facts.metric}(embedding, ?) FROM {{vectors}} "
            "WHERE embedding_bq MATCH vec_quantize_binary(?) AND k = ?" + among
        )
        return self._by_score(self.substrate.rows(query, (vector, vector, candidates, *allowed)))

    def _by_score(self, rows: Iterable[tuple[Any, ...]]) -> RankedChunks:
        """Return the rows by score; without those whose distance is NULL, since a vector is not finite."""
        similarity = SIMILARITY[self.substrate.facts.metric]
        scored = [(_steps(similarity(distance)), chunk_id) for chunk_id, distance in rows if distance is not None]
        scored.sort(key=lambda pair: -pair[0])
        return RankedChunks([chunk_id for _, chunk_id in scored], [score for score, _ in scored])

    def _matching(self, expression: str) -> Iterator[RankedChunks]:
        """Yield all chunks that match, best first by the table's own rank function; InputError if it makes no numbers.

        Nothing matches "".
        """
        if not expression:
            return
        among, allowed = self._among
        query = "SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? ORDER BY rank"
        if among:
            # The signs keep SQLite from asking FTS5 for one row after the other, and from ranking what is left out.
            query = (
                "SELECT rowid, rank FROM {fts} WHERE {fts} MATCH ? "
                "AND +rowid IN (SELECT value FROM json_each(?)) ORDER BY +rank"
            )
        rows = self.substrate.rows(query, (expression, *allowed))
        while batch := list(islice(rows, BATCH)):
            scores = [_steps(-self._number(value)) for _, value in batch]
            yield RankedChunks([chunk_id for chunk_id, _ in batch], scores)

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
