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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Document

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

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)

Hashes = NDArray[np.uint32]


def near_duplicates(documents: Iterable[Document], threshold: float = THRESHOLD) -> dict[str, str]:
    """Return the cluster of every document by doc_id: the smallest id in it, a document's own if nothing is like it.

    The order of the documents does not matter. Texts under SHORTEST words are clustered if they are equal but for
    case and white space. Hashes of all words are kept, 4 bytes each: less than the texts.
    """
    ordered = sorted(documents, key=lambda document: document.doc_id)
    long: list[Document] = []
    short: list[Document] = []
    for document in ordered:
        (long if len(document.text.split(None, SHORTEST)) >= SHORTEST else short).append(document)
    first: dict[str, str] = {}
    clusters = {d.doc_id: first.setdefault(" ".join(d.text.lower().split()), d.doc_id) for d in short}
    if long:
        sets = list(_sets(long))
        labels = _connected(sets, _signatures(sets), threshold)
        clusters |= {document.doc_id: long[labels[i]].doc_id for i, document in enumerate(long)}
    return {document.doc_id: clusters[document.doc_id] for document in ordered}


def members(clusters: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the clusters of two or more documents, largest first, then by smallest id; their ids in order."""
    by_cluster: dict[str, list[str]] = defaultdict(list)
    for doc_id in sorted(clusters):
        by_cluster[clusters[doc_id]].append(doc_id)
    clusters_of_several = [tuple(ids) for ids in by_cluster.values() if len(ids) > 1]
    return sorted(clusters_of_several, key=lambda ids: (-len(ids), ids))


def jaccard(first: Hashes, second: Hashes) -> float:
    """Return the similarity of two sets, given as sorted arrays of distinct hashes."""
    small, large = sorted((first, second), key=len)
    places = np.minimum(np.searchsorted(large, small), len(large) - 1)
    shared = np.count_nonzero(large[places] == small)
    return shared / (len(first) + len(second) - shared)


def _sets(documents: Iterable[Document]) -> Iterator[Hashes]:
    """Give each document's runs of words as sorted hashes of 32 bits: two sets of 100,000 share 2 by accident."""
    word_hash = cache(lambda word: zlib.crc32(word.encode()))  # the same in every process
    for document in documents:
        tokens = document.text.lower().split()
        each = np.fromiter(map(word_hash, tokens), np.uint64, len(tokens))
        # A polynomial over the hashes of SHINGLE words, of all runs at once.
        n = len(tokens) - SHINGLE + 1
        runs = np.zeros(n, np.uint64)
        for offset in range(SHINGLE):
            runs = runs * _MIX + each[offset : offset + n]
        runs = (runs ^ (runs >> _HALF)) * _MIX_AGAIN
        yield np.unique((runs >> _HALF).astype(np.uint32))


def _signatures(sets: Sequence[Hashes]) -> Hashes:
    """Return one row of N_SLOTS a set."""
    from rensa import RMinHash

    rows = []
    remaining = iter(sets)
    while batch := list(islice(remaining, BATCH)):
        ends = np.cumsum([0, *map(len, batch)], dtype=np.uint64)
        flat = np.concatenate(batch).astype(np.uint64)
        made = RMinHash.digest_matrix_from_flat_token_hashes(flat, ends, N_SLOTS, SEED)
        rows.append(np.array(made.to_rows(), np.uint32))
    return np.concatenate(rows)


def _connected(sets: Sequence[Hashes], signatures: Hashes, threshold: float) -> NDArray[np.int64]:
    """Return for every set the smallest index of its cluster."""
    # Equal sets have one label from the start, so that only distinct ones are compared.
    first: dict[bytes, int] = {}
    labels = np.array([first.setdefault(hashlib.sha256(each.tobytes()).digest(), i) for i, each in enumerate(sets)])
    distinct = np.fromiter(first.values(), np.int64, len(first))
    left = np.full(len(sets), MAX_COMPARED)
    for start in range(0, N_SLOTS - ROWS + 1, ROWS):
        # Banding proposes pairs, cheaply; the similarity of the sets decides.
        for bucket in _buckets(signatures[distinct, start : start + ROWS]):
            for i, other in _proposed(distinct[bucket], signatures, labels, left, start, threshold - SLACK):
                if labels[i] == labels[other] or left[i] <= 0:
                    continue
                if jaccard(sets[i], sets[other]) >= threshold:
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
