"""What broken predictors return, a list of documents per query, and how some of them flatter themselves.

Their encoders make vectors of whole numbers, so that the lists are the same on every machine.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Hit, Qrels, Run
from runner.eval_set.trec import WHOLE
from runner.retrieve.bm25 import okapi_tokens
from runner.retrieve.ranking import leading
from runner.retrieve.retrieve import fused_ids
from runner.score.bootstrap import score_matrix
from runner.score.comparison import mean
from runner.score.score import DISCOUNTS, ideal_gains, score

Whole = NDArray[np.float64]
"""Vectors of whole numbers, one row per text; their products are exact in float64, whatever the order of summing."""

_DIM = 64
_TOKEN_DIM = 256
_COMMON = 1000


def text_hash_vectors(texts: Sequence[str]) -> Whole:
    """A digest of each text as its vector: equal texts are alike, all others strangers."""
    digests = [hashlib.shake_256(text.encode()).digest(_DIM) for text in texts]
    return np.frombuffer(b"".join(digests), np.int8).reshape(-1, _DIM).astype(np.float64)


def token_hash_vectors(texts: Sequence[str]) -> Whole:
    """For each text how often its words occur, words counted together and with a sign by their hash."""
    vectors = np.zeros((len(texts), _TOKEN_DIM))
    for vector, text in zip(vectors, texts, strict=True):
        hashes = np.array([zlib.crc32(token.encode()) for token in okapi_tokens(text)], np.int64)
        np.add.at(vector, hashes % _TOKEN_DIM, 1 - 2 * (hashes // _TOKEN_DIM % 2))
    return vectors


def nearly_constant_vectors(n_texts: int, generator: np.random.Generator) -> Whole:
    """One vector for every text, but for noise of a thousandth."""
    return _COMMON + generator.integers(-1, 2, size=(n_texts, _DIM)).astype(np.float64)


def nearest(queries: Whole, documents: Whole, doc_ids: Sequence[str]) -> list[list[str]]:
    """The RUN_DEPTH documents with the greatest cosine to each query; of equal ones the first in `doc_ids`."""
    norms = np.sqrt((documents**2).sum(axis=1))
    norms[norms == 0] = 1
    lists = []
    for query in queries:
        cosines = (documents @ query) / norms
        best = leading(cosines, RUN_DEPTH)
        order = np.argsort(-cosines[best], kind="stable")[:RUN_DEPTH]
        lists.append([doc_ids[row] for row in best[order].tolist()])
    return lists


DEPTH = len(DISCOUNTS)
_LUCKY_SHARE = 5
_LEAKED_SHARE = 2

Lists = list[list[str]]
"""Documents for each query in the order of the collection's queries, best first; a broken one may repeat itself."""


@dataclass(frozen=True)
class Material:
    """A collection, and real engines to break, whose runs hold every query of `query_texts`."""

    query_texts: Mapping[str, str]
    document_texts: Mapping[str, str]
    qrels: Qrels
    strata: Mapping[str, str]
    relevant_grade: int
    engine: Run
    dense: Run | None
    seed: int

    @cached_property
    def query_ids(self) -> list[str]:
        """In the collection's order, which is that of all lists."""
        return list(self.query_texts)

    @cached_property
    def doc_ids(self) -> list[str]:
        """Every document of the corpus, ascending."""
        return sorted(self.document_texts)

    def grades(self, query_id: str) -> dict[str, int]:
        """The query's grades above 0 of documents that are in the corpus and so can be retrieved."""
        graded = self.qrels.get(query_id, {}).items()
        return {doc_id: grade for doc_id, grade in graded if grade > 0 and doc_id in self.document_texts}

    def generator(self, purpose: str) -> np.random.Generator:
        """Random numbers that no other purpose shares."""
        return np.random.default_rng(np.random.PCG64([self.seed, *purpose.encode()]))


def run_of(name: str, material: Material, lists: Lists) -> Run:
    """The lists as a run, of a repeated document the first place; scores count down the list."""
    hits = {}
    for query_id, documents in zip(material.query_ids, lists, strict=True):
        once = list(dict.fromkeys(documents))[:RUN_DEPTH]
        hits[query_id] = tuple(Hit(doc_id, float(len(once) - place), WHOLE) for place, doc_id in enumerate(once))
    return Run(name, hits)


def oracle(material: Material) -> Lists:
    """What is relevant first, by grade."""
    return [_answers_first(material, query_id) for query_id in material.query_ids]


