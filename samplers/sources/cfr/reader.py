"""Sections and appendices of the Code of Federal Regulations as documents: annual CFR, eCFR bulk data and versioner.

Annual CFR of govinfo (PART, SUBPART, SUBJGRP, SECTION, APPENDIX), eCFR bulk data and the versioner of ecfr.gov (DIV1
to DIV9) are walked alike. The root may be the whole title or any element inside it, or one section in USLM, whose
levels are elements.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document, Section, Span
from samplers.formats.gpo.inline import n_visible, settle, take_out, text_of
from samplers.formats.headings import cut
from samplers.formats.safe_xml import local_name, parse, plain_text
from samplers.formats.stated import bucket
from samplers.formats.uslm.units import free_id
from samplers.formats.uslm.walk import walk
from samplers.source_format import WHOLE_TITLE, Card, FileContent, SourceFormat
from samplers.sources.cfr.editions import Edition, annual_year, edition, order
from samplers.sources.cfr.text import Block, BlockReader, body, label_of, marked_beginnings, visible

UNITS: Mapping[str, str] = {"SECTION": "section", "DIV8": "section", "APPENDIX": "appendix", "DIV9": "appendix"}
"""Elements that are documents, with their kind."""

ROOTS = frozenset(
    (
        *("CFRDOC", "CFRGRANULE", "TITLE", "CHAPTER", "SUBCHAP", "PART", "SUBPART", "SUBJGRP"),
        *("DLPSTEXTCLASS", "ECFR", *(f"DIV{n}" for n in range(1, 8))),
        *UNITS,
    )
)
LENGTH_BUCKETS = ((1_000, "short"), (4_000, "medium"), (16_000, "long"))

SHORT = 100
"""Characters of text besides the heading and the source credit below which no query should be written."""

_OTHER = "other text outside sections"
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("CONTENTS", "CFRTOC", "TOC"), "table of contents"),
    **dict.fromkeys(("HD", "HEAD", "RESERVED", "TOCHD", "CFRTITLE"), "headings of parts and chapters"),
    **dict.fromkeys(("AUTH", "SOURCE"), "authority and source of parts"),
    **dict.fromkeys(("FDSYS", "HEADER", "AMDDATE", "FMTR", "BMTR"), "file header and finding aids"),
    **dict.fromkeys(("EAR", "LRH", "RRH"), "running heads"),
}
_CREDITS = frozenset(("authority", "source", "citation"))
_PART = re.compile(r"\bpart\s+(\w[\w.-]*)", re.I)
_SUBPART = re.compile(r"subpart\s+[\w.]*\w", re.I)
_SIGN = re.compile(r"\s*(?:§+|Secs?\.)\s*")
_RESERVED = re.compile(r"\[reserved\]\.?", re.I)
_FIRST_NUMBER = re.compile(r"\d[\w.-]*")
_NO_ID = re.compile(r"[^\w.]+")
_USLM = re.compile(r"/us/cfr/t(\w+)/s([\w.-]+)$")


class _Around(NamedTuple):
    """What stands around a unit: the number of its part, and headings, "" for levels that it is not inside of."""

    part: str = ""
    part_heading: str = ""
    subpart: str = ""
    group: str = ""

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings from the part inward."""
        return tuple(filter(None, self[1:]))

    def entered(self, element: etree._Element) -> "_Around":
        """Return what stands around the inside of an element."""
        heading = next((label_of(child) for child in element if child.tag in ("HD", "HEAD", "RESERVED")), "")
        if element.tag in ("PART", "DIV5"):
            number = _PART.search(heading)
            return _Around(element.get("N") or (number[1].rstrip(".-") if number else ""), heading)
        if element.tag in ("SUBPART", "DIV6"):
            return self._replace(subpart=heading, group="")
        return self._replace(group=heading) if element.tag in ("SUBJGRP", "DIV7") else self


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    root = parse(data, name, WHOLE_TITLE)
    if local_name(root) == "section" and (identified := _USLM.match(root.get("identifier", ""))):
        return _read_uslm(data, name, root, *identified.groups())
    if root.tag not in ROOTS:
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    # Italic runs tell levels apart, and are gone once the inline elements are text.
    beginnings = marked_beginnings(root)
    left_out, reader = settle(root, name), BlockReader(beginnings)
    its_edition = edition(root, name)
    used: Counter[str] = Counter()
    documents = []
    for unit, around in _units(root, reader.left_out):
        line, blocks = reader.read(unit)
        if line:
            documents.append(_document(unit, around, line, blocks, its_edition, used))
    return FileContent(tuple(documents), left_out + reader.left_out)


