"""Sparse retrieval: BM25 by bm25s (Lucene's formula), and rank-bm25's Okapi for comparability with Phase 1."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import LANGUAGES, RUN_DEPTH, Chunk, Ints
from runner.retrieve.ranking import ChunkTable, Retrieval, chunk_table, leading, quantised, retrieval
from runner.retrieve.words import stemmed_terms, terms_in

K1 = 1.5
B = 0.75

BM25_VARIANTS: dict[str, dict[str, str | float]] = {
    "bm25": {
        "library": "bm25s",
        "formula": "Lucene: idf = ln(1 + (N - df + 0.5) / (df + 0.5)), no (k1 + 1) in the numerator",
        "k1": K1,
        "b": B,
        "stemmer": "PyStemmer, English (Snowball)",
        "stop words": "Lucene's 33 English stop words",
        "tokenizer": (
            "lower case; runs of word characters, of which letters alone are dropped and digits are not; all dashes "
            "are one; a hyphenated token counts in parts, and whole too with a digit (78dd-1) or a letter alone in it "
            "(x-ray); U.S.C. is usc, 1,000 is 1000; citations count whole and in parts: 42 U.S.C. 1983, section "
            "5(a)(1)(B), 240.10b-5, H.R. 1234, S. 12; don't, 's, e.g. and i.e. are dropped"
        ),
        "tokenizer version": 2,
    },
    "bm25-plain": {
        "library": "bm25s",
        "formula": "Lucene: idf = ln(1 + (N - df + 0.5) / (df + 0.5)), no (k1 + 1) in the numerator",
        "k1": K1,
        "b": B,
        "stemmer": "none",
        "stop words": "none",
        "tokenizer": r"lower case; words of two characters or more (\w\w+), so that every dash separates",
    },
    "bm25-okapi": {
        "library": "rank-bm25",
        "formula": "BM25Okapi: idf = ln((N - df + 0.5) / (df + 0.5)), negative ones replaced by 0.25 of the mean idf",
        "k1": K1,
        "b": B,
        "stemmer": "none",
        "stop words": "none",
        "tokenizer": r"lower case; words of two characters or more (\w\w+), so that every dash separates",
    },
}
"""What the page says of each variant, but for the library's version; `bm25@de` and the like are `bm25` in part."""

_OTHER_TOKENIZER = (
    "lower case; runs of word characters, of which letters alone are dropped; a hyphenated word counts in parts, and "
    "whole too with a digit or a letter alone in it; compounds stay whole"
)

POSTING_BYTES = 8


class Index(NamedTuple):
    """The scores of all texts for a query, the number of distinct (text, term) pairs, and the most a text could score.

    `bound` is the sum of idf over the query's terms: one that is repeated as often as it is, since it scores as often,
    and one that no text has as the rarest of all, since what nobody says is left unsaid. (Okapi has k1 + 1 in it.)
    """

    scores: Callable[[str], NDArray[np.float64]]
    postings: int
    bound: Callable[[str], float]


def bm25_run(
    cell: str, variant: str, queries: Mapping[str, str], chunks: Sequence[Chunk], texts: Sequence[str]
) -> Retrieval:
    """Return the RUN_DEPTH documents whose best chunk scores highest for each query, and their reading lists.

    `texts` are the chunks' readings in the order of `chunks`. Only scores above 0, after rounding to 1e-5, make a hit:
    Okapi's floor can turn negative if most terms are in most chunks. A query without a known term has no hits.
    """
    if len(chunks) != len(texts):
        raise ValueError(f"{len(chunks)} chunks and {len(texts)} texts")
    table = chunk_table(chunks)
    _, _, code = variant.partition("@")
    index = lucene(texts, partial(terms_in, code)) if code else _INDEXES[variant](texts)

    def scored() -> Iterator[tuple[str, Ints, Ints]]:
        for query_id, text in queries.items():
            yield query_id, *_positive(table, quantised(index.scores(text)))

    found = retrieval(cell, chunks, table, scored(), POSTING_BYTES * index.postings)
    return found._replace(bounds={query_id: index.bound(text) for query_id, text in queries.items()})


