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
_AFTER_QUOTE = (".", ",", ";", ":", ")", "”", "’")


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
    dropped: Counter[str]
    titles: list[tuple[int, int]]
    aside: list[etree._Element]
    lead_end: int

    def open(self, kind: str, level: int, separator: str) -> Part:
        """A part that begins with the next text; whoever opens it writes a PART_END."""

    def children(self, element: etree._Element, depth: int, place: Place) -> None:
        """Write an element's text and children."""


Handler = Callable[[Walk, etree._Element, str, int, Place], None]
"""Writes an element, given its kind (for one that is dropped, the reason), its depth in the file and its place."""


def inline(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """What runs on."""
    if len(element):
        walker.children(element, depth, place)
    elif text := element.text:
        walker.write(text)


def entity(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """A reference that the file does not declare."""
    walker.write(entity_text(element, walker.name))


def after_heading(kind: str) -> str:
    """The marks after the heading of a level: small levels have theirs run into their text."""
    return _RUN_IN if kind in _RUN_IN_KINDS else _OWN_LINE


def level(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """A section, a larger or a smaller level; a part unless it is quoted."""
    rank = names.RANKS[kind]
    inner = max(rank, place.level + 1)
    separator = marks.PARAGRAPH if rank <= names.SECTION_RANK and not place.is_quoted else marks.LINE
    after = after_heading(kind)
    if place.is_quoted:
        walker.write(separator)
        walker.children(element, depth, Place(inner, after, None, True, place.in_row, place.n_quotes))
        walker.write(separator)
        return
    part = walker.open(kind, inner, separator)
    walker.children(element, depth, Place(inner, after, part, kind == "note", place.in_row, place.n_quotes))
    walker.write(marks.PART_END + separator)


def lead(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """A level's number or heading, which is noted for its label."""
    write, part = walker.write, place.part
    write(marks.SPACE)
    written = element.text or ""
    if len(element):
        begin = len(walker.pieces)
        walker.children(element, depth, place)
        written = "".join(walker.pieces[begin:])
    elif written:
        write(written)
    if part is not None and kind in names.HEADINGS:
        part.heading = f"{part.heading} {marks.plain(written)}".strip()
    elif part is not None and not part.num:
        part.num = marks.plain(written)
    write(_AFTER_NUMBER if kind in names.NUMBERS else place.after_heading)
    walker.lead_end = len(walker.pieces)


def quote(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Words in quotation marks, which the bill DTD leaves to its stylesheet."""
    which = place.n_quotes % 2
    walker.write(marks.OPENING[which])
    inline(walker, element, kind, depth, place._replace(n_quotes=place.n_quotes + 1))
    walker.write(marks.CLOSING[which])


def quoted(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Text that goes into another law."""
    if element.get("display-inline") == "yes-display-inline":
        walker.write(marks.GLUE + marks.SPACE + marks.LEAD)
        walker.lead_end = len(walker.pieces)
    else:
        walker.write(marks.LINE)
    inner = place._replace(is_quoted=True, part=None, n_quotes=place.n_quotes + 1)
    if kind == "quotedContent":  # USLM writes its own marks
        walker.children(element, depth, inner)
    else:
        walker.write(marks.OPENING[place.n_quotes % 2])
        walker.children(element, depth, inner)
        if not any(local_name(child) == "after-quoted-block" for child in element):
            walker.write(marks.CLOSING[place.n_quotes % 2])
    walker.write(marks.LINE)
    join_tail(walker, element)


def join_tail(walker: Walk, element: etree._Element) -> None:
    """Let the text after an element follow without a gap if it begins with a closing mark."""
    if (element.tail or "").lstrip().startswith(_AFTER_QUOTE):
        walker.write(marks.JOIN)


def after_quoted(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """What follows a quoted block ("." or "; and") without a gap."""
    walker.write(marks.GLUE)
    if kind == "after-quoted-block":
        walker.write(marks.CLOSING[(place.n_quotes - 1) % 2])
    inline(walker, element, kind, depth, place)
    walker.write(marks.LINE)


def cell(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """A cell of a table."""
    walker.write(marks.TAB)
    inline(walker, element, kind, depth, place._replace(in_row=True))
    walker.write(marks.TAB)


def line_break(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """The end of a printed line or page."""
    walker.write(marks.SPACE)
    inline(walker, element, kind, depth, place)


def block(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """What begins and ends a line, except in a row."""
    walker.write(marks.SPACE if place.in_row else marks.BLOCK)
    inline(walker, element, kind, depth, place)
    walker.write(marks.SPACE if place.in_row else marks.LINE)


def official_title(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """The official title, which alone is no document."""
    begin = len(walker.pieces)
    block(walker, element, kind, depth, place)
    walker.titles.append((begin, len(walker.pieces)))


def set_aside(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """What will be written elsewhere."""
    walker.aside.append(element)
    join_tail(walker, element)


def drop(walker: Walk, element: etree._Element, reason: str, depth: int, place: Place) -> None:
    """What is no text, counted under a reason; an official title inside a form is text all the same."""
    walker.dropped[reason] += n_visible(element)
    name = local_name(element)
    if name in names.QUOTED:
        join_tail(walker, element)
    if name not in names.FORMS:
        return
    for title in element.iter():
        is_inner = any(local_name(ancestor) in names.OFFICIAL_TITLES for ancestor in title.iterancestors())
        if local_name(title) in names.OFFICIAL_TITLES and not is_inner:
            walker.dropped[reason] -= n_visible(title)
            official_title(walker, title, local_name(title), depth, place)


def by_attribute(walker: Walk, element: etree._Element, kind: str, depth: int, place: Place) -> None:
    """Elements whose attributes say what they are."""
    stated = kind, element.get({"ref": "class", "note": "type"}.get(kind, "role"))
    if stated in (("ref", "footnoteRef"), ("note", "footnote")):
        drop(walker, element, "footnotes", depth, place)
        join_tail(walker, element)
    elif stated == ("block", "endorsement"):
        drop(walker, element, "attestation", depth, place)
    elif kind == "docTitle" and (parent := element.getparent()) is not None and local_name(parent) == "longTitle":
        drop(walker, element, "form", depth, place)  # "A BILL"; elsewhere it heads the body, such as "AMENDMENT:"
    else:
        {"note": level, "ref": inline}.get(kind, block)(walker, element, kind, depth, place)


def n_visible(element: etree._Element) -> int:
    """Characters of an element that are not white space."""
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
    (("note", "ref", "block", "docTitle"), by_attribute),
)
"""Handlers by name, the later row of two; elements that are not in it run on."""
