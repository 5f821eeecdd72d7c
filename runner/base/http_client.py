"""Requests to a server: bounded in size and time, patient while it is busy, and silent about the key.

`exchange` makes one request and `patiently` repeats it; feeds, encoders and judges ask through both. What comes to
nothing is to be tried again later (Busy), is about this request alone (Unusable), or ends the session (Refused).
"""

import itertools
import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

from runner import __version__
from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from runner.base.given_files import printable

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_SECONDS = 10.0
CHECKED = 10.0
"""Seconds that a server gets to say what it thinks of a key, before anything long begins."""

_LONGEST_CHECK = 1_000_000

SHORTEST_KEY = 8
"""Characters of the shortest key that is looked for in texts: a shorter one stands in words that say nothing of it."""

_MOST_WORDS = 10_000
"""Bytes read of an answer that is no success."""

_ENCODINGS = frozenset(("", "identity", "gzip"))
_TURNED_AWAY = frozenset((409, 425, 429, 503, 529))
_AGAIN = _TURNED_AWAY | {408, 424}  # 424 is TEI's word for an inference that failed
_REFUSED_KEY = frozenset((401, 403, 407))
_NOTHING_THERE = frozenset((404, 405, 410))
_OF_MONEY = frozenset((400, 403, 429))
_NO_MONEY = re.compile(r"credit balance|(usage|spend|spending)[ _]limit|limit_reached|billing", re.IGNORECASE)

_Result = TypeVar("_Result")


class Unusable(Exception):
    """A request that came to nothing; asking again would not help.

    `is_charged` says whether the server may have carried it out all the same.
    """

    def __init__(self, reason: str, *, is_charged: bool = True) -> None:
        super().__init__(reason)
        self.is_charged = is_charged


class Busy(Unusable):
    """A request worth making again: after `wait` seconds, if the server asks for them, and up to `tries` times."""

    def __init__(
        self, reason: str, *, is_charged: bool = True, wait: float | None = None, tries: int = sys.maxsize
    ) -> None:
        super().__init__(reason, is_charged=is_charged)
        self.wait = wait
        self.tries = tries


class Refused(BackendError):
    """A refusal that every further request would meet."""


class NotThere(Refused):
    """The address, the model or the record is not known to the server."""


class Patience(NamedTuple):
    """How long a client goes on asking a busy server; tests bring their own `sleep` and `now`.

    `longest_pause` bounds a pause that the client chooses itself. All waits together may take `waits` seconds, and
    the tries with their waits `within` seconds. `sleep` None waits for real, until the session is stopped.
    """

    sleep: Callable[[float], None] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    tries: int = 5
    longest_pause: float = 30.0
    waits: float = 120.0
    within: float = float("inf")

    def asked(self, headers: Mapping[str, str]) -> float | None:
        """Return the seconds that a Retry-After asks for, as a number or a date (0 for a past one), None for none."""
        header = headers.get("retry-after", "").strip()
        if header.isascii() and header.isdigit():
            return float(header[:12])
        try:
            return max((parsedate_to_datetime(header) - self.now()).total_seconds(), 0.0)
        except (TypeError, ValueError, OverflowError):
            return None


def patiently(
    once: Callable[[int], _Result],
    patience: Patience,
    stopped: threading.Event | None = None,
    tell: Callable[[str], None] | None = None,
) -> _Result:
    """Return what `once` returns, given the number of the try, from 1.

    Wait as long as a Busy asks, else 1, 2, 4 ... seconds and up to one more by chance. Raise the last Busy, which
    then says how often it was tried, once `patience` is at its end or the session `stopped`.
    """
    stopped, began, waited = stopped or threading.Event(), time.monotonic(), 0.0
    for tries in itertools.count(1):
        try:
            return once(tries)
        except Busy as error:
            # Up to a second by chance, so that clients that were turned away together do not come back together.
            own = min(2.0 ** min(tries - 1, 30) + random.random(), patience.longest_pause)  # noqa: S311  # no secret
            pause = own if error.wait is None else error.wait
            elapsed = max(waited, time.monotonic() - began)
            if (
                tries >= min(patience.tries, error.tries)
                or waited + pause > patience.waits
                or elapsed + pause >= patience.within
                or stopped.is_set()
            ):
                asks = f", and asks to wait {error.wait:,.0f} seconds" if error.wait else ""
                error.args = (f"{error}, {'once' if tries == 1 else f'{tries} times'}{asks}",)
                raise
            if tell:
                tell(f"{error}; asking again in {pause:.0f} seconds")
        (patience.sleep or stopped.wait)(pause)
        waited += pause
    raise AssertionError("counting has no end")


