"""The sections of a law or of a title of the Code, each with the parts around it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Section, Span
from samplers.formats.headings import cut
from samplers.formats.safe_xml import local_name
from samplers.formats.text_writer import Part, visible
from samplers.formats.uslm.elements import Place
from samplers.formats.uslm.labels import label
from samplers.formats.uslm.names import APPROPRIATIONS, DROPPED, HEADINGS, NOTES, NUMBERS, QUOTED, RANKS, SECTION_RANK
from samplers.formats.uslm.walk import Walk, walked
from samplers.formats.uslm.walker import Rules, Walker

SECTIONS = frozenset(("section", "courtRule"))
"""What is a document of its own."""

SHORT = 100
"""Characters of a section's body below which no query should be written from it: a tenth of the Code has fewer."""

MAX_PARTS = 16
"""Larger parts around a section: each is one of its document's sections, so their number is bounded. Ten is real."""

_END = " .:—–-]"
_CLOSED = QUOTED | NOTES | DROPPED.keys()
_PARTS = frozenset(kind for kind, rank in RANKS.items() if rank < SECTION_RANK) - APPROPRIATIONS


@dataclass(frozen=True)
class Unit:
    """A section; or a larger part, for what stands in it outside of its sections and of smaller parts.

    `path` names the larger parts around it, outermost first, the part itself included; `own` are a part's children
    that are neither sections nor parts, None for a section.
    """

    element: etree._Element
    path: tuple[Part, ...]
    own: tuple[etree._Element, ...] | None = None


def units(root: etree._Element, name: str) -> Iterator[Unit]:
    """Return the sections of a file in its order, every larger part before the sections in it.

    Sections in quoted text and in notes are none. A section that enacts a title of the Code as such holds the sections
    of that title, which are units after it; it is one of the larger parts around them.
    """
    path = _named(root, name, ()) if local_name(root) in _PARTS else ()
    return _units(root, name, path, _holders(root))


def _units(element: etree._Element, name: str, path: tuple[Part, ...], holders: set[etree._Element]) -> Iterator[Unit]:
    if len(path) > MAX_PARTS:
        raise DocumentError(name, f"more than {MAX_PARTS} parts inside one another")
    # What stands in a part outside of its sections and smaller parts is a document of its own.
    own = [child for child in element if local_name(child) not in SECTIONS and not _is_part(child, holders)]
    yield Unit(element, path, tuple(own))
    for child in element:
        kind = local_name(child)
        if kind in SECTIONS:
            is_holder = child in holders
            inner = [each for each in child if each in holders or local_name(each) in SECTIONS] if is_holder else []
            if not inner:
                yield Unit(child, path)
                continue
            around = (*path, *_named(child, name, path))
            rest = etree.Element(child.tag)
            rest.extend(inner)  # moves them out of the section, tails and all
            yield Unit(child, path)
            yield from _units(rest, name, around, holders)
        elif _is_part(child, holders):
            yield from _units(child, name, (*path, *_named(child, name, path)), holders)


def _is_part(element: etree._Element, holders: set[etree._Element]) -> bool:
    kind = local_name(element)
    return kind not in _CLOSED and (kind in _PARTS or element in holders)


def _holders(root: etree._Element) -> set[etree._Element]:
    """Return all elements around those sections that stand neither in quoted text nor in notes."""
    holders: set[etree._Element] = set()
    closed: set[etree._Element] = set()
    for section in root.iter(*(f"{{*}}{kind}" for kind in SECTIONS)):
        around: list[etree._Element] = []
        for ancestor in section.iterancestors():
            if ancestor in holders or ancestor in closed or local_name(ancestor) in _CLOSED:
                break
            around.append(ancestor)
        else:
            ancestor = root
        is_open = ancestor is root or ancestor in holders
        (holders if is_open else closed).update(around)
    return holders


def free_id(wanted: str, given: Counter[str]) -> str:
    """Return the id, with "~2", "~3" and so on where it was given before: the Code has sections of one number.

    `given` counts the ids of the file so far and is brought up to date.
    """
    while True:
        given[wanted] += 1
        key = wanted if given[wanted] == 1 else f"{wanted}~{given[wanted]}"
        if key == wanted or key not in given:
            given[key] += key != wanted
            return key


def titled(citation: str, heading: str, of: str = "") -> str:
    """Return a document's title: the citation, the heading and in parentheses what it is of, within TITLE_LENGTH."""
    named = " – ".join(filter(None, (citation, heading.rstrip(_END))))
    whole = f"{named} ({of.rstrip('. ')})" if of else named
    return cut(whole, ends=",;:–(")


def place_in(path: tuple[Part, ...]) -> Place:
    """Return where the walk of a section begins: below the larger parts around it."""
    return Place(level=path[-1].level if path else 0)


def sections_of(unit: Unit, sections: Sequence[Section], n_chars: int) -> tuple[Section, ...]:
    """Return a document's sections behind the parts around it, which span all of it.

    The label of the section that is the document is its title and goes; those of sections inside it stay.
    """
    outer = (
        Section(Span(0, n_chars), part.level, part.kind, label(part.kind, part.num, part.heading, ""))
        for part in unit.path
    )
    if unit.own is None:
        first = sections[0]
        return *outer, Section(first.span, first.level, first.kind, ""), *sections[1:]
    return *outer, *sections


def _named(element: etree._Element, name: str, path: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the element as a part with its number and heading; nothing for one that has neither."""
    kind = local_name(element)
    part = Part(kind, max(RANKS.get(kind, SECTION_RANK), path[-1].level + 1 if path else 0))
    scratch = Walker(name, Rules(has_exceptions=False))
    for child in element:
        if local_name(child) in NUMBERS | HEADINGS:
            scratch.element(child, Place(part=part))
    return (part,) if part.num or part.heading else ()


class Tally:
    """The account of a file that makes several documents."""

    def __init__(self) -> None:
        self.supplied = 0
        self.left_out: Counter[str] = Counter()

    def documents(
        self, found: Iterable[Unit], over: Callable[[Unit], tuple[Walker, bool]], headings: str
    ) -> Iterator[tuple[Unit, Walker, Walk]]:
        """Yield the units that are documents, each with its walker and walk, taken into the account meanwhile.

        `over` is given a unit and returns a walker over it and whether that is a document; the text of one that is
        none is counted under `headings`.
        """
        for unit in found:
            walker, is_document = over(unit)
            walk = walked(walker)
            self.left_out.update(walk.dropped)
            if is_document:
                self.supplied += walk.supplied
                yield unit, walker, walk
            else:
                self.left_out[headings] += visible(walk.text) - walk.supplied
            if unit.own is None:  # the tree of a file takes eight times its bytes
                unit.element.clear(keep_tail=True)  # type: ignore[call-arg]  # unknown to the stubs
