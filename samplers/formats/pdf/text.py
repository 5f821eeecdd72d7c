"""Pages of lines -> paragraphs: rows in reading order, running heads dropped, lines joined, words rejoined."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from runner.base.errors import DocumentError
from samplers.formats.pdf.lines import Line, pdf_pages

HYPHENS = "hyphens at line ends"
RUNNING_HEADS = "running heads and page numbers"
UNMAPPED = "characters without a meaning"

_PAGE_NUMBER = re.compile(
    r"(?:Page )?[-–— ]*(?:\d{1,4}|[ivxl]{1,6})[-–— ]*(?:(?:of|/) ?\d{1,4})?|.{0,99}\tPage \d{1,4}", re.I
)
_BULLET = re.compile(r"[•▪◦·∙○●■□►➢✓*]\s|[-–—o]\s+(?=[A-Z])")
_CELL = re.compile(r"\S+(?: {1,2}\S+)*")
_BROKEN = re.compile(r"[^\W\d]-$")
_UNMAPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd-\uffff\ue000-\uf06b\uf06d-\uf0b6\uf0b8-\uf8ff]")
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf06c": "•"})
_ENDED = re.compile(r"[.!?:;][”\"’')\]]?$")

WIDER = 1.25
"""A gap of more line pitches than this begins a paragraph; in real statements 1.0 within one, 1.7 and more between."""

INDENT = 12.0
"""Points by which a line must be set in to begin a paragraph."""

MAX_TYPED = 500_000
MAX_TYPED_PAGES = 400
TYPED_PITCH = 12.0
"""Points from line to line of a plain text file."""

SHORT = 0.6
"""Share of the text's width below which a line was ended on purpose, as in an address."""

FULL = 0.75
"""Share of the widest line that a line must reach for its paragraph to run on past the end of the page."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together, joined by blanks, after a short line by a line break; tabs part cells of a table.

    `bold` if every line is.
    """

    text: str
    bold: bool
    n_lines: int


@dataclass(frozen=True)
class PageText:
    """A file's paragraphs, with characters left out by reason."""

    paragraphs: tuple[Paragraph, ...]
    left_out: dict[str, int]


def read_pdf(data: bytes, name: str) -> PageText:
    """The paragraphs of a PDF with a text layer; DocumentError as in `pdf_pages`."""
    return paragraphs_of(pdf_pages(data, name))


def read_typed(text: str, name: str) -> PageText:
    """The paragraphs of a plain text file, read as pages of a typewriter: form feeds part them.

    DocumentError for more than MAX_TYPED characters or pages than any estimate has.
    """
    pages = text.replace("\r\n", "\n").replace("\r", "\n").split("\f")
    if len(text) > MAX_TYPED or len(pages) > MAX_TYPED_PAGES:
        raise DocumentError(
            name, f"{len(text):,} characters of text on {len(pages):,} pages: too many for one estimate"
        )
    return paragraphs_of([list(_typed_lines(page.split("\n"))) for page in pages], TYPED_PITCH)


def paragraphs_of(pages: Sequence[Sequence[Line]], pitch: float | None = None) -> PageText:
    """The paragraphs of some pages, from top to bottom of each; `pitch` is the points from line to line, if known.

    A word that a line's end broke at a hyphen is rejoined without it if the document has the whole word elsewhere;
    otherwise the hyphen stays, since most such hyphens are the word's own ("non-defense").
    """
    left_out: Counter[str] = Counter()
    rows = [_rows([_mapped(line, left_out) for line in page]) for page in pages]
    rows = _without_heads(rows, left_out)
    words = set(re.findall(r"[^\W\d]+", " ".join(line.text for page in rows for line in page).lower()))
    rows = [page for page in rows if page]
    margin = min((line.left for page in rows for line in page), default=0.0)
    width = max((line.right for page in rows for line in page), default=0.0) - margin
    groups = _groups(rows, pitch or _pitch(rows), margin, width)
    return PageText(tuple(_paragraph(group, words, SHORT * width, left_out) for group in groups), dict(left_out))


def _typed_lines(lines: Sequence[str]) -> Iterator[Line]:
    """The cells of typed lines, 6 points a character; three blanks part cells."""
    for place, line in enumerate(lines):
        expanded = line.expandtabs()
        for cell in _CELL.finditer(expanded):
            top = -TYPED_PITCH * place
            yield Line(cell[0], 6.0 * cell.start(), 6.0 * cell.end(), top - TYPED_PITCH, top, bold=False)


def _mapped(line: Line, left_out: Counter[str]) -> Line:
    """The line with bullets of symbol fonts as such, and without characters that only the font's maker can read."""
    text, n = _UNMAPPED.subn("", line.text.translate(_BULLETS))
    left_out.update({UNMAPPED: n} if n else {})
    return replace(line, text=" ".join(text.split()))


