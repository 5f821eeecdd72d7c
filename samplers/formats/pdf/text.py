"""PDF bytes -> the text of each page, by a process that is killed when a file takes too long.

After a file that ended the process the next file gets a new one.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from runner.base.errors import BackendError, DocumentError

MAX_BYTES = 20_000_000
SECONDS = 30.0
"""After which a file is given up: the largest real statement, of 7 pages, takes 0.05 s."""

_BROKEN = "\x02"
"""What PDFium reports for a hyphen at the end of a line, without the line break that follows it."""


def pdf_pages(data: bytes, name: str) -> list[str]:
    """Return the text of each page, its lines in the order in which the file draws them.

    Raise a DocumentError for what is no PDF, is damaged or encrypted, for more than MAX_BYTES, SECONDS or the limits of
    `worker`, and if no page has any text (a scan).
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(name, f"larger than {MAX_BYTES // 1_000_000} MB ({len(data) / 1e6:.0f} MB)")
    answer = _extractor.ask(data, name)
    if "error" in answer:
        raise DocumentError(name, f"PDF: {answer['error']}")
    pages = [page.replace(_BROKEN, "-\n") for page in answer["pages"]]
    if not any(map(str.strip, pages)):
        raise DocumentError(name, "PDF: no text on any page; it is a scan or empty, and needs a text layer (OCR)")
    return pages


class _Extractor:
    """A child process, started with the first file, and again after one that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(self, data: bytes, name: str) -> dict[str, Any]:
        """Return the child's answer; raise a DocumentError if there is none."""
        with self._lock:
            process = self._running()
            expired = threading.Event()

            def expire() -> None:
                expired.set()
                process.kill()

            # PDFium can neither be asked to stop nor trusted to: the process is killed, and reading its pipe ends.
            timer = threading.Timer(SECONDS, expire)
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
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[bytes]:
        # A process that was forked from ours has our end of the pipes too, and must not write into them.
        if self._process is None or self._owner != os.getpid():
            command = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            if _exchange(process, b"") is None:
                process.communicate()
                raise BackendError("The PDF extractor does not start: is pypdfium2 installed? Run `make setup`.")
            self._process, self._owner = process, os.getpid()
        return self._process


def _exchange(process: "subprocess.Popen[bytes]", request: bytes) -> dict[str, Any] | None:
    """Return the next answer after a request; None if the process ended instead."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(request)
        process.stdin.flush()
    except OSError:
        return None
    # Length, then JSON; a pipe that ends before both are whole is that of a process that died.
    head = process.stdout.read(8)
    body = process.stdout.read(int.from_bytes(head, "big"))
    if len(head) < 8 or len(body) < int.from_bytes(head, "big"):
        return None
    answer: dict[str, Any] = json.loads(body)
    return answer


_extractor = _Extractor()
atexit.register(_extractor.close)
