"""Products of the Congressional Research Service (markdown of Congress.gov pages) as documents: one product each."""

import re
import unicodedata
from collections import Counter
from itertools import chain, pairwise

from runner.base.canonical import slug
from runner.base.errors import DocumentError
from runner.base.records import Document, Section
from samplers.formats.headings import cut
from samplers.formats.markdown_text import Block, blocks
from samplers.formats.stated import bucket
from samplers.formats.text_writer import Part, TextWriter, visible
from samplers.source_format import FileContent, SourceFormat
from samplers.sources.crs.headings import is_caption, is_heading, is_note
from samplers.sources.crs.page import Page, n_visible, read_page, with_ordinals

MARKUP = "marks, link targets and images"
MAX_BYTES = 10_000_000
"""The largest real product has 155 kB."""

SUBTITLE = 250
"""Characters of the longest paragraph between a caption and its rows."""

RANKS = 6
"""Headings of markdown have ranks 1 to 6; a line that is a heading by its place alone ranks below them."""

_SERIES = {"Reports": "Report"}
"""What CRS calls a product when citing one, if not as the page's field "Product Type" does."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters of control but for tab and line feed: a saved page has no use for them."""

_PRINTABLE = bytes((9, 10, *range(32, 127)))


def _read(data: bytes, name: str, _: frozenset[str]) -> FileContent:
    stem = name.rpartition("/")[2].removesuffix(".md")
    text = _decoded(data, name)
    control = _CONTROL.findall(text.encode("utf-8").translate(None, _PRINTABLE).decode("utf-8"))
    text, supplied = with_ordinals(_CONTROL.sub("", text) if control else text)
    page = read_page(text, stem)
    if page is None:
        raise DocumentError(name, "names no CRS product, neither in its metadata nor in its file name")
    writing = _Writing(page)
    written, sections = writing.finish()
    if not written:
        raise DocumentError(name, "the page has no text below its metadata")
    marks = n_visible(page.lines) - visible(written)
    left_out = page.left_out + Counter({MARKUP: marks, "control characters": sum(not c.isspace() for c in control)})
    return FileContent((_document(page, written, sections),), left_out, supplied=supplied)


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    if b"\0" in data:
        raise DocumentError(name, "binary data, not markdown")
    try:
        return unicodedata.normalize("NFC", data.decode("utf-8-sig")).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise DocumentError(name, f"not UTF-8 (byte {error.start + 1})") from error


class _Writing:
    """A page's body on its way into text and nested sections."""

    def __init__(self, page: Page) -> None:
        self.entries = page.entries
        self.writer = TextWriter()
        self.open_parts: list[tuple[float, Part]] = []
        self.table: Part | None = None
        self.has_rows = False
        self.last_heading = -1
        self.in_summary = False
        for block, below in pairwise(chain(blocks(page.lines), (None,))):
            if block:
                self.block(block, below)

    def finish(self) -> tuple[str, tuple[Section, ...]]:
        self.close_table()
        self.close_to(0.0)
        return self.writer.finish()

    def block(self, block: Block, below: Block | None) -> None:
        if block.kind == "rule":
            self.in_summary = False
        elif is_caption(block):
            self.caption(block)
        elif block.kind == "heading" or is_heading(block, below, self.entries):
            self.heading(block)
        elif block.text:
            self.words(block, below)

    def heading(self, block: Block) -> None:
        """Open a section that ends at the next heading of its rank or a higher one.

        What the contents list names is of one rank, for the saved list has lost its levels, and outranks all other
        headings. Of those, one with nothing of its own holds the one right below it: there the page shows, by its
        place, that the second is the lower one.
        """
        self.close_table()
        label = " ".join(block.text.split())
        kind = {"Summary": "summary", "Footnotes": "footnotes"}.get(label, "heading")
        if self.in_summary and kind == "heading" and label not in self.entries[:1]:
            rank = RANKS + 2.0
        else:
            self.in_summary = kind == "summary"
            is_listed = label in self.entries or (kind != "heading" and bool(self.entries))
            rank = 0.0 if is_listed else float(block.level or RANKS + 1)
        if rank and self.open_parts and self.last_heading == self.writer.length and self.open_parts[-1][0] == rank:
            rank += 0.5
        self.close_to(rank)
        self.writer.separate("\n\n")
        part = self.writer.open(kind, len(self.open_parts) + 1)
        part.heading = label
        self.writer.write(label)
        self.writer.separate("\n\n")
        self.open_parts.append((rank, part))
        self.last_heading = self.writer.length

    def caption(self, block: Block) -> None:
        """Open the section of a table or figure: its caption, its rows, and its sources and notes."""
        self.close_table()
        label = " ".join(block.text.split())
        self.writer.separate("\n\n")
        self.table = self.writer.open(label.split()[0].lower(), len(self.open_parts) + 1)
        self.table.heading = label
        self.has_rows = block.kind == "row"
        self.writer.write(label)
        self.writer.separate("\n")

    def words(self, block: Block, below: Block | None) -> None:
        if block.kind == "paragraph":
            is_above_rows = not self.has_rows and below is not None and below.kind == "row"
            if not ((is_above_rows and len(block.text) <= SUBTITLE) or is_note(block)):
                self.close_table()
            self.writer.separate("\n" if self.table else "\n\n")
        elif block.kind == "row":
            if block.first and self.has_rows:
                self.close_table()
            self.has_rows = True
            self.writer.separate("\n" if self.table or not block.first else "\n\n")
        elif block.kind == "boxed":
            self.writer.separate("\n")
        elif block.kind == "item":
            self.close_table()
            self.writer.separate("\n")
        else:
            self.writer.separate("\n" if block.breaks else " ")
        for place, cell in enumerate(block.cells):
            self.writer.separate("\t" if place else "")
            self.writer.write(cell)
        self.writer.separate(" ")

    def close_table(self) -> None:
        if self.table:
            self.writer.close(self.table)
            self.table = None
        self.has_rows = False

    def close_to(self, rank: float) -> None:
        while self.open_parts and self.open_parts[-1][0] >= rank:
            self.writer.close(self.open_parts.pop()[1])


def _document(page: Page, text: str, sections: tuple[Section, ...]) -> Document:
    cited = " ".join(filter(None, ("CRS", _SERIES.get(page.kind, page.kind), page.number)))
    parts = (page.kind or "unknown", *(page.topics[:1] or ("unknown",)), bucket(len(text)))
    return Document(
        doc_id=f"{page.number}v{page.version}" if page.version else page.number,
        text=text,
        title=cut(unicodedata.normalize("NFC", " ".join(f"{cited}: {page.title or 'untitled'}".split()))),
        stratum="/".join(slug(part) for part in parts),
        family=page.number,
        url=f"https://www.congress.gov/crs-product/{page.number}",
        sections=sections,
    )


def _version(document: Document) -> tuple[object, ...]:
    return (int(document.doc_id.rpartition("v")[2]) if document.doc_id != document.family else 0,)


FORMAT = SourceFormat(_read, suffixes=(".md",), newest=_version, max_bytes=MAX_BYTES)
