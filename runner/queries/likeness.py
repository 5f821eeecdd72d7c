"""Queries that ask the same: by their words (rapidfuzz) and by their vectors."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.embed.encoder import Matrix

SAME_WORDS = 90
SIMILAR_WORDS = 80
"""Of token_set_ratio, 0 to 100."""

SAME_ORDERED_WORDS = 90
"""Of token_sort_ratio: a short query whose words a longer one holds has a token_set_ratio of 100 and asks for more."""

SAME_MEANING = 0.9
"""Cosine of two queries' vectors."""

_AT_ONCE = 500


class Alike(NamedTuple):
    """Two queries by their places, first the earlier one; `score` is of 100, `how` is "words" or "meaning".

    `is_same` where nothing but order, case, punctuation and small words tells them apart.
    """

    first: int
    second: int
    score: float
    how: str
    is_same: bool


def alike_in_words(texts: Sequence[str]) -> list[Alike]:
    """Pairs of at least SIMILAR_WORDS, in the order of their places.

    Queries whose numbers differ are never alike: in "12 U.S.C. 34" and "12 U.S.C. 43" the numbers are the question.
    """
    from rapidfuzz import fuzz, process, utils

    shown = [utils.default_process(text) for text in texts]
    found = []
    for start in range(0, len(shown), _AT_ONCE):
        block = process.cdist(
            shown[start : start + _AT_ONCE],
            shown[start:],
            scorer=fuzz.token_set_ratio,
            score_cutoff=SIMILAR_WORDS,
            dtype=np.float32,
        )
        for first, second in _upper(block, start):
            if _numbers(texts[first]) == _numbers(texts[second]) and shown[first] and shown[second]:
                score = float(block[first - start, second - start])
                ordered = fuzz.token_sort_ratio(shown[first], shown[second])
                is_same = score >= SAME_WORDS and ordered >= SAME_ORDERED_WORDS
                found.append(Alike(first, second, score, "words", is_same))
    return found


def alike_in_meaning(texts: Sequence[str], rows: Matrix) -> list[Alike]:
    """Pairs of at least SAME_MEANING by unit rows (n, dim), in the order of their places; never of other numbers."""
    found = []
    for start in range(0, len(rows), _AT_ONCE):
        cosines = rows[start : start + _AT_ONCE].astype(np.float64) @ rows[start:].T.astype(np.float64)
        close = np.where(cosines >= SAME_MEANING, cosines, 0.0)
        for first, second in _upper(close, start):
            if _numbers(texts[first]) == _numbers(texts[second]):
                score = 100 * float(cosines[first - start, second - start])
                found.append(Alike(first, second, score, "meaning", False))
    return found


def _upper(block: NDArray[np.floating], start: int) -> Iterator[tuple[int, int]]:
    """Places of the pairs above 0 whose first is the earlier; the block's rows and columns begin at `start`."""
    for row, column in np.argwhere(block > 0).tolist():
        if row < column:
            yield start + row, start + column


def _numbers(text: str) -> list[str]:
    return sorted(set(re.findall(r"\w*\d\w*", text.lower())))
