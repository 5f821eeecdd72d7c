"""PDF bytes -> the text of each page, by a process that a file which takes too long ends.

One process reads a number of files, since it takes as long to start as it does to read some; after a file that ended it
the next file gets a new one.
"""

import atexit
import json
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.base.errors import BackendError, DocumentError

MAX_BYTES = 20_000_000
SECONDS = 30.0
"""After which a file is given up: the largest real statement, of 7 pages, takes 0.05 s."""

FILES_OF_PROCESS = 50
"""After which a process is ended, so that what PDFium does not give back of its memory does not add up."""

_NOT_STARTED = 3
"""The exit status of a worker that has no PDFium."""

_BROKEN = "\x02"
"""What PDFium reports for a hyphen at the end of a line, without the line break that follows it."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    n_read: int = 0


_idle: list[_Worker] = []
"""The process that the next file is given to, if there is one; while it reads it is not here."""


def pdf_pages(data: bytes, name: str) -> list[str]:
    """Return the text of each page, its lines in the order in which the file draws them.

    Raise a DocumentError for what is no PDF, is damaged or encrypted, for more than MAX_BYTES, SECONDS or the limits of
    `worker`, and if no page has any text (a scan).
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    line, status = _exchange(data)
    if status == _NOT_STARTED:
        raise BackendError("The PDF extractor does not start: is pypdfium2 installed? Run `make setup`.")
    if status:
        reason = f"takes more than {SECONDS:.0f} seconds" if status == -signal.SIGALRM else "ends the extractor"
        raise DocumentError(name, f"PDF: {reason}; the file is damaged or hostile")
    answer = json.loads(line)
    if "error" in answer:
        raise DocumentError(name, f"PDF: {answer['error']}")
    pages = [page.replace(_BROKEN, "-\n") for page in answer["pages"]]
    if not any(map(str.strip, pages)):
        raise DocumentError(name, "PDF: no text on any page; it is a scan or empty, and needs a text layer (OCR)")
    return pages


def _exchange(data: bytes) -> tuple[bytes, int]:
    """Return the answer of a process to a file, and 0; or what it wrote before it ended, and its exit status."""
    worker = _idle.pop() if _idle else _started()
    process = worker.process
    assert process.stdin is not None
    assert process.stdout is not None
    line = b""
    try:
        with suppress(BrokenPipeError):  # it has ended, as its status says
            # PDFium can neither be asked to stop nor trusted to: the system ends the process after SECONDS.
            process.stdin.write(struct.pack(">dQ", SECONDS, len(data)) + data)
            process.stdin.flush()
        line = process.stdout.readline()
    finally:
        worker.n_read += 1
        is_answered = line.endswith(b"\n")
        if is_answered and worker.n_read < FILES_OF_PROCESS:
            _idle.append(worker)
        else:
            process.kill()
            process.communicate()
    return line, 0 if is_answered else process.returncode


def _started() -> _Worker:
    command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
    return _Worker(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))


@atexit.register
def _end() -> None:
    for worker in _idle:
        worker.process.kill()
        worker.process.communicate()