class Secret:
    """The key that the environment has as `variable`, "" for none; it is `value` alone that shows it.

    An InputError, which does not show it, for what is no key.
    """

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.value = os.environ.get(variable, "").strip()
        if self.value and not re.fullmatch(r"[!-~]{1,4096}", self.value):
            raise InputError(f"What the environment has as {variable} is no key: a space, or signs beyond ASCII.")

    def __repr__(self) -> str:
        return f"Secret({self.variable})"

    def without(self, text: str) -> str:
        """Return the text with [key] wherever the key stood."""
        return without_keys(text, self.value)

    def shown(self, text: str, longest: int = 200) -> str:
        """Return a server's words as a message or a record can show them: printable, cut, and without the key."""
        return printable(" ".join(self.without(text).split()), longest)


def without_keys(text: str, *keys: str) -> str:
    """Return the text with [key] wherever a key stood, in any case, its slashes escaped (as JSON may) or not."""
    for key in keys:
        if len(key) >= SHORTEST_KEY:
            text = re.sub(re.escape(key).replace("/", r"\\?/"), "[key]", text, flags=re.IGNORECASE)
    return text


class Place(NamedTuple):
    """Where a server is: scheme, host and port; the path without a slash at its end; the host alone."""

    origin: str
    path: str
    host: str

    @property
    def url(self) -> str:
        """The whole address."""
        return self.origin + self.path


def plain_address(url: str, flag: str, variable: str) -> Place:
    """Return the parts of an address given as `flag`, whose key comes as `variable`.

    Raise an InputError, which repeats nothing, for what is none and for one with a user, a password or a query.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port == 0 or parts.scheme not in ("http", "https") or not re.fullmatch(r"[!-~]+", url):
        raise InputError(f"{flag} is no address. Give one such as http://localhost:8080/v1 or https://host/path.")
    # Whatever stands there may be a key, and addresses are printed and recorded.
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            f"{flag} holds a user, a password or a query, which may be a key. Give scheme, host, port and path alone; "
            f"a key comes from the environment{variable and f', as {variable}'}."
        )
    netloc = f"[{host}]" if ":" in host else host
    return Place(f"{parts.scheme}://{netloc}" + (f":{port}" if port else ""), parts.path.rstrip("/"), host)


_OWN_NETWORKS = [
    *map(ip_network, ("0.0.0.0/32", "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
    *map(ip_network, ("::/128", "::1/128", "fc00::/7")),
]
"""Link-local addresses are not among them: a cloud's machines are told their credentials at one."""


