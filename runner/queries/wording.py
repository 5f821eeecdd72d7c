"""Words of queries and documents: what they share, which are rare in a sample, and which queries ask the same."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Document

MOST_CHARS = 300
"""Of a query."""

_WORD = re.compile(r"\w+")
_QUOTATION = re.compile(r"[\"\u201c\u201d]([^\"\u201c\u201d]+)[\"\u201c\u201d]")


def words(text: str) -> list[str]:
    """Return the lower-case words of a text, stop words among them; an apostrophe parts words."""
    return _WORD.findall(text.lower())


def content_words(text: str) -> dict[str, str]:
    """Return the content words of a text by their stems, in its order: no stop words, of each stem the first word."""
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    stop_words = frozenset(STOPWORDS_EN_PLUS)
    content = [word for word in dict.fromkeys(words(text)) if word not in stop_words]
    by_stem: dict[str, str] = {}
    for stem, word in zip(Stemmer.Stemmer("english").stemWords(content), content, strict=True):
        by_stem.setdefault(stem, word)
    return by_stem


def stems(text: str) -> frozenset[str]:
    """Return the content words of a text by their stems."""
    return frozenset(content_words(text))


def reading(document: Document) -> str:
    """Return what a document says: its title, a line break, its text."""
    return f"{document.title}\n{document.text}"


def quotations(text: str) -> list[str]:
    """Return what stands between quotation marks in a query, of two words or more."""
    return [quoted.strip() for quoted in _QUOTATION.findall(text) if len(quoted.split()) >= 2]


def longest_run(query: str, text: str) -> int:
    """Return the most words in a row that a query and a text have in common."""
    asked, held = words(query), f" {' '.join(words(text))} "
    longest = 0
    # Only runs longer than the longest so far are looked for.
    for start in range(len(asked)):
        while start + longest < len(asked) and f" {' '.join(asked[start : start + longest + 1])} " in held:
            longest += 1
    return longest


RARE_SHARE = 0.05
"""Of a sample's documents, the most that hold a rare word; FEWEST in a small sample.

In long documents nearly every ordinary word occurs, so that only rare ones say whether a query gives its document away.
"""

FEWEST = 2


class Vocabulary:
    """The content words of a sample's documents, by their stems."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._held = {document.doc_id: stems(reading(document)) for document in documents}
        self._holders = Counter(stem for held in self._held.values() for stem in held)
        self._most = max(FEWEST, int(RARE_SHARE * len(documents)))

    def shared(self, text: str, doc_id: str) -> list[str]:
        """Return the words of a text, in its order, that are rare and that the document holds in some form."""
        held = self._held[doc_id]
        return [
            word for stem, word in content_words(text).items() if stem in held and self._holders[stem] <= self._most
        ]

    def holders(self, text: str) -> int:
        """Return how many documents hold every content word of a text; 0 for a text without any."""
        asked = stems(text)
        return sum(asked <= held for held in self._held.values()) if asked else 0


SAME_WORDS = 90

SIMILAR_WORDS = 80
"""Of token_set_ratio, 0 to 100."""

SAME_ORDERED_WORDS = 90
"""Of token_sort_ratio: a short query whose words a longer one holds has a token_set_ratio of 100 and asks for more."""

_AT_ONCE = 500


class Alike(NamedTuple):
    """Two queries by their places, first the earlier one; `score` is of 100.

    `is_same` if nothing but order, case, punctuation and small words tells them apart.
    """

    first: int
    second: int
    score: float
    is_same: bool


def alike_in_words(texts: Sequence[str]) -> list[Alike]:
    """Return pairs of at least SIMILAR_WORDS by their places; never of other numbers, which are the question."""
    from rapidfuzz import fuzz, process, utils

    shown = [utils.default_process(text) for text in texts]
    alike = []
    # Each pair once, in blocks of rows: the whole table would not fit into memory.
    for start in range(0, len(shown), _AT_ONCE):
        block = process.cdist(
            shown[start : start + _AT_ONCE],
            shown[start:],
            scorer=fuzz.token_set_ratio,
            score_cutoff=SIMILAR_WORDS,
            dtype=np.float32,
        )
        for first, second in _upper(block, start):
            # H.R. 12 and H.R. 21 are two questions in the same words.
            if _numbers(texts[first]) == _numbers(texts[second]) and shown[first] and shown[second]:
                score = float(block[first - start, second - start])
                ordered = fuzz.token_sort_ratio(shown[first], shown[second])
                is_same = score >= SAME_WORDS and ordered >= SAME_ORDERED_WORDS
                alike.append(Alike(first, second, score, is_same))
    return alike


def _upper(block: NDArray[np.floating], start: int) -> Iterator[tuple[int, int]]:
    """Return places of the pairs above 0 whose first is the earlier; the block's rows and columns begin at `start`."""
    for row, column in np.argwhere(block > 0).tolist():
        if row < column:
            yield start + row, start + column


def _numbers(text: str) -> list[str]:
    return sorted(set(re.findall(r"\w*\d\w*", text.lower())))
