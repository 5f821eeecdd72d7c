"""Documents of the Federal Register from its XML: whole issues, single documents of either official site."""

import re
from collections import Counter

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document, Section
from samplers.formats.gpo.inline import line_of, n_visible, settle, take_out
from samplers.formats.safe_xml import local_name, parse
from samplers.formats.stated import bucket
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.federal_register.facts import Facts, facts, title_of
from samplers.sources.federal_register.text import ANNOUNCED, FederalRegisterText

DOCUMENTS = ("RULE", "PRORULE", "NOTICE", "PRESDOCU")
ROOTS = frozenset(("FEDREG", *DOCUMENTS))
WITH_NOTICES = "notices"

_CONTENTS = re.compile(r"\s*(?:Table of )?Contents\.?\s*", re.I)
_APPENDIX = re.compile(r"\s*(?:Appendix|Supplement)\b.{0,40}\bto (?:Part|Subpart)\b", re.I)
_ANNOUNCES = re.compile(r"§.{1,200}\[(?!Reserved).{1,80}\]\s*")
_LISTED = frozenset(("EXTRACT", "FP", "CONTENTS"))


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    """The documents of an issue, or the one of a file; ids are FR-<document number>.

    A file whose name is a document number and a suffix ("2013-16962-2.xml", a part of a long document) keeps the
    suffix in the id; all parts are one family.
    """
    root = parse(data, name)
    if root.tag not in ROOTS:
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    left_out = _strip_instructions(root)
    left_out.update(settle(root, name))
    _mark_contents(root)
    _lift_appendices(root)
    _lower_subparts(root)
    _mark_announced(root)
    reading = _Reading(root, name, options, left_out)
    for element in [e for e in root.iter(*DOCUMENTS) if next(e.iterancestors(*DOCUMENTS), None) is None]:
        reading.add(element)
        take_out(element)
    if reading.is_issue:
        left_out["contents and headings of the issue"] = n_visible(root)
    return reading.content()


class _Reading:
    def __init__(self, root: etree._Element, name: str, options: frozenset[str], left_out: Counter[str]) -> None:
        self.stem = re.sub(r"\s+", "-", name.replace("\\", "/").rpartition("/")[2].removesuffix(".xml")) or "unnamed"
        self.name = name
        self.is_issue = root.tag == "FEDREG"
        self.year = _year_of_issue(root)
        self.with_notices = WITH_NOTICES in options
        self.left_out = left_out
        self.skipped: Counter[str] = Counter()
        self.documents: dict[str, Document] = {}
        self.supplied = 0

    def add(self, element: etree._Element) -> None:
        if element.tag == "NOTICE" and not self.with_notices:
            self._skip(element, "notices")
            return
        text = FederalRegisterText()
        if element.tag == "PRESDOCU":
            text.order(element)
        else:
            text.inside(element, 0)
        written, sections = text.finish()
        if not written:
            if not self.is_issue:
                raise DocumentError(self.name, "no text in the body")
            self._skip(element, "documents without text")
            return
        self.left_out.update(text.left_out)
        self.supplied += text.writer.supplied
        self._keep(facts(element, self.year), written, sections)

    def content(self) -> FileContent:
        left_out = {reason: count for reason, count in sorted(self.left_out.items()) if count}
        return FileContent(tuple(self.documents.values()), left_out, dict(self.skipped), self.supplied)

    def _skip(self, element: etree._Element, reason: str) -> None:
        self.left_out[reason] += n_visible(element)
        self.skipped[reason] += 1

    def _keep(self, known: Facts, text: str, sections: tuple[Section, ...]) -> None:
        family = f"FR-{known.number}" if known.number else self._unnumbered()
        is_part = known.number and re.fullmatch(rf"{re.escape(known.number)}-\w{{1,8}}", self.stem)
        doc_id = f"FR-{self.stem}" if is_part else family
        if doc_id in self.documents:
            doc_id = self._unnumbered()
        self.documents[doc_id] = Document(
            doc_id=doc_id,
            text=text,
            title=title_of(known),
            stratum="/".join((known.stratum, known.year or "unknown", bucket(len(text)))),
            family=family,
            url=f"https://www.federalregister.gov/d/{known.number}" if known.number else "",
            sections=sections,
            status="correction" if known.is_correction else "",
        )

    def _unnumbered(self) -> str:
        """An id from the file's name, for a document without a number of its own."""
        return f"{self.stem}-{len(self.documents) + 1}" if self.is_issue else self.stem


def _strip_instructions(root: etree._Element) -> Counter[str]:
    """What eRegs put into some files for its own parser, taken out."""
    count = Counter({"eRegs instructions": sum(map(n_visible, root.iter("EREGS_INSTRUCTIONS")))})
    etree.strip_elements(root, "EREGS_INSTRUCTIONS", with_tail=False)
    return count


def _mark_contents(root: etree._Element) -> None:
    """Rename tables of contents, which repeat the headings: the heading that says so and the lists right after it."""
    for heading in list(root.iter("HD")):
        if not _CONTENTS.fullmatch(heading.text or ""):
            continue
        for sibling in heading.itersiblings():
            if sibling.tag not in _LISTED:
                break
            sibling.tag = heading.tag = "CONTENTS"


def _lift_appendices(root: etree._Element) -> None:
    """Move appendices that a section's element holds behind it: some files never close the last section of a part."""
    for section in list(root.iter("SECTION")):
        last, appendix = section, None
        for child in list(section):
            if child.tag == "HD" and _APPENDIX.match(child.text or ""):
                appendix = etree.Element("APPENDIX")
                last.addnext(appendix)
                last = appendix
            if appendix is not None:
                appendix.append(child)


def _lower_subparts(root: etree._Element) -> None:
    """Move a subpart's heading at the end of a REGTEXT into the next one, which has what stands in the subpart."""
    for amendments in list(root.iter("REGTEXT")):
        last, following = next(reversed(amendments), None), amendments.getnext()
        if last is None or last.tag != "SUBPART" or following is None or following.tag != "REGTEXT":
            continue
        is_heading = [child.tag for child in last] == ["HD"] and not (last.tail or "").strip()
        if is_heading and not (following.text or "").strip() and following.attrib == amendments.attrib:
            following.insert(0, last)


def _mark_announced(root: etree._Element) -> None:
    """Rename headings that announce what the next instruction amends, and move them right before it.

    "[Reserved]" announces nothing: it is what the instruction before puts into the Code.
    """
    for section in list(root.iter("SECTION")):
        is_heading = all(child.tag in ("SECTNO", "SUBJECT") for child in section) and not (section.tail or "").strip()
        instruction = _next_instruction(section) if is_heading else None
        if instruction is not None and _ANNOUNCES.fullmatch(line_of(section)):
            section.tag = ANNOUNCED
            instruction.addprevious(section)


def _next_instruction(section: etree._Element) -> etree._Element | None:
    """The instruction right after a section, or the one that begins the regulatory text there."""
    following = section.getnext()
    if following is not None and following.tag == "REGTEXT" and not (following.text or "").strip():
        following = next(iter(following), None)
    return following if following is not None and following.tag == "AMDPAR" else None


def _year_of_issue(root: etree._Element) -> str:
    """The year in an issue's date; "" for a single document."""
    date = root.find("DATE") if root.tag == "FEDREG" else None
    found = re.search(r"\b(?:19|20)\d\d\b", line_of(date)) if date is not None else None
    return found[0] if found else ""


FORMAT = SourceFormat(
    _read,
    suffixes=(".xml",),
    options={WITH_NOTICES: "notices too, nine in ten documents of an issue"},
)
