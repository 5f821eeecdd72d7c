"""Documents of the Federal Register from its XML: whole issues, single documents of either official site."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document, Section
from samplers.formats.gpo.inline import line_of, n_visible, settle, take_out
from samplers.formats.headings import TITLE_LENGTH, cut
from samplers.formats.safe_xml import local_name, parse
from samplers.formats.stated import bucket, stem_of
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.federal_register.text import ANNOUNCED, FederalRegisterText

DOCUMENTS = ("RULE", "PRORULE", "NOTICE", "PRESDOCU")
WITH_NOTICES = "notices"

AGENCY_LENGTH = 80
"""Characters of the agencies in a title: joint rules name five in full."""

TYPES: Mapping[str, tuple[str, str]] = {
    "RULE": ("rule", "Rule"),
    "PRORULE": ("proposed-rule", "Proposed Rule"),
    "NOTICE": ("notice", "Notice"),
    "EXECORD": ("presidential-executive-order", "Executive Order"),
    "PROCLA": ("presidential-proclamation", "Proclamation"),
    "PRNOTICE": ("presidential-notice", "Presidential Notice"),
    "DETERM": ("presidential-determination", "Presidential Determination"),
    "PRMEMO": ("presidential-memorandum", "Presidential Memorandum"),
    "PRESDOCU": ("presidential-other", "Presidential Document"),
}
"""Elements with the stratum's word and the name of what they hold."""

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NUMBER = re.compile(r"FR Doc\.?\s*(?:No\.?:?\s*)?([A-Z]?\d+(?:[-–][A-Z]?\d+)+|[A-Z]\d[-–]\d+)")
_FILED = re.compile(r"Filed\s+\d+-\d+-(\d\d)\b")
_OF_CORRECTION = re.compile(r"C\d+-")
_CORRECTION = re.compile(r"(?:\w{1,20} )?Corrections?\.?", re.I)
_CORRECTS = re.compile(r"\bcorrect(?:s|ed|ing|ions?)\b", re.I)
_ORDER_LINE = re.compile(r"(?:Executive Order|Proclamation|Presidential Determination|Memorandum|Notice)\b.*\d")
_CONTENTS = re.compile(r"\s*(?:Table of )?Contents\.?\s*", re.I)
_APPENDIX = re.compile(r"\s*(?:Appendix|Supplement)\b.{0,40}\bto (?:Part|Subpart)\b", re.I)
_ANNOUNCES = re.compile(r"§.{1,200}\[(?!Reserved).{1,80}\]\s*")
_LISTED = frozenset(("EXTRACT", "FP", "CONTENTS"))


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    """Return the documents of an issue, or the one of a file; ids are FR-<document number>.

    A file whose name is a document number and a suffix ("2013-16962-2.xml", a part of a long document) keeps the
    suffix in the id; all parts are one family.
    """
    root = parse(data, name)
    if root.tag not in ("FEDREG", *DOCUMENTS):
        raise DocumentError(name, f"the root element is <{local_name(root)[:30]}>, which this source does not have")
    is_issue = root.tag == "FEDREG"
    # What eRegs put into some files for its own parser is no text.
    left_out = Counter({"eRegs instructions": sum(map(n_visible, root.iter("EREGS_INSTRUCTIONS")))})
    etree.strip_elements(root, "EREGS_INSTRUCTIONS", with_tail=False)
    left_out.update(settle(root, name))
    _rearrange(root)
    dated = " ".join(map(line_of, root.iterchildren("DATE"))) if is_issue else ""
    issued = _YEAR.search(dated)
    stem = stem_of(name)
    skipped: Counter[str] = Counter()
    documents: dict[str, Document] = {}
    supplied = 0
    for element in [e for e in root.iter(*DOCUMENTS) if next(e.iterancestors(*DOCUMENTS), None) is None]:
        if element.tag == "NOTICE" and WITH_NOTICES not in options:
            reason = "notices"
        else:
            gpo = FederalRegisterText()
            text, sections = gpo.written(element)
            reason = "" if text else "documents without text"
        if not reason:
            left_out.update(gpo.left_out)
            supplied += gpo.writer.supplied
            # A document without a number, or with that of another one, has an id from the file's name.
            spare = f"{stem}-{len(documents) + 1}" if is_issue else stem
            document = _document(element, text, sections, issued[0] if issued else "", stem, spare)
            if document.doc_id in documents:
                document = replace(document, doc_id=spare)
            documents[document.doc_id] = document
        elif is_issue or reason == "notices":
            left_out[reason] += n_visible(element)
            skipped[reason] += 1
        else:
            raise DocumentError(name, "no text in the body")
        take_out(element)
    if is_issue:
        left_out["contents and headings of the issue"] = n_visible(root)
    return FileContent(tuple(documents.values()), left_out, dict(skipped), supplied)


FORMAT = SourceFormat(
    _read,
    suffixes=(".xml",),
    options={WITH_NOTICES: "notices too, nine in ten documents of an issue"},
)


