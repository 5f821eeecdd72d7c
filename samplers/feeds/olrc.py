"""United States Code from the Law Revision Counsel, no key: a page of links, and a ZIP for each title."""

import io
import re
import zipfile
import zlib

from runner.base.errors import BackendError
from samplers.feeds.client import Client
from samplers.feeds.endpoints import Refused
from samplers.feeds.request import FetchRequest, Item, Say

_SITE = "https://uscode.house.gov/download"
_LINK = re.compile(r"xml_usc(\d\d[aA]?)@(\d{1,3})-(\d{1,4}(?:not\d{1,4})*)\.zip")
_ID = re.compile(r"usc:(\d{1,2})([aA]?)-.+@(\d{1,3})-(\d{1,4}(?:not\d{1,4})*)")

_ENTRY = b"PK\x01\x02"
MAX_ENTRIES = 100
"""Files in a title's ZIP, counted before they are listed: 40 MB could name 800,000."""


def titles(client: Client, _: FetchRequest, say: Say) -> list[Item]:
    """Return all titles at the current release point; raise a BackendError unless the page names exactly one."""
    page = client.page(f"{_SITE}/download.shtml")
    links = sorted(set(_LINK.findall(page)))
    points = {(congress, law) for _, congress, law in links}
    if len(points) != 1:
        raise BackendError(
            f"{_SITE}/download.shtml names {len(points)} release points where one is due. Run it again later."
        )
    congress, law = points.pop()
    say(f"listed {len(links)} titles at release point {congress}-{law}")
    return [_item(title, congress, law) for title, *_ in links]


def title_with(doc_id: str) -> Item | None:
    """Return the title with a section, by an id that names its release point ("usc:9-1@113-31"); None for another."""
    match = _ID.fullmatch(doc_id)
    return _item(f"{int(match[1]):02}{match[2]}", match[3], match[4]) if match else None


def unzipped(data: bytes, name: str, limit: int) -> bytes:
    """Return the one XML file in a title's ZIP.

    Raise Refused for a damaged ZIP, another number of XML files, and more than `limit` bytes, declared or found.
    """
    # Counted in the bytes, since zipfile makes a record of each entry as it opens the archive.
    if data.count(_ENTRY) > MAX_ENTRIES:
        raise Refused(f"{name}: the ZIP has more than {MAX_ENTRIES} files where one is due.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.infolist() if member.filename.lower().endswith(".xml")]
            if len(members) != 1:
                raise Refused(f"{name}: the ZIP has {len(members)} XML files where one is due.")
            if members[0].file_size > limit:
                raise Refused(
                    f"{name} has {members[0].file_size / 1e6:,.0f} MB, more than the {limit / 1e6:,.0f} MB allowed."
                )
            with archive.open(members[0]) as stream:
                content = stream.read(limit + 1)  # one more than may be: the size declared may be false
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise Refused(f"{name}: the ZIP is damaged ({type(error).__name__}).") from error
    if len(content) > limit:
        raise Refused(f"{name} has more than the {limit / 1e6:,.0f} MB allowed.")
    return content


def _item(title: str, congress: str, law: str) -> Item:
    point = f"{congress}-{law}"
    url = f"{_SITE}/releasepoints/us/pl/{congress}/{law}/xml_usc{title}@{point}.zip"
    return Item(f"usc{title}@{point}.xml", url, "zip", "titles")
