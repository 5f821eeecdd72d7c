"""The plan of an embedding: which texts share a forward batch, and which forward batches share a request."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.records import PromptSide
from runner.embed.encoder import Batch, Encoder, Grouping

Order = Literal["forward", "reversed"]

SHA256_BYTES = 32

PLAN = 2
"""Raised when the plan of batches or a file of the artefact changes: it is part of every key."""


@dataclass(frozen=True)
class TextSet:
    """Distinct texts in the order of their first occurrence, and their SHA-256, (n, 32)."""

    texts: Sequence[str]
    digests: NDArray[np.uint8]
    side: PromptSide
    order: Order

    @classmethod
    def of(cls, texts: Sequence[str], side: PromptSide, order: Order) -> "TextSet":
        """Drop repeats; a UnicodeEncodeError for half of a surrogate pair."""
        unique = list(dict.fromkeys(texts))
        joined = b"".join(sha256(text.encode()).digest() for text in unique)
        return cls(unique, np.frombuffer(joined, np.uint8).reshape(len(unique), SHA256_BYTES), side, order)

    def inputs(self, identity: JSON) -> dict[str, JSON]:
        """What the artefact of an encoder of this identity is made from."""
        return {
            "plan": PLAN,
            "encoder": identity,
            "side": self.side,
            "order": self.order,
            "texts": sha256(self.digests.tobytes()).hexdigest(),
        }


def plan_forwards(
    lengths: NDArray[np.int64], digests: NDArray[np.uint8], grouping: Grouping, order: Order
) -> list[list[int]]:
    """Indices per forward batch: longest texts first, so that memory runs out early if at all; equal lengths by digest
    (n, 32).

    Reversed, the shortest come first in batches a quarter smaller: most texts meet other neighbours and another shape.
    """
    columns = np.ascontiguousarray(digests).view(">u8").reshape(len(lengths), SHA256_BYTES // 8)
    ranked = np.lexsort((*columns.T[::-1], -lengths))
    most_tokens, most_texts = grouping.forward_tokens, grouping.forward_texts or len(lengths)
    if order == "reversed":
        ranked = ranked[::-1]
        most_tokens, most_texts = most_tokens * 3 // 4, max(1, most_texts * 3 // 4)
    batches: list[list[int]] = []
    widest = 0
    for index, length in zip(ranked.tolist(), np.maximum(lengths[ranked], 1).tolist(), strict=True):
        n_texts = len(batches[-1]) + 1 if batches else 0
        if batches and n_texts <= most_texts and max(widest, length) * n_texts <= most_tokens:
            batches[-1].append(index)
            widest = max(widest, length)
        else:
            batches.append([index])
            widest = length
    return batches


def plan_requests(
    forwards: Sequence[list[int]], lengths: NDArray[np.int64], grouping: Grouping
) -> list[list[list[int]]]:
    """Forward batches by request, in order: one each, or as many as the grouping allows."""
    requests: list[list[list[int]]] = []
    n_texts = n_tokens = 0
    for forward in forwards:
        padded = len(forward) * int(lengths[forward].max())
        fits = n_texts + len(forward) <= grouping.request_texts and n_tokens + padded <= grouping.request_tokens
        if not requests or not fits:
            requests.append([])
            n_texts = n_tokens = 0
        requests[-1].append(forward)
        n_texts += len(forward)
        n_tokens += padded
    return requests


def token_counts(encoder: Encoder, work: TextSet) -> NDArray[np.int64]:
    """One count per text, before truncation; a BackendError if the encoder gives others."""
    counts = np.asarray(encoder.token_counts(work.texts, work.side), dtype=np.int64)
    if counts.shape != (len(work.texts),) or (counts < 0).any():
        raise BackendError(
            f"{encoder.spec.name} counted tokens for {counts.size} of {len(work.texts)} texts; "
            "every text needs one count of 0 or more."
        )
    return counts


def planned(encoder: Encoder, work: TextSet, counts: NDArray[np.int64]) -> Iterator[tuple[Batch, list[int]]]:
    """Every request, with the places of its texts."""
    grouping, lengths = encoder.grouping, tokens_read(counts, encoder.spec.max_tokens)
    forwards = plan_forwards(lengths, work.digests, grouping, work.order)
    for request in plan_requests(forwards, lengths, grouping):
        rows = list(itertools.chain.from_iterable(request))
        yield Batch(work.side, tuple(work.texts[row] for row in rows), tuple(map(len, request))), rows


def tokens_read(counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Counts after truncation at `limit`, 0 for none."""
    return np.minimum(counts, limit) if limit else counts
