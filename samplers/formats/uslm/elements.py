"""How each element of bill DTD and USLM is written: one function for every kind, and the table that names them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from lxml import etree

from samplers.formats.safe_xml import entity_text, local_name, plain_text
from samplers.formats.text_writer import Part, visible
from samplers.formats.uslm import marks, names

_AFTER_NUMBER = marks.SPACE + marks.LEAD
_OWN_LINE, _RUN_IN = marks.LINE + marks.LEAD, marks.STOP + marks.SPACE + marks.LEAD
_RUN_IN_KINDS = frozenset(kind for kind, rank in names.RANKS.items() if rank > names.SECTION_RANK) - names.NOTES
_TITLE_TAGS = tuple(f"{{*}}{name}" for name in names.OFFICIAL_TITLES)
_AFTER_QUOTE = (".", ",", ";", ":", ")", "”", "’")


class _Level(NamedTuple):
    """How a kind of section is written: its rank, the marks before and behind it, and those after its heading."""

    rank: int
    before: str
    behind: str
    after_heading: str


def _level(kind: str, rank: int) -> _Level:
    separator = marks.PARAGRAPH if rank <= names.SECTION_RANK else marks.LINE
    after = _RUN_IN if kind in _RUN_IN_KINDS else _OWN_LINE
    return _Level(rank, separator + marks.PART_START, marks.PART_END + separator, after)


_LEVELS: Mapping[str, _Level] = {kind: _level(kind, rank) for kind, rank in names.RANKS.items()}


class Place(NamedTuple):
    """Where the walk stands: the level around it, what follows its heading, its part, inside what."""

    level: int = 0
    after_heading: str = _OWN_LINE
    part: Part | None = None
    is_quoted: bool = False
    in_row: bool = False
    n_quotes: int = 0


class Walk(Protocol):
    """What a handler needs of the walk (`walker.Walker`): where it writes, and how it goes on into an element."""

    name: str
    pieces: list[str]
    write: Callable[[str], None]
    parts: list[Part]
    dropped: Counter[str]
    titles: list[tuple[int, int]]
    aside: list[etree._Element]

    def children(self, element: etree._Element, depth: int, place: Place) -> None:
        """Write an element's text and children."""


Handler = Callable[[Walk, etree._Element, str, int, Place], None]
"""Writes an element, given its kind (for one that is dropped, the reason), its depth in the file and its place."""


