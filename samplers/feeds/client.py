"""HTTP as feeds use it: polite, bounded, patient with a busy server, and silent about keys."""

import json
import socket
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
from samplers.feeds.answers import FORMS, Cut, check_content, check_type
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused, shown, without_key
from samplers.feeds.request import Kind, Say
from samplers.feeds.watchdog import Watchdog

if TYPE_CHECKING:
    import ssl

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
UNRESOLVED_TRIES = 2
"""Tries if a host's name leads nowhere: mostly there is no network at all, and the person should hear of it."""

MAX_REDIRECTS = 5
_BUSY = frozenset((408, 429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))

_Result = TypeVar("_Result")


class Clock(NamedTuple):
    """Time as a client needs it: seconds that only grow, waiting, and the time of day; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    utc: Callable[[], datetime] = lambda: datetime.now(UTC)


class Answer(NamedTuple):
    """A whole body, and the validators that it came with, "" for none.

    `moved_to` is the official address that redirects led to, "" if there were none.
    """

    data: bytes
    etag: str = ""
    last_modified: str = ""
    moved_to: str = ""


class Client(ExitStack):
    """Answers of the endpoints. Listings are cached and revalidated; files, and answers to a key, are not.

    A keyed answer may repeat its key, so none is ever stored.
    """

    def __init__(self, endpoints: Endpoints, caches: Path, clock: Clock, say: Say) -> None:
        import httpx
        from hishel import CacheOptions, SqliteStorage
        from hishel.httpx import CacheClient

        super().__init__()
        self.endpoints = endpoints
        self.clock = clock
        self._say = say
        self._patience = Patience(
            clock.sleep, clock.utc, tries=TRIES, longest_pause=60.0, waits=LONGEST_ANSWER, within=LONGEST_ANSWER
        )
        self._next: dict[str, float] = {}
        self._watchdog = Watchdog()
        (caches / "feeds").mkdir(parents=True, exist_ok=True)
        storage = SqliteStorage(database_path=caches / "feeds" / "http_v2.db", max_stream_size=MAX_LISTING)
        timeout = httpx.Timeout(30.0, connect=10.0)
        rfc, verify = CacheOptions(shared=False), _certificates()
        self._plain = self.enter_context(httpx.Client(timeout=timeout, verify=verify))
        self._cached = self.enter_context(CacheClient(storage=storage, rfc=rfc, timeout=timeout, verify=verify))

    def json(self, url: str) -> JSON:
        """Return a listing; raise a BackendError if the server gives none."""

        def ask(attempt: int) -> JSON:
            # What was cached may be what is wrong with it, so only the first attempt asks the cache.
            answer = self._followed(url, "json", MAX_LISTING, may_cache=attempt == 1)
            try:
                return json.loads(answer.data)
            except (ValueError, RecursionError) as error:
                raise Cut("the answer is not JSON") from error

        return self._patiently(url, ask)

    def page(self, url: str) -> str:
        """Return a page of HTML as text."""
        answer = self._patiently(url, lambda attempt: self._followed(url, "html", MAX_LISTING, may_cache=attempt == 1))
        return answer.data.decode("utf-8", "replace")

    def file(self, url: str, kind: Kind, limit: int) -> Answer:
        """Return a file of at most `limit` bytes; raise Refused if there is none, BackendError if the server fails."""
        return self._patiently(url, lambda _: self._followed(url, kind, limit, may_cache=False))

    def _patiently(self, url: str, ask: Callable[[int], _Result]) -> _Result:
        """Return what `ask` returns; raise Refused if every answer was cut, BackendError if the server stays busy."""
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

    def _followed(self, url: str, kind: Kind, limit: int, *, may_cache: bool) -> Answer:
        """Return the answer that redirects lead to, on the same service; raise Refused for any other."""
        target = url
        for _ in range(MAX_REDIRECTS + 1):
            response = self._response(target, kind, limit, may_cache=may_cache)
            if response.status not in _REDIRECTS:
                place = without_key(target)
                if response.status != HTTPStatus.OK:
                    raise self._failure(response, target)
                check_type(kind, response.headers.get("content-type", ""), place)
                check_content(kind, response.body, place)
                etag, modified = _validator(response, "etag"), _validator(response, "last-modified")
                return Answer(response.body, etag, modified, "" if target == url else place)
            target = self.endpoints.followed(target, response.headers.get("location", ""))
        raise Refused(f"{without_key(url)} is redirected more than {MAX_REDIRECTS} times.")

    def _response(self, url: str, kind: Kind, limit: int, *, may_cache: bool) -> Response:
        """Return one answer, once it is this service's turn."""
        name, key = self.endpoints.name(url), self.endpoints.key(url)
        # no-cache: what is cached is used only once the server says that it is still the same.
        headers = {
            "User-Agent": USER_AGENT,
            "Accept": FORMS[kind].accept,
            "Accept-Encoding": "gzip" if kind in ("json", "html") else "identity",
            "Cache-Control": "no-cache",
        }
        pause = self._next.get(name, 0.0) - self.clock.now()
        if pause > 0:
            self.clock.sleep(pause)
        self._next[name] = self.clock.now() + 1 / min(RATE, ENDPOINTS[name].max_rate)
        try:
            return exchange(
                self._cached if may_cache and not key else self._plain,
                "GET",
                self.endpoints.sent(url),
                longest=limit,
                shown=shown,
                headers=headers | {"X-Api-Key": key} if key else headers,
                extensions={"trace": self._watchdog.saw},
            )
        except Busy as error:
            if _is_unresolved(error):
                error.tries = UNRESOLVED_TRIES
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


def _validator(response: Response, name: str) -> str:
    value = response.headers.get(name, "")
    return value if value.isprintable() and len(value) <= 200 else ""


def _is_unresolved(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, socket.gaierror):
        error = error.__cause__ or error.__context__  # httpcore drops the cause of what its pool passes on
    return error is not None
