"""Documents of a corpus on the disk, so that only what sampling asks of each is in memory."""

import json
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping

from runner.base.places import cache_folder
from runner.base.records import Document, Section, Span
from runner.base.store import disk_errors
from samplers.source_format import Card

IN_MEMORY = 16_000_000
"""Bytes up to which nothing is written to the disk."""

_LENGTH = 8
"""Bytes in which a piece's length stands before it."""


class Shelf:
    """Documents by their cards, in a file without a name, which the system removes however this process ends."""

    def __init__(self) -> None:
        # Beside the cache, since the folder of temporary files may be in memory.
        self._folder = cache_folder()
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(self._folder))  # noqa: SIM115
        self._end = 0
        weakref.finalize(self, self._file.close)

    def put(self, document: Document, file: str) -> Card:
        """Keep a document, which was read from a file of this SHA-256; return its card."""
        sections = [(s.span.start, s.span.end, s.level, s.kind, s.label) for s in document.sections]
        start = self._end
        # The text comes first and alone: most is asked of it.
        self._write(document.text.encode("utf-8", "surrogatepass"))
        self._write(json.dumps([document.title, document.url, sections]).encode())
        return Card(
            doc_id=document.doc_id,
            stratum=sys.intern(document.stratum),  # of which a corpus has few
            family=document.family,
            status=document.status,
            n_characters=len(document.text),
            n_sections=len(sections),
            file=file,
            start=start,
        )

    def _write(self, piece: bytes) -> None:
        """Append a piece behind its length."""
        with disk_errors(self._folder):
            if self._end + len(piece) + _LENGTH > IN_MEMORY >= self._end:
                self._folder.mkdir(parents=True, exist_ok=True)
            self._file.seek(self._end)
            self._file.write(len(piece).to_bytes(_LENGTH, "big") + piece)
        self._end += _LENGTH + len(piece)

    def _piece(self) -> bytes:
        """Return the piece that begins where the file is at."""
        return self._file.read(int.from_bytes(self._file.read(_LENGTH), "big"))

    def text(self, card: Card) -> str:
        """Return the text of a document."""
        self._file.seek(card.start)
        return self._piece().decode("utf-8", "surrogatepass")

    def document(self, card: Card) -> Document:
        """Return a document as it was put, with what its card says of it today."""
        text = self.text(card)
        title, url, sections = json.loads(self._piece())
        return Document(
            doc_id=card.doc_id,
            text=text,
            title=title,
            stratum=card.stratum,
            family=card.family,
            url=url,
            sections=tuple(Section(Span(start, end), *rest) for start, end, *rest in sections),
            status=card.status,
        )


class Texts(Mapping[str, str]):
    """Texts of documents by their ids, each read when it is wanted."""

    def __init__(self, shelf: Shelf, cards: Mapping[str, Card]) -> None:
        self._shelf, self._cards = shelf, cards

    def __getitem__(self, doc_id: str) -> str:
        return self._shelf.text(self._cards[doc_id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)
