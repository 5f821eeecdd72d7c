"""PDF bytes -> the text of each page, by a process of its own that a file which takes too long ends."""

import json
import subprocess
import sys
from pathlib import Path

from runner.base.errors import BackendError, DocumentError

MAX_BYTES = 20_000_000
SECONDS = 30.0
"""After which a file is given up: the largest real statement, of 7 pages, takes 0.05 s."""

_NOT_STARTED = 3
"""The exit status of a worker that has no PDFium."""

_BROKEN = "\x02"
"""What PDFium reports for a hyphen at the end of a line, without the line break that follows it."""


def pdf_pages(data: bytes, name: str) -> list[str]:
    """Return the text of each page, its lines in the order in which the file draws them.

    Raise a DocumentError for what is no PDF, is damaged or encrypted, for more than MAX_BYTES, SECONDS or the limits of
    `worker`, and if no page has any text (a scan).
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    # PDFium can neither be asked to stop nor trusted to: the system ends the process.
    command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        reason = f"PDF: takes more than {SECONDS:.0f} seconds; the file is damaged or hostile"
        raise DocumentError(name, reason) from error
    if done.returncode == _NOT_STARTED:
        raise BackendError("The PDF extractor does not start: is pypdfium2 installed? Run `make setup`.")
    if done.returncode:
        raise DocumentError(name, "PDF: ends the extractor; the file is damaged or hostile")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise DocumentError(name, f"PDF: {answer['error']}")
    pages = [page.replace(_BROKEN, "-\n") for page in answer["pages"]]
    if not any(map(str.strip, pages)):
        raise DocumentError(name, "PDF: no text on any page; it is a scan or empty, and needs a text layer (OCR)")
    return pages
