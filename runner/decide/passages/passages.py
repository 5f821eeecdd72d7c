"""What a page shows of the documents themselves, where they may be shown: short passages with the query's words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.base.records import Document
from runner.decide.passages.asked_words import AskedWords, Terms, query_terms, words_with
from runner.eval_set.shapes.lists import ListedDocument, QueryLists, RankedLists, ShownPassage

LONGEST = 500
"""Characters of a passage at most."""

SEEN = 10
"""Hits of a cell that have a passage."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Characters that could be shown: how many of the query's terms are in them, and how many words."""

    start: int
    end: int
    terms: int
    words: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """Ascending, best first."""
        return -self.terms, -self.words, self.start


def with_passages(
    lists: RankedLists, documents: Mapping[str, Document], queries: Mapping[str, str], cells: Sequence[str]
) -> RankedLists:
    """The lists with the titles of `documents` (by id), and with passages for every query (its text by id).

    One passage is of what the judge marked in a document, and one lies wholly in each chunk that ranked it among the
    first SEEN hits of these `cells`. Each holds as many of the query's words as it can; those of a document are in text
    order and may overlap. A document that is not in `documents` has neither title nor passages.
    """
    asked = [query_terms(queries[query.id]) for query in lists.queries]
    shown = _shown(lists, documents, asked, cells)
    return lists.model_copy(
        update={
            "texts": True,
            "documents": [_titled(listed, documents.get(listed.doc_id)) for listed in lists.documents],
            "queries": [_filled(place, query, shown) for place, query in enumerate(lists.queries)],
        }
    )


def _shown(
    lists: RankedLists, documents: Mapping[str, Document], asked: Sequence[Terms], cells: Sequence[str]
) -> dict[tuple[int, int], list[ShownPassage]]:
    """Passages by the query's place and the document's place in its list; every document is read once."""
    pairs_of: dict[int, list[tuple[int, int]]] = {}
    ranked = [_first_hits(query, cells) for query in lists.queries]
    for place, query in enumerate(lists.queries):
        for row, pair in enumerate(query.documents):
            if pair.spans or row in ranked[place]:
                pairs_of.setdefault(pair.document, []).append((place, row))
    shown = {}
    for number, places in pairs_of.items():
        document = documents.get(lists.documents[number].doc_id)
        if document is None:
            continue
        words = words_with(frozenset[str]().union(*(asked[place] for place, _ in places)), document.text)
        for place, row in places:
            reader = _Reader(document.text, words.asked(asked[place], LONGEST))
            shown[place, row] = reader.passages(lists.queries[place].documents[row].spans, ranked[place].get(row, []))
    return shown


def _first_hits(query: QueryLists, cells: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """The spans of the first SEEN hits of these cells, by the document's place in the query's list."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for cell in cells:
        for row, start, end in query.hits.get(cell, [])[:SEEN]:
            spans.setdefault(row, []).append((start, end))
    return spans


@dataclass(frozen=True)
class _Reader:
    """A document's text with the words that one query has too."""

    text: str
    words: AskedWords

    def passages(self, marked: Iterable[Sequence[int]], ranked: Iterable[Sequence[int]]) -> list[ShownPassage]:
        """The best window of what is marked, and one in each chunk that ranked the document, in text order."""
        chosen = sorted(self.windows(marked), key=lambda each: each.rank)[:1]
        for start, end in ranked:
            if not any(start <= each.start and each.end <= end for each in chosen):
                chosen += self.windows([(start, end)])
        chosen.sort(key=lambda each: each.start)
        return [ShownPassage(start=each.start, end=each.end, text=self.text[each.start : each.end]) for each in chosen]

    def windows(self, spans: Iterable[Sequence[int]]) -> list[_Window]:
        """The best window of every span; none of one that lies past the text or is white space."""
        ends = [(start, min(end, len(self.text))) for start, end in spans if start < len(self.text)]
        return [each for each in (self.window(*span) for span in ends) if each.start < each.end]

    def window(self, low: int, high: int) -> _Window:
        """The LONGEST characters of a span that hold most of the terms, then most words; its beginning without any."""
        first, last, terms, count = self.words.densest(low, high) or (low, low, 0, 0)
        last = min(last, first + LONGEST, high)
        # A third of what is left goes before the words: a sentence is read from its beginning.
        start = max(low, first - (LONGEST - (last - first)) // 3)
        end = min(high, start + LONGEST)
        start = max(low, end - LONGEST)
        return _Window(*_at_white_space(self.text, (low, high), (start, end), (first, last)), terms, count)


def _at_white_space(
    text: str, span: tuple[int, int], window: tuple[int, int], kept: tuple[int, int]
) -> tuple[int, int]:
    """The window cut where words end, around the characters that are kept; cut hard if there is no white space."""
    start, end = window
    if start > span[0] and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : kept[0]])
        start += gap.end() if gap else 0
    if end < span[1] and not text[end].isspace():
        gap = re.search(r"\s\S*\Z", text[kept[1] : end])
        end = kept[1] + gap.start() if gap else end
    shown = text[start:end]
    return start + len(shown) - len(shown.lstrip()), end - len(shown) + len(shown.rstrip())


def _filled(place: int, query: QueryLists, shown: Mapping[tuple[int, int], list[ShownPassage]]) -> QueryLists:
    pairs = [
        pair.model_copy(update={"passages": shown[place, row]}) if (place, row) in shown else pair
        for row, pair in enumerate(query.documents)
    ]
    return query.model_copy(update={"documents": pairs})


def _titled(listed: ListedDocument, document: Document | None) -> ListedDocument:
    return listed if document is None else listed.model_copy(update={"title": document.title})
