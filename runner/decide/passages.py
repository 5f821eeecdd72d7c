"""What a page shows of the documents themselves: short passages that hold as many of a query's words as they can.

Never called for documents that are not ours to show: their text never enters the record.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from runner.base.records import Document
from runner.eval_set.shapes.lists import QueryLists, RankedLists, ShownPassage
from runner.retrieve.words import Word, stemmed, words

LONGEST = 500
"""Characters of a passage at most."""

SEEN = 10
"""Hits of a cell that have a passage."""

Terms = frozenset[str]

Ends = tuple[int, int]
"""First character, and the one after the last."""


def query_terms(text: str) -> Terms:
    """Return the stemmed terms of a query, stop words left out: what the cell `bm25` looks for."""
    return frozenset[str]().union(*map(_stems, {word.terms for word in _words(text)}))


def marked(text: str, terms: Terms) -> list[tuple[str, bool]]:
    """Return the text in parts that make it up again, and whether a part is a word with one of the terms."""
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
    """Return the words of a query or passage, which are asked for several times."""
    return tuple(words(text))


def terms_of(word: Word) -> Terms:
    """Return the stems that a word stands for, none for a stop word."""
    return _stems(word.terms)


@lru_cache(maxsize=1 << 17)
def _stems(terms: tuple[str, ...]) -> Terms:
    return frozenset(stemmed(terms))


class AskedWord(NamedTuple):
    """A word of a document, and which of the asked terms it stands for."""

    start: int
    end: int
    terms: Terms


def words_with(terms: Terms, text: str) -> list[AskedWord]:
    """Return the words of a text that stand for one of the terms, in text order."""
    known = ((word, terms & terms_of(word)) for word in words(text))
    return [AskedWord(word.start, word.end, own) for word, own in known if own]


class Window(NamedTuple):
    """Characters that could be shown: how many of the query's terms are in them, and how many words."""

    start: int
    end: int
    terms: int
    words: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """Ascending, best first: most terms, then most words, then the first."""
        return -self.terms, -self.words, self.start


def densest(asked: Sequence[AskedWord], low: int, high: int, width: int = LONGEST) -> Window | None:
    """Return the best window of `width` characters from a word on; None without a word that begins within the ends."""
    first, last = (bisect_left(asked, end, key=lambda word: word.start) for end in (low, high))
    inside, windows, held, after = asked[first:last], [], Counter[str](), 0
    for place, word in enumerate(inside):
        # One pass: what lies within reach of a word is what lay within reach of the one before, and a few more.
        while after < len(inside) and (after == place or inside[after].end <= word.start + width):
            held.update(inside[after].terms)
            after += 1
        windows.append(Window(word.start, inside[after - 1].end, len(+held), after - place))
        held.subtract(word.terms)
    return min(windows, key=lambda window: window.rank, default=None)


def with_passages(
    lists: RankedLists, documents: Mapping[str, Document], queries: Mapping[str, str], cells: Sequence[str]
) -> RankedLists:
    """Return the lists with the titles of `documents` (by id), and with passages for every query (its text by id).

    One passage is of what the judge marked in a document, and one lies wholly in each chunk that ranked it among the
    first SEEN hits of these `cells`. Each holds as many of the query's words as it can; those of a document are in text
    order and may overlap. A document that is not in `documents` has neither title nor passages.
    """
    asked = [query_terms(queries[query.id]) for query in lists.queries]
    ranked = [_first_hits(query, cells) for query in lists.queries]
    pairs_of: dict[int, list[tuple[int, int]]] = {}
    for place, query in enumerate(lists.queries):
        for row, pair in enumerate(query.documents):
            if pair.spans or row in ranked[place]:
                pairs_of.setdefault(pair.document, []).append((place, row))
    shown: dict[tuple[int, int], list[ShownPassage]] = {}
    for number, pairs in pairs_of.items():
        document = documents.get(lists.documents[number].doc_id)
        if document is None:
            continue
        # A document is read once, whatever the number of queries.
        words_asked = words_with(frozenset[str]().union(*(asked[place] for place, _ in pairs)), document.text)
        for place, row in pairs:
            own = [AskedWord(*word[:2], common) for word in words_asked if (common := word.terms & asked[place])]
            spans = lists.queries[place].documents[row].spans
            shown[place, row] = _passages(document.text, own, spans, ranked[place].get(row, []))
    titles = {doc_id: document.title for doc_id, document in documents.items()}
    return lists.model_copy(
        update={
            "texts": True,
            "documents": [one.model_copy(update={"title": titles.get(one.doc_id, "")}) for one in lists.documents],
            "queries": [_filled(place, query, shown) for place, query in enumerate(lists.queries)],
        }
    )


