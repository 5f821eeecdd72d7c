"""Sections of the U.S. Code (OLRC's USLM 1.0 and 2) as documents.

A document is a section: statute with its source credit, then the notes. Its outermost sections are the title, chapter
and other parts that it stands in, each over the whole document, so that every chunk carries their headings; statute
(kind "section") and notes (kind "notes") follow each other, so that chunkers keep them apart. The section's number
and heading are the document's title and are not repeated as a label. The notes of a title, chapter or other part are
a document of their own with the status "notes".

Tables of contents, footnotes and the headings of larger parts without notes are left out.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document, Section, Span
from samplers.formats.safe_xml import local_name, parse, plain_text
from samplers.formats.stated import bucket
from samplers.formats.text_writer import Part
from samplers.formats.uslm.elements import n_visible
from samplers.formats.uslm.labels import first_words
from samplers.formats.uslm.names import NOTES, RANKS, SECTION_RANK
from samplers.formats.uslm.units import (
    SECTIONS,
    SHORT,
    Tally,
    Unit,
    free_id,
    place_in,
    sections_of,
    titled,
    units,
)
from samplers.formats.uslm.walk import Walk
from samplers.formats.uslm.walker import Rules, Walker, exceptions
from samplers.source_format import WHOLE_TITLE, Card, FileContent, SourceFormat

LENGTH_BUCKETS = ((500, "short"), (2_500, "medium"))
"""Characters of statute below which a section is short or medium; others are long."""

_STATUSES: Mapping[str, str] = {
    **dict.fromkeys(("repealed", "terminated", "expired"), "repealed"),
    "omitted": "omitted",
    **dict.fromkeys(("transferred", "renumbered", "redesignated"), "transferred"),
    **dict.fromkeys(("reserved", "vacant"), "reserved"),
}
"""What an attribute or the first word of a heading says, and the status that it means."""

_DEAD = re.compile(rf"\W*({'|'.join(_STATUSES)})(?=[.,;:\]]|$| (?:by|to|as|and|or|§))", re.I)
_SIGN = re.compile(r"^[\W_]*(?:sec(?:tion\b|\.))?\s*", re.I)
_OWN_PAGE = re.compile(r"\d+[a-z]*(?:-\d+[a-z]*)*", re.I)

_IDENTIFIER = re.compile(r"/us/usc/t(\d{1,2}[a-z]?)(?:/.*)?", re.I)
_IN_NAME = re.compile(r"(?:^|/)(?:usc)?0?(\d{1,2}a?)(?=[-.])", re.I)
_RELEASE = re.compile(r"(?<![\d-])(\d{3})-(\d{1,3})((?:not\d{1,3})*)(?![\d-])")
_DATE = re.compile(r"(\d{4})-\d{2}-\d{2}")
_POSITIVE = {"yes": "positive", "no": "non-positive"}
_ENACTED = frozenset(
    map(str, (1, 3, 4, 5, 9, 10, 11, 13, 14, 17, 18, 23, 28, 31, 32, *range(35, 42), 44, 46, 49, 51, 54))
)
"""The titles enacted as positive law. Most files do not state it; none has been enacted since 2014."""
_LAST_TITLE = 54

Age = tuple[int, int, int, str]
"""Orders editions: Congress, last law, whether that is without exceptions, day."""


class Edition(NamedTuple):
    """`release` is the release point, or else the day on which the file was made, or ""."""

    title: str
    release: str
    is_positive_law: str
    """ "positive", "non-positive" or "unknown"."""


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    root = parse(data, name, WHOLE_TITLE)
    its_edition = _edition(root, name)
    only_notes: list[Unit] = []
    rules = Rules(bool(exceptions(root)), moved=NOTES)
    over = partial(_walker_over, name=name, rules=rules, only_notes=only_notes)
    tally = Tally()
    given: Counter[str] = Counter()
    candidates = [Unit(root, ())] if local_name(root) in SECTIONS else units(root, name)
    documents = []
    for unit, walker, walk in tally.documents(candidates, over, "headings of larger parts"):
        key = free_id(_key(unit, its_edition), given)
        status = "notes" if only_notes[-1:] == [unit] else ""
        documents.append(_document(key, unit, walk, walker.parts, its_edition, status))
    if not documents:
        raise DocumentError(name, "no section of the Code in it")
    return FileContent(tuple(documents), tally.left_out, supplied=tally.supplied)


def _walker_over(unit: Unit, name: str, rules: Rules, only_notes: list[Unit]) -> tuple[Walker, bool]:
    """Return a walker over a unit, with what is moved behind it, and whether that is a document.

    Larger parts that have nothing but notes are added to `only_notes`.
    """
    walker = Walker(name, rules)
    if unit.own is None:
        walker.element(unit.element, place_in(unit.path))
    else:
        walker.part(unit.element, unit.own)
    if unit.own is not None and not walker.has_body():
        only_notes.append(unit)
    # The notes follow the statute.
    for notes in walker.release():
        if notes.get("type") == "footnote":
            walker.dropped["footnotes"] += n_visible(notes)
        else:
            walker.element(notes, place_in(unit.path))
    return walker, walker.has_body()


def _key(unit: Unit, its_edition: Edition) -> str:
    """Return the id whatever the edition: "usc:9-1", "usc:24-3to5", "usc:28a-courtRules-Civil-rule6", "usc:9-title"."""
    stated = str(unit.element.get("identifier") or "").partition(f"/us/usc/t{its_edition.title}/")[2]
    # The identifier without its title; where there is none, the number alone.
    number = next((child.get("value") for child in unit.element if child.get("value")), "")
    named = stated or (f"s{number or 0}" if unit.own is None else local_name(unit.element))
    path = re.sub(r"\s+", "", named).replace("/", "-")
    return f"usc:{its_edition.title}-{re.sub(r'^s(?=[0-9])', '', path)}"


def _document(key: str, unit: Unit, walk: Walk, parts: Sequence[Part], its_edition: Edition, status: str) -> Document:
    part = parts[0] if unit.own is None else unit.path[-1] if unit.path else Part("", 0)
    body = _body(walk.text, parts) if unit.own is None else walk.text
    status = status or _status(unit.element, part.heading)
    return Document(
        doc_id=f"{key}@{its_edition.release}" if its_edition.release else key,
        text=walk.text,
        title=titled(_cited(part.num, its_edition.title), part.heading or first_words(walk.text, part.num)),
        stratum="/".join(
            (its_edition.title, its_edition.is_positive_law, status or bucket(len(body), LENGTH_BUCKETS, "long"))
        ),
        family=key,
        url=_url(key),
        sections=sections_of(unit, _grouped(walk.sections, walk.text), len(walk.text)),
        status=status or ("short" if len(body) < SHORT else ""),
    )


def _body(text: str, parts: Sequence[Part]) -> str:
    """Return the statute without its number and heading, which are a line, and without its source credit."""
    credit = next((part.start for part in parts if part.kind == "sourceCredit" and part.start >= 0), parts[0].end)
    return text[parts[0].start : credit].partition("\n")[2].strip()


def _status(element: etree._Element, heading: str) -> str:
    stated = _STATUSES.get(str(element.get("status") or "").lower(), "")
    dead = _DEAD.match(heading)
    return stated or (_STATUSES[dead[1].lower()] if dead else "")


def _cited(num: str, title: str) -> str:
    """Return the section as people cite it: "15 U.S.C. 78dd–1", "28 U.S.C. App. Rule 6"."""
    number = _SIGN.sub("", num).rstrip(" .]:—")
    of_title = f"{title} U.S.C." if title.isdigit() else f"{title[:-1]} U.S.C. App."
    return f"{of_title} {number}".rstrip()


def _url(key: str) -> str:
    """Return the section's page at the Law Revision Counsel, as the law stands today; "" for ranges and appendices."""
    title, _, number = key.removeprefix("usc:").partition("-")
    if not title.isdigit() or not _OWN_PAGE.fullmatch(number):
        return ""
    return f"https://uscode.house.gov/view.xhtml?req=granuleid:USC-prelim-title{title}-section{number}&edition=prelim"


