"""govinfo's files by their names, no key: what a name says, and where its file lies."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from samplers.feeds.request import Item, PackageFile
from samplers.sources.bills import VERSIONS

BULK = "https://www.govinfo.gov/bulkdata"
_CONTENT = "https://www.govinfo.gov/content/pkg"

_WORDS = {
    "chamber": {"h": "house", "s": "senate"},
    "section": {"H": "house", "S": "senate", "E": "extensions", "D": "digest"},
    "stage": {code: stage for code, (stage, _) in VERSIONS.items()},
}
"""Words that a stratum has for the letters of a name; "other" for letters that are not here."""


class Name(NamedTuple):
    """A kind of file: the pattern of its name, and what follows from the pattern's groups.

    `id` is the whole name unless the pattern has a group of that name. The address ends in the file's name.
    """

    pattern: str
    url: str
    stratum: str = ""
    family: str = ""

    def item(self, name: str) -> Item | None:
        """Return the file of this name, None for a name of another kind."""
        match = re.fullmatch(self.pattern, name)
        if not match:
            return None
        words = {
            key: _WORDS[key].get(text, "other") if key in _WORDS else text for key, text in match.groupdict().items()
        }
        groups = {"id": name, **words}
        url = self.url.format(**groups)
        path = url.rpartition("/")[2]
        return Item(
            path,
            url,
            "htm" if path.endswith(".htm") else "xml",
            self.stratum.format(**groups),
            self.family.format(**groups),
        )


_BILL = r"BILLS-(?P<congress>\d{2,3})(?P<type>(?P<chamber>[hs])[a-z]{0,7})(?P<number>\d{1,6})(?P<stage>[a-z]{2,4}\d?)"
BILL = Name(
    _BILL, f"{_CONTENT}/{{id}}/xml/{{id}}.xml", "{congress}/{chamber}/{stage}", family="{congress}-{type}-{number}"
)
LAWS = (
    # Sections have the law's name in their ids, "PLAW-113publ79-s1001".
    Name(
        r"(?P<id>PLAW-(?P<congress>\d{2,3})publ\d{1,4})(?:-.*)?",
        f"{BULK}/PLAW/{{congress}}/public/{{id}}.xml",
        "{congress}",
        family="{id}",
    ),
    # Private laws are not in the bulk data.
    Name(
        r"(?P<id>PLAW-(?P<congress>\d{2,3})pvtl\d{1,4})(?:-.*)?",
        f"{_CONTENT}/{{id}}/uslm/{{id}}.xml",
        "{congress}",
        family="{id}",
    ),
)
PRINT = Name(
    r"(?:CHRG|CRPT)-(?P<congress>\d{2,3})(?P<class>[a-z]{4})[A-Za-z0-9-]{1,40}",
    f"{_CONTENT}/{{id}}/html/{{id}}.htm",
    "{congress}/{class}",
)
GRANULE = Name(
    # Front matter has no number after its section's letter.
    r"(?P<package>CREC-(?P<year>\d{4})-\d\d-\d\d)-pt\d{1,2}-Pg(?P<section>[HSED])\d[\w-]{0,20}",
    f"{_CONTENT}/{{package}}/html/{{id}}.htm",
    "{section}/{year}",
)


def first_item(names: Iterable[Name], name: str) -> Item | None:
    """Return the file that the name says by the first kind that it is of, None for none."""
    return next((item for kind in names if (item := kind.item(name))), None)


def package_file(source: str, doc_id: str) -> PackageFile | None:
    """Return the publisher's file that holds this document and no other, None if nothing says so."""
    match = re.fullmatch(_BILL, doc_id) if source == "bills" else None
    item = BILL.item(doc_id)
    return PackageFile(doc_id, match["stage"], item.url) if match and item else None
