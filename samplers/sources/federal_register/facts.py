"""What a document of the Federal Register says about itself: number, date, agency, subject, kind."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lxml import etree

from samplers.formats.gpo.inline import line_of
from samplers.formats.headings import TITLE_LENGTH, cut

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

_NUMBER = re.compile(r"FR Doc\.?\s*(?:No\.?:?\s*)?([A-Z]?\d+(?:[-–][A-Z]?\d+)+|[A-Z]\d[-–]\d+)")
_FILED = re.compile(r"Filed\s+\d+-\d+-(\d\d)\b")
_OF_CORRECTION = re.compile(r"C\d+-")
_CORRECTION = re.compile(r"(?:\w{1,20} )?Corrections?\.?", re.I)
_CORRECTS = re.compile(r"\bcorrect(?:s|ed|ing|ions?)\b", re.I)
_ORDER_LINE = re.compile(r"(?:Executive Order|Proclamation|Presidential Determination|Memorandum|Notice)\b.*\d")


class Facts(NamedTuple):
    """What a document states; a part that it leaves open is ""."""

    stratum: str
    name: str
    number: str
    year: str
    agency: str
    subject: str
    is_correction: bool


def facts(document: etree._Element, year: str) -> Facts:
    """The facts of a settled RULE, PRORULE, NOTICE or PRESDOCU; `year` is its issue's, "" if none is known."""
    kind = next((child.tag for child in document if child.tag in TYPES), document.tag)
    stratum, name = TYPES[kind]
    filing = " ".join(map(line_of, document.iter("FRDOC", "FILED")))
    found = _NUMBER.search(filing)
    number = found[1].replace("–", "-") if found else ""
    is_presidential = document.tag == "PRESDOCU"
    return Facts(
        stratum=stratum,
        name=_order_line(document) or name if is_presidential else name,
        number=number,
        year=year or _year_of(number, filing),
        agency="" if is_presidential else _agency(document),
        subject=next(_lines(document.iter("HD" if is_presidential else "SUBJECT")), ""),
        is_correction=_is_correction(document, number),
    )


def title_of(known: Facts) -> str:
    """What people cite, then who published it, then what it is about."""
    cited = " ".join(filter(None, (known.name, "" if known.name[-1:].isdigit() else known.number)))
    head = f"{cited} ({cut(known.agency, AGENCY_LENGTH)})" if known.agency else cited
    whole = f"{head}: {known.subject}" if known.subject else head
    return cut(whole)


def _year_of(number: str, filing: str) -> str:
    """The year in a document's number (2013-27337, 04-16753, E8-23178) or else of its filing; "" for none."""
    parts = number.split("-")
    first = parts[1] if len(parts) > 2 else parts[0]
    if re.fullmatch(r"(?:19|20)\d\d", first):
        return first
    if re.fullmatch(r"[A-Z]\d", first):
        return f"200{first[1]}"
    short = first if re.fullmatch(r"\d\d", first) else "".join(_FILED.findall(filing)[:1])
    return f"{'19' if short > '80' else '20'}{short}" if short else ""


def _is_correction(document: etree._Element, number: str) -> bool:
    """Whether the action, a heading beside it ("CFR Correction") or the number ("C1-2013-1") says so."""
    actions, headings = (map(line_of, document.iterfind(f"PREAMB/{tag}")) for tag in ("ACT", "HD"))
    return (
        _OF_CORRECTION.match(number) is not None
        or any(map(_CORRECTS.search, actions))
        or any(map(_CORRECTION.fullmatch, headings))
    )


def _agency(document: etree._Element) -> str:
    """The agency by its name in the AGENCY line, which is in mixed case, or else as the headings print it."""
    named = " ".join(_lines(document.iterfind("PREAMB/AGY/P"))).rstrip(".")
    return named or "; ".join(_lines(document.iter("AGENCY", "SUBAGY")))


def _order_line(document: etree._Element) -> str:
    """How a presidential document is numbered and dated, such as "Proclamation 9423 of April 12, 2016"; "" if not."""
    lines = (line_of(child) for kind in document for child in kind if child.tag not in ("FP", "P", "HD"))
    return next((line for line in lines if len(line) < TITLE_LENGTH and _ORDER_LINE.match(line)), "")


def _lines(elements: Iterable[etree._Element]) -> Iterator[str]:
    return filter(None, map(line_of, elements))