def _document(
    element: etree._Element, text: str, sections: tuple[Section, ...], issued: str, stem: str, spare: str
) -> Document:
    """Return the document of a settled RULE, PRORULE, NOTICE or PRESDOCU in an issue of a year, "" if none is known."""
    is_presidential = element.tag == "PRESDOCU"
    stratum, name = TYPES[next((child.tag for child in element if child.tag in TYPES), element.tag)]
    filing = " ".join(map(line_of, element.iter("FRDOC", "FILED")))
    stated = _NUMBER.search(filing)
    number = stated[1].replace("–", "-") if stated else ""
    # The title: what people cite, then who published it, then what it is about.
    if is_presidential:
        # Its own line is such as "Proclamation 9423 of April 12, 2016".
        lines = (line_of(child) for kind in element for child in kind if child.tag not in ("FP", "P", "HD"))
        name = next((line for line in lines if len(line) < TITLE_LENGTH and _ORDER_LINE.match(line)), name)
        agency = ""
    else:
        # The AGENCY line is in mixed case, unlike the headings.
        agency = " ".join(_lines(element.iterfind("PREAMB/AGY/P"))).rstrip(".")
        agency = agency or "; ".join(_lines(element.iter("AGENCY", "SUBAGY")))
    cited = name if name[-1:].isdigit() or not number else f"{name} {number}"
    head = f"{cited} ({cut(agency, AGENCY_LENGTH)})" if agency else cited
    subject = next(iter(_lines(element.iter("HD" if is_presidential else "SUBJECT"))), "")
    # The action, a heading beside it ("CFR Correction") or the number ("C1-2013-1") says that it is a correction.
    is_correction = (
        _OF_CORRECTION.match(number)
        or any(map(_CORRECTS.search, _lines(element.iterfind("PREAMB/ACT"))))
        or any(map(_CORRECTION.fullmatch, _lines(element.iterfind("PREAMB/HD"))))
    )
    family = f"FR-{number}" if number else spare
    is_part = number and re.fullmatch(rf"{re.escape(number)}-\w{{1,8}}", stem)
    year = issued or _year_of(number, filing) or "unknown"
    return Document(
        doc_id=f"FR-{stem}" if is_part else family,
        text=text,
        title=cut(f"{head}: {subject}" if subject else head),
        stratum="/".join((stratum, year, bucket(len(text)))),
        family=family,
        url=f"https://www.federalregister.gov/d/{number}" if number else "",
        sections=sections,
        status="correction" if is_correction else "",
    )


def _lines(elements: Iterable[etree._Element]) -> list[str]:
    return [line for line in map(line_of, elements) if line]


def _year_of(number: str, filing: str) -> str:
    """Return the year in a document's number (2013-27337, 04-16753, E8-23178) or else of its filing; "" for none."""
    parts = number.split("-")
    first = parts[1] if len(parts) > 2 else parts[0]
    if _YEAR.fullmatch(first):
        return first
    if re.fullmatch(r"[A-Z]\d", first):
        return f"200{first[1]}"
    short = first if re.fullmatch(r"\d\d", first) else "".join(_FILED.findall(filing)[:1])
    return f"{'19' if short > '80' else '20'}{short}" if short else ""


def _rearrange(root: etree._Element) -> None:
    """Give elements their place by what they say, where files put it otherwise."""
    # Tables of contents repeat the headings: the heading that says so and the lists right after it.
    for heading in list(root.iter("HD")):
        if _CONTENTS.fullmatch(heading.text or ""):
            for sibling in takewhile(lambda each: each.tag in _LISTED, heading.itersiblings()):
                sibling.tag = heading.tag = "CONTENTS"
    sections = list(root.iter("SECTION"))
    # An appendix in a section goes behind it: some files never close the last section of a part.
    for section in sections:
        last, appendix = section, None
        for child in list(section):
            if child.tag == "HD" and _APPENDIX.match(child.text or ""):
                appendix = etree.Element("APPENDIX")
                last.addnext(appendix)
                last = appendix
            if appendix is not None:
                appendix.append(child)
    # A subpart's heading at the end of a REGTEXT goes into the next one, which has what stands in the subpart.
    for amendments in list(root.iter("REGTEXT")):
        subpart, following = next(reversed(amendments), None), amendments.getnext()
        if subpart is None or subpart.tag != "SUBPART" or following is None or following.tag != "REGTEXT":
            continue
        is_heading = [child.tag for child in subpart] == ["HD"] and not (subpart.tail or "").strip()
        if is_heading and not (following.text or "").strip() and following.attrib == amendments.attrib:
            following.insert(0, subpart)
    # A heading that announces what the next instruction amends goes right before it, into the regulatory text that
    # begins there. "[Reserved]" announces nothing: it is what the instruction before puts into the Code.
    for section in sections:
        is_heading = all(child.tag in ("SECTNO", "SUBJECT") for child in section) and not (section.tail or "").strip()
        following = section.getnext() if is_heading else None
        if following is not None and following.tag == "REGTEXT" and not (following.text or "").strip():
            following = next(iter(following), None)
        is_instruction = following is not None and following.tag == "AMDPAR"
        if following is not None and is_instruction and _ANNOUNCES.fullmatch(line_of(section)):
            section.tag = ANNOUNCED
            following.addprevious(section)
