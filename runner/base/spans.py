"""Arithmetic of spans of one text."""

from collections.abc import Iterable, Sequence

from runner.base.records import Span


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same characters as disjoint spans in text order; spans that touch become one."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def n_characters(spans: Iterable[Span]) -> int:
    """How many characters disjoint spans hold."""
    return sum(span.end - span.start for span in spans)


def n_shared(left: Sequence[Span], right: Sequence[Span]) -> int:
    """How many characters lie in both; each side disjoint and in text order."""
    shared = i = j = 0
    while i < len(left) and j < len(right):
        shared += max(0, min(left[i].end, right[j].end) - max(left[i].start, right[j].start))
        if left[i].end <= right[j].end:
            i += 1
        else:
            j += 1
    return shared