def _rows(lines: Sequence[Line]) -> list[Line]:
    """Lines from top to bottom; those on one baseline become one, with tabs where a wide gap parts them."""
    rows: list[Line] = []
    for line in sorted((line for line in lines if line.text), key=lambda line: (-line.bottom, line.left)):
        last = rows[-1] if rows else None
        if last and abs(last.bottom - line.bottom) < 0.3 * min(_height(last), _height(line)):
            rows[-1] = _joined(last, line)
        else:
            rows.append(line)
    return rows


def _joined(one: Line, other: Line) -> Line:
    first, second = sorted((one, other), key=lambda line: line.left)
    gap = "\t" if second.left - first.right > 0.8 * _height(first) else " "
    return Line(
        text=first.text + gap + second.text,
        left=first.left,
        right=max(first.right, second.right),
        bottom=min(first.bottom, second.bottom),
        top=max(first.top, second.top),
        bold=first.bold and second.bold,
    )


def _height(line: Line) -> float:
    return max(line.top - line.bottom, 1.0)


def _without_heads(pages: list[list[Line]], left_out: Counter[str]) -> list[list[Line]]:
    """The pages without page numbers and what is repeated at the top or bottom of at least half of them."""
    edges = [{place: re.sub(r"\d+", "0", page[place].text) for place in _edges(page)} for page in pages]
    seen = Counter(chain.from_iterable(set(edge.values()) for edge in edges))
    result = []
    for page, edge in zip(pages, edges, strict=True):
        heads = {
            place
            for place, masked in edge.items()
            if (seen[masked] > 1 and 2 * seen[masked] >= len(pages))
            or (len(pages) > 1 and _PAGE_NUMBER.fullmatch(page[place].text))
        }
        dropped = sum(len("".join(page[place].text.split())) for place in heads)
        left_out.update({RUNNING_HEADS: dropped} if dropped else {})
        result.append([line for place, line in enumerate(page) if place not in heads])
    return result


def _edges(page: Sequence[Line]) -> list[int]:
    return sorted({place for place in (0, 1, len(page) - 2, len(page) - 1) if 0 <= place < len(page)})


def _pitch(pages: Sequence[Sequence[Line]]) -> float:
    """Points from line to line: the lower quartile, as in a short file half of all lines begin a paragraph.

    Never more than in double spacing.
    """
    steps = sorted(upper.bottom - lower.bottom for page in pages for upper, lower in pairwise(page))
    double = 2.2 * max((_height(line) for page in pages for line in page), default=TYPED_PITCH)
    return min(steps[len(steps) // 4], double) if steps else TYPED_PITCH


def _groups(pages: Sequence[Sequence[Line]], pitch: float, margin: float, width: float) -> Iterator[list[Line]]:
    """The lines of each paragraph."""
    group: list[Line] = []
    for page in pages:
        for place, line in enumerate(page):
            if place:
                begins = _begins(group, line, pitch, margin)
            else:
                begins = not group or not _runs_on(group[-1], line, margin + FULL * width)
            if begins and group:
                yield group
                group = []
            group.append(line)
    if group:
        yield group


def _begins(group: Sequence[Line], line: Line, pitch: float, margin: float) -> bool:
    """Whether a line begins a paragraph below the group of lines above it."""
    above = group[-1]
    if above.bottom - line.bottom > WIDER * pitch or above.bold != line.bold:
        return True
    if "\t" in line.text or "\t" in above.text or _BULLET.match(line.text):
        return True
    if abs((above.left + above.right) - (line.left + line.right)) < INDENT and above.left > margin + INDENT:
        return False  # centred below centred
    if line.left > above.left + INDENT:
        return not _BULLET.match(group[0].text)
    return line.left < above.left - INDENT and len(group) > 1


def _runs_on(last: Line, first: Line, full: float) -> bool:
    """Whether a paragraph goes on from the last line of a page to the first of the next."""
    if "\t" in last.text + first.text or last.bold != first.bold or _BULLET.match(first.text):
        return False
    return first.text[0].islower() or (last.right > full and not _ENDED.search(last.text))


def _paragraph(group: Sequence[Line], words: set[str], short: float, left_out: Counter[str]) -> Paragraph:
    pieces = [group[0].text]
    for above, line in pairwise(group):
        if not _BROKEN.search(pieces[-1]):
            is_ended = above.right - above.left < short and not line.text[0].islower()
            pieces.append(("\n" if is_ended else " ") + line.text)
            continue
        if _without_hyphen(pieces[-1], line.text) in words and line.text[0].islower():
            pieces[-1] = pieces[-1][:-1]
            left_out[HYPHENS] += 1
        pieces.append(line.text)
    return Paragraph("".join(pieces), bold=all(line.bold for line in group), n_lines=len(group))


def _without_hyphen(before: str, after: str) -> str:
    return (before[:-1].split()[-1] + after.split()[0].rstrip(".,;:)”")).lower()
