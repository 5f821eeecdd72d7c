"""The process that opens PDFs for samplers.formats.pdf.text, so that a file which breaks PDFium breaks nothing else.

It is run by its path and imports nothing of ours. Over its standard input come files, each after its length in eight
bytes; over its standard output go answers in JSON, each after its length likewise: {"pages": [[line, ...], ...]} with
a line as [text, left, right, bottom, top, bold], or {"error": reason}. The first answer says that it is ready.
"""

import ctypes
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw

MAX_PAGES = 400
MAX_CHARACTERS = 1_000_000
"""Of a file; a page of a statement or an estimate has about 3,000."""

MAX_MEMORY = 512 << 20
"""Bytes of address space; 27 MB are in use before the first file, and PDFium aborts when it is given no more."""

BOLD = 600
WIDE = 1.2
"""A gap of more line heights than this parts two cells; blanks of justified text stay below 1."""

_HYPHEN = 2
"""What PDFium reports for a hyphen at the end of a line, without the line break that follows it."""

Line = list[Any]


def answer(data: bytes) -> dict[str, Any]:
    """The lines of each page, or why there are none."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return {"error": "needs a password" if "assword" in str(error) else "damaged or no PDF"}
    with document:
        n_pages = len(document)
        if n_pages > MAX_PAGES:
            return {"error": f"{n_pages:,} pages, more than the limit of {MAX_PAGES}"}
        pages: list[list[Line]] = []
        n_characters = 0
        for number in range(n_pages):
            try:
                lines = _page_lines(document, number)
            except pypdfium2.PdfiumError:
                return {"error": f"page {number + 1} is damaged"}
            n_characters += sum(len(line[0]) for line in lines)
            if n_characters > MAX_CHARACTERS:
                return {"error": f"more than {MAX_CHARACTERS:,} characters of text"}
            pages.append(lines)
    return {"pages": pages}


def _page_lines(document: pypdfium2.PdfDocument, number: int) -> list[Line]:
    page = document[number]
    text_page = page.get_textpage()
    try:
        n = text_page.count_chars()
        if n > MAX_CHARACTERS:
            return [["x" * (MAX_CHARACTERS + 1), 0, 0, 0, 0, False]]
        raw = pypdfium2.raw
        codes = [raw.FPDFText_GetUnicode(text_page, index) for index in range(n)]
        lines = [
            _line(text_page, codes, *cell) for ends in _line_ends(codes) for cell in _cells(text_page, codes, *ends)
        ]
        return [line for line in lines if _is_on(page.get_bbox(), line)]
    finally:
        text_page.close()
        page.close()


def _line_ends(codes: list[int]) -> Iterator[tuple[int, int]]:
    """First and last index of each line's characters, white space at its ends left out."""
    first = last = -1
    for index, code in enumerate(codes):
        if (code > 32 and code != 0xA0) or code == _HYPHEN:
            first = index if first < 0 else first
            last = index
        if code in (10, 13, _HYPHEN) and first >= 0:
            yield first, last
            first = -1
    if first >= 0:
        yield first, last


def _cells(text_page: pypdfium2.PdfTextPage, codes: list[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The parts of a line between wide gaps, which PDFium reports as single blanks."""
    begin = first
    for index in range(first + 1, last):
        if codes[index] != 32 or codes[index - 1] == 32:
            continue
        after = next(place for place in range(index, last + 1) if codes[place] != 32)
        _, bottom, right, top = text_page.get_charbox(index - 1, loose=True)
        if text_page.get_charbox(after, loose=True)[0] - right > WIDE * (top - bottom):
            yield begin, index - 1
            begin = after
    yield begin, last


def _line(text_page: pypdfium2.PdfTextPage, codes: list[int], first: int, last: int) -> Line:
    text = "".join(map(chr, codes[first : last + 1])).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    left, bottom, _, top = text_page.get_charbox(first, loose=True)
    _, _, right, _ = text_page.get_charbox(last, loose=True)
    bold = _is_bold(text_page, first) and _is_bold(text_page, last)
    return [text.replace(chr(_HYPHEN), "-"), left, right, bottom, top, bold]


def _is_on(edges: tuple[float, float, float, float], line: Line) -> bool:
    """Whether a line has a part within the page's edges; what lies outside them no reader sees."""
    left, bottom, right, top = edges
    return bool(line[1] < right and line[2] > left and line[3] < top and line[4] > bottom)


def _is_bold(text_page: pypdfium2.PdfTextPage, index: int) -> bool:
    """By the font's weight, or by its name where the file does not hold the font."""
    if pypdfium2.raw.FPDFText_GetFontWeight(text_page, index) >= BOLD:
        return True
    name = ctypes.create_string_buffer(64)
    n = pypdfium2.raw.FPDFText_GetFontInfo(text_page, index, name, len(name), ctypes.c_int())
    return 0 < n <= len(name) and b"bold" in name.value.lower()


def limit_itself() -> None:
    """Bounds memory and forbids core dumps and files, where the system knows such limits."""
    try:
        import resource
    except ImportError:
        return
    for what, bound in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(what, (bound, bound))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the requests end."""
    _send(answers, {"ready": True})
    while len(head := requests.read(8)) == 8:
        try:
            content = answer(requests.read(int.from_bytes(head, "big")))
        except MemoryError:
            content = {"error": f"needs more than {MAX_MEMORY >> 20} MB of memory"}
        _send(answers, content)


def _send(answers: BinaryIO, content: dict[str, Any]) -> None:
    data = json.dumps(content).encode()
    answers.write(len(data).to_bytes(8, "big") + data)
    answers.flush()


if __name__ == "__main__":
    limit_itself()
    serve(sys.stdin.buffer, sys.stdout.buffer)
