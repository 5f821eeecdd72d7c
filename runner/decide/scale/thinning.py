"""What nDCG@10 is expected to be where a share of the distractors is kept: exact, without a draw.

The relevant documents keep their order, and of k distractors above one of them a hypergeometric number is left. nDCG
is linear in the discounts, so that its expectation needs nothing but that number's distribution, document by document.
"""

import numpy as np

from runner.base.records import RUN_DEPTH, Ints
from runner.decide.scale.places import Floats, Places, discounts
from runner.score.score import DISCOUNTS

DEPTH = len(DISCOUNTS)


def thinned(places: Places, distractors: Ints, share: float) -> tuple[Floats, Floats]:
    """Each query's expected nDCG@10 with a `share` of its distractors, and the most that missing documents may add.

    `distractors` (queries,) are how many there are now. A document missing from a list that was cut stands below at
    least the distractors listed, so what it adds lies between 0 and what it would add right below them.
    """
    kept = np.rint(share * distractors).astype(np.int64)
    values = places.weights * _expected_discounts(places, distractors, kept)
    return places.per_query(np.where(places.listed, values, 0.0)), places.per_query(np.where(places.cut, values, 0.0))


def _expected_discounts(places: Places, distractors: Ints, kept: Ints) -> Floats:
    """Of each document the expected discount, were all distractors that are known to stand above it all there are."""
    sizes, level = np.unique(np.stack([distractors, kept]), axis=1, return_inverse=True)
    left = _left(sizes[0], sizes[1])[level.ravel()[places.queries], places.above]
    worth = discounts(places.before[:, None] + np.arange(DEPTH))
    expected: Floats = (left * worth).sum(axis=1)
    return expected


def _left(distractors: Ints, kept: Ints) -> Floats:
    """P(i of k are kept), (sizes, RUN_DEPTH + 1, DEPTH) by size, k and i: the k are looked at one by one.

    Having kept c of the first k, the next is kept with probability (kept - c) / (distractors - k).
    """
    chances = np.zeros((len(distractors), RUN_DEPTH + 1, DEPTH))
    chances[:, 0, 0] = 1.0
    counts = np.arange(DEPTH)
    for k in range(RUN_DEPTH):
        rest = np.maximum(distractors - k, 1)[:, None]
        keep = np.clip((kept[:, None] - counts) / rest, 0.0, 1.0)
        chances[:, k + 1] = chances[:, k] * (1 - keep)
        chances[:, k + 1, 1:] += (chances[:, k] * keep)[:, :-1]
    return chances
