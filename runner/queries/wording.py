"""Words of queries and documents: what they share, which give a document away, and which queries ask the same."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.records import Document
from runner.embed.encoder import Matrix

COMMON_SHARE = 0.2
"""A word that more than this share of the documents hold tells none of them apart."""

SHARED_STEM = 5
"""Letters that the stems of two words must share to be forms of one word, if only endings part them."""

_ENDING = re.compile(
    "(?:a|al|an|ation|e|ean|ee|er|ern|es|ese|i|ial|ian|ic|ical|ie|ion|ish|ism|ist|ity|ive|iz|n|ness|o|or|s|y)?"
)
"""What may follow the shared letters, by stems: Ukraine and Ukrainian, Canada and Canadian, Mexico and Mexican."""

MOST = {"title": 15, "names": 20, "numbers": 15, "others": 25}
"""Distinctive words of each sort; more than that and nothing is left to write a query with."""

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The lower-case words of a text, stop words among them; an apostrophe parts words."""
    return _WORD.findall(text.lower())


def stems(text: str) -> frozenset[str]:
    """The content words of a text by their stems: no stop words, each once."""
    return frozenset(_stems(frozenset(words(text))).values())


def overlap(asked: frozenset[str], held: frozenset[str]) -> float | None:
    """The share of a query's stems that are among others, in [0, 1]; None for a query without content words."""
    return len(asked & held) / len(asked) if asked else None


def reading(document: Document) -> str:
    """What a document says: its title, a line break, its text."""
    return f"{document.title}\n{document.text}"


@dataclass(frozen=True)
class DistinctiveWords:
    """Words of a document that few others have, as it writes them, in lower case: most telling first."""

    title: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.title, *self.names, *self.numbers, *self.others)))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Their stems."""
        return stems(" ".join(self.all))

    @cached_property
    def _by_beginning(self) -> Mapping[str, Sequence[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for form in self.stems.union(self.all):
            found[form[:SHARED_STEM]].append(form)
        return found

    def used_in(self, text: str) -> list[str]:
        """The words of a text, in lower case and its order, that are forms of a distinctive one or derived from it."""
        return [word for word in dict.fromkeys(words(text)) if self._has_form_of(word)]

    def _has_form_of(self, word: str) -> bool:
        # A stem alone is not enough: that of "israeli" is "israe".
        own = stems(word)
        near = self._by_beginning.get(word[:SHARED_STEM], ())
        return bool(own & self.stems) or any(
            _are_forms(one, other) for stem in own for one in (stem, word) for other in near
        )


class SampleWords:
    """How many documents of a sample hold each stem."""

    def __init__(self, documents: Iterable[Document]) -> None:
        held = [frozenset(words(reading(document))) for document in documents]
        stem_of = _stems(frozenset().union(*held))
        self.n_documents = len(held)
        self.frequency: Counter[str] = Counter()
        for vocabulary in held:
            self.frequency.update({stem_of[word] for word in vocabulary if word in stem_of})

    def distinctive(self, document: Document) -> DistinctiveWords:
        """What gives the document away: rare words of its title, then names, numbers and others by tf-idf.

        At most COMMON_SHARE of the documents, or one, hold a rare word; a name never stands in lower case.
        """
        counts = Counter(words(reading(document)))
        stem_of = _stems(counts.keys())
        rare = [word for word in counts if word in stem_of and self._is_rare(stem_of[word])]
        ordered = sorted(rare, key=lambda word: (-self._weight(counts[word], stem_of[word]), word))
        in_title = set(words(document.title))
        lower = set(_WORD.findall(reading(document)))
        found: dict[str, list[str]] = {sort: [] for sort in MOST}
        for word in ordered:
            found[_sort(word, in_title, lower)].append(word)
        return DistinctiveWords(**{sort: tuple(found[sort][:most]) for sort, most in MOST.items()})

    def _is_rare(self, stem: str) -> bool:
        return self.frequency[stem] <= max(1, COMMON_SHARE * self.n_documents)

    def _weight(self, count: int, stem: str) -> float:
        return (1 + math.log(count)) * math.log((1 + self.n_documents) / max(1, self.frequency[stem]))


def longest_run(query: str, text: str) -> int:
    """The most words in a row that a query and a text have in common."""
    asked, held = words(query), f" {' '.join(words(text))} "
    longest = 0
    for start in range(len(asked)):
        while start + longest < len(asked) and f" {' '.join(asked[start : start + longest + 1])} " in held:
            longest += 1
    return longest


def _are_forms(word: str, other: str) -> bool:
    """Whether two words, or stems, differ in endings alone; numbers never do."""
    shared = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    are_words = word.isalpha() and other.isalpha()
    return are_words and shared >= SHARED_STEM and all(_ENDING.fullmatch(one[shared:]) for one in (word, other))


def _sort(word: str, in_title: set[str], as_written: set[str]) -> str:
    if word in in_title:
        return "title"
    if any(character.isdigit() for character in word):
        return "numbers"
    return "others" if word in as_written else "names"


def _stems(vocabulary: Iterable[str]) -> Mapping[str, str]:
    """The stem of every content word."""
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    stop_words = frozenset(STOPWORDS_EN_PLUS)
    content: Sequence[str] = [word for word in vocabulary if word not in stop_words]
    return dict(zip(content, Stemmer.Stemmer("english").stemWords(content), strict=True))


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

    `is_same` if nothing but order, case, punctuation and small words tells them apart.
    """

    first: int
    second: int
    score: float
    how: str
    is_same: bool


def alike_in_words(texts: Sequence[str]) -> list[Alike]:
    """Pairs of at least SIMILAR_WORDS, in the order of their places; never of other numbers, which are the question."""
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
