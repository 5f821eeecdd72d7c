"""HTTP as feeds use it: polite, bounded, patient with a busy server, and silent about keys."""

import json
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from runner import __version__
from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Busy, Patience, Response, Unusable, exchange, patiently
from samplers.feeds.answers import Cut, check_content, check_type
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused, shown, without_key
from samplers.feeds.request import Kind, Say
from samplers.feeds.watchdog import Watchdog

if TYPE_CHECKING:
    import ssl

USER_AGENT = f"per-source-eval/{__version__} (evaluation of public legislative documents)"

MAX_LISTING = 64_000_000
"""Bytes of one listing; the structure of a whole title of the CFR is the largest of them."""

LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait; a run whose server asks for more ends, and can be resumed later."""

LONGEST_ANSWER = 900.0
"""Seconds that one answer may take with all its attempts, waits and redirects: a server that sends a byte at a time
would hold a run for ever. The largest file, 200 MB, needs 220 kB a second."""

UNRESOLVED_TRIES = 2
"""Tries if a host's name leads nowhere: mostly there is no network at all, and the person should hear of it."""

MAX_REDIRECTS = 5
_BUSY = frozenset((408, 429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_ACCEPT = {
    "xml": "application/xml, text/xml;q=0.9",
    "htm": "text/html",
    "html": "text/html",
    "zip": "application/zip",
    "json": "application/json",  # govinfo's listings answer 406 without it
}


_Result = TypeVar("_Result")


class Clock(NamedTuple):
    """Time as a client needs it: seconds that only grow, waiting, and the time of day; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    utc: Callable[[], datetime] = lambda: datetime.now(UTC)


class Answer(NamedTuple):
    """A whole body, and the validators that it came with, "" for none."""

    data: bytes
    etag: str
    last_modified: str
    moved_to: str = ""
    """The official address that redirects led to, "" if there were none."""


class Client(ExitStack):
    """Answers of the endpoints. Listings are cached and revalidated; files, and answers to a key, are not.

    A keyed answer may repeat its key, so none is ever stored.
    """

    def __init__(self, endpoints: Endpoints, rate: float, caches: Path, clock: Clock, say: Say) -> None:
        import httpx
        from hishel import CacheOptions, SqliteStorage
        from hishel.httpx import CacheClient

        super().__init__()
        self.endpoints = endpoints
        self.clock = clock
        self._say = say
        self._patience = Patience(
            clock.sleep, clock.utc, tries=6, longest_pause=60.0, waits=LONGEST_ANSWER, within=LONGEST_ANSWER
        )
        self._rate = rate
        self._next: dict[str, float] = {}
        self._watchdog = Watchdog()
        (caches / "feeds").mkdir(parents=True, exist_ok=True)
        storage = SqliteStorage(database_path=caches / "feeds" / "http_v2.db", max_stream_size=MAX_LISTING)
        timeout = httpx.Timeout(30.0, connect=10.0)
        rfc, verify = CacheOptions(shared=False), _certificates()
        self._plain = self.enter_context(httpx.Client(timeout=timeout, verify=verify))
        self._cached = self.enter_context(CacheClient(storage=storage, rfc=rfc, timeout=timeout, verify=verify))

    def json(self, url: str) -> JSON:
        """A listing; BackendError if the server gives none."""

        def ask(attempt: int) -> JSON:
            # What was cached may be what is wrong with it, so only the first attempt asks the cache.
            answer = self._exchange(url, "json", MAX_LISTING, may_cache=attempt == 1)
            try:
                return json.loads(answer.data)
            except (ValueError, RecursionError) as error:
                raise Cut("the answer is not JSON") from error

        return self._patiently(url, ask)

    def page(self, url: str) -> str:
        """A page of HTML as text."""
        answer = self._patiently(url, lambda attempt: self._exchange(url, "html", MAX_LISTING, may_cache=attempt == 1))
        return answer.data.decode("utf-8", "replace")

    def file(self, url: str, kind: Kind, limit: int) -> Answer:
        """A file of at most `limit` bytes; Refused for what cannot be had, BackendError for a server that fails."""
        return self._patiently(url, lambda _: self._exchange(url, kind, limit, may_cache=False))

    def _patiently(self, url: str, ask: Callable[[int], _Result]) -> _Result:
        """What `ask` returns; Refused if every answer was cut short, BackendError if the server stays busy."""
        place, deadline = without_key(url), self.clock.now() + LONGEST_ANSWER

        def once(attempt: int) -> _Result:
            with self._watchdog.until(deadline - self.clock.now()):
                return ask(attempt)

        try:
            return patiently(once, self._patience, tell=lambda line: self._say(f"{place}: {line}"))
        except Cut as error:
            raise Refused(f"{place}: {error}.") from error
        except Busy as error:
            raise BackendError(
                f"{place} could not be had: {error}. What was fetched is kept; run the command again later."
            ) from error

    def _exchange(self, url: str, kind: Kind, limit: int, *, may_cache: bool) -> Answer:
        target = url
        for _ in range(MAX_REDIRECTS + 1):
            response = self._response(target, kind, limit, may_cache=may_cache)
            if response.status not in _REDIRECTS:
                moved_to = "" if target == url else without_key(target)
                return self._answer(response, kind, target)._replace(moved_to=moved_to)
            target = self.endpoints.followed(target, response.headers.get("location", ""))
        raise Refused(f"{without_key(url)} is redirected more than {MAX_REDIRECTS} times.")

    def _response(self, url: str, kind: Kind, limit: int, *, may_cache: bool) -> Response:
        key = self.endpoints.key(url)
        client = self._cached if may_cache and not key else self._plain
        self._wait_turn(url)
        try:
            return exchange(
                client,
                "GET",
                self.endpoints.sent(url),
                longest=limit,
                shown=shown,
                headers=_headers(kind, key),
                extensions={"trace": self._watchdog.saw},
            )
        except Busy as error:
            if _is_unresolved(error):
                error.tries = UNRESOLVED_TRIES
            raise
        except Unusable as error:
            raise Refused(f"{without_key(url)}: {error}.") from error

    def _wait_turn(self, url: str) -> None:
        name = self.endpoints.name(url)
        pause = self._next.get(name, 0.0) - self.clock.now()
        if pause > 0:
            self.clock.sleep(pause)
        self._next[name] = self.clock.now() + 1 / min(self._rate, ENDPOINTS[name].max_rate)

    def _answer(self, response: Response, kind: Kind, url: str) -> Answer:
        place = without_key(url)
        if response.status != HTTPStatus.OK:
            raise self._failure(response, url)
        check_type(kind, response.headers.get("content-type", ""), place)
        check_content(kind, response.body, place)
        return Answer(response.body, _validator(response, "etag"), _validator(response, "last-modified"))

    def _failure(self, response: Response, url: str) -> Exception:
        words = f"HTTP {response.status}"
        if response.status in _BUSY:
            wait = self._patience.asked(response.headers)
            is_too_long = wait is not None and wait > LONGEST_WAIT
            return Busy(words, wait=wait, tries=1 if is_too_long else sys.maxsize)
        variable = ENDPOINTS[self.endpoints.name(url)].key
        if variable and response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return InputError(
                f"{without_key(url)}: {words}, the key was refused. Check what the environment has as {variable}."
            )
        return Refused(f"{without_key(url)}: {words}.")


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


def _validator(response: Response, name: str) -> str:
    value = response.headers.get(name, "")
    return value if value.isprintable() and len(value) <= 200 else ""


def _is_unresolved(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__  # httpcore drops the cause of what its pool passes on
    return error is not None
