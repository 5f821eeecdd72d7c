"""Documents of govinfo by the names of their packages, no key: what a name says, and where its file lies."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from samplers.feeds.client import Client
from samplers.feeds.request import Item, Located, PackageFile, located
from samplers.sources.bills.reader import VERSIONS

_CONTENT = "https://www.govinfo.gov/content/pkg"
_LAWS = "https://www.govinfo.gov/bulkdata/PLAW"
_BILL = re.compile(r"BILLS-(?P<congress>\d{2,3})(?P<type>[hs][a-z]{0,7})(?P<number>\d{1,6})(?P<version>[a-z]{2,4}\d?)")
_LAW = re.compile(r"PLAW-(?P<congress>\d{2,3})(?P<class>publ|pvtl)\d{1,4}")
_PRINT = re.compile(r"(?:CHRG|CRPT)-(?P<congress>\d{2,3})(?P<class>[a-z]{4})[A-Za-z0-9-]{1,40}")
_GRANULE = re.compile(r"(?P<package>CREC-(?P<year>\d{4})-\d\d-\d\d)-pt\d{1,2}-Pg(?P<section>[HSED])\d[\w-]{0,20}")

_SECTIONS = {"H": "house", "S": "senate", "E": "extensions", "D": "digest"}


def bill_item(name: str, url: str = "") -> Item | None:
    """A bill's file, "BILLS-119hr888ih.xml"; its versions are one family. None for another name."""
    stem = name.removesuffix(".xml")
    found = _BILL.fullmatch(stem)
    if not found or stem == name:
        return None
    chamber = "house" if found["type"].startswith("h") else "senate"
    stage = VERSIONS.get(found["version"], ("other", ""))[0]
    stratum = f"{found['congress']}/{chamber}/{stage}"
    family = f"{found['congress']}-{found['type']}-{found['number']}"
    return Item(name, url or f"{_CONTENT}/{stem}/xml/{name}", "xml", stratum, family)


def bill_file(doc_id: str) -> PackageFile | None:
    """The file of a bill's package, of the edition that the package names; None for another id."""
    found, item = _BILL.fullmatch(doc_id), bill_item(f"{doc_id}.xml")
    return PackageFile(doc_id, found["version"], item.url) if found and item else None


def law_item(name: str, url: str = "") -> Item | None:
    """A law's file in USLM, "PLAW-113publ121.xml"; None for another name."""
    stem = name.removesuffix(".xml")
    found = _LAW.fullmatch(stem)
    if not found or stem == name:
        return None
    is_public = found["class"] == "publ"  # private laws are not in the bulk data
    place = f"{_LAWS}/{found['congress']}/public/{name}" if is_public else f"{_CONTENT}/{stem}/uslm/{name}"
    return Item(name, url or place, "xml", found["congress"], stem)


def print_item(package: str) -> Item | None:
    """A hearing or committee report, "CHRG-110hhrg44900" or "CRPT-118srpt62"; None for another name."""
    found = _PRINT.fullmatch(package)
    if not found:
        return None
    return Item(f"{package}.htm", _text_url(package, package), "htm", f"{found['congress']}/{found['class']}")


def granule_item(granule: str) -> Item | None:
    """A granule of the Record, "CREC-2005-07-20-pt1-PgH6174"; None for front matter and other names."""
    found = _GRANULE.fullmatch(granule)
    if not found:
        return None
    stratum = f"{_SECTIONS[found['section']]}/{found['year']}"
    return Item(f"{granule}.htm", _text_url(found["package"], granule), "htm", stratum)


def _located(item_of: Callable[[str], Item | None], _: Client, doc_ids: Iterable[str]) -> Located:
    return located((doc_id, item_of(doc_id) or "its id is none of govinfo's") for doc_id in doc_ids)


locate_bills = partial(_located, lambda doc_id: bill_item(f"{doc_id}.xml"))
locate_laws = partial(_located, lambda doc_id: law_item("-".join(doc_id.split("-")[:2]) + ".xml"))
"""Sections have the law's name in their ids, "PLAW-113publ79-s1001"."""
locate_prints = partial(_located, print_item)
locate_granules = partial(_located, granule_item)


def _text_url(package: str, name: str) -> str:
    return f"{_CONTENT}/{package}/html/{name}.htm"