def bm25_description(variant: str) -> dict[str, str | float]:
    """Return the variant's row of BM25_VARIANTS with the installed version of its library or, by language, stemmer."""
    from importlib.metadata import version

    base, _, code = variant.partition("@")
    row = BM25_VARIANTS[base]
    if code:
        language = LANGUAGES[code].capitalize()
        row = {name: row[name] for name in ("library", "formula", "k1", "b")} | {
            "stemmer": f"PyStemmer {version('PyStemmer')}, {language} (Snowball)",
            "stop words": f"bm25s's list, {language}",
            "tokenizer": _OTHER_TOKENIZER,
            "tokenizer version": 1,
        }
    return row | {"version": version(str(row["library"]))}


def plain_tokens(text: str) -> list[str]:
    """Return the lower-case words of a text, as bm25s cuts them by default.

    One-character words are left out, as in published figures: letters alone cost up to 0.0125 nDCG@10.
    """
    return re.findall(r"\b\w\w+\b", text.lower())


def _positive(table: ChunkTable, scores: Ints) -> tuple[Ints, Ints]:
    """Return rows that score above 0, and their scores, of every document that can be among the best RUN_DEPTH."""
    if not scores.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # The best chunk of each document decides whether it can be among the first.
    maxima = np.maximum.reduceat(scores[table.order], table.starts[:-1])
    matching = np.flatnonzero(maxima > 0)
    rows = table.rows_of(matching[leading(maxima[matching], RUN_DEPTH)])
    rows = rows[scores[rows] > 0]
    return rows, scores[rows]


def lucene(texts: Sequence[str], tokens: Callable[[str], list[str]] = stemmed_terms) -> Index:
    """Return the index of the variant `bm25`, or of another one by its tokens."""
    import bm25s

    corpus = [tokens(text) for text in texts]
    if not any(corpus):
        return _nothing(texts)
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64", backend="numpy", csc_backend="numpy")
    index.index(corpus, show_progress=False)

    def scores(query: str) -> NDArray[np.float64]:
        known: NDArray[np.float64] = index.get_scores_from_ids(index.get_tokens_ids(tokens(query)))
        return known

    def bound(query: str) -> float:
        # A term's postings are as many as the texts that have it.
        asked = tokens(query)
        known = np.diff(index.scores["indptr"])[index.get_tokens_ids(asked)].tolist()
        having = known + [0] * (len(asked) - len(known))
        return math.fsum(math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for n in having)

    return Index(scores, sum(len(set(terms)) for terms in corpus), bound)


def _nothing(texts: Sequence[str]) -> Index:
    """Return the index of texts without a term."""
    return Index(lambda query: np.zeros(len(texts)), 0, lambda query: 0.0)


def _okapi(texts: Sequence[str]) -> Index:
    """Return rank-bm25's own scores, which ask every text for every word of the query."""
    from rank_bm25 import BM25Okapi

    corpus = [plain_tokens(text) for text in texts]
    if not any(corpus):
        return _nothing(texts)
    index = BM25Okapi(corpus, k1=K1, b=B)

    def scores(query: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = index.get_scores(plain_tokens(query))
        return found

    def bound(query: str) -> float:
        unknown = math.log(2 * len(texts) + 1)
        return (K1 + 1) * math.fsum(max(0.0, index.idf.get(term, unknown)) for term in plain_tokens(query))

    return Index(scores, sum(map(len, index.doc_freqs)), bound)


_INDEXES: dict[str, Callable[[Sequence[str]], Index]] = {
    "bm25": lucene,
    "bm25-plain": partial(lucene, tokens=plain_tokens),
    "bm25-okapi": _okapi,
}
