"""Which title of the U.S. Code a file holds, as of which release point."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.safe_xml import local_name, plain_text
from samplers.formats.uslm.names import RANKS, SECTION_RANK

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


def edition(root: etree._Element, name: str) -> Edition:
    """What a file says of itself; its name counts if it says nothing. DocumentError if it is not the Code's."""
    kind = local_name(root)
    known = kind == "uscDoc" or RANKS.get(kind, SECTION_RANK + 1) <= SECTION_RANK
    found = next(_identified(root), None)
    if not known or (kind != "uscDoc" and not found):
        raise DocumentError(name, f"the root element is <{kind[:30]}>, which this source does not have")
    facts = _facts(root)
    in_name = _IN_NAME.search(name)
    title = found or facts.get("docNumber", "") or (in_name[1] if in_name else "")
    if not re.fullmatch(r"\d{1,2}[a-z]?", title, re.I):
        raise DocumentError(name, "it does not say which title of the Code it is")
    title = title.lower()
    return Edition(title, _release(facts, name), _POSITIVE.get(facts.get("property", "")) or _as_enacted(title))


def _as_enacted(title: str) -> str:
    """Whether a title is positive law; "unknown" for an appendix and for a title that the Code does not have."""
    if not title.isdigit() or not 1 <= int(title) <= _LAST_TITLE:
        return "unknown"
    return "positive" if title in _ENACTED else "non-positive"


def age(document: Document) -> Age:
    """Greater for the newer of two editions of a section.

    A release point is a law; one that leaves laws out is older than the same one without exceptions. A file that
    states a day alone is older than every release point of that day's Congress.
    """
    release = document.doc_id.rpartition("@")[2]
    if point := _RELEASE.fullmatch(release):
        return int(point[1]), int(point[2]), 0 if point[3] else 1, ""
    if day := _DATE.fullmatch(release):
        return (int(day[1]) - 1789) // 2 + 1, 0, 0, release
    return 0, 0, 0, ""


def _identified(root: etree._Element) -> Iterator[str]:
    """The titles that identifiers name."""
    for element in root.iter():
        if match := _IDENTIFIER.fullmatch(element.get("identifier") or ""):
            yield match[1]


def _facts(root: etree._Element) -> dict[str, str]:
    """The first value of each fact that `meta` states; of its properties only whether the title is positive law."""
    facts: dict[str, str] = {}
    for fact in (fact for meta in root if local_name(meta) == "meta" for fact in meta):
        if local_name(fact) != "property" or fact.get("role") == "is-positive-law":
            facts.setdefault(local_name(fact), plain_text(fact))
    return facts


def _release(facts: dict[str, str], name: str) -> str:
    stated = _RELEASE.search(facts.get("docPublicationName", "")) or _RELEASE.search(name)
    days = (_DATE.search(facts.get(fact, "")) for fact in ("created", "processedDate"))
    found = stated or next(filter(None, days), None)
    return found[0] if found else ""
