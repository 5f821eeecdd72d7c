"""Requests to an encoder's server: bounded, patient while it is busy, and silent about the key.

How long a client waits before it asks a busy server again.
"""

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenacity import RetryCallState


import os
import re
import threading
import time
from datetime import UTC
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from runner import __version__
from runner.base.errors import BackendError, InputError
from runner.base.given_files import printable

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState


def asked_seconds(header: str, now: datetime) -> float | None:
    """Seconds that a Retry-After asks for, as a number or a date, 0 for one in the past; None where it says neither."""
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header[:12])
    try:
        return max((parsedate_to_datetime(header) - now).total_seconds(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def as_asked(longest: float) -> "Callable[[RetryCallState], float]":
    """The wait of a tenacity retry: what the error's `wait` asks for, else 1, 2, 4 ... seconds, at most `longest`.

    Up to one second more by chance is added to the latter.
    """
    import tenacity

    backoff = tenacity.wait_exponential_jitter(initial=1, max=longest, jitter=1)

    def wait(state: "RetryCallState") -> float:
        asked = getattr(state.outcome.exception(), "wait", None) if state.outcome else None
        return backoff(state) if asked is None else float(asked)

    return wait


KEY_VARIABLE = "PSE_ENCODER_API_KEY"

TRIES = 5
LONGEST_WAITS = 120.0
"""Seconds that one request may wait between its tries, together; a server that asks for more ends the run."""

CONNECT_SECONDS = 10.0

_OVERLOADED = frozenset((429, 503, 529))
_FAILING = frozenset((408, 424, 425, 500, 502, 504))  # 424 is TEI's word for an inference that failed
_REFUSED_KEY = frozenset((401, 403, 407))
_NOTHING_THERE = frozenset((404, 405, 410))


class Service(NamedTuple):
    """What messages say of a server: where its key comes from, and what to look at where nothing answers."""

    key_variable: str
    nothing_there: str


ENCODER = Service(
    KEY_VARIABLE,
    "Either the model is not served under this name, or the path is wrong: the openai API takes POST /v1/embeddings "
    "(vLLM, infinity, llama.cpp, TEI), the tei API POST /embed. Check --encoder-url, --encoder-api and the server's "
    "model.",
)


class Unusable(Exception):
    """One request came to nothing. `failing`: the server failed at it again and again, and may fail at all."""

    def __init__(self, reason: str, *, failing: bool = False) -> None:
        super().__init__(reason)
        self.failing = failing


class _Busy(Exception):
    """A reason to try again; `wait` is what the server asks for. `session` where no request would fare better."""

    def __init__(self, reason: str, *, wait: float | None = None, session: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.session = session


class Reply(NamedTuple):
    """A whole answer; names of headers in lower case."""

    status: int
    body: bytes
    headers: dict[str, str]


class Patience(NamedTuple):
    """Time as a client needs it; tests bring their own. `sleep` None waits for real, until the session is stopped."""

    sleep: Callable[[float], None] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def api_key(variable: str = KEY_VARIABLE) -> str:
    """The key that the environment has, "" for none; an InputError, which does not show it, where it is no key."""
    key = os.environ.get(variable, "").strip()
    if key and not re.fullmatch(r"[!-~]{1,4096}", key):
        raise InputError(f"What the environment has as {variable} is no key: a space, or signs beyond ASCII.")
    return key


class Client:
    """One pool of connections to one server, for any number of threads. Redirects are not followed."""

    def __init__(self, timeout: float, patience: Patience, service: Service = ENCODER) -> None:
        import httpx

        self._service = service
        self._key = api_key(service.key_variable)
        self._timeout = timeout
        self._patience = patience
        self._http = httpx.Client(
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            headers=_headers(self._key),
            follow_redirects=False,
        )

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def shown(self, text: str, longest: int = 200) -> str:
        """A server's words as a message or a record can show them: printable, cut, and without the key."""
        return printable(self.without_key(text), longest)

    def without_key(self, text: str) -> str:
        """The text with [key] wherever the key stood."""
        if not self._key:
            return text
        # JSON may write a slash as \/.
        return re.sub(re.escape(self._key).replace("/", r"\\?/"), "[key]", text, flags=re.IGNORECASE)

    def post(self, url: str, body: bytes, longest: int, stopped: threading.Event) -> Reply:
        """The answer with status 200, of at most `longest` bytes.

        Unusable for what concerns this request alone. A BackendError where the key is refused, nothing is at the
        address, or the server cannot be reached or stays overloaded through TRIES tries.
        """
        return self._patiently("POST", url, body, longest, stopped)

    def get(self, url: str, longest: int, stopped: threading.Event) -> Reply | None:
        """The answer with status 200, or None where the server does not have the page or does not give it."""
        try:
            return self._patiently("GET", url, b"", longest, stopped)
        except Unusable as error:
            if error.failing:
                raise
            return None

    def _patiently(self, method: str, url: str, body: bytes, longest: int, stopped: threading.Event) -> Reply:
        import tenacity

        def is_enough(state: "RetryCallState") -> bool:
            waits = state.idle_for + state.upcoming_sleep
            return state.attempt_number >= TRIES or waits > LONGEST_WAITS or stopped.is_set()

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Busy),
            stop=is_enough,
            wait=as_asked(longest=30),
            sleep=self._patience.sleep or tenacity.sleep_using_event(stopped),
            reraise=True,
        )
        try:
            return retrying(self._once, method, url, body, longest)
        except _Busy as error:
            raise self._gave_up(url, error, retrying.statistics["attempt_number"]) from error

    def _gave_up(self, url: str, error: _Busy, tries: int) -> Exception:
        often = "once" if tries == 1 else f"{tries} times"
        asks = f" and asks to wait {error.wait:,.0f} seconds" if error.wait else ""
        if not error.session:
            return Unusable(f"{error}, {often}", failing=True)
        place = self.without_key(url)
        return BackendError(
            f"{place}: {error}, {often}{asks}. Run the command again when the server is up and has room."
        )

    def _once(self, method: str, url: str, body: bytes, longest: int) -> Reply:
        import httpx

        deadline = time.monotonic() + self._timeout
        try:
            with self._http.stream(method, url, content=body or None) as response:
                data = self._read(response, longest, deadline)
        except httpx.TimeoutException as error:
            unreached = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            raise _Busy(f"no answer within {self._timeout:g} seconds", session=unreached) from error
        except httpx.ConnectError as error:
            raise _Busy(f"the connection failed ({self.shown(str(error), 100)})", session=True) from error
        except httpx.TransportError as error:
            raise _Busy(f"the connection broke off ({type(error).__name__})") from error
        except httpx.HTTPError as error:
            raise Unusable(f"the answer cannot be read ({type(error).__name__})") from error
        reply = Reply(response.status_code, data, {name.lower(): value for name, value in response.headers.items()})
        self._check(reply, method, url)
        return reply

    def _read(self, response: "httpx.Response", longest: int, deadline: float) -> bytes:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > longest:
                raise Unusable(f"the answer has more than {longest:,} bytes")
            if time.monotonic() > deadline:
                raise _Busy(f"no whole answer within {self._timeout:g} seconds")
        return bytes(body)

    def _check(self, reply: Reply, method: str, url: str) -> None:
        status = reply.status
        if status == HTTPStatus.OK:
            return
        words = f"HTTP {status} ({self._words(reply)})"
        if status in _OVERLOADED:
            raise _Busy(words, wait=self._asked_wait(reply), session=True)
        if status in _FAILING:
            raise _Busy(words, wait=self._asked_wait(reply))
        if method == "POST":
            self._check_session(reply, url, words)
        raise Unusable(words)

    def _check_session(self, reply: Reply, url: str, words: str) -> None:
        """A BackendError for a status that every further request would meet."""
        place = self.without_key(url)
        if reply.status in _REFUSED_KEY:
            known = "the key in the environment was refused" if self._key else "the environment has no key"
            raise BackendError(f"{place}: {words}: {known}. Put the server's key into {self._service.key_variable}.")
        if reply.status == HTTPStatus.PAYMENT_REQUIRED:
            raise BackendError(f"{place}: {words}. Look at the account's billing, then run the command again.")
        if reply.status in _NOTHING_THERE:
            raise BackendError(f"{place}: {words}. {self._service.nothing_there}")
        if HTTPStatus.MULTIPLE_CHOICES <= reply.status < HTTPStatus.BAD_REQUEST:
            target = self.shown(re.split(r"[?#]", reply.headers.get("location", "nowhere"))[0].rpartition("@")[2])
            raise BackendError(
                f"{place}: {words} leads to {target}. Redirects are not followed; give the last address."
            )

    def _words(self, reply: Reply) -> str:
        """What the server says of its failure, or what kind of page it sends in place of words."""
        kind = reply.headers.get("content-type", "").partition(";")[0]
        if "html" in kind or not reply.body:
            return "a page of HTML" if reply.body else "no words"
        return self.shown(" ".join(reply.body.decode("utf-8", "replace").split()))

    def _asked_wait(self, reply: Reply) -> float | None:
        return asked_seconds(reply.headers.get("retry-after", ""), self._patience.now())


def _headers(key: str) -> dict[str, str]:
    headers = {
        "User-Agent": f"per-source-eval/{__version__}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
    }
    return headers | {"Authorization": f"Bearer {key}"} if key else headers