def _units(root: etree._Element, left_out: Counter[str]) -> Iterator[tuple[etree._Element, _Around]]:
    """Yield the sections and appendices in file order; what is in none of them is counted."""
    around = _Around()
    # A granule says which part it was taken from.
    for parent in root.iterfind("FDSYS/ANCESTORS/PARENT"):
        stated = parent.get("HEADING", "")
        if number := _PART.match(stated):
            around = _Around(number[1], f"{stated}—{label_of(parent)}")
        elif _SUBPART.match(stated):
            around = around._replace(subpart=f"{stated}—{label_of(parent)}")
    around = around.entered(root)
    # A unit that is the whole file needs a place beside it for what it swallowed.
    if root.tag in UNITS:
        whole = etree.Element("CFRGRANULE")
        whole.append(root)
        root = whole
    _set_free(root)
    yield from _inside(root, around, left_out)


def _set_free(root: etree._Element) -> None:
    """Set what stands inside another unit's text behind it, in the order of the file.

    GPO forgets to close sections, appendices and the notes in them, and all that follows is then inside: sections, or
    whole parts. What has the number of the unit around it is that unit's text as it was or will be, and stays.
    """
    last: dict[etree._Element, etree._Element] = {}
    numbers = {unit: _number(unit) for unit in root.iter(*UNITS)}
    for unit, number in numbers.items():
        around = list(unit.iterancestors())
        hosts = [element for element in around if element in numbers]
        if not hosts or number in ("", numbers[hosts[0]]):
            continue
        # The outermost part below the host goes along, for it says where the unit stands.
        parts = [element for element in around[: around.index(hosts[0])] if element.tag in ROOTS]
        swallowed = parts[-1] if parts else unit
        # What was inside it before, and what came out of that, stands before it.
        place = hosts[-1]
        while place in last:
            place = last[place]
        take_out(swallowed)
        place.addnext(swallowed)
        last[hosts[-1]] = swallowed


def _number(unit: etree._Element) -> str:
    """Return the number of a section or the name of an appendix, "" for one that is no unit of the Code by itself."""
    line = unit.get("N") or next(map(label_of, unit.iterchildren("SECTNO", "HD", "HEAD")), "")
    number = _unsigned(line).strip()
    if UNITS[str(unit.tag)] == "section":
        first = _FIRST_NUMBER.match(number)
        return first[0] if first and "." in first[0].strip(".") else ""
    return _RESERVED.sub("", number).partition("—")[0].strip()


def _inside(
    element: etree._Element, around: _Around, left_out: Counter[str]
) -> Iterator[tuple[etree._Element, _Around]]:
    left_out[_OTHER] += len("".join(text_of(element.text).split()))
    for child in element:
        tag = str(child.tag)
        if tag in UNITS:
            yield child, around
        elif tag in ROOTS or (tag not in _REASONS and next(child.iter(*UNITS), None) is not None):
            yield from _inside(child, around.entered(child), left_out)
        else:
            left_out[_REASONS.get(tag, _OTHER)] += n_visible(child)
        left_out[_OTHER] += len("".join(text_of(child.tail).split()))


def _document(
    unit: etree._Element, around: _Around, line: str, blocks: Sequence[Block], its: Edition, used: Counter[str]
) -> Document:
    """Return one section or appendix; further ones of the same name in a file get "~2", "~3" and so on."""
    kind = UNITS[str(unit.tag)]
    name, heading = (_section_name if kind == "section" else _appendix_name)(unit, line)
    number = _unsigned(name)
    slug = _NO_ID.sub("-", number).strip("-.") or "unnumbered"
    if kind == "appendix":
        # An appendix that does not name its part gets it.
        names_part = re.search(rf"\bpart-{re.escape(around.part)}(?![\w.])", slug, re.I)
        slug = (slug if names_part else f"{around.part}-{slug}").lower().strip("-")
    family = free_id(f"cfr:{its.title}-{slug}", used)
    part = around.part or number.partition(".")[0]
    text, sections = body(kind, "; ".join(around.headings), line, blocks)
    return Document(
        doc_id=f"{family}@{its.date}",
        text=text,
        title=_title(name, part, around.headings, heading, its.title),
        stratum="/".join((f"title-{its.title}", kind, bucket(len(text), LENGTH_BUCKETS))),
        family=family,
        url=its.section_url(part, number) if kind == "section" else its.appendix_url(around.part, name),
        sections=sections,
        status=_status(line, [block.text for block in blocks if block.kind not in _CREDITS]),
    )


