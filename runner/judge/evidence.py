"""What a judge is shown of a document: a function of the topic and the document, whatever found it and by which chunks.

All of a text that fits. Else its opening, headings, and the best passages of the whole document, in windows of one
size: by words (BM25, the document's windows being the collection) and by vectors of two packaged encoders, in turn. One
reads the window alone and under the headings that lead to it, since many chunkers embed these; the other is a table of
words, which likes other passages. In 103 documents of eight sources the best passage of a hit was shown less than half
in 0 to 7 % of the hits of each kind of cell; without the table in 19 % of those of its own cells. So it would be for
any encoder that has no part in choosing: without the reader in 24 to 32 % of those of its cells.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from chunkers.contexts import path_context
from runner.base.records import Document, Ints, Section, Span, merged, n_characters, n_shared
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.embed.encoder import Encoder, Matrix, checked_encode
from runner.eval_set.batches import Shown
from runner.eval_set.shapes.plan import Evidence
from runner.retrieve.bm25 import lucene
from runner.retrieve.ranking import quantised

RULE = "passages v2"
"""Raised when other passages would be shown; part of the evidence's digest."""

TABLE = "minilm-static-384"
"""The second encoder of passages; it costs next to nothing."""

WINDOW = 600
"""Characters of a window at most: about 128 tokens of English."""

SHORTEST = 400
"""Characters after which a window may end with a sentence or a line, and not with a word."""

OPENING = 600
HEADING = 150
"""Characters that are shown of the beginning, and at most of a section's first line."""

HEADINGS_SHARE = 10
"""Headings take at most one part in so many of what is shown."""


def expected_chars(documents: Sequence[int], settings: Evidence, times: int = 1) -> float:
    """Return how many characters of a document a judge is shown on average, of documents with so many characters.

    `times` is FULLER for a fuller reading. All that may be shown where no document is known.
    """
    most = times * settings.chars
    return mean(min(n_chars, most) for n_chars in documents) if documents else most


class Passages:
    """Finds what judges are shown; the vectors of a document's windows are kept in the store, by their texts."""

    def __init__(self, settings: Evidence, reader: Encoder, table: Encoder, store: Store) -> None:
        self.settings, self.reader, self.table, self.store = settings, reader, table, store
        self._asked: dict[tuple[str, str], Matrix] = {}

    def shown(self, document: Document, topics: Sequence[Sequence[str]], times: int = 1) -> list[Shown]:
        """Return what is shown of a document for each topic, given as its wordings, in `times` the plan's characters.

        More characters show what fewer show, what follows that in the text, and what ranks next.
        """
        text, most = document.text, times * self.settings.chars
        rule = f"{RULE}: {most:,} characters, {self.settings.encoder}, {TABLE}"
        if len(text) <= most:
            return [Shown((Span(0, len(text)),), rule)] * len(topics)
        framed = frame(document, most)
        spans = windows(text)
        texts = [text[span.start : span.end] for span in spans]
        index = lucene(texts)
        alone, led_to = np.split(self._rows(self.reader, [*texts, *_under_headings(document, spans)]), 2)
        seen = [(self.reader, alone), (self.reader, led_to), (self.table, self._rows(self.table, texts))]
        made = []
        for wordings in topics:
            orders = []
            for wording in wordings:
                by_words = quantised(index.scores(wording))
                orders += [_best_first(by_words)[: np.count_nonzero(by_words > 0)].tolist()]
                orders += [_best_first(quantised(rows @ self._vector(by, wording))).tolist() for by, rows in seen]
            ranked = in_turn(orders)
            if times > 1:
                ranked = _followed(ranked, self.settings.chars // WINDOW, len(spans))
            made.append(Shown(_filled(framed, [spans[number] for number in ranked], most), rule))
        return made

    def _rows(self, encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float64]:
        return embed(self.store, encoder, texts, "document").rows.astype(np.float64)

    def _vector(self, encoder: Encoder, wording: str) -> Matrix:
        """Return a wording's vector, embedded by itself: no other query of the version moves a bit of it."""
        key = encoder.spec.name, wording
        if key not in self._asked:
            self._asked[key] = checked_encode(encoder, [wording], "query")[0]
        return self._asked[key]


def windows(text: str) -> list[Span]:
    """Return the text in pieces of at most WINDOW characters, cut behind a sentence, a line or a word; no blank one."""
    spans, start = [], 0
    while start < len(text):
        end = _window_end(text, start)
        if not text[start:end].isspace():
            spans.append(Span(start, end))
        start = end
    return spans


def _window_end(text: str, start: int) -> int:
    limit = start + WINDOW
    if limit >= len(text):
        return len(text)
    if (natural := max(text.rfind("\n", start + SHORTEST, limit), text.rfind(". ", start + SHORTEST, limit))) >= 0:
        return natural + 1
    space = text.rfind(" ", start, limit)
    return space + 1 if space >= 0 else limit


def frame(document: Document, most: int) -> tuple[Span, ...]:
    """Return the document's opening, and first lines of its sections: outermost before inner, as many as may be."""
    text = document.text
    space = text.rfind(" ", 0, OPENING)
    spans = [Span(0, space + 1 if space > 0 else OPENING)]
    room = most // HEADINGS_SHARE
    # A stable sort by level: sections of one level stay in text order.
    for section in sorted((section for section in document.sections if section.label), key=lambda each: each.level):
        start, limit = section.span.start, min(section.span.end, section.span.start + HEADING)
        line = text.find("\n", start, limit)
        heading = Span(start, line + 1 if line >= 0 else limit)
        room -= heading.end - heading.start
        if room < 0:
            break
        spans.append(heading)
    return merged(spans)


def _under_headings(document: Document, spans: Sequence[Span]) -> Iterator[str]:
    """Yield each window's text after the title and the headings of the sections that it begins in."""
    coming, within = list(reversed(document.sections)), list[Section]()
    for span in spans:
        while coming and coming[-1].span.start <= span.start:
            within.append(coming.pop())
        within = [section for section in within if section.span.end > span.start]
        headings = path_context(document.title, tuple(section.label for section in within))
        yield f"{headings}\n{document.text[span.start : span.end]}"


def in_turn(orders: Sequence[Sequence[int]]) -> list[int]:
    """Return what the orders hold, their first ones in turn, then their second ones, and so on; nothing twice."""
    return list(dict.fromkeys(one for row in zip_longest(*orders) for one in row if one is not None))


def _followed(ranked: Sequence[int], first: int, n_windows: int) -> list[int]:
    """Return the `first` windows, those that follow them in the text, and the others: an answer may go on there."""
    coming = [number + 1 for number in ranked[:first] if number + 1 < n_windows]
    return list(dict.fromkeys([*ranked[:first], *coming, *ranked[first:]]))


def _best_first(scores: Ints) -> Ints:
    """Return places by score, equal ones in text order."""
    return np.argsort(-scores, kind="stable")


def _filled(framed: tuple[Span, ...], ranked: Sequence[Span], most: int) -> tuple[Span, ...]:
    """Return the frame and the first windows, up to the one that would not fit, merged."""
    chosen, room = list(framed), most - n_characters(framed)
    for window in ranked:
        room -= window.end - window.start - n_shared([window], framed)
        if room < 0:
            break
        chosen.append(window)
    return merged(chosen)
