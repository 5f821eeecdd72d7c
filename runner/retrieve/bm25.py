"""Sparse retrieval: BM25 by bm25s (Lucene's formula), and rank-bm25's Okapi for comparability with Phase 1."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH, Chunk, Ints
from runner.retrieve.ranking import ChunkTable, Retrieval, chunk_table, leading, quantised, retrieval

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
            "lower case; runs of word characters; hyphens, en dashes and minus signs are one hyphen; a hyphenated "
            "token with a digit (78dd-1) counts whole and in parts, others in parts; soft hyphens dropped"
        ),
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
        "tokenizer": r"lower case; runs of word characters (\w+), so that every dash separates",
    },
}
"""What the page says of each variant, but for the library's version."""

POSTING_BYTES = 8


class Index(NamedTuple):
    """The scores of all texts for a query, and the number of distinct (text, term) pairs."""

    scores: Callable[[str], NDArray[np.float64]]
    postings: int


Tokens = Callable[[Sequence[str]], list[list[str]]]

_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u00ad": None})
_TOKEN = re.compile(r"\w+(?:-\w+)*")


def bm25_run(
    cell: str, variant: str, queries: Mapping[str, str], chunks: Sequence[Chunk], texts: Sequence[str]
) -> Retrieval:
    """The RUN_DEPTH documents whose best chunk scores highest for each query, and their reading lists.

    `texts` are the chunks' readings in the order of `chunks`. Only scores above 0, after rounding to 1e-5, make a hit:
    Okapi's floor can turn negative if most terms are in most chunks. A query without a known term has no hits.
    """
    if len(chunks) != len(texts):
        raise ValueError(f"{len(chunks)} chunks and {len(texts)} texts")
    table = chunk_table(chunks)
    index = _INDEXES[variant](texts)

    def scored() -> Iterator[tuple[str, Ints, Ints]]:
        for query_id, text in queries.items():
            yield query_id, *_positive(table, quantised(index.scores(text)))

    return retrieval(cell, chunks, table, scored(), POSTING_BYTES * index.postings)


def bm25_description(variant: str) -> dict[str, str | float]:
    """The variant's row of BM25_VARIANTS with the installed version of its library."""
    from importlib.metadata import version

    row = BM25_VARIANTS[variant]
    return row | {"version": version(str(row["library"]))}


def lucene_tokens(texts: Sequence[str]) -> list[list[str]]:
    """The stemmed terms of each text, without stop words, with repetitions.

    Section numbers are printed with an en dash and typed with a hyphen; both are one token, "78dd-1", beside its parts.
    """
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stem = Stemmer.Stemmer("english").stemWords
    stop_words = frozenset(STOPWORDS_EN)
    return [stem([word for word in _words(text) if word not in stop_words]) for text in texts]


def plain_tokens(texts: Sequence[str]) -> list[list[str]]:
    """The lower-case words of each text, as bm25s cuts them by default.

    One-character words are left out, as in published figures; they are worth 0.003 nDCG@10 on SciFact.
    """
    return [re.findall(r"\b\w\w+\b", text.lower()) for text in texts]


def okapi_tokens(text: str) -> list[str]:
    """Lower-case runs of word characters."""
    return re.findall(r"\w+", text.lower())


def _words(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text.lower().translate(_DASHES)):
        if "-" in token:
            yield from token.split("-")
            if not any(character.isdigit() for character in token):
                continue
        yield token


def _positive(table: ChunkTable, scores: Ints) -> tuple[Ints, Ints]:
    """Rows that score above 0, and their scores, of every document that can be among the best RUN_DEPTH."""
    if not scores.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    maxima = np.maximum.reduceat(scores[table.order], table.starts[:-1])
    found = np.flatnonzero(maxima > 0)
    rows = table.rows_of(found[leading(maxima[found], RUN_DEPTH)])
    rows = rows[scores[rows] > 0]
    return rows, scores[rows]


def _lucene(texts: Sequence[str], tokens: Tokens = lucene_tokens) -> Index:
    import bm25s

    corpus = tokens(texts)
    if not any(corpus):
        return Index(lambda query: np.zeros(len(texts)), 0)
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64", backend="numpy", csc_backend="numpy")
    index.index(corpus, show_progress=False)

    def scores(query: str) -> NDArray[np.float64]:
        known: NDArray[np.float64] = index.get_scores_from_ids(index.get_tokens_ids(tokens([query])[0]))
        return known

    return Index(scores, _postings(corpus))


def _okapi(texts: Sequence[str]) -> Index:
    from rank_bm25 import BM25Okapi

    corpus = [okapi_tokens(text) for text in texts]
    if not any(corpus):
        return Index(lambda query: np.zeros(len(texts)), 0)
    index = BM25Okapi(corpus, k1=K1, b=B)

    def scores(query: str) -> NDArray[np.float64]:
        found: NDArray[np.float64] = index.get_scores(okapi_tokens(query))
        return found

    return Index(scores, _postings(corpus))


def _postings(corpus: Sequence[Sequence[str]]) -> int:
    return sum(len(set(terms)) for terms in corpus)


_INDEXES: dict[str, Callable[[Sequence[str]], Index]] = {
    "bm25": _lucene,
    "bm25-plain": partial(_lucene, tokens=plain_tokens),
    "bm25-okapi": _okapi,
}
