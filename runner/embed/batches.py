"""The plan of an embedding: which texts share a forward batch, and which forward batches share a request."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints
from runner.embed.encoder import Grouping

Order = Literal["forward", "reversed"]

SHA256_BYTES = 32

PLAN = 2
"""Raised when the plan of batches or a file of the artefact changes: it is part of every key."""


def plan_forwards(lengths: Ints, digests: NDArray[np.uint8], grouping: Grouping, order: Order) -> list[list[int]]:
    """Return the texts of each forward batch: longest first, so that memory runs out early if at all; equal lengths by
    digest (n, 32).

    Reversed, the shortest come first in batches a quarter smaller: most texts meet other neighbours and another shape.
    """
    # As big-endian words, so that texts sort by their digests' bytes.
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
        # Every text of a batch is padded to the longest, so padded tokens are what is limited.
        if batches and n_texts <= most_texts and max(widest, length) * n_texts <= most_tokens:
            batches[-1].append(index)
            widest = max(widest, length)
        else:
            batches.append([index])
            widest = length
    return batches


def plan_requests(forwards: Sequence[list[int]], lengths: Ints, grouping: Grouping) -> list[list[list[int]]]:
    """Return forward batches by request, in order: one each, or as many as the grouping allows."""
    requests: list[list[list[int]]] = []
    n_texts = n_tokens = 0
    for forward in forwards:
        # What a forward batch takes on the device: every text as long as its longest.
        padded = len(forward) * int(lengths[forward].max())
        fits = n_texts + len(forward) <= grouping.request_texts and n_tokens + padded <= grouping.request_tokens
        if not requests or not fits:
            requests.append([])
            n_texts = n_tokens = 0
        requests[-1].append(forward)
        n_texts += len(forward)
        n_tokens += padded
    return requests


def tokens_read(counts: Ints, limit: int) -> Ints:
    """Return counts after truncation at `limit`, 0 for none."""
    return np.minimum(counts, limit) if limit else counts