def _filled(place: int, query: QueryLists, shown: Mapping[tuple[int, int], list[ShownPassage]]) -> QueryLists:
    pairs = [
        pair.model_copy(update={"passages": shown[place, row]}) if (place, row) in shown else pair
        for row, pair in enumerate(query.documents)
    ]
    return query.model_copy(update={"documents": pairs})


def _first_hits(query: QueryLists, cells: Sequence[str]) -> dict[int, list[Ends]]:
    """Return the spans of the first SEEN hits of these cells, by the document's place in the query's list."""
    spans: dict[int, list[Ends]] = {}
    for cell in cells:
        for row, start, end in query.hits.get(cell, [])[:SEEN]:
            spans.setdefault(row, []).append((start, end))
    return spans


def _passages(
    text: str, asked: Sequence[AskedWord], spans: Iterable[Sequence[int]], ranked: Iterable[Sequence[int]]
) -> list[ShownPassage]:
    """Return the best window of what is marked, and one in each chunk that ranked the document, in text order."""
    chosen = sorted(_windows(text, asked, spans), key=lambda window: window.rank)[:1]
    for start, end in ranked:
        # What is marked may lie in the chunk, which then needs no second passage.
        if not any(start <= window.start and window.end <= end for window in chosen):
            chosen += _windows(text, asked, [(start, end)])
    chosen.sort(key=lambda window: window.start)
    return [ShownPassage(start=each.start, end=each.end, text=text[each.start : each.end]) for each in chosen]


def _windows(text: str, asked: Sequence[AskedWord], spans: Iterable[Sequence[int]]) -> list[Window]:
    """Return the window of every span to show; none of one that lies past the text or is white space.

    The LONGEST characters that hold most of the terms, then most words; the beginning of a span without any.
    """
    windows = []
    for low, span_end in spans:
        high = min(span_end, len(text))
        if low >= high:
            continue
        first, last, n_terms, n_words = densest(asked, low, high) or (low, low, 0, 0)
        last = min(last, first + LONGEST, high)
        # A third of what is left goes before the words: a sentence is read from its beginning.
        start = max(low, first - (LONGEST - (last - first)) // 3)
        end = min(high, start + LONGEST)
        start = max(low, end - LONGEST)
        start, end = _at_white_space(text, (low, high), (start, end), (first, last))
        if start < end:
            windows.append(Window(start, end, n_terms, n_words))
    return windows


def _at_white_space(text: str, span: Ends, window: Ends, kept: Ends) -> Ends:
    """Return the window cut where words end, around the characters that are kept; cut hard without white space."""
    start, end = window
    # An end inside a word moves inwards to the next gap, if one lies before what is kept.
    if start > span[0] and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : kept[0]])
        start += gap.end() if gap else 0
    if end < span[1] and not text[end].isspace():
        gap = re.search(r"\s\S*\Z", text[kept[1] : end])
        end = kept[1] + gap.start() if gap else end
    shown = text[start:end]
    return start + len(shown) - len(shown.lstrip()), end - len(shown) + len(shown.rstrip())
