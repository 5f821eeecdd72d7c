"""Words as the sparse cells know them: which words of a text a query has too."""

from functools import lru_cache

from runner.retrieve.words import Word, stemmed, words

Terms = frozenset[str]


def query_terms(text: str) -> Terms:
    """The stemmed terms of a query, stop words left out: what the cell `bm25` looks for."""
    return frozenset[str]().union(*map(terms_of, words(text)))


def marked(text: str, terms: Terms) -> list[tuple[str, bool]]:
    """The text in parts that make it up again, and whether a part is a word with one of the terms."""
    parts, before = [], 0
    for word in words(text):
        if terms & terms_of(word):
            if before < word.start:
                parts.append((text[before : word.start], False))
            parts.append((text[word.start : word.end], True))
            before = word.end
    return [*parts, (text[before:], False)] if before < len(text) else parts


def terms_of(word: Word) -> Terms:
    """The stems that a word stands for, none for a stop word."""
    return _stems(word.terms)


@lru_cache(maxsize=1 << 17)
def _stems(terms: tuple[str, ...]) -> Terms:
    return frozenset(stemmed(terms))
