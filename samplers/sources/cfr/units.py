"""The sections and appendices in a file of the Code of Federal Regulations, with the part and subpart around each.

Annual CFR of govinfo (PART, SUBPART, SUBJGRP, SECTION, APPENDIX), eCFR bulk data and the versioner of ecfr.gov (DIV1
to DIV9) are walked alike. The root may be the whole title or any element inside it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lxml import etree

from samplers.formats.gpo.inline import n_visible, text_of
from samplers.sources.cfr.blocks import BlockReader, label_of

UNITS: Mapping[str, str] = {"SECTION": "section", "DIV8": "section", "APPENDIX": "appendix", "DIV9": "appendix"}
"""Elements that are documents, with their kind."""

ROOTS = frozenset(
    (
        *("CFRDOC", "CFRGRANULE", "TITLE", "CHAPTER", "SUBCHAP", "PART", "SUBPART", "SUBJGRP"),
        *("DLPSTEXTCLASS", "ECFR", *(f"DIV{n}" for n in range(1, 8))),
        *UNITS,
    )
)
_LEVELS: Mapping[str, str] = {
    **dict.fromkeys(("PART", "DIV5"), "part"),
    **dict.fromkeys(("SUBPART", "DIV6"), "subpart"),
    **dict.fromkeys(("SUBJGRP", "DIV7"), "subject group"),
}
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("CONTENTS", "CFRTOC", "TOC"), "table of contents"),
    **dict.fromkeys(("HD", "HEAD", "RESERVED", "TOCHD", "CFRTITLE"), "headings of parts and chapters"),
    **dict.fromkeys(("AUTH", "SOURCE"), "authority and source of parts"),
    **dict.fromkeys(("FDSYS", "HEADER", "AMDDATE", "FMTR", "BMTR"), "file header and finding aids"),
    **dict.fromkeys(("EAR", "LRH", "RRH"), "running heads"),
}
_NUMBER = re.compile(r"\bpart\s+(\w[\w.-]*)", re.I)
_SUBPART = re.compile(r"subpart\s+[\w.]+", re.I)


class Unit(NamedTuple):
    """A "section" or "appendix": its element, its part's number, and the headings from the part inward."""

    kind: str
    element: etree._Element
    part: str
    headings: tuple[str, ...]


class _Around(NamedTuple):
    """What stands around a unit, "" for levels that it is not inside of."""

    part: str = ""
    part_heading: str = ""
    subpart: str = ""
    group: str = ""

    def entered(self, element: etree._Element) -> "_Around":
        level = _LEVELS.get(str(element.tag))
        if level is None:
            return self
        heading = next((label_of(child) for child in element if child.tag in ("HD", "HEAD", "RESERVED")), "")
        if level == "part":
            number = _NUMBER.search(heading)
            return _Around(element.get("N") or (number[1].rstrip(".-") if number else ""), heading)
        return self._replace(subpart=heading, group="") if level == "subpart" else self._replace(group=heading)


def units(root: etree._Element, reader: BlockReader) -> Iterator[Unit]:
    """The sections and appendices in file order; what is in none of them is counted in the reader's account."""
    around = _ancestors(root).entered(root)
    if root.tag in UNITS:
        yield _unit(root, around)
    else:
        yield from _inside(root, around, reader.left_out)


def _ancestors(root: etree._Element) -> _Around:
    """What a granule says of the part that it was taken from."""
    around = _Around()
    for parent in root.iterfind("FDSYS/ANCESTORS/PARENT"):
        stated = parent.get("HEADING", "")
        if number := _NUMBER.match(stated):
            around = _Around(number[1], f"{stated}—{label_of(parent)}")
        elif _SUBPART.match(stated):
            around = around._replace(subpart=f"{stated}—{label_of(parent)}")
    return around


def _inside(element: etree._Element, around: _Around, left_out: Counter[str]) -> Iterator[Unit]:
    _count(element.text, left_out)
    for child in element:
        tag = str(child.tag)
        if tag in UNITS:
            yield _unit(child, around)
        elif tag in ROOTS or (tag not in _REASONS and next(child.iter(*UNITS), None) is not None):
            yield from _inside(child, around.entered(child), left_out)
        else:
            left_out[_REASONS.get(tag, "other text outside sections")] += n_visible(child)
        _count(child.tail, left_out)


def _unit(element: etree._Element, around: _Around) -> Unit:
    headings = (around.part_heading, around.subpart, around.group)
    return Unit(UNITS[str(element.tag)], element, around.part, tuple(filter(None, headings)))


def _count(stray: str | None, left_out: Counter[str]) -> None:
    if stray and not stray.isspace():
        left_out["other text outside sections"] += len("".join(text_of(stray).split()))
