"""Which title and edition of the Code of Federal Regulations a file holds, and how documents of it are cited."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from lxml import etree

from runner.base.errors import DocumentError
from samplers.formats.gpo.inline import line_of

CURRENT = "ecfr"
"""The edition of eCFR files that state no date: what govinfo's bulk data and ecfr.gov serve at any time."""

UNDATED = "undated"
"""The edition of an annual file that states no year."""

_REVISED = ((16, "01"), (27, "04"), (41, "07"), (50, "10"))
"""The month in which the annual edition of the titles up to a number is revised."""

_PATH_DATE = re.compile(r"/on/(\d{4}-\d\d-\d\d)/")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-\d\d-\d\d(?!\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_TITLE = re.compile(r"title[-_ ]?(\d{1,2})(?!\d)", re.I)
_DIGITS = re.compile(r"\d{1,2}")
_DATED = ("DIV5", "DIV8", "DIV9")
_ONE_NUMBER = re.compile(r"[\w.]+")


class Edition(NamedTuple):
    """A title of the Code as of a year (annual edition) or day (eCFR)."""

    title: str
    date: str
    is_ecfr: bool

    def section_url(self, part: str, number: str) -> str:
        """Return the official page of a section; of its part where `number` names several sections or none."""
        is_one = number.startswith(f"{part}.") and _ONE_NUMBER.fullmatch(number)
        if self.is_ecfr:
            return self._ecfr(f"section-{quote(number)}" if is_one else f"part-{quote(part)}" if part else "")
        return self._govinfo(part, number.removeprefix(f"{part}.") if is_one else "")

    def appendix_url(self, part: str, name: str) -> str:
        """Return the official page of an appendix on ecfr.gov; of its part in the annual edition."""
        if self.is_ecfr:
            return self._ecfr(f"part-{quote(part)}/appendix-{quote(name)}" if part else "")
        return self._govinfo(part, "")

    def _ecfr(self, page: str) -> str:
        when = "current" if self.date == CURRENT else f"on/{self.date}"
        return f"https://www.ecfr.gov/{when}/title-{self.title}/{page}" if page else ""

    def _govinfo(self, part: str, section: str) -> str:
        year = "mostrecent" if self.date == UNDATED else self.date
        which = f"sectionnum={quote(section)}&year={year}" if section else f"year={year}"
        return f"https://www.govinfo.gov/link/cfr/{self.title}/{quote(part)}?{which}" if part else ""


def edition(root: etree._Element, name: str) -> Edition:
    """Return what the file says of itself, else its name; DocumentError if neither states the title."""
    is_ecfr = str(root.tag).startswith(("DIV", "ECFR", "DLPS"))
    if is_ecfr:
        # In bulk data the number of DIV1 is that of the volume, and NODE alone has the title's; both are searched for
        # through the whole file, the surest first.
        paths = map(_TITLE.search, _attributes(root, "hierarchy_metadata"))
        titles = (
            next(_attributes(root, "NODE"), "").partition(":")[0],
            next((path[1] for path in islice(paths, 1) if path), ""),
            next((element.get("N", "") for element in root.iter("DIV1")), ""),
        )
        stated = next(filter(_DIGITS.fullmatch, titles), "")
        days = (day[1] for path in _attributes(root, "hierarchy_metadata", *_DATED) if (day := _PATH_DATE.search(path)))
        date = next(days, "") or (_DATE.findall(name) or [CURRENT])[-1]
    else:
        printed = (
            _DIGITS.search(line_of(e)) for path in ("FDSYS/CFRTITLE", ".//TITLENUM") for e in root.iterfind(path)
        )
        number = next(printed, None)
        stated, date = number[0] if number else "", annual_year(root, name)
    title = (stated or (_TITLE.findall(name) or [""])[-1]).lstrip("0")
    if not title:
        raise DocumentError(name, "neither the file nor its name states a title of the CFR")
    return Edition(title, date, is_ecfr)


def _attributes(root: etree._Element, attribute: str, *tags: str) -> Iterator[str]:
    return (value for element in root.iter(*tags) if (value := element.get(attribute)))


def annual_year(root: etree._Element, name: str) -> str:
    """Return the year of an annual edition; UNDATED if neither the file nor its name states one."""
    printed = (
        line_of(e) for path in ("FDSYS/DATE", ".//TITLEPG/REVISED", ".//TITLEPG/DATE") for e in root.iterfind(path)
    )
    years = (year[0] for text in (*printed, name) if (year := _YEAR.search(text)))
    return next(years, UNDATED)


def order(edition_date: str, title: str) -> str:
    """Return a day that orders editions: the revision of an annual one, the day of an eCFR file, last those undated."""
    if edition_date == CURRENT:
        return "9999"
    if not _YEAR.fullmatch(edition_date):
        return edition_date if _DATE.fullmatch(edition_date) else ""
    month = next((month for last, month in _REVISED if title.isdigit() and int(title) <= last), "01")
    return f"{edition_date}-{month}-01"
