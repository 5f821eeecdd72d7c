"""The walk itself: elements of bill DTD and USLM as pieces of text and marks, and the parts that they make."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from lxml import etree

from runner.base.errors import DocumentError
from samplers.formats.safe_xml import MAX_DEPTH, local_name
from samplers.formats.text_writer import Part, visible
from samplers.formats.uslm.elements import (
    HANDLERS,
    Handler,
    Place,
    after_heading,
    after_quoted,
    block,
    cell,
    drop,
    inline,
    level,
    set_aside,
)
from samplers.formats.uslm.headings import Headings
from samplers.formats.uslm.marks import LINE, PARAGRAPH, PART_START, has_text, has_text_after_lead
from samplers.formats.uslm.names import APPROPRIATIONS, DROPPED, HEADINGS, NUMBERS, RANKS, kind_of

exceptions = etree.XPath("boolean(//@changed[. = 'deleted'] | //@role[. = 'after-quoted-block'])")
"""Whether an element of a file is struck, or the tail of a quoted block, by an attribute."""

_LEADS = tuple(f"{{*}}{name}" for name in sorted(NUMBERS | HEADINGS))


class Rules:
    """How the elements of a file are written, by tag; learned as they are met.

    `has_exceptions` says whether `exceptions` holds for the file. `drops` names the elements that are not text, each
    with the reason that its characters are counted under; those named in `moved` are left for `release`.
    """

    def __init__(
        self, has_exceptions: bool, drops: Mapping[str, str] = DROPPED, moved: frozenset[str] = frozenset()
    ) -> None:
        self.has_exceptions = has_exceptions
        self.drops = drops
        self.moved = moved
        self._known: dict[object, tuple[Handler, str]] = {}

    def of(self, element: etree._Element) -> tuple[Handler, str]:
        """Return the handler of all elements of this one's name, and their kind or the reason why they are dropped."""
        if rule := self._known.get(element.tag):
            return rule
        name = local_name(element)
        handler = set_aside if name in self.moved else drop if name in self.drops else HANDLERS.get(name, inline)
        self._known[element.tag] = rule = handler, self.drops.get(name, name)
        return rule

    @cached_property
    def without_moved(self) -> "Rules":
        """Rules that are the same, but leave nothing for later."""
        return Rules(self.has_exceptions, self.drops)


class Walker:
    """One walk over one or more elements of a file, by the file's rules."""

    def __init__(self, name: str, rules: Rules) -> None:
        self.name = name
        self.pieces: list[str] = []
        """Text and marks so far."""
        self.write = self.pieces.append
        self.parts: list[Part] = []
        self.dropped: Counter[str] = Counter()
        self.titles: list[tuple[int, int]] = []
        """Which pieces are no body: those of official titles, and of the headings of larger parts."""
        self.aside: list[etree._Element] = []
        self._rules = rules

    def element(self, element: etree._Element, place: Place, depth: int = 1) -> None:
        """Write one element, its tail excluded."""
        handler, kind = self._rules.of(element)
        handler(self, element, kind, depth, place)

    def part(self, element: etree._Element, own: Sequence[etree._Element]) -> None:
        """Write a larger part's own children; its number and heading are no more of a body than an official title."""
        self.write(element.text or "")
        # First its number and heading, then what it says itself, last the text between its sections.
        no_body = NUMBERS | HEADINGS | self._rules.moved | self._rules.drops.keys()
        n_leads = next((n for n, child in enumerate(own) if local_name(child) not in no_body), len(own))
        for child in own[:n_leads]:
            self.element(child, Place())
            self.write(child.tail or "")
        self.titles.append((0, len(self.pieces)))
        self._among_headings(own[n_leads:], 1, Place())
        mine = set(own)
        tails = "".join(child.tail or "" for child in element if child not in mine)
        self.dropped["text between sections"] += visible(tails)

    def release(self) -> list[etree._Element]:
        """Return the elements that were moved, in the order of the file; from now on none is."""
        self._rules = self._rules.without_moved
        aside, self.aside = self.aside, []
        return aside

    def open(self, kind: str, level: int, separator: str) -> Part:
        """Return a part that begins with the next text; whoever opens it writes a PART_END."""
        part = Part(kind, level)
        self.parts.append(part)
        self.write(separator + PART_START)
        return part

    def has_body(self) -> bool:
        """Return whether there is text besides official titles and headings of larger parts: they are no document."""
        begin = 0
        for start, end in sorted(self.titles):
            if has_text(self.pieces[begin:start]):
                return True
            begin = max(begin, end)
        return has_text(self.pieces[begin:])

    def children(self, element: etree._Element, depth: int, place: Place) -> None:
        """Write an element's text and children."""
        if depth >= MAX_DEPTH and len(element):
            raise DocumentError(self.name, f"nested more than {MAX_DEPTH} elements deep")
        rules = self._rules
        depth += 1
        if text := element.text:
            self.write(text)
        for child in element:
            handler, kind = rules.of(child)
            # Appropriations headings are siblings of what they head: from the first on they are taken together.
            if kind in APPROPRIATIONS:
                self._among_headings((child, *child.itersiblings()), depth, place)
                return
            if rules.has_exceptions:
                handler, kind = _unless_exception(child, handler, kind)
            handler(self, child, kind, depth, place)
            if tail := child.tail:
                self.write(tail)

    def _among_headings(self, siblings: Sequence[etree._Element], depth: int, place: Place) -> None:
        """Write siblings of which some are appropriations headings."""
        headings = Headings(self.write)
        for child in siblings:
            handler, kind = self._rules.of(child)
            if opens := kind in APPROPRIATIONS:
                kind = kind_of(child)
                handler = level if kind in RANKS else inline
            handler, kind = _unless_exception(child, handler, kind)
            opens = opens and handler is level and not place.is_quoted
            if opens and next(child.iterchildren(*_LEADS), None) is None and headings.continues(kind):
                self.write(LINE)
                self.children(child, depth, place._replace(level=headings.level))
                self.write(LINE + (child.tail or ""))
                continue
            # A parenthesis such as "(including transfer of funds)" belongs to the heading before it.
            texts = (str(text).lstrip() for text in (child.itertext() if opens else ()))
            is_parenthesis = opens and next(filter(None, texts), "").startswith("(")
            headings.close_before(kind, is_parenthesis)
            inner = place if place.level >= headings.level else place._replace(level=headings.level)
            begin = len(self.pieces)
            if opens:
                headings.push(*self._appropriations(child, kind, depth, inner), is_parenthesis)
            else:
                handler(self, child, kind, depth, inner)
            self.write(child.tail or "")
            if not opens and has_text(self.pieces[begin:]):
                headings.passed()
        headings.close_all()

    def _appropriations(self, element: etree._Element, kind: str, depth: int, place: Place) -> tuple[Part, bool]:
        """Return the part, still open, and whether it has text besides its heading."""
        part = self.open(kind, max(RANKS[kind], place.level + 1), PARAGRAPH)
        self.children(element, depth, place._replace(level=part.level, after_heading=after_heading(kind), part=part))
        self.write(PARAGRAPH)
        return part, has_text_after_lead(self.pieces)


def _unless_exception(element: etree._Element, handler: Handler, kind: str) -> tuple[Handler, str]:
    """Return how an element is written in a file that has struck text or tails of quoted blocks by attribute."""
    if element.get("changed") == "deleted":
        return drop, "struck text"
    if element.get("role") == "after-quoted-block" and handler in (inline, block, cell):
        return after_quoted, kind
    return handler, kind
