"""The eval set's queries through the substrate's own indexes, ranked as everywhere, timed, and held to exact search."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.base.errors import InputError
from runner.base.records import RUN_DEPTH, SCORE_UNIT, Hit, Run
from runner.retrieve.retrieve import fused_ids
from runner.retrieve.variants import OVERSAMPLE
from runner.substrate.database import Substrate
from runner.substrate.searches import MOST_NEAREST, Indexes, Ranking, indexes

EXACT = "vec0 exact"
BINARY = "vec0 bq + rescore"
KEYWORD = "fts5 bm25"
FUSED = "rrf(fts5 bm25, vec0 bq + rescore)"
ARMS = (EXACT, BINARY, KEYWORD, FUSED)

FIRST_NEAREST = 4 * RUN_DEPTH
"""Chunks that exact search begins with: sqlite-vec is slow in choosing many, and few documents have four among them."""

RECALL_DEPTHS = (10, RUN_DEPTH)
REPEATS = 2


@dataclass(frozen=True)
class Search:
    """What is searched for: `texts` by query id, and their unit vectors, float32 (queries, dim), in that order.

    `doc_ids` are the eval set's documents; `restricted` searches their chunks alone, else everything is searched.
    """

    texts: Mapping[str, str]
    vectors: NDArray[np.float32]
    doc_ids: Sequence[str]
    restricted: bool = True
    oversample: int = OVERSAMPLE


IndexRecall = Mapping[int, tuple[float, ...]]
"""By depth, 10 and 100, each query's share of exact search's first chunks that bq + rescore finds, in query order."""


def search_runs(substrate: Substrate, search: Search) -> dict[str, Run]:
    """The run of every arm of ARMS: MaxP to RUN_DEPTH documents, keyed by the eval set's document ids.

    The exact arm goes as deep as its documents need; the binary arm ranks its candidates' documents alone, which can be
    fewer than RUN_DEPTH. FTS5's statistics are over the whole source in either mode. A vector that is not finite can
    make sqlite-vec miss sound ones; the checks find it.
    """
    hits: dict[str, dict[str, tuple[Hit, ...]]] = {arm: {} for arm in ARMS}
    arms = _Arms.of(substrate, search)
    for query_id, text, vector in arms.queries:
        for arm, answer in arms.answers(text, vector).items():
            hits[arm][query_id] = answer
    return {arm: Run(arm, found) for arm, found in hits.items()}


def index_recall(substrate: Substrate, search: Search) -> IndexRecall:
    """How much of the exact ranking of chunks the binary index keeps, query by query; 1.0 if there is nothing to find.

    A chunk counts as found if it scores as high as exact search's last, to 1e-5, so that ties cost nothing.
    """
    arms = _Arms.of(substrate, search)
    shares = [arms.recall(vector) for _, _, vector in arms.queries]
    return {depth: tuple(share[place] for share in shares) for place, depth in enumerate(RECALL_DEPTHS)}


def latencies(substrate: Substrate, search: Search, *, repeats: int = REPEATS) -> dict[str, tuple[float, ...]]:
    """Seconds of every call of every arm, from embedded query to ranked documents: `repeats` rounds over all queries.

    The first query is answered once before, untimed; pages stay cached. The fused arm's seconds include its two arms'.
    """
    arms = _Arms.of(substrate, search)
    seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for _, text, vector in arms.queries[:1]:
        arms.answers(text, vector)
    for _ in range(repeats):
        for _, text, vector in arms.queries:
            timed: dict[str, float] = {}
            arms.answers(text, vector, timed)
            for arm, spent in timed.items():
                seconds[arm].append(spent)
    return {arm: tuple(spent) for arm, spent in seconds.items()}


def percentiles(seconds: Sequence[float]) -> dict[int, float]:
    """What 50, 95 and 99 % of the calls stay within, interpolated linearly; a ValueError without a call."""
    if not len(seconds):
        raise ValueError("no call was timed")
    return {share: float(np.percentile(seconds, share)) for share in (50, 95, 99)}


def match_expression(text: str) -> str:
    """An FTS5 MATCH expression that no text can break: its words, stop words too, quoted and joined by OR, or "".

    FTS5's tokenizer cuts what is quoted: "78dd-1" becomes the phrase 78dd 1.
    """
    encodable = text.encode("utf-8", "ignore").decode().replace("\0", " ")  # SQLite's strings end at the first NUL
    words = dict.fromkeys(word for word in encodable.split() if re.search(r"[^\W_]", word))
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


@dataclass(frozen=True)
class _Arms:
    indexes: Indexes
    search: Search
    candidates: int

    @classmethod
    def of(cls, substrate: Substrate, search: Search) -> "_Arms":
        vectors, candidates = search.vectors, search.oversample * RUN_DEPTH
        if not 0 < candidates <= MOST_NEAREST:
            raise ValueError(
                f"oversample {search.oversample} asks for {candidates} candidates, of {MOST_NEAREST} at most"
            )
        if vectors.ndim != 2 or len(vectors) != len(search.texts) or not np.isfinite(vectors).all():
            raise ValueError(f"{len(search.texts)} queries need as many finite vectors, not {vectors.shape}")
        if search.texts and vectors.shape[1] != substrate.dim:
            raise InputError(
                f"The queries' vectors have {vectors.shape[1]} dimensions, the substrate's {substrate.dim}. "
                "Embed the queries with the substrate's own model."
            )
        return cls(indexes(substrate, search.doc_ids, restricted=search.restricted), search, candidates)

    @property
    def queries(self) -> list[tuple[str, str, bytes]]:
        """Id, text and vector as sqlite-vec reads it."""
        vectors = self.search.vectors.astype("<f4")
        return [(*row, vector.tobytes()) for row, vector in zip(self.search.texts.items(), vectors, strict=True)]

    def answers(self, text: str, vector: bytes, seconds: dict[str, float] | None = None) -> dict[str, tuple[Hit, ...]]:
        """Every arm's hits for one query; what each took goes into `seconds`."""
        seconds = {} if seconds is None else seconds
        answers: dict[str, tuple[Hit, ...]] = {}
        calls: dict[str, Callable[[], tuple[Hit, ...]]] = {
            EXACT: lambda: self._exact(vector),
            BINARY: lambda: self._binary(vector),
            KEYWORD: lambda: self._keyword(text),
            FUSED: lambda: fused(answers[KEYWORD], answers[BINARY]),
        }
        for arm, call in calls.items():
            started = time.perf_counter()
            answers[arm] = call()
            seconds[arm] = time.perf_counter() - started
        seconds[FUSED] += seconds[KEYWORD] + seconds[BINARY]
        return answers

    def recall(self, vector: bytes) -> tuple[float, float]:
        """The shares of one query, of 10 and of 100 chunks."""
        exact = self.indexes.nearest(vector, RUN_DEPTH).scores
        found = np.array(self.indexes.rescored(vector, self.candidates).scores, np.int64)
        shares = []
        for depth in RECALL_DEPTHS:
            wanted = exact[:depth]
            shares.append(min(1.0, float((found >= wanted[-1]).sum()) / len(wanted)) if wanted else 1.0)
        return shares[0], shares[1]

    def _exact(self, vector: bytes) -> tuple[Hit, ...]:
        ranking = Ranking(self.indexes.places)
        found = self.indexes.nearest(vector, FIRST_NEAREST)
        ranking.add(found)
        seen = list(found.ids)
        while found.more and not ranking.is_final():
            found = self.indexes.nearest_without(vector, MOST_NEAREST, seen, ranking.settled())
            ranking.add(found)
            seen += found.ids
        return ranking.hits()

    def _binary(self, vector: bytes) -> tuple[Hit, ...]:
        ranking = Ranking(self.indexes.places)
        ranking.add(self.indexes.rescored(vector, self.candidates))
        return ranking.hits()

    def _keyword(self, text: str) -> tuple[Hit, ...]:
        ranking = Ranking(self.indexes.places)
        expression = match_expression(text)
        if expression:
            for found in self.indexes.matching(expression):
                ranking.add(found)
                if ranking.is_final():
                    break
        return ranking.hits()


def fused(keyword: Sequence[Hit], dense: Sequence[Hit]) -> tuple[Hit, ...]:
    """Two rankings by reciprocal rank, as the harness fuses them; a document's span is the dense arm's if it has it."""
    spans = {hit.doc_id: hit.span for hit in (*keyword, *dense)}
    ranking = fused_ids([[hit.doc_id for hit in hits] for hits in (keyword, dense)])
    return tuple(Hit(doc_id, score / SCORE_UNIT, spans[doc_id]) for doc_id, score in ranking)
