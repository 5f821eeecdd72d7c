"""Appropriations headings, which are siblings in a file and levels for a reader."""

from collections.abc import Callable
from dataclasses import dataclass

from samplers.formats.text_writer import Part
from samplers.formats.uslm.marks import PART_END
from samplers.formats.uslm.names import RANKS, SECTION_RANK

MAX_OPEN = 12
"""Open headings up to which one may hold another of its rank, so that nesting is bounded. Seven are real."""


@dataclass(slots=True)
class _Heading:
    """An open heading; an account is one with text of its own, `is_last` holds until anything else follows."""

    part: Part
    is_account: bool
    is_parenthesis: bool
    is_last: bool = True


class Headings:
    """The headings among the children of one element that are still open.

    A heading ends before the next one of its rank or a larger one, before a larger level (a title), and, if it is
    an account (it has text of its own), before a section. One that nothing but another of its rank follows is an
    account's name in two lines, so that it holds the second; text without heading continues what is before it. A
    parenthesis such as "(including transfer of funds)" belongs to the heading before it.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._open: list[_Heading] = []

    @property
    def level(self) -> int:
        """Level of the innermost open heading; 0 for none."""
        return self._open[-1].part.level if self._open else 0

    def close_before(self, kind: str, is_parenthesis: bool) -> None:
        """End the headings that a sibling of that kind ends."""
        while self._open and self._ends(self._open[-1], kind, is_parenthesis):
            self._open.pop()
            self._write(PART_END)

    def push(self, part: Part, is_account: bool, is_parenthesis: bool) -> None:
        """Add a heading whose part has been opened."""
        self.passed()
        self._open.append(_Heading(part, is_account, is_parenthesis))

    def passed(self) -> None:
        """Note that anything but a heading or its own text has been written."""
        if self._open:
            self._open[-1].is_last = False

    def continues(self, kind: str) -> bool:
        """Return whether text without heading belongs to the innermost heading, which is an account from then on."""
        last = self._open[-1] if self._open else None
        if last is None or not last.is_last or (last.is_account and kind != last.part.kind):
            return False
        last.is_account = True
        return True

    def close_all(self) -> None:
        """End what is still open."""
        self._write(PART_END * len(self._open))
        self._open.clear()

    def _ends(self, heading: _Heading, kind: str, is_parenthesis: bool) -> bool:
        # What is smaller than a section, or no level at all, stands below the heading.
        rank = RANKS.get(kind)
        if rank is None or rank > SECTION_RANK:
            return False
        if kind != heading.part.kind:
            return heading.is_account if rank == SECTION_RANK else rank < RANKS[heading.part.kind]
        # Two headings of one rank with nothing between them are one account's name in two lines.
        goes_on = is_parenthesis or (heading.is_last and len(self._open) < MAX_OPEN)
        return heading.is_account or heading.is_parenthesis or not goes_on
