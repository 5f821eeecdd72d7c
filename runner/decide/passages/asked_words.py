"""Where a document has the words of queries, and where most of them stand close together."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from runner.retrieve.words import Word, stemmed, words

Terms = frozenset[str]


def query_terms(text: str) -> Terms:
    """The stemmed terms of a query, stop words left out: what the cell `bm25` looks for."""
    return frozenset[str]().union(*map(_stems, {word.terms for word in _words(text)}))


def marked(text: str, terms: Terms) -> list[tuple[str, bool]]:
    """The text in parts that make it up again, and whether a part is a word with one of the terms."""
    parts, before = [], 0
    for word in _words(text):
        if terms & terms_of(word):
            if before < word.start:
                parts.append((text[before : word.start], False))
            parts.append((text[word.start : word.end], True))
            before = word.end
    return [*parts, (text[before:], False)] if before < len(text) else parts


@lru_cache(maxsize=1 << 8)
def _words(text: str) -> tuple[Word, ...]:
    """The words of a query or passage, which are asked for several times."""
    return tuple(words(text))


def terms_of(word: Word) -> Terms:
    """The stems that a word stands for, none for a stop word."""
    return _stems(word.terms)


@lru_cache(maxsize=1 << 17)
def _stems(terms: tuple[str, ...]) -> Terms:
    return frozenset(stemmed(terms))


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FoundWords:
    """The words of a text that stand for some term, in text order.

    `starts` and `ends` are characters, `forms` the place in `terms` of what each word stands for.
    """

    starts: Ints
    ends: Ints
    forms: Ints
    terms: list[Terms]

    def asked(self, terms: Terms, width: int) -> "AskedWords":
        """The words of one query, for windows of `width` characters."""
        names = sorted(terms)
        held = np.array([[name in form for form in self.terms] for name in names], dtype=bool)
        held = held.reshape(len(names), len(self.terms))
        own = np.logical_or.reduce(held, axis=0)[self.forms]
        starts, ends = self.starts[own], self.ends[own]
        before = np.zeros((len(names), len(starts) + 1), dtype=np.int32)
        np.cumsum(held[:, self.forms[own]], axis=1, out=before[:, 1:])
        after = np.maximum(np.searchsorted(ends, starts + width, side="right"), np.arange(1, len(starts) + 1))
        return AskedWords(starts, ends, before, after)


@dataclass(frozen=True)
class AskedWords:
    """The words of one query in a text: `before` counts, by term, those ahead of each word, with one column more for
    the end; `after` is the first word past the window that begins with each.
    """

    starts: Ints
    ends: Ints
    before: NDArray[np.int32]
    after: Ints

    def densest(self, low: int, high: int) -> tuple[int, int, int, int] | None:
        """First and last character, terms and words of the window with most terms, then most words, then the first.

        Words count that begin between `low` and `high`; None if there is none.
        """
        first, last = np.searchsorted(self.starts, (low, high))
        if first == last:
            return None
        after = np.minimum(self.after[first:last], last)
        words = after - np.arange(first, last)
        terms = (self.before[:, after] > self.before[:, first:last]).sum(axis=0)
        best = int(np.argmax(terms * (last - first + 1) + words))
        return int(self.starts[first + best]), int(self.ends[after[best] - 1]), int(terms[best]), int(words[best])


def words_with(terms: Terms, text: str) -> FoundWords:
    """The words of a text that stand for one of the terms; the text is read once, whatever the number of queries."""
    known: dict[tuple[str, ...], int] = {}
    forms: list[Terms] = []
    found: list[tuple[int, int, int]] = []
    for word in words(text):
        form = known.get(word.terms)
        if form is None:
            own = terms & terms_of(word)
            form = known[word.terms] = len(forms) if own else -1
            forms += [own] if own else []
        if form >= 0:
            found.append((word.start, word.end, form))
    starts, ends, numbers = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return FoundWords(starts, ends, numbers, forms)
