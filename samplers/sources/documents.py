"""Anybody's documents: files of Markdown, text, HTML, PDF and JSON, and rows of a table, with fields that a plan names.

A field is one of a record of JSON, of a row, or of the front matter of Markdown. What no field says comes from the
file: its path is the id, its folder the stratum, its page's title or first heading the title.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from runner.base.canonical import parse_json
from runner.base.errors import DocumentError
from runner.base.plain_yaml import parse_yaml
from runner.base.records import Document
from samplers.formats.documents import (
    DIVISIONS,
    LONGEST_HEADING,
    MARKUP,
    NO_TEXT,
    WORDED,
    Layout,
    Line,
    check_size,
    content_of,
    decoded,
    lines_of,
    lines_of_file,
    places_of,
    words_of_json,
)
from samplers.formats.text_writer import visible
from samplers.source_format import WHOLE_TITLE, FileContent, SourceFormat

FIELDS = {
    "text": "what has the text of a record or row",
    "title": "the title",
    "id": "the id",
    "stratum": "what is sampled in proportion, by default the folder",
    "family": "what versions of one text have in common",
    "url": "the address",
    "table": "the table of an SQLite database",
}
"""What a plan may name a field for, as an option `text=FIELD` of the reader; by default the field of that very name."""

_RECORDS = ("json", "jsonl", "ndjson")
_MARKDOWN = ("md", "markdown")
_FRONT = re.compile(
    r"---[ \t]*\n(?=\s*(?:#[^\n]*\n\s*)*[\w\"'][^\n:]{0,80}:(?:\s|$))(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S
)
"""What stands between two rules at the beginning, if it begins as a field does."""

_CHARSET = re.compile(rb"<meta\b[^<>]{0,200}?\bcharset\s*=\s*[\"']?((?:iso-8859|windows)-\d{1,4})", re.I)
_TAGS = re.compile(r"<(?:p|div|h[1-6]|ul|ol|table|br|section|article)\b[^<>]{0,500}>", re.I)
_HEADED = re.compile(r"^#{1,6}\s+\S", re.M)
_SHOWN = 10
"""Names of fields that a message lists."""


class _Fields:
    """What the options of a plan name, and the layout that follows."""

    def __init__(self, options: frozenset[str]) -> None:
        self.names = {name: name for name in FIELDS} | dict(option.split("=", 1) for option in options if "=" in option)
        named = {name: f"{{{field}}}" for name, field in self.names.items()}
        self.layout = Layout(
            headings=WORDED,
            words=DIVISIONS,
            doc_id=("{own id}", "{place}"),
            title=(named["title"], "{title}", "{heading}", "{first line}", "{stem}"),
            stratum="{own stratum}",
            family=(named["family"], "{doc_id}"),
            url=(named["url"],),
        )

    def facts(self, stated: Mapping[str, Any], of_file: Mapping[str, str], lines: Sequence[Line]) -> dict[str, str]:
        """Return what a document's fields and its file say of it; what is empty, or no plain value, says nothing."""
        facts = {str(key): value for key, each in stated.items() if (value := _plain(each))} | dict(of_file)
        # A text or a PDF has no marked heading: its first line is its title if it ends as none of a paragraph does.
        first = lines[0].text if lines else ""
        if 0 < len(first) <= LONGEST_HEADING and first[-1] not in ".,;:":
            facts["first line"] = first
        facts["own stratum"] = facts.get(self.names["stratum"]) or facts["folder"] or "unknown"
        if own := facts.get(self.names["id"]):
            facts["own id"] = re.sub(r"[\s/]+", "-", own)
        return facts


_fields = lru_cache(8)(_Fields)


def _plain(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return "; ".join(str(each) for each in values if each is not None and not isinstance(each, dict | list)).strip()


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    fields = _fields(options)
    of_file, suffix = places_of(name)
    if b"%PDF-" in data[:1024] or suffix not in (*_RECORDS, *_MARKDOWN):
        data = _in_utf8(data) if suffix in ("html", "htm") else data
        words, lines, facts = lines_of_file(data, name, fields.layout)
        return content_of(words, lines, fields.facts({}, facts, lines), name, fields.layout)
    if suffix in _RECORDS:
        return _records(decoded(data, name), name, suffix, fields)
    check_size(data, name)
    text = decoded(data, name)
    stated, body = _front_matter(text, name)
    _, lines, form = lines_of(body, suffix, name, fields.layout)
    return content_of(text, lines, fields.facts(stated, of_file | form, lines), name, fields.layout)


def _in_utf8(data: bytes) -> bytes:
    """Return a page in UTF-8; one that is in none and declares no other charset, or a false one, is left as it is."""
    declared = _CHARSET.search(data[:4096])
    with suppress(UnicodeDecodeError):
        data.decode()
        return data
    with suppress(UnicodeDecodeError, LookupError):
        return data.decode(declared[1].decode()).encode() if declared else data
    return data


def _front_matter(text: str, name: str) -> tuple[dict[Any, Any], str]:
    """Return the fields at the head of a text of Markdown, and the text below them."""
    found = _FRONT.match(text)
    if not found:
        return {}, text
    try:
        stated = parse_yaml(found[1])
    except ValueError as error:
        raise DocumentError(name, f"its front matter is not YAML ({str(error)[:150]})") from error
    if not isinstance(stated, dict):
        raise DocumentError(name, "its front matter has no fields (`name: value`)")
    return stated, text[found.end() :]


def _records(text: str, name: str, suffix: str, fields: _Fields) -> FileContent:
    """Return the documents of a file of JSON: an object, a list of objects, or an object a line."""
    of_file, _ = places_of(name)
    documents: list[Document] = []
    skipped, left_out = Counter[str](), Counter[str]()
    for number, record in _objects(text, name, suffix):
        place = f"{of_file['place']}-{number}" if number else of_file["place"]
        where = f"record {number}: " if number else ""
        body = record.get(fields.names["text"], record)
        if body is record or not isinstance(body, str | None):
            has = ", ".join(f"{key:.40}" for key in list(record)[:_SHOWN]) or "none"
            raise DocumentError(
                name,
                f"{where}no text in the field {fields.names['text']!r}. Fields: {has}. Name the one that has it: "
                "text=FIELD",
            )
        if body is None or not body.strip():
            skipped[NO_TEXT] += 1
            continue
        # Of a record nothing says what its text is written in.
        form = "html" if _TAGS.search(body) else "md" if _HEADED.search(body) else ""
        words, lines, facts = lines_of(body, form, name, fields.layout)
        stated = {key: value for key, value in record.items() if key != fields.names["text"]}
        try:
            of_record = fields.facts(stated, of_file | facts | {"place": place, "stem": place, "format": "json"}, lines)
            content = content_of(words, lines, of_record, name, fields.layout)
        except DocumentError as error:
            raise DocumentError(name, f"{where}{error.reason}") from error
        documents += content.documents
        skipped.update(content.skipped)
        left_out.update({reason: n for reason, n in content.left_out.items() if reason != MARKUP})
    n_texts = sum(visible(document.text) for document in documents)
    left_out[MARKUP] = max(0, visible(words_of_json(text)) - n_texts - left_out.total())
    return FileContent(tuple(documents), left_out, skipped)


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


FORMAT = SourceFormat(
    _read,
    suffixes=(".md", ".markdown", ".txt", ".text", ".html", ".htm", ".pdf", ".json", ".jsonl", ".ndjson"),
    options=FIELDS,
    max_bytes=WHOLE_TITLE,
)
