"""Documents that say nearly the same: MinHash and banding propose pairs, the true Jaccard similarity decides.

A document is the set of its runs of SHINGLE words in lower case. Two documents are joined if they share a band of
their signatures and the similarity of their sets reaches the threshold; a cluster is what is connected. A pair at 0.8
is missed with a probability of 2 in 10,000, one at 0.9 with less than one in a million.

Signatures are rensa's, over hashes made here: no hash of the interpreter or of the library's strings enters, so the
clusters depend on texts, ids and threshold alone. rensa takes 16 microseconds for a document of 5 kB and brings no
other package; datasketch takes 400 for the same hashes and brings scipy, 140 MB.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import sha256
from runner.base.progress import watched

THRESHOLD = 0.8
SHINGLE = 5
"""Words in a run."""

SHORTEST = 30
"""Words below which only equal texts are joined: one changed word of 30 touches 5 of 26 runs."""

N_SLOTS = 256
ROWS = 6
"""Slots of a band, of which there are 42: pairs at 0.8 share one but for 3 in a million, at 0.3 only 3 % do."""

SLACK = 0.09
"""How far below the threshold an estimate may lie before its pair is left unverified: 3.6 standard errors at 0.8."""

MAX_COMPARED = 2_000
"""Signatures that each is compared with at most, the next in order of ids: 20,000 forms of one letter that are alike by
0.75 would be 200 million pairs. Of the real documents at hand none spends more than 50."""

PRICE_OF_PAIR = 20
"""How many of those comparisons a pair costs whose sets are compared and are not alike enough."""

SEED = 2026
BATCH = 500
"""Documents whose signatures are made at once; they pass through lists of Python integers."""

WORDS_KNOWN = 1 << 18
"""Words whose hashes are remembered."""

SETS_KEPT = 4_096
"""Sets that are remembered while pairs are compared; another is made again of its text."""

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)

Hashes = NDArray[np.uint32]


def near_duplicates(texts: Mapping[str, str], threshold: float = THRESHOLD) -> dict[str, str]:
    """Return the cluster of every text by its id: the smallest id in it, a text's own if nothing is like it.

    The order of the texts does not matter. Texts under SHORTEST words are clustered if they are equal but for case and
    white space. Signatures are in memory; of the sets that pairs are compared by only the last ones are.
    """
    clusters: dict[str, str] = {}
    first: dict[str, str] = {}
    long: list[str] = []
    digests: list[bytes] = []
    batch: list[Hashes] = []
    signatures = np.empty((len(texts), N_SLOTS), np.uint32)  # of which only filled rows take memory
    for doc_id in watched(sorted(texts), len(texts), "comparing", "documents"):
        text = texts[doc_id]
        if len(text.split(None, SHORTEST)) < SHORTEST:
            clusters[doc_id] = first.setdefault(sha256(" ".join(text.lower().split())), doc_id)
            continue
        long.append(doc_id)
        batch.append(_runs(text))
        digests.append(hashlib.sha256(batch[-1].tobytes()).digest())
        if len(batch) == BATCH:
            signatures[len(long) - BATCH : len(long)] = _signed(batch)
            batch = []
    if batch:
        signatures[len(long) - len(batch) : len(long)] = _signed(batch)
    if long:
        runs_of = lru_cache(SETS_KEPT)(lambda i: _runs(texts[long[i]]))
        labels = _connected(runs_of, digests, signatures[: len(long)], threshold)
        clusters |= {doc_id: long[labels[i]] for i, doc_id in enumerate(long)}
    return {doc_id: clusters[doc_id] for doc_id in sorted(texts)}


def jaccard(first: Hashes, second: Hashes) -> float:
    """Return the similarity of two sets, given as sorted arrays of distinct hashes."""
    small, large = sorted((first, second), key=len)
    places = np.minimum(np.searchsorted(large, small), len(large) - 1)
    shared = np.count_nonzero(large[places] == small)
    return shared / (len(first) + len(second) - shared)


@lru_cache(WORDS_KNOWN)
def _word_hash(word: str) -> int:
    return zlib.crc32(word.encode())  # the same in every process


def _runs(text: str) -> Hashes:
    """Return a text's runs of words as sorted hashes of 32 bits: two sets of 100,000 share 2 by accident."""
    tokens = text.lower().split()
    each = np.fromiter(map(_word_hash, tokens), np.uint64, len(tokens))
    # A polynomial over the hashes of SHINGLE words, of all runs at once.
    n = len(tokens) - SHINGLE + 1
    runs = np.zeros(n, np.uint64)
    for offset in range(SHINGLE):
        runs = runs * _MIX + each[offset : offset + n]
    runs = (runs ^ (runs >> _HALF)) * _MIX_AGAIN
    return np.unique((runs >> _HALF).astype(np.uint32))


