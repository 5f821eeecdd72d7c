"""Headings as queries: a document is asked for by one of its own, which is taken out of it first.

That a heading finds the text which stood under it shows that the parts work together, and little of how people ask.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from runner.base.records import Document, Span
from samplers.corpus.sampling import in_hash_order

LEAST_WORDS = 2
"""Of a heading that can ask for something: "Scope" stands in every document."""

LEAST_LEFT = 80
"""Characters below a heading that is asked for."""


def asked_by_heading(documents: Sequence[Document], n: int, seed: int) -> list[tuple[str, Document]]:
    """Return up to `n` headings, each with its document as it is without them, in the hash order of these.

    Headings of one document alone are taken, one a document; those of sections before one that is the title.
    """
    known = Counter(label for document in documents for label in {_plain(part.label) for part in document.sections})
    found: list[tuple[str, Document]] = []
    for document in in_hash_order(documents, seed):
        if len(found) == n:
            break
        labels = [
            part.label
            for part in document.sections
            if known[_plain(part.label)] == 1 and part.span.end - part.span.start >= len(part.label) + LEAST_LEFT
        ]
        labels.sort(key=lambda label: _plain(label) == _plain(document.title))
        asked = (pair for label in labels for pair in _without(document, label))
        found += [pair] if (pair := next(asked, None)) else []
    return found


def _plain(label: str) -> str:
    return " ".join(label.casefold().split())


def _without(document: Document, label: str) -> Iterator[tuple[str, Document]]:
    """Yield the heading with its document, text, title and sections, without it; nothing if it can ask for nothing."""
    words = re.findall(r"\w+", label)
    heading = re.compile(r"\s+".join(map(re.escape, label.split())), re.I)
    places = [match.span() for match in heading.finditer(document.text)]
    if len([word for word in words if not word.isdigit()]) < LEAST_WORDS or not places:
        return
    # A space in the place of each: what is before and behind it stays apart.
    text = heading.sub(" ", document.text)
    gone = [*accumulate(end - start - 1 for start, end in places)]

    def moved(place: int) -> int:
        before = sum(end <= place for _, end in places)
        start = places[before][0] if before < len(places) else place
        return min(place, start + 1 if place > start else place) - (gone[before - 1] if before else 0)

    sections = tuple(
        replace(part, span=Span(start, end), label="" if heading.search(part.label) else part.label)
        for part in document.sections
        if (start := moved(part.span.start)) < (end := moved(part.span.end))
    )
    title = " ".join(heading.sub(" ", document.title).split())
    try:
        yield label, replace(document, text=text, title=title, sections=sections)
    except ValueError:  # nothing but the heading was there
        return
