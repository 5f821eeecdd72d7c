"""Predictors that cheat or are broken, in ways that people meet: the gate must refuse them, but for those it cannot."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH
from runner.retrieve.retrieve import fused_ids

Lists = list[list[str]]
"""Documents for each query, best first."""

_LUCKY_SHARE = 5
_LEAKED_SHARE = 2
_HASH_BYTES = 64


@dataclass(frozen=True)
class Exam:
    """What there is to cheat with: answers, documents, and the lists of a real engine to break.

    `grades` are each query's documents graded above 0, `pool` all documents in ascending order. `texts` of documents
    are only for predictors that read them, as `asked`, the queries' own, are. `depth` is the length of a short list.
    """

    grades: Sequence[Mapping[str, int]]
    pool: Sequence[str]
    strata: Sequence[str]
    engine: Lists
    depth: int = 10
    seed: int = 2026
    texts: Mapping[str, str] = field(default_factory=dict)
    asked: Sequence[str] = ()

    def generator(self, purpose: str) -> np.random.Generator:
        """Return random numbers that no other purpose shares."""
        return np.random.default_rng(np.random.PCG64([self.seed, *purpose.encode()]))

    def shares(self, places: Sequence[int]) -> Counter[str]:
        """Return the sum of grades of each document over the queries at these places."""
        total: Counter[str] = Counter()
        for place in places:
            total.update(self.grades[place])
        return total

    def popular(self, places: Sequence[int]) -> list[str]:
        """Return the documents with the greatest sums of grades over these queries, `depth` of them, ties by id."""
        shares = self.shares(places)
        return sorted(shares, key=lambda document: (-shares[document], document))[: self.depth]

    def for_all(self, documents: Sequence[str]) -> Lists:
        """Return the same list for every query."""
        return [list(documents) for _ in self.grades]

    def answered(self, place: int) -> list[str]:
        """Return a query's graded documents, then what the engine found; the best grade first, ties by id."""
        grades = self.grades[place]
        best = sorted(grades, key=lambda document: (-grades[document], document))
        return list(dict.fromkeys([*best, *self.engine[place]]))

    def some(self, purpose: str, share: int) -> set[int]:
        """Return the places of one query in `share`, drawn at random."""
        drawn = self.generator(purpose).permutation(len(self.grades))[: len(self.grades) // share]
        return set(drawn.tolist())


@dataclass(frozen=True)
class Cheater:
    """A predictor and what is wrong with it; `passes` says why the gate may not refuse it, "" if it must."""

    name: str
    broken: str
    lists: Callable[[Exam], Lists]
    passes: str = ""


def oracle(exam: Exam) -> Lists:
    """Return the answers first."""
    return [exam.answered(place) for place in range(len(exam.grades))]


def _leaky_half(exam: Exam) -> Lists:
    seen = exam.some("leaked", _LEAKED_SHARE)
    return [exam.answered(place) if place in seen else own for place, own in enumerate(exam.engine)]


def _lucky_few(exam: Exam) -> Lists:
    lucky, rubbish = exam.some("lucky", _LUCKY_SHARE), _random(exam)
    return [[*exam.answered(place)[:1], *own] if place in lucky else own for place, own in enumerate(rubbish)]


def _constant(exam: Exam) -> Lists:
    return exam.for_all(exam.popular(range(len(exam.grades)))[:1])


def _popularity(exam: Exam) -> Lists:
    return exam.for_all(exam.popular(range(len(exam.grades))))


def _source_prior(exam: Exam) -> Lists:
    members: dict[str, list[int]] = {}
    for place, stratum in enumerate(exam.strata):
        members.setdefault(stratum, []).append(place)
    favourites = {stratum: exam.popular(places) for stratum, places in members.items()}
    return [favourites[stratum] for stratum in exam.strata]


def _marginal_matched(exam: Exam) -> Lists:
    shares = exam.shares(range(len(exam.grades)))
    documents = sorted(shares)
    weights = np.array([shares[document] for document in documents], np.float64)
    return _drawn(exam, "marginal-matched", documents, weights / weights.sum())


def _random(exam: Exam) -> Lists:
    return _drawn(exam, "random", exam.pool)


def _drawn(exam: Exam, purpose: str, documents: Sequence[str], chances: NDArray[np.float64] | None = None) -> Lists:
    """Draw `depth` different documents for each query."""
    generator, depth = exam.generator(purpose), min(exam.depth, len(documents))
    rows = (generator.choice(len(documents), depth, replace=False, p=chances) for _ in exam.grades)
    return [[documents[place] for place in row.tolist()] for row in rows]


def _stub(exam: Exam) -> Lists:
    return exam.for_all(_random(exam)[0])


def _longest(exam: Exam) -> Lists:
    return exam.for_all(sorted(exam.pool, key=lambda document: -len(exam.texts[document]))[: exam.depth])


def _first_ids(exam: Exam) -> Lists:
    return exam.for_all(exam.pool[: exam.depth])


def _deaf(exam: Exam) -> Lists:
    return exam.for_all(exam.engine[0])


def _off_by_one(exam: Exam) -> Lists:
    return [*exam.engine[1:], *exam.engine[:1]]


def _mixed_up(exam: Exam) -> Lists:
    return [exam.engine[place] for place in exam.generator("mixed up").permutation(len(exam.engine)).tolist()]


def _shuffled(exam: Exam) -> Lists:
    generator = exam.generator("shuffled")
    tops = (own[: exam.depth] for own in exam.engine)
    return [[top[place] for place in generator.permutation(len(top)).tolist()] for top in tops]


def _worst_first(exam: Exam) -> Lists:
    return [own[: exam.depth][::-1] for own in exam.engine]


def _hashed_texts(exam: Exam) -> Lists:
    """Rank by the cosine of digests in place of vectors: equal texts are near, all others strangers."""
    documents, queries = _digests([exam.texts[document] for document in exam.pool]), _digests(exam.asked)
    norms = np.sqrt((documents**2).sum(axis=1))
    orders = (np.argsort(-(documents @ query) / norms, kind="stable")[:RUN_DEPTH] for query in queries)
    return [[exam.pool[place] for place in order.tolist()] for order in orders]


def _digests(texts: Sequence[str]) -> NDArray[np.float64]:
    digests = b"".join(hashlib.shake_256(text.encode()).digest(_HASH_BYTES) for text in texts)
    return np.frombuffer(digests, np.int8).reshape(-1, _HASH_BYTES).astype(np.float64)


def _dead_arm(exam: Exam) -> Lists:
    arms = zip(exam.engine, _hashed_texts(exam), strict=True)
    return [[document for document, _ in fused_ids(pair)] for pair in arms]


_BY_ORDER = "what it finds is the engine's; the diagnosis names its order, which alone refuses nobody"

_ROWS = (
    Cheater("oracle", "copies the answers from the answer key", oracle, "its lists are perfect: the ceiling"),
    Cheater(
        "leaky half",
        "has seen the answers to half of the queries",
        _leaky_half,
        "no list tells an answer that was found from one that was learnt",
    ),
    Cheater(
        "lucky few",
        "answers a fifth of the queries, and draws documents for the others",
        _lucky_few,
        "a mean does not say that most queries score 0",
    ),
    Cheater(
        "hybrid with a dead arm",
        "fuses the engine with hashes of texts, which took a model's place in silence",
        _dead_arm,
        "half of it reads the query; the probe of the encoder finds the other half",
    ),
    Cheater("hashed texts", "compares hashes of texts in place of vectors", _hashed_texts),
    Cheater("deaf", "searches for the first query, whatever is asked", _deaf),
    Cheater(
        "off by one",
        "files the engine's lists under the query before",
        _off_by_one,
        "if neighbouring queries share their answers, as two versions of one query do",
    ),
    Cheater("mixed up", "files the engine's lists under other queries at random", _mixed_up),
    Cheater("shuffled", "returns the engine's first ten in random order", _shuffled, _BY_ORDER),
    Cheater("worst first", "returns the engine's first ten in reverse", _worst_first, _BY_ORDER),
    Cheater("constant", "returns to everybody the document that is most often right", _constant),
    Cheater("popularity", "returns to everybody the documents that are most often right", _popularity),
    Cheater("source-prior", "knows where a query comes from, and returns that source's favourites", _source_prior),
    Cheater("marginal-matched", "draws documents by how often they are right", _marginal_matched),
    Cheater("stub", "returns the same documents to everybody, drawn once", _stub),
    Cheater("random", "draws documents for each query", _random),
    Cheater("longest", "returns the longest documents to everybody", _longest),
    Cheater("first ids", "returns the documents whose ids come first to everybody", _first_ids),
)

CHEATERS: Mapping[str, Cheater] = {row.name: row for row in _ROWS}
