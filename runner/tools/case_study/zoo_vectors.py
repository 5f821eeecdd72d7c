"""Encoders that are broken, and what is nearest by them: whole numbers throughout, so that no machine differs."""

import hashlib
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runner.base.records import RUN_DEPTH
from runner.retrieve.bm25 import okapi_tokens
from runner.retrieve.ranking import leading

Whole = NDArray[np.float64]
"""Vectors of whole numbers, one row a text; their products are exact in float64, whatever the order of summing."""

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
