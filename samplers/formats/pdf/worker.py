"""A process that reads a PDF for `samplers.formats.pdf.text`, so that a file which breaks PDFium breaks nothing else.

It is run by its path and imports nothing of ours. The file comes over its standard input; over its standard output goes
a line of JSON, {"pages": [text, ...]} or {"error": reason}.
"""

import json
import sys
from typing import Any

try:
    import pypdfium2
except (ImportError, OSError):
    sys.exit(3)

MAX_PAGES = 400
MAX_CHARACTERS = 1_000_000
"""Of a file; a page of a report has about 3,000."""

MAX_MEMORY = 512 << 20
"""Bytes of address space; 27 MB are in use before the first file, and PDFium aborts when it is given no more."""


def answer(data: bytes) -> dict[str, Any]:
    """Return the text of each page, or why there is none."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        return {"error": "needs a password" if "assword" in str(error) else "damaged or no PDF"}
    with document:
        n_pages, n_characters = len(document), 0
        if n_pages > MAX_PAGES:
            return {"error": f"{n_pages:,} pages, more than the limit of {MAX_PAGES}"}
        pages = []
        for number in range(n_pages):
            try:
                page = document[number]
                text_page = page.get_textpage()
            except pypdfium2.PdfiumError:
                return {"error": f"page {number + 1} is damaged"}
            n_characters += text_page.count_chars()
            if n_characters > MAX_CHARACTERS:
                return {"error": f"more than {MAX_CHARACTERS:,} characters of text"}
            # What lies outside the page's edges no reader sees.
            pages.append(text_page.get_text_bounded())
            text_page.close()
            page.close()
    return {"pages": pages}


def limit_itself() -> None:
    """Bound memory and forbid core dumps and files, where the system knows such limits."""
    try:
        import resource
    except ImportError:
        return
    for what, bound in ((resource.RLIMIT_AS, MAX_MEMORY), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(what, (bound, bound))


def main() -> None:
    """Answer for the file on standard input."""
    limit_itself()
    try:
        line = json.dumps(answer(sys.stdin.buffer.read()))
    except MemoryError:
        line = json.dumps({"error": f"needs more than {MAX_MEMORY >> 20} MB of memory"})
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
