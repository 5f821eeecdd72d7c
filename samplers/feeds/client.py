"""HTTP as feeds use it: polite, bounded, patient with a busy server, and silent about keys."""

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from runner import __version__
from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Busy, Patience, Response, Unusable, exchange, patiently, trusted
from runner.base.schema import field_problems
from samplers.feeds.endpoints import ENDPOINTS, Refused, followed, key_of, shown, without_key
from samplers.feeds.request import Kind, Say

USER_AGENT = f"per-source-eval/{__version__} (evaluation of public legislative documents)"

RATE = 2.0
"""Requests a second to one service; fewer where its publisher asks for it."""

MAX_LISTING = 64_000_000
"""Bytes of one listing; the structure of a whole title of the CFR is the largest of them."""

LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait; a run whose server asks for more ends, and can be resumed later."""

LONGEST_ANSWER = 900.0
"""Seconds that one answer may take with all its attempts, waits and redirects: a server that sends a byte at a time
would hold a run for ever. The largest file, 200 MB, needs 220 kB a second."""

TRIES = 6
MAX_REDIRECTS = 5
_BUSY = frozenset((408, 429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))

ACCEPTED: Mapping[Kind, str] = {
    "xml": "application/xml, text/xml;q=0.9",
    "htm": "text/html",
    "html": "text/html",
    "zip": "application/zip",
    # govinfo's listings answer 406 without it.
    "json": "application/json",
}
"""What is asked for by kind of answer; what comes is known by its content."""

_HEAD, _TAIL = 16_384, 4_096
"""Bytes looked at from either end: prologs and trailing comments are shorter."""

_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)
_DOCTYPE = re.compile(rb"<!doctype\s{1,9}html\b", re.I)
_ROOT = re.compile(rb"<([A-Za-z_][\w.:-]{0,80})")


class Cut(Busy):
    """An answer that ends before it is whole."""


class Listing(BaseModel):
    """Part of a listing that a feed reads; the rest of it may be anything."""

    model_config = ConfigDict(frozen=True, strict=True, defer_build=True)


Shape = TypeVar("Shape", bound=Listing)


class Clock(NamedTuple):
    """Time as a client needs it: seconds that only grow, waiting, and the time of day; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    utc: Callable[[], datetime] = lambda: datetime.now(UTC)


