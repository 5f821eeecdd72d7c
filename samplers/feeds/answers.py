"""What an answer has to look like before it is taken for the file that was asked for."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from runner.base.http_client import Busy
from samplers.feeds.endpoints import Refused, shown
from samplers.feeds.request import Kind


class Form(NamedTuple):
    """A kind of answer: its name in messages, what is asked for, and the types that it may declare."""

    name: str
    accept: str
    types: tuple[str, ...]


FORMS: Mapping[Kind, Form] = {
    "xml": Form("XML", "application/xml, text/xml;q=0.9", ("application/xml", "text/xml")),
    "htm": Form("a text in HTML", "text/html", ("text/html",)),
    "html": Form("an HTML page", "text/html", ("text/html", "application/xhtml+xml")),
    "zip": Form("a ZIP", "application/zip", ("application/zip", "application/x-zip-compressed")),
    # govinfo's listings answer 406 without it.
    "json": Form("JSON", "application/json", ("application/json",)),
}
_UNSPECIFIC = ("", "application/octet-stream", "binary/octet-stream", "text/plain")
"""Types that say nothing; the content decides."""

_HEAD, _TAIL = 16_384, 4_096
"""Bytes looked at from either end: prologs and trailing comments are shorter."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)
_DOCTYPE = re.compile(rb"<!doctype\s{1,9}html\b", re.I)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]{0,80})")


class Cut(Busy):
    """An answer that ends before it is whole."""


def check_type(kind: Kind, content_type: str, place: str) -> None:
    """Raise Refused, which names what came instead, unless the declared type can be that of `kind`."""
    declared = content_type.partition(";")[0].strip().lower()
    if declared in FORMS[kind].types + _UNSPECIFIC or (kind == "json" and declared.endswith("+json")):
        return
    name = "an HTML page" if declared == "text/html" else re.sub(r"[^a-z0-9/.+\[\]-]", "?", shown(declared, 60))
    raise Refused(f"{place} is {name} where {FORMS[kind].name} is due.")


def check_content(kind: Kind, data: bytes, place: str) -> None:
    """Raise Refused for bytes of another kind than `kind`, and Cut if their end is missing."""
    if not data.strip():
        raise Cut("the answer is empty")
    if kind == "json":
        return
    head, tail = _plain(data[:_HEAD]), _plain(data[-_TAIL:])
    found = _ROOT.search(head)
    root = found[1] if found else b"?"
    is_markup = head.startswith(b"<")
    is_page = root.lower() == b"html" or _DOCTYPE.search(head) is not None
    is_due = data.startswith(b"PK") if kind == "zip" else is_markup and is_page == (kind != "xml")
    if not is_due:
        name = "an HTML page" if is_markup and is_page else "something else"
        raise Refused(f"{place} is {name} where {FORMS[kind].name} is due.")
    if kind == "htm" and b"<pre" not in head.lower():
        raise Refused(f"{place} is a page about something else: it has no printed text in it.")
    if kind != "zip" and b"</" + root.lower() not in tail.lower() and not tail.rstrip().endswith(b"/>"):
        raise Cut(f"the answer ends without </{root.decode('ascii', 'replace')}>")


def _plain(piece: bytes) -> bytes:
    """Return a piece of a file without byte order marks, comments and the zeros of UTF-16."""
    for mark in _MARKS:
        piece = piece.removeprefix(mark)
    return _COMMENT.sub(b"", piece.replace(b"\0", b"")).lstrip()