def _section_name(unit: etree._Element, line: str) -> tuple[str, str]:
    """Return the number with its sign, as "§ 1009.1", and the heading."""
    stated = unit.get("N") or next(map(label_of, unit.iterchildren("SECTNO")), "")
    rest = _unsigned(line)
    first = _FIRST_NUMBER.match(rest)
    number = _unsigned(stated).strip() or (first[0] if first else "")
    return f"{'§§' if line.startswith('§§') else '§'} {number}".strip(), rest.removeprefix(number).strip()


def _appendix_name(unit: etree._Element, line: str) -> tuple[str, str]:
    """Return the name, as "Appendix A to Part 1003", and the heading."""
    stated = unit.get("N", "").strip()
    if stated and line.startswith(stated):
        return stated, line.removeprefix(stated).strip(" —–-")
    name, _, heading = _RESERVED.sub("", line).partition("—")
    return name.strip() or line, heading.strip() or line.removeprefix(name).strip(" —")


def _unsigned(name: str) -> str:
    """Return a name without the sign of a section before it."""
    sign = _SIGN.match(name)
    return name[sign.end() :] if sign else name


def _title(name: str, part: str, headings: Sequence[str], heading: str, title: str) -> str:
    """Return what chunks carry as context: "§ 1009.1 (12 CFR Part 1009, Subpart A): Scope"."""
    subpart = next(filter(None, map(_SUBPART.match, headings)), None)
    where = ", ".join((f"{title} CFR" + (f" Part {part}" if part else ""), *([subpart[0]] if subpart else [])))
    return cut(f"{name} ({where})" + (f": {heading.rstrip('.')}" if heading else ""))


def _status(line: str, texts: Sequence[str]) -> str:
    # Each text has a character, so that these many fill the length that is looked at.
    head = " ".join(texts[: 10 * SHORT])[: 10 * SHORT]
    left = _RESERVED.sub("", head).strip()
    if not left and (texts or _RESERVED.search(line)):
        return "reserved"
    return "short" if len(left) < SHORT else ""


def _read_uslm(data: bytes, name: str, root: etree._Element, title: str, number: str) -> FileContent:
    """Return one section in USLM: the whole document and the sections in it, with levels that count from it."""
    walked = walk(data, name, frozenset(("section",)))
    its = Edition(title, annual_year(root, name), is_ecfr=False)
    heading = next((visible(plain_text(child)) for child in root if local_name(child) == "heading"), "")
    part, family = number.partition(".")[0], f"cfr:{title}-{number}"
    line, _, rest = walked.text.partition("\n")
    sections, ends = [Section(Span(0, len(walked.text)), 1, "section", "")], list[int]()
    for section in walked.sections:
        ends = [end for end in ends if end > section.span.start] + [section.span.end]
        sections.append(replace(section, level=len(ends) + 1))
    document = Document(
        doc_id=f"{family}@{its.date}",
        text=walked.text,
        title=_title(f"§ {number}", part, (), heading, title),
        stratum="/".join((f"title-{title}", "section", bucket(len(walked.text), LENGTH_BUCKETS))),
        family=family,
        url=its.section_url(part, number),
        sections=tuple(sections),
        status=_status(line, [rest]),
    )
    return FileContent((document,), walked.dropped, supplied=walked.supplied)


def _newest(document: Card) -> tuple[object, ...]:
    title = document.doc_id.removeprefix("cfr:").partition("-")[0]
    return (order(document.doc_id.rpartition("@")[2], title), document.doc_id)


FORMAT = SourceFormat(_read, suffixes=(".xml",), newest=_newest, max_bytes=WHOLE_TITLE)
