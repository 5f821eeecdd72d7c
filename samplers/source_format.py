"""How the files of a source become documents, as its module tells the samplers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from runner.base.records import Document

MAX_BYTES = 40_000_000
"""The largest file that is read unless a source says otherwise; a larger one is quarantined unread.

The largest bill that govinfo has published is near 20 MB.
"""

WHOLE_TITLE = 160_000_000
"""The same for whole titles of the U.S. Code and the eCFR; reading takes about ten times a file's size of memory."""

MAX_ATTRIBUTES = 256
"""Attributes of one element: parsers take a time that grows with their square. Real elements have a dozen."""

TOO_MANY_ATTRIBUTES = f"an element has more than {MAX_ATTRIBUTES} attributes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A document without its text, title, address and sections, which lie on the disk while a corpus is sampled.

    `file` is the SHA-256 of the file that it was read from, `start` the place of the text on the shelf.
    """

    doc_id: str
    stratum: str
    family: str
    status: str
    n_characters: int
    n_sections: int
    file: str
    start: int


@dataclass(frozen=True)
class FileContent:
    """Documents of one file, with an account of what became no document's text.

    `left_out` counts characters that are not white space by reason, `skipped` whole documents that are outside the
    source's scope ("notices"), whose characters are in `left_out` too. `supplied` counts characters of the texts that
    stand in no file (marks that a stylesheet would print) or that are repeated. Counted in NFC,
    characters of the file = those of the texts - supplied + left out.
    """

    documents: tuple[Document, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    supplied: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "left_out", {reason: n for reason, n in self.left_out.items() if n})


Reader = Callable[[bytes, str, frozenset[str]], FileContent]
"""The documents in a file's bytes, given its name and the options in force; DocumentError if it cannot be read."""


@dataclass(frozen=True)
class SourceFormat:
    """One source's row: how its files are read and how documents of one family relate.

    `families`: "versions" of one text, of which a sample holds one, or "parts" of one whole, which stay together.
    `options` are words that a plan may give under `sample: {options: [...]}`, each with what it does.
    `newest` orders the versions of a family; where it is given, only the greatest of each family is a document.
    """

    read: Reader
    suffixes: tuple[str, ...]
    families: Literal["versions", "parts"] = "versions"
    options: Mapping[str, str] = field(default_factory=dict)
    newest: Callable[[Card], tuple[object, ...]] | None = None
    max_bytes: int = MAX_BYTES
