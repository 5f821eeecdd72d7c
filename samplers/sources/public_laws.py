"""Sections of public and private laws (GPO's USLM) as documents.

A document is a section of a law; the title, subtitle or other parts that it stands in are its outermost sections, each
over the whole document, so that every chunk carries their headings. So does the section that enacts a title of the
Code, whose own sections are documents like any other. What a part says outside of its sections (accounts
of an appropriations act, a preamble) is a document of its own. Sidenotes, which stand in mid-sentence in the file, are
moved to the end of their section (kind "sidenotes"), since they carry its classification in the U.S. Code; words that
their narrow column breaks are mended. Page marks are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.safe_xml import local_name, parse, plain_text
from samplers.formats.stated import bucket
from samplers.formats.text_writer import Part
from samplers.formats.uslm.elements import Place, n_visible
from samplers.formats.uslm.facts import facts
from samplers.formats.uslm.labels import first_words
from samplers.formats.uslm.marks import LINE, PARAGRAPH, PART_END, mended, resolve
from samplers.formats.uslm.names import DROPPED, QUOTED, RANKS
from samplers.formats.uslm.units import SHORT, Tally, Unit, free_id, place_in, sections_of, titled, units
from samplers.formats.uslm.walk import Walk
from samplers.formats.uslm.walker import Rules, Walker, exceptions
from samplers.source_format import FileContent, SourceFormat

_DROPS = {**DROPPED, "action": "day of approval"}
_MOVED = frozenset(("sidenote",))
_PACKAGE = re.compile(r"PLAW-(?P<congress>\d{1,3})(?P<kind>publ|pvtl)(?P<number>\d{1,4})", re.I)
_CITED = re.compile(r"(?P<kind>Public|Private) Law (?P<congress>\d{1,3})\s?[-–—]\s?(?P<number>\d{1,4})", re.I)
_SIGNS = {
    "division": "d",
    "subdivision": "sd",
    "title": "t",
    "subtitle": "st",
    "part": "pt",
    "subpart": "spt",
    "chapter": "ch",
    "subchapter": "sch",
    "article": "art",
    "section": "s",
}
"""How USLM's identifiers shorten the names of larger parts."""
_SUBDIVISION = re.compile(r"(Subdivision \w{1,9} ?[—–-]) ?(\S.*[^.])")
_NUMBER = re.compile(r"\d\w*(?:[-–.]\w+)*")


class Law(NamedTuple):
    """Which law a file holds."""

    congress: str
    kind: str
    """ "publ" or "pvtl", as govinfo writes it."""
    number: str
    name: str
    """Its short title, or ""."""

    @property
    def package(self) -> str:
        """Govinfo's package id."""
        return f"PLAW-{self.congress}{self.kind}{self.number}"

    @property
    def citation(self) -> str:
        """Name by which people cite the law."""
        return f"{'Pub' if self.kind == 'publ' else 'Pvt'}. L. {self.congress}–{self.number}"


class _Unit(NamedTuple):
    unit: Unit
    walk: Walk
    part: Part
    """The section, or the larger part whose own text this is."""
    number: str
    """A section's number, a larger part's sign and number, "" for what has none."""
    n_body: int
    """Characters without number, heading and sidenotes."""


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    root = parse(data, name)
    if local_name(root) != "pLaw":
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    law = _law(root, name)
    # Subdivisions are no elements in USLM, and sections must not lose them.
    _enclose_subdivisions(root)
    over = partial(_walker_over, name=name, rules=Rules(bool(exceptions(root)), _DROPS, _MOVED))
    tally = Tally()
    texts = []
    for unit, walker, walk in tally.documents(units(root, name), over, "official title and headings of larger parts"):
        if unit.own is None:
            part = walker.parts[0]
            # The number that an attribute states, or else the printed one.
            value = next((str(child.get("value")) for child in unit.element if child.get("value")), "")
            printed = _NUMBER.search(part.num)
            number = re.sub(r"\s+", "", value) or (printed[0] if printed else "")
        else:
            part = unit.path[-1] if unit.path else Part("law", 0)
            number = _sign(part)
        texts.append(_Unit(unit, walk, part, number, _n_body(unit, walker, walk.text)))
    if not texts:
        raise DocumentError(name, "no text in the body")
    return FileContent(tuple(_documents(law, texts)), tally.left_out, {}, tally.supplied)


FORMAT = SourceFormat(_read, suffixes=(".xml",), families="parts")


