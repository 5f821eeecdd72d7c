"""Files of any kind as documents: Markdown with its front matter, plain text, HTML, PDF, and JSON, of which each record
is one.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from runner.base.canonical import parse_json
from runner.base.errors import DocumentError
from runner.base.plain_yaml import parse_yaml
from runner.base.records import Document
from samplers.formats.documents import HTML, MARKDOWN, MARKUP, Layout, content_of, lines_of, lines_of_pdf
from samplers.formats.pdf.text import MAX_BYTES, pdf_pages
from samplers.formats.text_writer import visible
from samplers.source_format import FileContent, Reader

_RECORDS = ("json", "jsonl", "ndjson")

_UNPACKED = 1_000_000
"""Bytes of a file packed with gzip that are unpacked."""

_FRONT = re.compile(
    r"---[ \t]*\n(?=\s*(?:#[^\n]*\n\s*)*[\w\"'][^\n:]{0,80}:(?:\s|$))(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S
)
"""What stands between two rules at the beginning, if it begins as a field does."""

_CHARSET = re.compile(rb"<meta\b[^<>]{0,200}?\bcharset\s*=\s*[\"']?((?:iso-8859|windows)-\d{1,4})", re.I)
_TAGS = re.compile(r"<(?:p|div|h[1-6]|ul|ol|table|br|section|article)\b[^<>]{0,500}>", re.I)
_HEADED = re.compile(r"^#{1,6}\s+\S", re.M)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))")
_SHOWN = 10
"""Names of fields that a message lists."""


def reader(layout: Layout) -> Reader:
    """Return the reader of documents that are laid out so."""
    return partial(read, layout=layout)


def read(data: bytes, name: str, _: frozenset[str], *, layout: Layout) -> FileContent:
    """Return the documents of a file; DocumentError for one that cannot be read."""
    of_file, suffix = places_of(name)
    is_pdf = b"%PDF-" in data[:1024]
    if suffix in _RECORDS and not is_pdf:
        return _records(decoded(data, name), name, suffix, layout)
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    if is_pdf:
        pages = pdf_pages(data, name)
        return content_of("".join(pages), lines_of_pdf(pages, layout), of_file | {"format": "pdf"}, name, layout)
    text = decoded(_in_utf8(data) if suffix in HTML else data, name)
    stated, start = _front_matter(text, name) if suffix in MARKDOWN else ({}, 0)
    words, lines, form = lines_of(text[start:], suffix, name, layout)
    return content_of(text[:start] + words, lines, _facts(stated) | of_file | form, name, layout)


def places_of(name: str) -> tuple[dict[str, str], str]:
    """Return the facts of a file's path (place, stem and folder), and its suffix in small letters."""
    path, _, suffix = name.rpartition(".") if "." in name.rpartition("/")[2] else (name, "", "")
    folder, _, stem = path.rpartition("/")
    facts = {"place": re.sub(r"[\s/]+", "-", path), "stem": stem, "folder": folder.rpartition("/")[2]}
    return facts, suffix.lower()


def decoded(data: bytes, name: str) -> str:
    """Return a file's text in NFC with plain line ends; DocumentError unless it is UTF-8."""
    if data.startswith(b"\x1f\x8b"):
        try:
            data = zlib.decompressobj(31).decompress(data, _UNPACKED)
        except zlib.error as error:
            raise DocumentError(name, "data packed with gzip, and damaged") from error
    if b"\0" in data:
        raise DocumentError(name, "binary data, neither text nor a PDF")
    try:
        return unicodedata.normalize("NFC", data.decode("utf-8-sig")).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start + 1})") from error


def _in_utf8(data: bytes) -> bytes:
    """Return a page in UTF-8; one that is in none and declares no other charset, or a false one, is left as it is."""
    declared = _CHARSET.search(data[:4096])
    with suppress(UnicodeDecodeError):
        data.decode()
        return data
    with suppress(UnicodeDecodeError, LookupError):
        return data.decode(declared[1].decode()).encode() if declared else data
    return data


def _front_matter(text: str, name: str) -> tuple[dict[Any, Any], int]:
    """Return the fields at the head of a text of Markdown, and where the text below them begins."""
    front = _FRONT.match(text)
    if not front:
        return {}, 0
    try:
        stated = parse_yaml(front[1])
    except ValueError as error:
        raise DocumentError(name, f"its front matter is not YAML ({str(error)[:150]})") from error
    if not isinstance(stated, dict):
        raise DocumentError(name, "its front matter has no fields (`name: value`)")
    return stated, front.end()


def _facts(stated: dict[Any, Any]) -> dict[str, str]:
    """Return the fields as texts, lists with a semicolon between their members; what is no plain value says nothing."""
    lists = {str(key): value if isinstance(value, list) else [value] for key, value in stated.items()}
    return {
        key: "; ".join(str(each) for each in values if each is not None and not isinstance(each, dict | list)).strip()
        for key, values in lists.items()
    }


def _records(text: str, name: str, suffix: str, layout: Layout) -> FileContent:
    """Return the documents of a file of JSON: an object, a list of objects, or an object a line."""
    of_file, _ = places_of(name)
    documents: list[Document] = []
    skipped, left_out = Counter[str](), Counter[str]()
    for number, record in _objects(text, name, suffix):
        where = f"record {number}: " if number else ""
        body = record.get(layout.text_field)
        if not isinstance(body, str | None) or (layout.hint and layout.text_field not in record):
            has = ", ".join(f"{key:.40}" for key in list(record)[:_SHOWN]) or "none"
            missing = f"no text in the field {layout.text_field!r}. Fields: {has}.{layout.hint}"
            raise DocumentError(name, f"{where}{missing if layout.hint else f'{layout.text_field} is not text'}")
        body = body or ""
        # Of a record nothing says what its text is written in.
        form = "html" if _TAGS.search(body) else "md" if _HEADED.search(body) else ""
        words, lines, facts = lines_of(body, form, name, layout)
        facts |= of_file | {"format": "json"}
        if number:
            facts["place"] = facts["stem"] = f"{of_file['place']}-{number}"
        stated = _facts({key: value for key, value in record.items() if key != layout.text_field})
        try:
            content = content_of(words, lines, stated | facts, name, layout)
        except DocumentError as error:
            raise DocumentError(name, f"{where}{error.reason}") from error
        documents += content.documents
        skipped.update(content.skipped)
        left_out.update({reason: n for reason, n in content.left_out.items() if reason != MARKUP})
    n_texts = sum(visible(document.text) for document in documents)
    left_out[MARKUP] = max(0, visible(_words_of_json(text)) - n_texts - left_out.total())
    return FileContent(tuple(documents), left_out, skipped)


def _words_of_json(text: str) -> str:
    """Return a text of JSON with its escapes as the characters that they stand for."""
    words = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[3] or " ", text)
    # Two escapes make one character of the upper planes.
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _objects(text: str, name: str, suffix: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a file with their numbers, 0 for one that is the file itself."""
    is_whole = suffix == "json"
    rows = [text] if is_whole else text.split("\n")
    for number, row in enumerate(rows, 1):
        if not row.strip() and not is_whole:
            continue
        try:
            value = parse_json(row, halves=True)
        except ValueError as error:
            where = "" if is_whole else f"line {number}: "
            raise DocumentError(name, f"{where}not JSON ({str(error)[:100]})") from error
        records = [(0 if is_whole else number, value)]
        if is_whole and isinstance(value, list):
            records = [*enumerate(value, 1)]
        for place, record in records:
            if not isinstance(record, dict):
                raise DocumentError(name, f"record {place or number} is not an object of JSON with fields")
            yield place, record
