"""HTTP as feeds use it: polite, bounded, patient with a busy server, and silent about keys."""

import json
import socket
from functools import cache
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from runner import __version__
from runner.base.canonical import JSON
from runner.base.errors import InputError
from samplers.feeds.answers import Cut, check_content, check_type
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused, shown, without_key
from samplers.feeds.patience import ATTEMPTS, UNRESOLVED_ATTEMPTS, Busy, Clock, patiently, retry_after
from samplers.feeds.request import Kind, Say
from samplers.feeds.watchdog import Watchdog

if TYPE_CHECKING:
    import ssl

    import httpx

USER_AGENT = f"per-source-eval/{__version__} (evaluation of public legislative documents)"

MAX_LISTING = 64_000_000
"""Bytes of one listing; the structure of a whole title of the CFR is the largest of them."""

MAX_REDIRECTS = 5
_BUSY = frozenset((408, 429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_ENCODINGS = frozenset(("", "identity", "gzip"))
_ACCEPT = {
    "xml": "application/xml, text/xml;q=0.9",
    "htm": "text/html",
    "html": "text/html",
    "zip": "application/zip",
    "json": "application/json",  # govinfo's listings answer 406 without it
}


class Answer(NamedTuple):
    """A whole body, and the validators that it came with, "" for none."""

    data: bytes
    etag: str
    last_modified: str


class Client:
    """Answers of the endpoints. Listings are cached and revalidated; files, and answers to a key, are not.

    A keyed answer may repeat its key, so none is ever stored.
    """

    def __init__(self, endpoints: Endpoints, rate: float, caches: Path, clock: Clock, say: Say) -> None:
        import httpx
        from hishel import CacheOptions, SqliteStorage
        from hishel.httpx import CacheClient

        self.endpoints = endpoints
        self.clock = clock
        self._say = say
        self._rate = rate
        self._next: dict[str, float] = {}
        self._watchdog = Watchdog()
        (caches / "feeds").mkdir(parents=True, exist_ok=True)
        storage = SqliteStorage(database_path=caches / "feeds" / "http_v2.db", max_stream_size=MAX_LISTING)
        timeout = httpx.Timeout(30.0, connect=10.0)
        self._plain = httpx.Client(timeout=timeout, verify=_certificates())
        rfc = CacheOptions(shared=False)
        self._cached = CacheClient(storage=storage, rfc=rfc, timeout=timeout, verify=_certificates())

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plain.close()
        self._cached.close()

    def json(self, url: str) -> JSON:
        """A listing; BackendError where the server gives none."""

        def ask(attempt: int, deadline: float) -> JSON:
            # What was cached may be what is wrong with it, so only the first attempt asks the cache.
            answer = self._answer(url, "json", MAX_LISTING, deadline, may_cache=attempt == 1)
            try:
                return json.loads(answer.data)
            except (ValueError, RecursionError) as error:
                raise Cut("the answer is not JSON") from error

        return patiently(url, ask, self.clock, self._say)

    def page(self, url: str) -> str:
        """A page of HTML as text."""

        def ask(attempt: int, deadline: float) -> Answer:
            return self._answer(url, "html", MAX_LISTING, deadline, may_cache=attempt == 1)

        return patiently(url, ask, self.clock, self._say).data.decode("utf-8", "replace")

    def file(self, url: str, kind: Kind, limit: int) -> Answer:
        """A file of at most `limit` bytes; Refused for what cannot be had, BackendError for a server that fails."""

        def ask(_: int, deadline: float) -> Answer:
            return self._answer(url, kind, limit, deadline, may_cache=False)

        return patiently(url, ask, self.clock, self._say)

    def _answer(self, url: str, kind: Kind, limit: int, deadline: float, *, may_cache: bool) -> Answer:
        with self._watchdog.until(deadline - self.clock.now()):
            return self._exchange(url, kind, limit, may_cache=may_cache)

    def _exchange(self, url: str, kind: Kind, limit: int, *, may_cache: bool) -> Answer:
        import httpx

        target = url
        try:
            for _ in range(MAX_REDIRECTS + 1):
                key = self.endpoints.key(target)
                client = self._cached if may_cache and not key else self._plain
                self._wait_turn(target)
                sent, seen = self.endpoints.sent(target), {"trace": self._watchdog.saw}
                with client.stream("GET", sent, headers=_headers(kind, key), extensions=seen) as response:
                    if response.status_code in _REDIRECTS:
                        target = self.endpoints.followed(target, response.headers.get("location", ""))
                        continue
                    return self._read(response, kind, limit, target)
        except httpx.TransportError as error:
            attempts = UNRESOLVED_ATTEMPTS if _is_unresolved(error) else ATTEMPTS
            raise Busy(_trouble(error), attempts=attempts) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise Refused(f"{without_key(url)} cannot be read ({type(error).__name__}).") from error
        raise Refused(f"{without_key(url)} is redirected more than {MAX_REDIRECTS} times.")

    def _wait_turn(self, url: str) -> None:
        name = self.endpoints.name(url)
        pause = self._next.get(name, 0.0) - self.clock.now()
        if pause > 0:
            self.clock.sleep(pause)
        self._next[name] = self.clock.now() + 1 / min(self._rate, ENDPOINTS[name].max_rate)

    def _read(self, response: "httpx.Response", kind: Kind, limit: int, url: str) -> Answer:
        self._check_status(response, url)
        place = without_key(url)
        check_type(kind, response.headers.get("content-type", ""), place)
        if response.headers.get("content-encoding", "").lower() not in _ENCODINGS:
            raise Refused(f"{place} comes compressed in a way that was not asked for.")
        declared = response.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:18]) > limit:
            raise Refused(
                f"{place} has {int(declared[:18]) / 1e6:,.0f} MB, more than the {limit / 1e6:,.0f} MB allowed."
            )
        data = self._body(response, limit, place)
        check_content(kind, data, place)
        return Answer(data, _validator(response, "etag"), _validator(response, "last-modified"))

    def _body(self, response: "httpx.Response", limit: int, place: str) -> bytes:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limit:
                raise Refused(f"{place} has more than the {limit / 1e6:,.0f} MB allowed.")
        return bytes(body)

    def _check_status(self, response: "httpx.Response", url: str) -> None:
        status, place = response.status_code, without_key(url)
        if status == HTTPStatus.OK:
            return
        if status in _BUSY:
            raise Busy(f"HTTP {status}", retry_after(response.headers.get("retry-after", ""), self.clock, url))
        variable = ENDPOINTS[self.endpoints.name(url)].key
        if variable and status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise InputError(
                f"{place}: HTTP {status}, the key was refused. Check what the environment has as {variable}."
            )
        raise Refused(f"{place}: HTTP {status}.")


@cache
def _certificates() -> "ssl.SSLContext":
    # Loading them takes 70 ms, and every client needs them twice.
    import httpx

    return httpx.create_ssl_context()


def _headers(kind: Kind, key: str) -> dict[str, str]:
    # no-cache: what is cached is used only once the server says that it is still the same.
    headers = {
        "User-Agent": USER_AGENT,
        "Accept": _ACCEPT[kind],
        "Accept-Encoding": "gzip" if kind in ("json", "html") else "identity",
        "Cache-Control": "no-cache",
    }
    return headers | {"X-Api-Key": key} if key else headers


def _validator(response: "httpx.Response", name: str) -> str:
    value = response.headers.get(name, "")
    return value if value.isprintable() and len(value) <= 200 else ""


def _trouble(error: "httpx.TransportError") -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return "the server does not answer in time"
    if isinstance(error, httpx.RemoteProtocolError):
        return "the answer was cut short"
    return f"the connection failed ({shown(str(error), 100)})"


def _is_unresolved(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__  # httpcore drops the cause of what its pool passes on
    return error is not None
