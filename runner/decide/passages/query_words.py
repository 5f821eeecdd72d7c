"""Words as the sparse cells know them: which words of a text a query has too."""

import re
from collections.abc import Callable
from functools import cache, lru_cache

_DASHES = "\u2010\u2011\u2012\u2013\u2212"
_TO_HYPHENS = str.maketrans(dict.fromkeys(_DASHES, "-") | {"\u00ad": None})

WORD = re.compile(rf"\w+(?:(?:\u00ad+[-{_DASHES}]?\u00ad*|[-{_DASHES}]\u00ad*)\w+)*")
"""A word with the hyphens and soft hyphens in it, whichever dash they are printed with."""

_STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    )
)
"""As `runner.retrieve.bm25.lucene_tokens` has them, whose library takes half a second to load."""

Terms = frozenset[str]


def query_terms(text: str) -> Terms:
    """The stemmed terms of a query, stop words left out: what the cell `bm25` looks for."""
    return frozenset[str]().union(*(terms_of(match[0]) for match in WORD.finditer(text)))


def marked(text: str, terms: Terms) -> list[tuple[str, bool]]:
    """The text in parts that make it up again, and whether a part is a word with one of the terms."""
    parts, before = [], 0
    for match in WORD.finditer(text):
        if terms & terms_of(match[0]):
            if before < match.start():
                parts.append((text[before : match.start()], False))
            parts.append((match[0], True))
            before = match.end()
    return [*parts, (text[before:], False)] if before < len(text) else parts


@lru_cache(maxsize=1 << 17)
def terms_of(word: str) -> Terms:
    """The stems that `runner.retrieve.bm25.lucene_tokens` makes of one word, none for a stop word."""
    plain = word.lower().translate(_TO_HYPHENS)
    parts = plain.split("-") if "-" in plain else []
    wholes = [plain] if not parts or any(character.isdigit() for character in plain) else []
    return frozenset(_stems()([part for part in (*parts, *wholes) if part not in _STOP_WORDS]))


@cache
def _stems() -> Callable[[list[str]], list[str]]:
    import Stemmer

    stems: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords
    return stems