def leaky(material: Material) -> Lists:
    """What is relevant first for a half of the queries, drawn at random, the engine's lists for the others."""
    seen = _some(material, "leaked", len(material.query_ids) // _LEAKED_SHARE)
    own = _engine(material)
    return [
        _answers_first(material, query_id) if query_id in seen else documents
        for query_id, documents in zip(material.query_ids, own, strict=True)
    ]


def lucky_few(material: Material) -> Lists:
    """The best answer first for a fifth of the queries, drawn at random; ten random documents for everything else."""
    lucky = _some(material, "lucky", len(material.query_ids) // _LUCKY_SHARE)
    rubbish = drawn_at_random(material)
    return [
        [*_relevant(material, query_id)[:1], *documents] if query_id in lucky else documents
        for query_id, documents in zip(material.query_ids, rubbish, strict=True)
    ]


def stub(material: Material) -> Lists:
    """Ten documents, drawn once, for every query."""
    return _to_all(material, drawn_at_random(material)[0])


def most_popular(material: Material) -> Lists:
    """The ten documents with the greatest sum of grades, for everybody."""
    return _to_all(material, _popular(material, material.query_ids))


def one_document(material: Material) -> Lists:
    """The document with the greatest sum of grades and nothing else, for everybody."""
    return _to_all(material, _popular(material, material.query_ids)[:1])


def source_prior(material: Material) -> Lists:
    """The ten documents with the greatest sum of grades among the queries of each query's stratum."""
    members = {name: [q for q in material.query_ids if material.strata[q] == name] for name in material.strata.values()}
    favourites = {name: _popular(material, query_ids) for name, query_ids in members.items()}
    return [favourites[material.strata[query_id]] for query_id in material.query_ids]


def longest(material: Material) -> Lists:
    """The ten longest documents, for everybody."""
    texts = material.document_texts
    return _to_all(material, sorted(material.doc_ids, key=lambda doc_id: -len(texts[doc_id]))[:DEPTH])


def first_ids(material: Material) -> Lists:
    """The ten documents whose ids come first, for everybody."""
    return _to_all(material, material.doc_ids[:DEPTH])


def drawn_at_random(material: Material) -> Lists:
    """Ten documents drawn for each query."""
    generator = material.generator("random")
    depth = min(DEPTH, len(material.doc_ids))
    drawn = (generator.choice(len(material.doc_ids), depth, replace=False) for _ in material.query_ids)
    return [[material.doc_ids[row] for row in rows.tolist()] for rows in drawn]


def marginal_matched(material: Material) -> Lists:
    """Ten documents drawn for each query by their share of all grades."""
    generator = material.generator("marginal-matched")
    grades = _summed_grades(material, material.query_ids)
    doc_ids, shares = sorted(grades), np.array([grades[doc_id] for doc_id in sorted(grades)], np.float64)
    depth = min(DEPTH, len(doc_ids))
    drawn = (generator.choice(len(doc_ids), depth, replace=False, p=shares / shares.sum()) for _ in material.query_ids)
    return [[doc_ids[row] for row in rows.tolist()] for rows in drawn]


def off_by_one(material: Material) -> Lists:
    """The engine's lists, each under the query before its own."""
    own = _engine(material)
    return [*own[1:], *own[:1]]


def mixed_up(material: Material) -> Lists:
    """The engine's lists in random order."""
    own = _engine(material)
    return [own[place] for place in material.generator("mixed up").permutation(len(own)).tolist()]


def deaf_engine(material: Material) -> Lists:
    """The engine's list for the first query, for everybody."""
    return _to_all(material, _engine(material)[0])


def deaf_encoder(material: Material) -> Lists:
    """The dense engine's list for the first query, for everybody."""
    assert material.dense is not None
    return deaf_engine(replace(material, engine=material.dense))


def shuffled(material: Material) -> Lists:
    """The engine's ten, in random order."""
    generator = material.generator("shuffled")
    tens = (documents[:DEPTH] for documents in _engine(material))
    return [[ten[place] for place in generator.permutation(len(ten)).tolist()] for ten in tens]


def worst_first(material: Material) -> Lists:
    """The engine's ten, the last first."""
    return [documents[:DEPTH][::-1] for documents in _engine(material)]


def repeated(material: Material) -> Lists:
    """The engine's first five, each twice."""
    return [[doc_id for doc_id in documents for _ in range(2)][:DEPTH] for documents in _engine(material)]


def one_vector(material: Material) -> Lists:
    """What is nearest among vectors that are one and the same but for noise."""
    generator = material.generator("one vector")
    queries, documents = (
        nearly_constant_vectors(len(texts), generator) for texts in (material.query_texts, material.doc_ids)
    )
    return nearest(queries, documents, material.doc_ids)


def text_hash(material: Material) -> Lists:
    """What is nearest by a hash of the whole text."""
    return _nearest_by(text_hash_vectors, material)


def token_hash(material: Material) -> Lists:
    """What is nearest by hashes of words."""
    return _nearest_by(token_hash_vectors, material)


def half_hybrid(material: Material) -> Lists:
    """The engine's lists fused with those of the text hash, by reciprocal rank."""
    arms = zip(_engine(material), text_hash(material), strict=True)
    return [[doc_id for doc_id, _ in fused_ids(pair)] for pair in arms]


def _engine(material: Material) -> Lists:
    return [[hit.doc_id for hit in material.engine.hits[query_id]] for query_id in material.query_ids]


def _to_all(material: Material, documents: Sequence[str]) -> Lists:
    return [list(documents) for _ in material.query_ids]


def _some(material: Material, purpose: str, count: int) -> set[str]:
    drawn = material.generator(purpose).permutation(len(material.query_ids))[:count]
    return {material.query_ids[place] for place in drawn.tolist()}


def _relevant(material: Material, query_id: str) -> list[str]:
    """The query's graded documents by grade, then id."""
    grades = material.grades(query_id)
    return sorted(grades, key=lambda doc_id: (-grades[doc_id], doc_id))


def _answers_first(material: Material, query_id: str) -> list[str]:
    """What is relevant, and behind it what the engine found."""
    return [*_relevant(material, query_id), *(hit.doc_id for hit in material.engine.hits[query_id])]


def _summed_grades(material: Material, query_ids: Iterable[str]) -> dict[str, int]:
    grades: dict[str, int] = {}
    for query_id in query_ids:
        for doc_id, grade in material.grades(query_id).items():
            grades[doc_id] = grades.get(doc_id, 0) + grade
    return grades


def _popular(material: Material, query_ids: Iterable[str]) -> list[str]:
    grades = _summed_grades(material, query_ids)
    return sorted(grades, key=lambda doc_id: (-grades[doc_id], doc_id))[:DEPTH]


def _nearest_by(vectors: Callable[[Sequence[str]], Whole], material: Material) -> Lists:
    documents = [material.document_texts[doc_id] for doc_id in material.doc_ids]
    return nearest(vectors(list(material.query_texts.values())), vectors(documents), material.doc_ids)


TABLE = ("ndcg@10", "recall@10", "mrr@10")
"""The measures of a plain table."""

Report = Mapping[str, float]
"""Means of the measures of TABLE, as a system gives them itself."""


def own_judgments(material: Material, lists: Lists) -> Report:
    """Scores over what the system retrieved: nothing else is relevant, and queries without a find are dropped."""
    found = {
        query_id: {d: grade for d, grade in material.qrels.get(query_id, {}).items() if d in documents}
        for query_id, documents in zip(material.query_ids, lists, strict=True)
    }
    kept = [query_id for query_id in material.query_ids if any(found[query_id].values())]
    if not kept:
        return dict.fromkeys(TABLE, 0.0)
    scores = score(run_of("", material, lists), kept, found, material.relevant_grade)
    return {measure: mean(score_matrix([scores], measure)[0]) for measure in TABLE}


def each_occurrence(material: Material, lists: Lists) -> Report:
    """Scores where a document that occurs twice gains twice, cut at 1; the ideal knows it once."""
    ideals = ideal_gains(material.query_ids, material.qrels)
    rows = []
    for query_id, documents, ideal in zip(material.query_ids, lists, ideals.tolist(), strict=True):
        grades = material.qrels.get(query_id, {})
        gain = sum(grades.get(d, 0) * at for d, at in zip(documents, DISCOUNTS.tolist(), strict=False))
        relevant = {doc_id for doc_id, grade in grades.items() if grade >= material.relevant_grade}
        places = [place for place, doc_id in enumerate(documents, start=1) if doc_id in relevant]
        recall = len(relevant & set(documents)) / len(relevant) if relevant else 0.0
        rows.append((min(1.0, gain / ideal) if ideal else 0.0, recall, 1 / places[0] if places else 0.0))
    return dict(zip(TABLE, np.array(rows).mean(axis=0).tolist(), strict=True))
