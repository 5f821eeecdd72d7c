"""Which source a file belongs to, from its first kilobytes: nothing is parsed."""

import codecs
import re
from collections.abc import Mapping
from typing import NamedTuple

from samplers.registry import SOURCES

LOOKED_AT = 16_384
"""Bytes of a file that are looked at: prolog, DOCTYPE and processing instructions of a public law take 2,000."""

_ROOTS: Mapping[str, str] = {root: row.name for row in SOURCES.values() for root in row.known_by.roots}
"""Local name of the root element -> source; a level of USLM (section, chapter) is told by its identifier instead."""

_IDENTIFIERS: Mapping[str, str] = {word: row.name for row in SOURCES.values() for word in row.known_by.identifiers}
_IDENTIFIER = re.compile(rb'identifier="/us/([a-z]+)/')
_ROOT = re.compile(
    rb"(?:\s++|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:\[.*?\]\s*+)?>)*+"
    rb"<(?:[A-Za-z_][\w.-]*+:)?([A-Za-z_][\w.-]*+)",
    re.S,
)
"""The first element behind white space, prolog, comments and DOCTYPE, its local name as the group."""


def _words(line: str) -> re.Pattern[bytes]:
    """Return a pattern of a line; a search for a newline takes a fiftieth of one that tries `^` at every byte."""
    return re.compile(line.replace("^", r"\n").encode())


_FIRST_LINES = [(_words(line), row.name) for row in SOURCES.values() for line in row.known_by.lines]
"""Words that the publisher prints at the head of each file of a source; those that stand first in a file count."""

_PDF_NAMES = [(re.compile(name), row.name) for row in SOURCES.values() for name in row.known_by.pdf_names]
"""A PDF's first kilobytes are compressed, so only its name can speak."""


class Recognised(NamedTuple):
    """A file's source, "" if it is not known, and what gave it away."""

    source: str
    clue: str


def named_elsewhere(data: bytes, name: str, source: str) -> str:
    """Return what a file is that is not read as one of `source`, in words; "" if it should be or is unknown."""
    of, clue = recognised(data, name)
    return f"this is a {of} file ({clue}), not one of {source}" if of not in ("", source) else ""


NOT_ITS_SOURCE = re.compile(r"this is a (\w+) file \(")
"""How such a reason begins."""


def recognised(data: bytes, name: str) -> Recognised:
    """Return the source that a file belongs to, "" for an unknown one."""
    head = _single_bytes(data[:LOOKED_AT])
    if b"%PDF-" in head[:1024] or name.lower().endswith(".pdf"):
        stem = name.rpartition("/")[2]
        return Recognised(next((of for pattern, of in _PDF_NAMES if pattern.search(stem)), ""), "a PDF of that name")
    # XML: the root decides, and below it nothing is looked at.
    match = _ROOT.match(head)
    root = match[1].decode("latin-1") if match else ""
    if root and root.lower() not in ("html", "head", "title", "body", "pre"):
        # A level of USLM is of the source that its identifier names.
        identifier = _IDENTIFIER.search(head)
        by_identifier = _IDENTIFIERS.get(identifier[1].decode(), "") if identifier else ""
        return Recognised(_ROOTS.get(root, by_identifier), f"root <{root[:40]}>")
    # Text: of all publishers' words the first in the file decides.
    head = b"\n" + head
    lines = [(match, source) for pattern, source in _FIRST_LINES if (match := pattern.search(head))]
    if not lines:
        return Recognised("", "")
    first, source = min(lines, key=lambda line: line[0].start())
    words = " ".join(first[0].decode("latin-1").split())
    return Recognised(source, f'it begins with "{words}"')


def _single_bytes(head: bytes) -> bytes:
    """Return one byte a character, as far as ASCII goes: a UTF-16 file loses its every other NUL."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", errors="replace").encode("ascii", errors="replace")
    return head.removeprefix(codecs.BOM_UTF8)