def _edition(root: etree._Element, name: str) -> Edition:
    """Return what a file says of itself; its name counts if it says nothing. DocumentError if it is not the Code's."""
    kind = local_name(root)
    known = kind == "uscDoc" or RANKS.get(kind, SECTION_RANK + 1) <= SECTION_RANK
    identifiers = (_IDENTIFIER.fullmatch(element.get("identifier") or "") for element in root.iter())
    identified = next((match[1] for match in identifiers if match), "")
    if not known or (kind != "uscDoc" and not identified):
        raise DocumentError(name, f"the root element is <{kind[:30]}>, which this source does not have")
    facts = _facts(root)
    in_name = _IN_NAME.search(name)
    title = identified or facts.get("docNumber", "") or (in_name[1] if in_name else "")
    if not re.fullmatch(r"\d{1,2}[a-z]?", title, re.I):
        raise DocumentError(name, "it does not say which title of the Code it is")
    title = title.lower()
    # An appendix, and a title that the Code does not have, may be either.
    is_known = title.isdigit() and 1 <= int(title) <= _LAST_TITLE
    enacted = ("positive" if title in _ENACTED else "non-positive") if is_known else "unknown"
    # The release point, or else the day on which the file was made.
    stated = _RELEASE.search(facts.get("docPublicationName", "")) or _RELEASE.search(name)
    days = (_DATE.search(facts.get(fact, "")) for fact in ("created", "processedDate"))
    release = stated or next(filter(None, days), None)
    return Edition(title, release[0] if release else "", _POSITIVE.get(facts.get("property", ""), enacted))


