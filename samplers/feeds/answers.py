"""What an answer has to look like before it is taken for the file that was asked for."""

import re
from collections.abc import Mapping

from runner.base.http_client import Busy
from samplers.feeds.endpoints import Refused, shown
from samplers.feeds.request import Kind

MEDIA_TYPES: Mapping[Kind, frozenset[str]] = {
    "xml": frozenset(("application/xml", "text/xml")),
    "htm": frozenset(("text/html",)),
    "html": frozenset(("text/html", "application/xhtml+xml")),
    "zip": frozenset(("application/zip", "application/x-zip-compressed")),
    "json": frozenset(("application/json",)),
}
_UNSPECIFIC = frozenset(("", "application/octet-stream", "binary/octet-stream", "text/plain"))
"""Types that say nothing; the content decides."""

_HEAD, _TAIL = 16_384, 4_096
"""Bytes looked at from either end: prologs and trailing comments are shorter."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)
_DOCTYPE = re.compile(rb"<!doctype\s{1,9}html\b", re.I)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]{0,80})")


class Cut(Busy):
    """An answer that ends before it is whole."""


def check_type(kind: Kind, content_type: str, url: str) -> None:
    """Raise Refused, which names what came instead, unless the declared type can be that of `kind`."""
    declared = content_type.partition(";")[0].strip().lower()
    if declared in MEDIA_TYPES[kind] or declared in _UNSPECIFIC or (kind == "json" and declared.endswith("+json")):
        return
    raise Refused(f"{url} is {_named(declared)} where {_NAMES[kind]} is due.")


def check_content(kind: Kind, data: bytes, url: str) -> None:
    """Raise Refused for bytes of another kind than `kind`, and Cut if their end is missing."""
    if not data.strip():
        raise Cut("the answer is empty")
    if kind in ("xml", "htm", "html"):
        _check_markup(kind, data, url)
    elif kind == "zip" and not data.startswith(b"PK"):
        raise Refused(f"{url} is {_found(data)} where a ZIP is due.")


def _check_markup(kind: Kind, data: bytes, url: str) -> None:
    head, tail = _plain(data[:_HEAD]), _plain(data[-_TAIL:])
    root = _root(head)
    if not head.startswith(b"<") or _is_page(head) == (kind == "xml"):
        raise Refused(f"{url} is {_found(data)} where {_NAMES[kind]} is due.")
    if kind == "htm" and b"<pre" not in head.lower():
        raise Refused(f"{url} is a page about something else: it has no printed text in it.")
    if b"</" + root.lower() not in tail.lower() and not tail.rstrip().endswith(b"/>"):
        raise Cut(f"the answer ends without </{root.decode('ascii', 'replace')}>")


def _plain(piece: bytes) -> bytes:
    """A piece of a file without byte order marks, comments and the zeros of UTF-16."""
    for mark in _MARKS:
        piece = piece.removeprefix(mark)
    return _COMMENT.sub(b"", piece.replace(b"\0", b"")).lstrip()


def _root(head: bytes) -> bytes:
    found = _ROOT.search(head)
    return found[1] if found else b"?"


def _is_page(head: bytes) -> bool:
    return _root(head).lower() == b"html" or _DOCTYPE.search(head) is not None


def _found(data: bytes) -> str:
    head = _plain(data[:_HEAD])
    return "an HTML page" if head.startswith(b"<") and _is_page(head) else "something else"


_NAMES: Mapping[Kind, str] = {
    "xml": "XML",
    "htm": "a text in HTML",
    "html": "an HTML page",
    "zip": "a ZIP",
    "json": "JSON",
}


def _named(declared: str) -> str:
    return "an HTML page" if declared == "text/html" else re.sub(r"[^a-z0-9/.+\[\]-]", "?", shown(declared, 60))