class Client(ExitStack):
    """Answers of the endpoints, one request at a time."""

    def __init__(self, clock: Clock, say: Say) -> None:
        import httpx

        super().__init__()
        self.clock = clock
        self._say = say
        self._patience = Patience(
            clock.sleep, clock.utc, tries=TRIES, longest_pause=60.0, waits=LONGEST_ANSWER, within=LONGEST_ANSWER
        )
        self._next: dict[str, float] = {}
        limits = httpx.Timeout(30.0, connect=10.0)
        self._http = self.enter_context(httpx.Client(timeout=limits, verify=trusted(from_env=True)))

    def json(self, url: str) -> JSON:
        """Return a listing; raise a BackendError if the server gives none."""
        return json.loads(self.file(url, "json", MAX_LISTING))

    def page(self, url: str) -> str:
        """Return a page of HTML as text."""
        return self.file(url, "html", MAX_LISTING).decode("utf-8", "replace")

    def file(self, url: str, kind: Kind, limit: int) -> bytes:
        """Return a file of at most `limit` bytes; raise Refused if there is none, BackendError if the server fails."""
        address, deadline = without_key(url), self.clock.now() + LONGEST_ANSWER
        try:
            return patiently(
                lambda _: self._followed(url, kind, limit, deadline),
                self._patience,
                tell=lambda line: self._say(f"{address}: {line}"),
            )
        except Cut as error:
            raise Refused(f"{address}: {error}.") from error
        except Busy as error:
            raise BackendError(
                f"{address} could not be had: {error}. What was fetched is kept; run the command again later."
            ) from error

    def _followed(self, url: str, kind: Kind, limit: int, deadline: float) -> bytes:
        """Return the answer that redirects lead to, on the same service; raise Refused for any other."""
        target = url
        # Redirects are followed here and not by httpx, which would leave the service.
        for _ in range(MAX_REDIRECTS + 1):
            response = self._response(target, kind, limit, deadline)
            if response.status not in _REDIRECTS:
                if response.status != HTTPStatus.OK:
                    raise self._failure(response, target)
                _check_content(kind, response.body, without_key(target))
                return response.body
            target = followed(target, response.headers.get("location", ""))
        raise Refused(f"{without_key(url)} is redirected more than {MAX_REDIRECTS} times.")

    def _response(self, url: str, kind: Kind, limit: int, deadline: float) -> Response:
        """Return one answer, once it is this service's turn."""
        host, key = urlsplit(url).netloc, key_of(url)
        headers = {
            "User-Agent": USER_AGENT,
            "Accept": ACCEPTED[kind],
            "Accept-Encoding": "gzip" if kind in ("json", "html") else "identity",
        }
        # Politeness: this service's next turn is counted from the start of the request before.
        pause = self._next.get(host, 0.0) - self.clock.now()
        if pause > 0:
            self.clock.sleep(pause)
        self._next[host] = self.clock.now() + 1 / min(RATE, ENDPOINTS[host].max_rate)
        try:
            return exchange(
                self._http,
                "GET",
                url,
                longest=limit,
                shown=shown,
                seconds=deadline - self.clock.now(),
                headers=headers | ({"X-Api-Key": key} if key else {}),
            )
        except Busy:
            raise
        except Unusable as error:
            raise Refused(f"{without_key(url)}: {error}.") from error

    def _failure(self, response: Response, url: str) -> Exception:
        """Return what a status other than 200 means."""
        words = f"HTTP {response.status}"
        if response.status in _BUSY:
            wait = self._patience.asked(response.headers)
            is_too_long = wait is not None and wait > LONGEST_WAIT
            return Busy(words, wait=wait, tries=1 if is_too_long else TRIES)
        variable = ENDPOINTS[urlsplit(url).netloc].key
        if variable and response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return InputError(
                f"{without_key(url)}: {words}, the key was refused. Check what the environment has as {variable}."
            )
        return Refused(f"{without_key(url)}: {words}.")


def listing(client: Client, url: str, shape: type[Shape]) -> Shape:
    """Return the listing at an address; raise a BackendError that says where it has another shape."""
    try:
        return shape.model_validate(client.json(url))
    except ValidationError as error:
        # What was found is not shown: an answer may repeat a key.
        first = field_problems(error)[0].partition(" (found ")[0]
        raise BackendError(f"{without_key(url)} is not the listing that is due: {first}.") from error


def _check_content(kind: Kind, data: bytes, address: str) -> None:
    """Raise Refused for bytes of another kind than `kind`, and Cut if their end is missing."""
    if not data.strip():
        raise Cut("the answer is empty")
    if kind == "json":
        try:
            json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Cut("the answer is not JSON") from error
        return
    head, tail = _plain(data[:_HEAD]), _plain(data[-_TAIL:])
    # A page of an error has the status 200 and often the type asked for: the root tells.
    match = _ROOT.search(head)
    root = match[1] if match else b"?"
    is_markup = head.startswith(b"<")
    is_page = root.lower() == b"html" or _DOCTYPE.search(head) is not None
    is_due = data.startswith(b"PK") if kind == "zip" else is_markup and is_page == (kind != "xml")
    if not is_due or (kind == "htm" and b"<pre" not in head.lower()):
        raise Refused(f"{address} is {'an HTML page' if is_markup and is_page else 'something else'}, no {kind} file.")
    # A connection that was cut shows no error if no length was declared: the root must be closed.
    if kind != "zip" and b"</" + root.lower() not in tail.lower() and not tail.rstrip().endswith(b"/>"):
        raise Cut(f"the answer ends without </{root.decode('ascii', 'replace')}>")


def _plain(piece: bytes) -> bytes:
    """Return a piece of a file without byte order marks, comments and the zeros of UTF-16."""
    for mark in _MARKS:
        piece = piece.removeprefix(mark)
    return _COMMENT.sub(b"", piece.replace(b"\0", b"")).lstrip()