def age(document: Card | Document) -> Age:
    """Return what is greater for the newer of two editions of a section.

    A release point is a law; one that leaves laws out is older than the same one without exceptions. A file that
    states a day alone is older than every release point of that day's Congress.
    """
    release = document.doc_id.rpartition("@")[2]
    if point := _RELEASE.fullmatch(release):
        return int(point[1]), int(point[2]), 0 if point[3] else 1, ""
    if day := _DATE.fullmatch(release):
        return (int(day[1]) - 1789) // 2 + 1, 0, 0, release
    return 0, 0, 0, ""


def _facts(root: etree._Element) -> dict[str, str]:
    """Return the first value of each fact that `meta` states; of its properties only that of positive law."""
    facts: dict[str, str] = {}
    for fact in (fact for meta in root if local_name(meta) == "meta" for fact in meta):
        if local_name(fact) != "property" or fact.get("role") == "is-positive-law":
            facts.setdefault(local_name(fact), plain_text(fact))
    return facts


def _grouped(sections: Sequence[Section], text: str) -> list[Section]:
    """Return the sections, where a note that is only a heading spans the notes after it, up to the next such one.

    "Editorial Notes" and the like are siblings of what they head.
    """
    result = list(sections)
    head = -1
    for index, section in enumerate(sections):
        if section.kind == "notes":
            head = -1
        elif (
            section.kind == "note"
            and section.label
            and section.label == text[section.span.start : section.span.end].rstrip(".:— ")
        ):
            head = index
        elif head >= 0:
            start, end = result[head].span.start, max(result[head].span.end, section.span.end)
            result[head] = replace(result[head], span=Span(start, end))
            result[index] = replace(section, level=section.level + 1)
    return result


FORMAT = SourceFormat(
    _read,
    suffixes=(".xml",),
    newest=age,
    max_bytes=WHOLE_TITLE,
)