def _enclose_subdivisions(root: etree._Element) -> None:
    """Put the parts of every subdivision into an element of its own: USLM has none.

    The Government Publishing Office sets a subdivision's heading as a paragraph, the first one as the chapeau of its
    division and each other one at the end of the section before.
    """
    paragraphs = [each for each in root.iter("{*}p", "{*}chapeau") if not len(each) and not (each.tail or "").strip()]
    for paragraph in reversed(paragraphs):
        heading = _SUBDIVISION.fullmatch(plain_text(paragraph))
        if heading is None:
            continue
        around = [paragraph, *paragraph.iterancestors()]
        names = [local_name(each) for each in around]
        if "division" not in names or QUOTED & set(names):
            continue
        before = around[names.index("division") - 1]
        inside = list(takewhile(lambda each: local_name(each) != "subdivision", before.itersiblings()))
        subdivision = etree.Element("subdivision")
        for kind, words in zip(("num", "heading"), heading.groups(), strict=True):
            etree.SubElement(subdivision, kind).text = words
        before.addnext(subdivision)
        subdivision.extend(inside)
        around[1].remove(paragraph)


def _walker_over(unit: Unit, name: str, rules: Rules) -> tuple[Walker, bool]:
    """Return a walker over a unit, with what is moved behind it, and whether that is a document."""
    walker = Walker(name, rules)
    level = 0
    if unit.own is None:
        level = max(RANKS["section"], place_in(unit.path).level + 1)
        part = walker.open(local_name(unit.element), level, PARAGRAPH)
        walker.children(unit.element, 1, Place(level, part=part))
    else:
        walker.part(unit.element, unit.own)
    # Sidenotes alone make no document.
    is_document = walker.has_body()
    sidenotes = walker.release()
    if not is_document:
        walker.dropped["sidenotes"] += sum(map(n_visible, sidenotes))
    elif sidenotes:
        _write_sidenotes(walker, sidenotes, level)
    walker.write(PART_END if unit.own is None else "")
    return walker, is_document


def _write_sidenotes(walker: Walker, sidenotes: Sequence[etree._Element], level: int) -> None:
    walker.open("sidenotes", max(RANKS["notes"], level + 1), PARAGRAPH)
    begin = len(walker.pieces)
    for sidenote in sidenotes:
        walker.write(LINE)
        walker.children(sidenote, 1, Place())
        walker.write(LINE)
    # The narrow column of sidenotes breaks words.
    walker.pieces[begin:], n_hyphens = mended(walker.pieces[begin:])
    walker.dropped["hyphens at the ends of lines"] += n_hyphens
    walker.write(PART_END)


def _n_body(unit: Unit, walker: Walker, text: str) -> int:
    end = next((part.start for part in walker.parts if part.kind == "sidenotes"), len(text))
    if unit.own is not None:
        lead = resolve(walker.pieces[: walker.titles[0][1]]).text
    elif walker.parts[0].heading:
        lead = text[:end].partition("\n")[0]
    else:
        lead = " ".join(walker.parts[0].num.split())
    return len(text[len(lead) : end].strip())


def _law(root: etree._Element, name: str) -> Law:
    """Return what the file says of itself; its name counts if it says nothing."""
    known = facts(root)
    # A citation such as "Public Law 117-2" first, then the name of the file.
    stated = (*known.get("citable", ()), *known.get("title", ()))
    citation = next(filter(None, map(_CITED.match, stated)), None) or _PACKAGE.search(name)
    if not citation:
        raise DocumentError(name, "it does not say which law it is")
    kind = "publ" if citation["kind"].lower() in ("public", "publ") else "pvtl"
    named = next(iter((*known.get("short-title", ()), *known.get("official-title", ()))), "")
    return Law(citation["congress"], kind, citation["number"], named)


def _documents(law: Law, texts: Sequence[_Unit]) -> Iterator[Document]:
    kind = "public" if law.kind == "publ" else "private"
    stratum = f"{law.congress}/{kind}/{bucket(sum(len(each.walk.text) for each in texts))}"
    numbers = Counter(each.number for each in texts)
    given: Counter[str] = Counter()
    for each in texts:
        text, path, heading = each.walk.text, each.unit.path, each.part.heading
        if each.unit.own is None:
            slug, where = f"s{each.number or 0}", f", § {each.number}" if each.number else ""
            heading = heading or first_words(text, each.part.num)
            # Two sections of one number are told apart by the parts around them.
            slug = slug if numbers[each.number] == 1 else "-".join((*filter(None, map(_sign, path)), slug))
        else:
            slug = "-".join(filter(None, map(_sign, path)))
            words = re.findall(r"\w+", each.part.num)
            where = f", {each.part.kind} {words[-1]}" if words else ""
        yield Document(
            doc_id=free_id(f"{law.package}-{slug}" if slug else law.package, given),
            text=text,
            title=titled(f"{law.citation}{where}", heading, law.name),
            stratum=stratum,
            family=law.package,
            url=f"https://www.govinfo.gov/app/details/{law.package}",
            sections=sections_of(each.unit, each.walk.sections, len(text)),
            status="short" if each.n_body < SHORT else "",
        )


def _sign(part: Part) -> str:
    """Return how an id names a larger part, such as "t2"; "" for one without a number."""
    words = re.findall(r"\w+", part.num)
    return f"{_SIGNS.get(part.kind, part.kind)}{words[-1]}" if words else ""
