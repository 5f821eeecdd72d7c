"""PDF bytes -> lines of text with their places, by PDFium in a process of its own.

PDFium is native code: a hostile file can crash it, hang it or have it unpack gigabytes. It therefore runs in one child
process for all files (start-up 0.1 s, a page 6 ms), which bounds its own memory, pages and characters, and which is
killed when a file takes too long. After a file that ended it the next file gets a new one.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.base.errors import BackendError, DocumentError

MAX_BYTES = 20_000_000
SECONDS = 30.0
"""After which a file is given up: the largest real statement, of 7 pages, takes 0.05 s."""

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text as printed, in points from the page's lower left corner; `bold` if both its ends are."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    bold: bool


def pdf_pages(data: bytes, name: str) -> list[list[Line]]:
    """The lines of each page in the order in which the file draws them.

    A hyphen at the end of a line is its last character. DocumentError for what is no PDF, is damaged or encrypted,
    for more than MAX_BYTES, SECONDS or the limits of `worker`, and if no page has any text (a scan).
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    answer = _extractor.ask(data, name)
    if "error" in answer:
        raise DocumentError(name, f"PDF: {answer['error']}")
    pages = [[Line(*line) for line in page] for page in answer["pages"]]
    if not any(pages):
        raise DocumentError(name, "PDF: no text on any page; it is a scan or empty, and needs a text layer (OCR)")
    return pages


class _Extractor:
    """The child process; started with the first file, and again after one that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(self, data: bytes, name: str) -> dict[str, Any]:
        """The child's answer; DocumentError if there is none."""
        with self._lock:
            process = self._running()
            expired = threading.Event()
            timer = threading.Timer(SECONDS, _expire, (process, expired))
            timer.start()
            answer = None
            try:
                answer = _exchange(process, len(data).to_bytes(8, "big") + data)
            finally:
                timer.cancel()
                timer.join()
                if answer is None or expired.is_set():
                    self.close()
            if answer is not None:
                return answer
            reason = f"takes more than {SECONDS:.0f} seconds" if expired.is_set() else "ends the extractor"
            raise DocumentError(name, f"PDF: {reason}; the file is damaged or hostile")

    def close(self) -> None:
        """End the child."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        # A process that was forked from ours has our end of the pipes too, and must not write into them.
        if self._process is None or self._owner != os.getpid():
            self._process = _started()
            self._owner = os.getpid()
        return self._process


def _started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", str(_WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if _exchange(process, b"") is None:
        process.communicate()
        raise BackendError("The PDF extractor does not start: is pypdfium2 installed? Run `make setup`.")
    return process


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> dict[str, Any] | None:
    """The next answer after a request; None if the process ended instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.flush()
    except OSError:
        return None
    head = process.stdout.read(8)
    body = process.stdout.read(int.from_bytes(head, "big"))
    if len(head) < 8 or len(body) < int.from_bytes(head, "big"):
        return None
    answer: dict[str, Any] = json.loads(body)
    return answer


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    expired.set()
    process.kill()


_extractor = _Extractor()
atexit.register(_extractor.close)
