"""The parts of a long report that a reader would open: what it says of an agency, an account or a subject."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from runner.base.records import Section, Span

LONGEST = 40_000
"""Characters from which on a report, or a part of one, is divided at its headings."""

_INSIDE = ("item", "table")
"""Kinds of sections that part no report: a directive reads badly without the account it is under."""


class Piece(NamedTuple):
    """A stretch of a report and the headings it stands under, the outermost first."""

    span: Span
    path: tuple[str, ...]


def pieces(text: str, sections: Sequence[Section]) -> list[Piece]:
    """Return the stretches of a report in order: all of it, unless it is long and has headings.

    A heading without words of its own opens the stretch after it, or ends the one before if what follows stands higher.
    """
    found: list[Piece] = []
    held: Piece | None = None
    for span, path in _divided(Span(0, len(text)), [part for part in sections if part.kind not in _INSIDE], ()):
        start = span.start
        if held is not None and (not found or path[: len(held.path) - 1] == held.path[:-1]):
            start = held.span.start
        elif held is not None:
            found[-1] = Piece(Span(found[-1].span.start, held.span.end), found[-1].path)
        is_bare = " ".join(path).endswith(" ".join(text[span.start : span.end].split()))
        held = Piece(Span(start, span.end), path) if is_bare and span.end < len(text) else None
        if held is None:
            found.append(Piece(Span(start, span.end), path))
    return found


def within(sections: Sequence[Section], span: Span) -> tuple[Section, ...]:
    """Return the sections that begin in a stretch, as sections of it; one that ends behind it ends with it."""
    first, behind = (bisect_left(sections, at, key=lambda part: part.span.start) for at in (span.start, span.end))
    found = sections[first:behind]
    outermost = min((part.level for part in found), default=1)
    return tuple(
        Section(
            Span(part.span.start - span.start, min(part.span.end, span.end) - span.start),
            part.level - outermost + 1,
            part.kind,
            part.label,
        )
        for part in found
    )


def _divided(span: Span, inside: Sequence[Section], path: tuple[str, ...]) -> Iterator[Piece]:
    outer = [n for n, part in enumerate(inside) if part.level <= inside[0].level]
    if span.end - span.start <= LONGEST or not outer:
        yield Piece(span, path)
        return
    starts = [*(inside[n].span.start for n in outer), span.end]
    if span.start < starts[0]:
        yield Piece(Span(span.start, starts[0]), path)
    for n, following, edges in zip(outer, [*outer[1:], len(inside)], pairwise(starts), strict=True):
        yield from _divided(Span(*edges), inside[n + 1 : following], (*path, inside[n].label))