def is_own(host: str) -> bool:
    """Return whether a host is this machine or an address of a private network.

    No name is looked up: "localhost" alone counts, since any other may lead elsewhere, now or a moment later.
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    # ::ffff:8.8.8.8 is a public address in the clothes of another family.
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in _OWN_NETWORKS)


def refuse_clear_key(place: Place, secret: Secret, flag: str) -> bool:
    """Return whether a key goes there unencrypted, so that no proxy may see it; InputError if others could read it."""
    is_clear = bool(secret.value) and place.origin.startswith("http:")
    if is_clear and not is_own(place.host):
        raise InputError(
            f"{flag}: {secret.variable} would go unencrypted to {printable(place.host, 100)}, where others on the way "
            "can read it. Give an https address, or the number of a private address such as http://10.0.0.5:8000, or "
            f"unset {secret.variable} if the server needs no key."
        )
    return is_clear


class Response(NamedTuple):
    """A whole answer; names of headers in lower case."""

    status: int
    body: bytes
    headers: dict[str, str]


def exchange(
    http: "httpx.Client",
    method: str,
    url: str,
    *,
    longest: int,
    shown: Callable[[str, int], str],
    seconds: float = float("inf"),
    content: bytes = b"",
    headers: Mapping[str, str] | None = None,
    extensions: Mapping[str, Any] | None = None,
) -> Response:
    """Return one answer, whatever its status, of at most `longest` bytes within `seconds`.

    Raise Busy if the connection or the time gives out, Unusable if the answer cannot be read.
    """
    import httpx

    deadline = time.monotonic() + seconds
    try:
        with http.stream(method, url, content=content, headers=headers, extensions=dict(extensions or {})) as response:
            body = _read(response, longest, deadline)
    except httpx.TimeoutException as error:
        # What never reached the server cannot be billed.
        unreached = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
        raise Busy(f"no answer within {http.timeout.read:g} seconds", is_charged=not unreached) from error
    except httpx.ConnectError as error:
        raise Busy(f"the connection failed ({shown(str(error), 100)})", is_charged=False) from error
    except httpx.TransportError as error:
        raise Busy(f"the connection broke off ({type(error).__name__})") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        raise Unusable(f"the answer cannot be read ({type(error).__name__})") from error
    if body is None:
        raise Busy(f"no whole answer within {seconds:g} seconds")
    return Response(response.status_code, body, {name.lower(): value for name, value in response.headers.items()})


def _read(response: "httpx.Response", longest: int, deadline: float) -> bytes | None:
    """Return the body, or the beginning of one that only says why there is none; None after the deadline."""
    # Of a failure only the first words are read; an answer is read whole or refused.
    is_wanted = response.status_code == HTTPStatus.OK
    if response.headers.get("content-encoding", "").lower() not in _ENCODINGS:
        raise Unusable("the answer is compressed in a way that was not asked for")
    # A declared length saves the reading; what comes is counted all the same.
    declared = response.headers.get("content-length", "")
    length = int(declared[:18]) if declared.isascii() and declared.isdigit() else 0
    body = bytearray()
    if not is_wanted or length <= longest:
        for piece in response.iter_bytes():
            body += piece
            length = len(body)
            if time.monotonic() > deadline:
                return None
            if length > longest or (length > _MOST_WORDS and not is_wanted):
                break
    if is_wanted and length > longest:
        raise Unusable(f"the answer has more than {longest:,} bytes")
    return bytes(body)


def parsed(body: bytes | str) -> JSON:
    """Return what a body holds; raise Unusable for what is not JSON, NaN and Infinity included."""

    def refuse(constant: str) -> NoReturn:
        raise Unusable(f"the answer is not JSON: it holds {constant}")

    try:
        return json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        page = " but a page of HTML or XML" if body.lstrip()[:1] in (b"<", "<") else ""
        raise Unusable(f"the answer is not JSON{page}") from error


class Service(NamedTuple):
    """What messages say of a server: what names it, where its key comes from, what to look at if nothing answers."""

    url_flag: str
    key_variable: str
    nothing_there: str


@cache
def trusted(*, from_env: bool) -> "ssl.SSLContext":
    """Return what certificates are checked by, read once a process; SSL_CERT_FILE and SSL_CERT_DIR count if asked."""
    import httpx

    try:
        return httpx.create_ssl_context(trust_env=from_env)
    except OSError as error:  # ssl's own errors too
        raise InputError(
            f"The certificates cannot be read ({error}). Let SSL_CERT_FILE name a file of them, or unset it."
        ) from error


class Client:
    """One pool of connections to one server, for any number of threads. Redirects are not followed.

    The proxies of the environment are used unless the key goes unencrypted to `place`, a private address. An
    InputError if it would go so anywhere else. `headers` are sent beside the usual ones.
    """

    def __init__(
        self,
        timeout: float,
        patience: Patience,
        service: Service,
        place: Place,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        import httpx

        self._service = service
        self.secret = Secret(service.key_variable)
        is_direct = refuse_clear_key(place, self.secret, service.url_flag)
        self._timeout = timeout
        self._patience = patience
        usual = {
            "User-Agent": f"per-source-eval/{__version__}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self.secret.value:
            usual["Authorization"] = f"Bearer {self.secret.value}"
        self._http = httpx.Client(
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            headers={**usual, **(headers or {})},
            follow_redirects=False,
            trust_env=not is_direct,
            verify=trusted(from_env=not is_direct),
        )
        self._lock = threading.Lock()
        self._holders = 1
        """Requests under way, and whoever closes the client."""

    def close(self) -> None:
        """Let go of the connections, as soon as the last request under way has ended."""
        # A thread that nobody waits for any more may open a connection yet, which a closed pool would not close.
        with self._lock:
            self._holders -= 1
            if not self._holders:
                self._http.close()

    def _exchange(
        self,
        method: str,
        url: str,
        content: bytes,
        longest: int,
        seconds: float,
        extensions: Mapping[str, Any] | None = None,
    ) -> Response:
        """Return one answer, as `exchange` does; the connections are there until it has come."""
        with self._lock:
            self._holders += 1
        try:
            return exchange(
                self._http,
                method,
                url,
                longest=longest,
                shown=self.secret.shown,
                seconds=seconds,
                content=content,
                extensions=extensions,
            )
        finally:
            self.close()

    def post(self, url: str, body: bytes, longest: int, stopped: threading.Event) -> Response:
        """Return the answer with status 200, of at most `longest` bytes.

        Raise Unusable for what concerns this request alone, Refused if the key is or nothing is at the address, a
        BackendError if the server cannot be reached or stays overloaded.
        """
        return self.patiently(lambda: self.once("POST", url, body, longest), stopped, url)

    def get(self, url: str, longest: int, stopped: threading.Event) -> Response | None:
        """Return the answer with status 200, None if the server does not have the page or does not give it."""
        try:
            return self.patiently(lambda: self.once("GET", url, b"", longest), stopped, url)
        except Busy:
            raise
        except (Unusable, Refused):
            return None

    def check_key(self, url: str, body: bytes = b"") -> str:
        """Return what keeps the server from answering at once, "" for nothing; raise Refused if it refuses the key.

        Asked with a body, it may refuse whatever else every further request would meet.
        """
        soon = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), CHECKED)}
        method = "POST" if body else "GET"
        try:
            response = self._exchange(method, url, body, _LONGEST_CHECK, CHECKED, soon)
        except Unusable as error:
            return str(error)
        if response.status == HTTPStatus.OK:
            return ""
        failure = self._failure(url, response)
        if isinstance(failure, Refused) and (body or response.status == HTTPStatus.UNAUTHORIZED):
            raise failure
        # A gateway may forbid what is only looked at, and let pass what counts.
        return str(failure) if body or isinstance(failure, Busy) else ""

    def once(self, method: str, url: str, body: bytes, longest: int) -> Response:
        """Return the answer with status 200 to one try; raise as `post` does, Busy for what may be tried again."""
        response = self._exchange(method, url, body, longest, self._timeout)
        if response.status != HTTPStatus.OK:
            raise self._failure(url, response)
        return response

    def patiently(self, once: Callable[[], _Result], stopped: threading.Event, url: str) -> _Result:
        """Return what `once` returns of what is at `url`, tried again while it is Busy; raise as `post` does."""
        try:
            return patiently(lambda _: once(), self._patience, stopped)
        except Busy as error:
            if error.is_charged:
                raise
            raise BackendError(
                f"{self.secret.without(url)}: {error}. Run the command again when the server is up and has room."
            ) from error

    def _failure(self, url: str, response: Response) -> Exception:
        """Return what a status other than 200 means: again later, this request alone, or stop."""
        status, text = response.status, response.body.decode("utf-8", "replace")
        words = f"HTTP {status} ({self._words(response, text)})"
        # Services say that money ran out with several statuses; waiting does not help.
        is_broke = status == HTTPStatus.PAYMENT_REQUIRED or (status in _OF_MONEY and bool(_NO_MONEY.search(text)))
        if not is_broke and (status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _AGAIN):
            wait = self._patience.asked(response.headers)
            return Busy(words, is_charged=status not in _TURNED_AWAY, wait=wait)
        if is_broke:
            advice = ". Look at the account's billing, then run the command again."
        elif status in _REFUSED_KEY:
            known = "the key in the environment was refused" if self.secret.value else "the environment has no key"
            variable = self._service.key_variable or "a variable of the environment, and its name into key_env"
            advice = f": {known}. Put the server's key into {variable}."
        elif status in _NOTHING_THERE:
            return NotThere(f"{self.secret.without(url)}: {words}. {self._service.nothing_there}")
        elif HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            # Without query and user, either of which may repeat the key.
            target = re.split(r"[?#]", response.headers.get("location", "nowhere"))[0].rpartition("@")[2]
            advice = f" leads to {self.secret.shown(target)}. Redirects are not followed; give the last address."
        else:
            return Unusable(words, is_charged=False)
        return Refused(f"{self.secret.without(url)}: {words}{advice}")

    def _words(self, response: Response, text: str) -> str:
        """Return what the server says of its failure, or what kind of page it sends in place of words."""
        if not text:
            return "no words"
        if response.headers.get("content-type", "").partition(";")[0].endswith("html"):
            return "a page of HTML"
        try:
            error = json.loads(text)["error"]
            text = error if isinstance(error, str) else str(error["message"])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass  # it is shown as it is
        return self.secret.shown(text)
