"""How long chunks are, in tokens: the counts that the page draws, with the place where an encoder stops reading."""

import numpy as np
from numpy.typing import NDArray

from runner.eval_set.shapes.plan import Lengths

BINS = 16
"""Up to the limit, or to the longest chunk where that is shorter."""

TIMES = 5
"""How many times the limit bins reach at most."""


def lengths(n_tokens: NDArray[np.int64], limit: int) -> Lengths:
    """Chunks by their tokens, in bins of a sixteenth of `limit`, or of the longest where that is shorter.

    A limit of 0 is none. Bins reach to the longest chunk; past TIMES as many as reach the limit there is one more, for
    all longer ones.
    """
    longest = int(n_tokens.max(initial=0))
    width = max(1, -(-min(limit or longest, longest) // BINS))
    counts = np.bincount(np.clip((n_tokens - 1) // width, 0, TIMES * BINS), minlength=BINS)
    return Lengths(width=width, limit=limit, counts=counts.tolist())
