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
from functools import partial

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.safe_xml import local_name, parse
from samplers.formats.stated import bucket
from samplers.formats.text_writer import Part
from samplers.formats.uslm.editions import Edition, age, edition
from samplers.formats.uslm.elements import n_visible
from samplers.formats.uslm.labels import first_words
from samplers.formats.uslm.names import NOTES
from samplers.formats.uslm.notes import grouped
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
from samplers.source_format import WHOLE_TITLE, FileContent, SourceFormat

WITHOUT_NOTES = "without-notes"

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


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    root = parse(data, name, WHOLE_TITLE)
    its_edition = edition(root, name)
    only_notes: list[Unit] = []
    rules = Rules(bool(exceptions(root)), moved=NOTES)
    leaves_notes = WITHOUT_NOTES in options
    over = partial(_walker_over, name=name, rules=rules, leaves_notes=leaves_notes, only_notes=only_notes)
    tally = Tally()
    given: Counter[str] = Counter()
    found = [Unit(root, ())] if local_name(root) in SECTIONS else units(root, name)
    documents = []
    for unit, walker, walk in tally.documents(found, over, "headings of larger parts"):
        key = free_id(_key(unit, its_edition), given)
        status = "notes" if only_notes[-1:] == [unit] else ""
        documents.append(_document(key, unit, walk, walker.parts, its_edition, status))
    if not documents:
        raise DocumentError(name, "no section of the Code in it")
    return FileContent(tuple(documents), tally.left_out(), supplied=tally.supplied)


FORMAT = SourceFormat(
    _read,
    suffixes=(".xml",),
    options={WITHOUT_NOTES: "the notes of a section are left out of its text"},
    newest=age,
    max_bytes=WHOLE_TITLE,
)


def _walker_over(
    unit: Unit, name: str, rules: Rules, leaves_notes: bool, only_notes: list[Unit]
) -> tuple[Walker, bool]:
    """A walker over a section, or what a larger part says itself, with its notes behind, and whether there is text.

    Larger parts that have nothing but notes are added to `only_notes`.
    """
    walker = Walker(name, rules)
    if unit.own is None:
        walker.element(unit.element, place_in(unit.path))
    else:
        walker.part(unit.element, unit.own)
    if unit.own is not None and not walker.has_body():
        only_notes.append(unit)
    for notes in walker.release():
        if leaves_notes or notes.get("type") == "footnote":
            walker.dropped["notes" if notes.get("type") != "footnote" else "footnotes"] += n_visible(notes)
        else:
            walker.element(notes, place_in(unit.path))
    return walker, walker.has_body()


def _key(unit: Unit, its_edition: Edition) -> str:
    """The id whatever the edition: "usc:9-1", "usc:24-3to5", "usc:28a-courtRules-Civil-rule6", "usc:9-title"."""
    stated = str(unit.element.get("identifier") or "").partition(f"/us/usc/t{its_edition.title}/")[2]
    number = next((child.get("value") for child in unit.element if child.get("value")), "")
    path = re.sub(r"\s+", "", stated or (f"s{number or 0}" if unit.own is None else local_name(unit.element))).replace(
        "/", "-"
    )
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
        sections=sections_of(unit, grouped(walk.sections, walk.text), len(walk.text)),
        status=status or ("short" if len(body) < SHORT else ""),
    )


def _body(text: str, parts: Sequence[Part]) -> str:
    """The statute without its number and heading, which are a line, and without its source credit."""
    credit = next((part.start for part in parts if part.kind == "sourceCredit" and part.start >= 0), parts[0].end)
    return text[parts[0].start : credit].partition("\n")[2].strip()


def _status(element: etree._Element, heading: str) -> str:
    stated = _STATUSES.get(str(element.get("status") or "").lower(), "")
    dead = _DEAD.match(heading)
    return stated or (_STATUSES[dead[1].lower()] if dead else "")


def _cited(num: str, title: str) -> str:
    """The section as people cite it: "15 U.S.C. 78dd–1", "28 U.S.C. App. Rule 6"."""
    number = _SIGN.sub("", num).rstrip(" .]:—")
    of_title = f"{title} U.S.C." if title.isdigit() else f"{title[:-1]} U.S.C. App."
    return f"{of_title} {number}".rstrip()


def _url(key: str) -> str:
    """The section's page at the Law Revision Counsel, as the law stands today; "" for ranges and appendices."""
    title, _, number = key.removeprefix("usc:").partition("-")
    if not title.isdigit() or not _OWN_PAGE.fullmatch(number):
        return ""
    return f"https://uscode.house.gov/view.xhtml?req=granuleid:USC-prelim-title{title}-section{number}&edition=prelim"
