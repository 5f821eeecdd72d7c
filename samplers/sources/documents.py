"""Anybody's documents: files of Markdown, text, HTML, PDF and JSON, and rows of a table, with fields that a plan names.

A field is one of a record of JSON, of a row, or of the front matter of Markdown. What no field says comes from the
file: its path is the id, its folder the stratum, its page's title or first heading the title.
"""

from functools import lru_cache

from samplers.formats.document_files import read
from samplers.formats.documents import DIVISIONS, WORDED, Layout
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


@lru_cache(8)
def _layout(options: frozenset[str]) -> Layout:
    """Return the layout that follows from the fields that a plan names."""
    fields = {name: name for name in FIELDS} | dict(option.split("=", 1) for option in options if "=" in option)
    named = {name: f"{{{field}}}" for name, field in fields.items()}
    return Layout(
        text_field=fields["text"],
        hint=" Name the one that has it: text=FIELD",
        headings=WORDED,
        words=DIVISIONS,
        doc_id=(named["id"], "{place}"),
        title=(named["title"], "{title}", "{heading}", "{first line}", "{stem}"),
        stratum=(named["stratum"], "{folder}"),
        family=(named["family"], "{doc_id}"),
        url=(named["url"],),
    )


def _read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    return read(data, name, options, layout=_layout(options))


FORMAT = SourceFormat(
    _read,
    suffixes=(".md", ".markdown", ".txt", ".text", ".html", ".htm", ".pdf", ".json", ".jsonl", ".ndjson"),
    options=FIELDS,
    max_bytes=WHOLE_TITLE,
)
