"""Sections and appendices of the Code of Federal Regulations as documents: annual CFR, eCFR bulk data and versioner."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document, Section, Span
from samplers.formats.gpo.inline import settle
from samplers.formats.headings import cut
from samplers.formats.safe_xml import local_name, parse, plain_text
from samplers.formats.stated import bucket
from samplers.formats.uslm.walk import Walk, walk
from samplers.source_format import WHOLE_TITLE, FileContent, SourceFormat
from samplers.sources.cfr.blocks import Block, BlockReader, label_of, marked_beginnings, visible
from samplers.sources.cfr.body import body
from samplers.sources.cfr.facts import Edition, annual_year, edition, order
from samplers.sources.cfr.units import ROOTS, Unit, units

LENGTH_BUCKETS = ((1_000, "short"), (4_000, "medium"), (16_000, "long"))

SHORT = 100
"""Characters of text besides the heading and the source credit below which no query should be written."""

_CREDITS = frozenset(("authority", "source", "citation"))
_SUBPART = re.compile(r"subpart\s+[\w.]*\w", re.I)
_SIGN = re.compile(r"\s*(?:§+|Secs?\.)\s*")
_RESERVED = re.compile(r"\[reserved\]\.?", re.I)
_FIRST_NUMBER = re.compile(r"\d[\w.-]*")
_NO_ID = re.compile(r"[^\w.]+")
_USLM = re.compile(r"/us/cfr/t(\w+)/s([\w.-]+)$")


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    root = parse(data, name, WHOLE_TITLE)
    if local_name(root) == "section" and _USLM.match(root.get("identifier", "")):
        return _read_uslm(data, name, root)
    if root.tag not in ROOTS:
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    beginnings = marked_beginnings(root)
    left_out, reader = settle(root, name), BlockReader(beginnings)
    facts = edition(root, name)
    used: Counter[str] = Counter()
    documents = []
    for unit in units(root, reader):
        lines, blocks = reader.read(unit.element)
        if lines or blocks:
            documents.append(_document(unit, lines, blocks, facts, used))
    return FileContent(tuple(documents), left_out + reader.left_out)


def _document(
    unit: Unit, lines: Sequence[str], blocks: Sequence[Block], facts: Edition, used: Counter[str]
) -> Document:
    """One section or appendix; further ones of the same name in a file get "~2", "~3" and so on."""
    line, blocks = (" ".join(lines), blocks) if lines else (blocks[0].text, blocks[1:])
    name, heading = _section_name(unit, line) if unit.kind == "section" else _appendix_name(unit, line)
    family = f"cfr:{facts.title}-{_slug(unit, name)}"
    used[family] += 1
    family += f"~{used[family]}" if used[family] > 1 else ""
    number = _unsigned(name)
    part = unit.part or number.partition(".")[0]
    text, sections = body(unit.kind, "; ".join(unit.headings), line, blocks)
    is_section = unit.kind == "section"
    return Document(
        doc_id=f"{family}@{facts.date}",
        text=text,
        title=_title(name, part, unit.headings, heading, facts.title),
        stratum="/".join((f"title-{facts.title}", unit.kind, bucket(len(text), LENGTH_BUCKETS))),
        family=family,
        url=facts.section_url(part, number) if is_section else facts.appendix_url(unit.part, name),
        sections=sections,
        status=_status(line, [block.text for block in blocks if block.kind not in _CREDITS]),
    )


def _section_name(unit: Unit, line: str) -> tuple[str, str]:
    """The number with its sign, as "§ 1009.1", and the heading."""
    stated = unit.element.get("N") or next(map(label_of, unit.element.iterchildren("SECTNO")), "")
    rest = _unsigned(line)
    found = _FIRST_NUMBER.match(rest)
    number = _unsigned(stated).strip() or (found[0] if found else "")
    return f"{'§§' if line.startswith('§§') else '§'} {number}".strip(), rest.removeprefix(number).strip()


def _appendix_name(unit: Unit, line: str) -> tuple[str, str]:
    """The name, as "Appendix A to Part 1003", and the heading."""
    stated = unit.element.get("N", "").strip()
    if stated and line.startswith(stated):
        return stated, line.removeprefix(stated).strip(" —–-")
    name, _, heading = _RESERVED.sub("", line).partition("—")
    return name.strip() or line, heading.strip() or line.removeprefix(name).strip(" —")


def _unsigned(name: str) -> str:
    """A name without the sign of a section before it."""
    sign = _SIGN.match(name)
    return name[sign.end() :] if sign else name


def _slug(unit: Unit, name: str) -> str:
    """The part of an id that names a unit within its title; an appendix that does not name its part gets it."""
    slug = _NO_ID.sub("-", _unsigned(name)).strip("-.") or "unnumbered"
    if unit.kind == "section":
        return slug
    names_part = re.search(rf"\bpart-{re.escape(unit.part)}(?![\w.])", slug, re.I)
    return (slug if names_part else f"{unit.part}-{slug}").lower().strip("-")


def _title(name: str, part: str, headings: Sequence[str], heading: str, title: str) -> str:
    """What chunks carry as context: "§ 1009.1 (12 CFR Part 1009, Subpart A): Scope"."""
    subpart = next(filter(None, map(_SUBPART.match, headings)), None)
    where = ", ".join((f"{title} CFR" + (f" Part {part}" if part else ""), *([subpart[0]] if subpart else [])))
    return cut(f"{name} ({where})" + (f": {heading.rstrip('.')}" if heading else ""))


def _status(line: str, texts: Sequence[str]) -> str:
    # Each text has a character, so that these many fill the length that is looked at.
    head = " ".join(texts[: 10 * SHORT])[: 10 * SHORT]
    left = (_RESERVED.sub("", head) if "[" in head else head).strip()
    if not left and (texts or _RESERVED.search(line)):
        return "reserved"
    return "short" if len(left) < SHORT else ""


def _read_uslm(data: bytes, name: str, root: etree._Element) -> FileContent:
    """One section in USLM, whose levels are elements."""
    walked = walk(data, name, frozenset(("section",)))
    identified = _USLM.match(root.get("identifier", ""))
    title, number = identified.groups() if identified else ("", "")
    facts = Edition(title, annual_year(root, name), is_ecfr=False)
    heading = next((visible(plain_text(child)) for child in root if local_name(child) == "heading"), "")
    part = number.partition(".")[0]
    family = f"cfr:{title}-{number}"
    line, _, rest = walked.text.partition("\n")
    document = Document(
        doc_id=f"{family}@{facts.date}",
        text=walked.text,
        title=_title(f"§ {number}", part, (), heading, title),
        stratum="/".join((f"title-{title}", "section", bucket(len(walked.text), LENGTH_BUCKETS))),
        family=family,
        url=facts.section_url(part, number),
        sections=_nested(walked),
        status=_status(line, [rest]),
    )
    return FileContent((document,), walked.dropped, supplied=walked.supplied)


def _nested(walked: Walk) -> tuple[Section, ...]:
    """The whole document and the sections in it, with levels that count from it."""
    ends: list[int] = []
    result = [Section(Span(0, len(walked.text)), 1, "section", "")]
    for section in walked.sections:
        while ends and ends[-1] <= section.span.start:
            ends.pop()
        ends.append(section.span.end)
        result.append(replace(section, level=len(ends) + 1))
    return tuple(result)


def _newest(document: Document) -> tuple[object, ...]:
    title = document.doc_id.removeprefix("cfr:").partition("-")[0]
    return (order(document.doc_id.rpartition("@")[2], title), document.doc_id)


FORMAT = SourceFormat(_read, suffixes=(".xml",), newest=_newest, max_bytes=WHOLE_TITLE)