def inline(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write what runs on."""
    walker.children(element, depth, place)


def entity(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a reference that the file does not declare."""
    walker.write(entity_text(element, walker.name))


def after_heading(kind: str) -> str:
    """Return the marks after the heading of a level: small levels have theirs run into their text."""
    return _LEVELS[kind].after_heading


def level(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a section, a larger or a smaller level; a part unless it is quoted."""
    outer, _, _, is_quoted, in_row, n_quotes = place
    rank, before, behind, after = _LEVELS[kind]
    # A level is deeper than the one around it, whatever its rank: files nest titles in sections.
    inner = rank if rank > outer else outer + 1
    if is_quoted:
        walker.write(marks.LINE)
        walker.children(element, depth, Place(inner, after, None, True, in_row, n_quotes))
        walker.write(marks.LINE)
        return
    part = Part(kind, inner)
    walker.parts.append(part)
    walker.write(before)
    walker.children(element, depth, Place(inner, after, part, kind == "note", in_row, n_quotes))
    walker.write(behind)


def lead(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a level's number or heading, which is noted for its label."""
    walker.write(marks.SPACE)
    begin = len(walker.pieces)
    walker.children(element, depth, place)
    written = "".join(walker.pieces[begin:])
    part = place.part
    if kind in names.NUMBERS:
        walker.write(_AFTER_NUMBER)
        if part is not None and not part.num:
            part.num = marks.plain(written)
        return
    walker.write(place.after_heading)
    if part is not None:
        part.heading = f"{part.heading} {marks.plain(written)}".strip()


def quote(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write words in quotation marks, which the bill DTD leaves to its stylesheet."""
    which = place.n_quotes % 2
    walker.write(marks.OPENING[which])
    walker.children(element, depth, place._replace(n_quotes=place.n_quotes + 1))
    walker.write(marks.CLOSING[which])


def quoted(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write text that goes into another law."""
    if element.get("display-inline") == "yes-display-inline":
        walker.write(marks.GLUE + marks.SPACE + marks.LEAD)
    else:
        walker.write(marks.LINE)
    inner = place._replace(is_quoted=True, part=None, n_quotes=place.n_quotes + 1)
    if kind == "quotedContent":  # USLM writes its own marks
        walker.children(element, depth, inner)
    else:
        walker.write(marks.OPENING[place.n_quotes % 2])
        walker.children(element, depth, inner)
        if next(element.iterchildren("{*}after-quoted-block"), None) is None:
            walker.write(marks.CLOSING[place.n_quotes % 2])
    walker.write(marks.LINE)
    join_tail(walker, element)


def join_tail(walker: Walk, element: etree._Element) -> None:
    """Let the text after an element follow without a gap if it begins with a closing mark."""
    if (element.tail or "").lstrip().startswith(_AFTER_QUOTE):
        walker.write(marks.JOIN)


def after_quoted(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write what follows a quoted block ("." or "; and") without a gap."""
    walker.write(marks.GLUE)
    if kind == "after-quoted-block":
        walker.write(marks.CLOSING[(place.n_quotes - 1) % 2])
    inline(walker, element, kind, depth, place)
    walker.write(marks.LINE)


def cell(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a cell of a table."""
    walker.write(marks.TAB)
    walker.children(element, depth, place._replace(in_row=True))
    walker.write(marks.TAB)


def line_break(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write the end of a printed line or page."""
    walker.write(marks.SPACE)
    inline(walker, element, kind, depth, place)


def block(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write what begins and ends a line, except in a row."""
    walker.write(marks.SPACE if place.in_row else marks.BLOCK)
    inline(walker, element, kind, depth, place)
    walker.write(marks.SPACE if place.in_row else marks.LINE)


def official_title(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write the official title, which alone is no document."""
    begin = len(walker.pieces)
    block(walker, element, kind, depth, place)
    walker.titles.append((begin, len(walker.pieces)))


def set_aside(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Leave what will be written elsewhere."""
    walker.aside.append(element)
    join_tail(walker, element)


def drop(walker: Walk, element: etree._Element, reason: str, depth: int, place: Place) -> None:
    """Leave out what is no text, counted under a reason; an official title inside a form is text all the same."""
    walker.dropped[reason] += n_visible(element)
    name = local_name(element)
    if name in names.QUOTED:
        join_tail(walker, element)
    if name not in names.FORMS:
        return
    # Only the outermost of titles inside one another: its text holds theirs.
    for title in element.iter(*_TITLE_TAGS):
        if next(title.iterancestors(*_TITLE_TAGS), None) is None:
            walker.dropped[reason] -= n_visible(title)
            official_title(walker, title, local_name(title), depth, place)


def by_attribute(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write elements whose attributes say what they are."""
    if kind == "note" and element.get("type") == "footnote":
        footnote(walker, element, kind, depth, place)
    elif kind == "block" and element.get("role") == "endorsement":
        drop(walker, element, "attestation", depth, place)
    elif kind == "docTitle" and (parent := element.getparent()) is not None and local_name(parent) == "longTitle":
        drop(walker, element, "form", depth, place)  # "A BILL"; elsewhere it heads the body, such as "AMENDMENT:"
    else:
        (level if kind == "note" else block)(walker, element, kind, depth, place)


def footnote(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a footnote or the reference to one."""
    drop(walker, element, "footnotes", depth, place)
    join_tail(walker, element)


def ref(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Write a reference, which runs on unless it is one to a footnote."""
    (footnote if element.get("class") == "footnoteRef" else inline)(walker, element, kind, depth, place)


def n_visible(element: etree._Element) -> int:
    """Return characters of an element that are not white space."""
    return visible(plain_text(element))


def _table(*rows: tuple[Iterable[str], Handler]) -> dict[str, Handler]:
    table: dict[str, Handler] = {}
    for keys, handler in rows:
        table |= dict.fromkeys(keys, handler)
    return table


HANDLERS: Mapping[str, Handler] = _table(
    (("",), entity),
    (names.BREAKS, line_break),
    (names.BLOCKS, block),
    (names.OFFICIAL_TITLES, official_title),
    (names.CELLS, cell),
    (("after-quoted-block",), after_quoted),
    (("quote",), quote),
    (names.QUOTED, quoted),
    ((*names.NUMBERS, *names.HEADINGS), lead),
    (names.RANKS, level),
    (("note", "block", "docTitle"), by_attribute),
    (("ref",), ref),
)
"""Handlers by name, the later row of two; elements that are not in it run on."""
