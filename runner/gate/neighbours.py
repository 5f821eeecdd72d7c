"""The query that is most like a query in words."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Ints

_WORD = re.compile(r"\w+")


def nearest(texts: Sequence[str]) -> Ints:
    """For each text the place of the other one that is most like it, -1 if no other shares a word that tells.

    Likeness is the cosine of the sets of words, each weighted by log(texts / texts that have it); of equal ones the
    first is taken.
    """
    words = [set(_WORD.findall(text.casefold())) for text in texts]
    places_of: dict[str, list[int]] = {}
    for place, found in enumerate(words):
        for word in found:
            places_of.setdefault(word, []).append(place)
    holders = {word: np.array(places) for word, places in places_of.items()}
    weights = {word: math.log(len(texts) / len(places)) ** 2 for word, places in holders.items()}
    lengths = np.sqrt([sum(weights[word] for word in sorted(found)) for found in words])
    return np.array([_nearest(place, words[place], holders, weights, lengths) for place in range(len(texts))], np.int64)


def _nearest(
    place: int,
    found: set[str],
    holders: Mapping[str, Ints],
    weights: Mapping[str, float],
    lengths: NDArray[np.float64],
) -> int:
    shared = np.zeros(len(lengths))
    for word in sorted(found):
        shared[holders[word]] += weights[word]
    shared[place] = 0.0
    likeness = np.divide(shared, lengths, out=np.zeros_like(shared), where=lengths > 0)
    best = int(likeness.argmax())
    return best if likeness[best] > 0 else -1
