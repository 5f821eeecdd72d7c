"""What a page shows of the documents themselves, where they may be shown: short passages with the query's words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runner.base.records import Document
from runner.decide.passages.asked_words import AskedWords, Terms, query_terms, words_with
from runner.eval_set.shapes.lists import ListedDocument, PairShown, QueryLists, RankedLists, ShownPassage

LONGEST = 500
"""Characters of a passage at most."""

MOST = 3
"""Passages of a document that is graded above 0; one less where it is among the first SEEN of a cell, else one."""

SEEN = 10


@dataclass(frozen=True, slots=True)
class _Window:
    """Characters that could be shown: how many of the query's terms are in them, how many words, who pointed there."""

    start: int
    end: int
    terms: int
    words: int
    by_judge: bool

    @property
    def rank(self) -> tuple[int, bool, int, int]:
        """Ascending, best first."""
        return -self.terms, not self.by_judge, -self.words, self.start


def with_passages(lists: RankedLists, documents: Mapping[str, Document], queries: Mapping[str, str]) -> RankedLists:
    """The lists with the titles of `documents` (by id), and with passages for every query (its text by id).

    Passages lie where a cell's evidence or the judge's marks are, hold as many of the query's words as they can, do
    not overlap, and are in text order; the best of the marked ones is always among them. A document without evidence
    or marks is taken whole; one that is not in `documents` has neither title nor passages.
    """
    asked = [query_terms(queries[query.id]) for query in lists.queries]
    shown = _shown(lists, documents, asked)
    return lists.model_copy(
        update={
            "texts": True,
            "documents": [_titled(listed, documents.get(listed.doc_id)) for listed in lists.documents],
            "queries": [_filled(place, query, shown) for place, query in enumerate(lists.queries)],
        }
    )


def _shown(
    lists: RankedLists, documents: Mapping[str, Document], asked: Sequence[Terms]
) -> dict[tuple[int, int], list[ShownPassage]]:
    """Passages by the query's place and the document's place in its list; every document is read once."""
    pairs_of: dict[int, list[tuple[int, int]]] = {}
    for place, query in enumerate(lists.queries):
        for row, pair in enumerate(query.documents):
            pairs_of.setdefault(pair.document, []).append((place, row))
    evidence = [_evidence(query) for query in lists.queries]
    shown = {}
    for number, places in pairs_of.items():
        document = documents.get(lists.documents[number].doc_id)
        if document is None:
            continue
        words = words_with(frozenset[str]().union(*(asked[place] for place, _ in places)), document.text)
        for place, row in places:
            pair, (spans, near) = lists.queries[place].documents[row], evidence[place][row]
            reader = _Reader(document.text, words.asked(asked[place], LONGEST))
            shown[place, row] = reader.passages(pair, spans, near=near)
    return shown


def _evidence(query: QueryLists) -> list[tuple[list[tuple[int, int]], bool]]:
    """The spans that ranked each of the query's documents, in text order, and whether some cell has it near the top."""
    spans: list[set[tuple[int, int]]] = [set() for _ in query.documents]
    seen = [False] * len(query.documents)
    for hits in query.hits.values():
        for rank, (row, start, end) in enumerate(hits, start=1):
            spans[row].add((start, end))
            seen[row] = seen[row] or rank <= SEEN
    return [(sorted(found), near) for found, near in zip(spans, seen, strict=True)]


@dataclass(frozen=True)
class _Reader:
    """A document's text with the words that one query has too."""

    text: str
    words: AskedWords

    def passages(self, pair: PairShown, evidence: Sequence[tuple[int, int]], *, near: bool) -> list[ShownPassage]:
        """The best windows that do not overlap, in text order."""
        by_judge = self.windows([(start, end) for start, end in pair.spans], by_judge=True)
        others = sorted([*by_judge[1:], *self.windows(evidence, by_judge=False)], key=lambda each: each.rank)
        chosen: list[_Window] = []
        for each in [*by_judge[:1], *others] or self.windows([(0, len(self.text))], by_judge=False):
            apart = all(each.end <= other.start or other.end <= each.start for other in chosen)
            if apart and (each.terms or each.by_judge or not chosen):
                chosen.append(each)
        kept = sorted(chosen[: MOST if pair.grade else MOST - 1 if near else 1], key=lambda each: each.start)
        return [ShownPassage(start=each.start, end=each.end, text=self.text[each.start : each.end]) for each in kept]

    def windows(self, spans: Iterable[tuple[int, int]], *, by_judge: bool) -> list[_Window]:
        """The best window of every span, best first; none of a span that lies past the text or is white space."""
        ends = [(start, min(end, len(self.text))) for start, end in spans if start < len(self.text)]
        found = [self.window(*span, by_judge=by_judge) for span in ends]
        return sorted((each for each in found if each.start < each.end), key=lambda each: each.rank)

    def window(self, low: int, high: int, *, by_judge: bool) -> _Window:
        """The LONGEST characters of a span that hold most of the terms, then most words; its beginning without any."""
        first, last, terms, count = self.words.densest(low, high) or (low, low, 0, 0)
        last = min(last, first + LONGEST, high)
        # A third of what is left goes before the words: a sentence is read from its beginning.
        start = max(low, first - (LONGEST - (last - first)) // 3)
        end = min(high, start + LONGEST)
        start = max(low, end - LONGEST)
        return _Window(*_at_white_space(self.text, (low, high), (start, end), (first, last)), terms, count, by_judge)


def _at_white_space(
    text: str, span: tuple[int, int], window: tuple[int, int], kept: tuple[int, int]
) -> tuple[int, int]:
    """The window cut where words end, around the characters that are kept; cut hard if there is no white space."""
    start, end = window
    if start > span[0] and not text[start - 1].isspace():
        gap = re.search(r"\s", text[start : kept[0]])
        start += gap.end() if gap else 0
    if end < span[1] and not text[end].isspace():
        gaps = [match.start() for match in re.finditer(r"\s", text[kept[1] : end])]
        end = kept[1] + gaps[-1] if gaps else end
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