def _signed(batch: Sequence[Hashes]) -> Hashes:
    """Return the signatures of some sets, a row of N_SLOTS each."""
    from rensa import RMinHash

    ends = np.cumsum([0, *map(len, batch)], dtype=np.uint64)
    made = RMinHash.digest_matrix_from_flat_token_hashes(np.concatenate(batch).astype(np.uint64), ends, N_SLOTS, SEED)
    return np.asarray(made.to_rows(), np.uint32)


def _connected(
    runs_of: Callable[[int], Hashes], digests: Sequence[bytes], signatures: Hashes, threshold: float
) -> NDArray[np.int64]:
    """Return for every set the smallest index of its cluster; `runs_of` gives a set, `digests` tells equal ones."""
    # Equal sets have one label from the start, so that only distinct ones are compared.
    first: dict[bytes, int] = {}
    labels = np.array([first.setdefault(each, i) for i, each in enumerate(digests)])
    distinct = np.fromiter(first.values(), np.int64, len(first))
    left = np.full(len(digests), MAX_COMPARED)
    starts = range(0, N_SLOTS - ROWS + 1, ROWS)
    for start in watched(starts, len(starts), "joining near-duplicates", "bands"):
        # Banding proposes pairs, cheaply; the similarity of the sets decides.
        for bucket in _buckets(signatures[distinct, start : start + ROWS]):
            for i, other in _proposed(distinct[bucket], signatures, labels, left, start, threshold - SLACK):
                if labels[i] == labels[other] or left[i] <= 0:
                    continue
                if jaccard(runs_of(i), runs_of(other)) >= threshold:
                    low, high = sorted(labels[[i, other]])
                    labels[labels == high] = low
                else:
                    left[i] -= PRICE_OF_PAIR
    return labels


def _buckets(band: Hashes) -> Iterator[NDArray[np.int64]]:
    """Give the indices of rows that are equal, two or more together, each ascending."""
    # Rows are compared by one number each: a collision only proposes a pair that is then not alike.
    keys = np.zeros(len(band), np.uint64)
    for column in band.T:
        keys = keys * _MIX + column
    order = np.argsort(keys, kind="stable")
    edges = np.concatenate(([0], np.flatnonzero(np.diff(keys[order])) + 1, [len(order)]))
    for place in np.flatnonzero(np.diff(edges) > 1):
        yield order[edges[place] : edges[place + 1]]


def _proposed(
    bucket: NDArray[np.int64],
    signatures: Hashes,
    labels: NDArray[np.int64],
    left: NDArray[np.int64],
    start: int,
    lowest: float,
) -> Iterator[tuple[int, int]]:
    """Give the pairs of a bucket that are not yet joined and whose signatures agree in a share of `lowest` or more.

    Pairs that share a band before slot `start` were proposed already. `labels` may change meanwhile: a bucket of n
    copies is joined after n pairs, not n². `left` has how many comparisons each set still has, and is brought up to
    date.
    """
    for place, i in enumerate(bucket[:-1]):
        # The budget: the next ones in order of ids, as many as this set may still be compared with.
        others = bucket[place + 1 : place + 1 + max(left[i], 0)]
        others = others[labels[others] != labels[i]]
        if len(others):
            equal = signatures[others] == signatures[i]
            before = equal[:, :start].reshape(len(others), -1, ROWS).all(axis=2).any(axis=1)
            alike = equal.mean(axis=1) >= lowest
            yield from ((int(i), int(other)) for other in others[alike & ~before])
            left[i] -= len(others)
