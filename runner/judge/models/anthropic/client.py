"""A Claude model asked by Anthropic's SDK, a few requests at a time: bounded, patient, and silent about the key."""

import os
import re
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar, cast

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError, PackageMissing
from runner.base.http_client import (
    CHECKED,
    CONNECT_SECONDS,
    Busy,
    Secret,
    Unusable,
    patiently,
    refuse_clear_key,
)
from runner.base.places import INSTALLED
from runner.eval_set.plan import is_same_model
from runner.judge.models.anthropic.wire import beyond_sdk, headers, params, reply_of, with_room
from runner.judge.models.client import ANTHROPIC_KEY, URL_FLAG, Astray, JudgeClient, Way, judge_address, received
from runner.judge.models.requests import Ask, Reply

if TYPE_CHECKING:
    import anthropic
    import httpx2

KEY_VARIABLE = ANTHROPIC_KEY
HEADERS_VARIABLE = "ANTHROPIC_CUSTOM_HEADERS"
URL = "https://api.anthropic.com"

MAX_BYTES = 4_000_000
"""Of an answer; the results of a batch have a limit of their own."""

_RETRIED = frozenset((408, 409, 425, 429))
_TURNED_AWAY = frozenset((503, 529))
_TOO_LARGE = 413
_NO_MONEY = re.compile(r"credit balance|usage limit|spend limit|spending limit|billing", re.IGNORECASE)

_Result = TypeVar("_Result")


class NotThere(BackendError):
    """The address, the model or the batch is not known to the service."""


class _TooMuch(Exception):
    pass


class AnthropicClient:
    """One pool of connections, for any number of threads; it follows no redirect.

    Of the environment, the key and the proxies count; headers in it are refused. An InputError for a missing key, and
    for one that would go unencrypted to a public address, unless `way` allows it.
    """

    def __init__(self, way: Way) -> None:
        try:
            import anthropic
            import httpx2
        except ModuleNotFoundError as error:
            advice = "`pip install 'per-source-eval[judge]'`" if INSTALLED else "`make setup`"
            raise PackageMissing(
                f"Judging by Claude needs the package {error.name}, which is not installed. {advice} installs it."
            ) from error
        place = judge_address(way.url or URL)
        self.url = place.url
        self.secret = Secret(KEY_VARIABLE)
        is_direct = refuse_clear_key(place, self.secret, URL_FLAG)
        if not self.secret.value:
            raise InputError(
                f"The environment has no {KEY_VARIABLE}. Put the service's key there; it is written nowhere."
            )
        if os.environ.get(HEADERS_VARIABLE, "").strip():  # the SDK would send them with every request
            raise InputError(
                f"The environment has {HEADERS_VARIABLE}, which may hold a key or change what is asked. Unset it for "
                f"this command: env -u {HEADERS_VARIABLE} ..."
            )
        self._timeout = way.timeout
        self._patience = way.patience
        limits = httpx2.Timeout(way.timeout, connect=min(way.timeout, CONNECT_SECONDS))
        # The SDK's own transport takes the proxies of the environment, whatever trust_env says.
        past_proxies: dict[str, Any] = {"transport": httpx2.HTTPTransport()} if is_direct else {}
        http = anthropic.DefaultHttpxClient(
            timeout=limits,
            follow_redirects=False,
            event_hooks={"response": [self._bound]},
            **past_proxies,
        )
        self.sdk = anthropic.Anthropic(
            api_key=self.secret.value,
            base_url=self.url,
            timeout=limits,
            max_retries=0,
            default_headers={"Accept-Encoding": "identity"},
            open_telemetry=False,
            http_client=http,
        )
        self.longest = MAX_BYTES

    def close(self) -> None:
        """Let go of the connections."""
        self.sdk.close()

    def patiently(self, once: Callable[[], _Result], stopped: threading.Event, url: str = "") -> _Result:
        """Return what `once` returns, tried again for a Busy, which is raised in the end."""
        return patiently(lambda _: once(), self._patience, stopped)

    def check_key(self, model: str) -> None:
        """Raise BackendError if the service says at once that it does not know the key."""
        import anthropic

        try:
            self.sdk.models.retrieve(model, timeout=CHECKED)
        except anthropic.AuthenticationError as error:
            raise self._failure(error) from None
        except (anthropic.APIError, _TooMuch):
            return  # a proxy may have no list of models, and the service may be up when it is needed

    def attempt(self, call: Callable[[], _Result]) -> _Result:
        """Return what the SDK does; Unusable for a failure, a BackendError if no other request would fare better."""
        import anthropic

        try:
            return call()
        except anthropic.APIStatusError as error:
            raise self._failure(error) from None
        except anthropic.APITimeoutError as error:
            unreached = type(error.__cause__).__name__ in ("ConnectTimeout", "PoolTimeout")
            raise Busy(f"no answer within {self._timeout:g} seconds", is_charged=not unreached) from None
        except anthropic.APIConnectionError as error:
            raise self._broken(error.__cause__) from None

    def body(self, call: Callable[[], "httpx2.Response"]) -> str:
        """Return a successful answer's text without the key; raises as `attempt` does."""
        return self.secret.without(self.attempt(call).content.decode("utf-8", "replace"))

    def json(self, call: Callable[[], "httpx2.Response"]) -> JSON:
        """Return the JSON of a successful answer; raises as `attempt` does, Unusable for anything else."""
        return received(self.body(call))

    def _broken(self, cause: BaseException | None) -> Exception:
        if isinstance(cause, _TooMuch):
            return Unusable(str(cause))
        kind = type(cause).__name__
        if kind == "ConnectError":
            words = self.secret.shown(str(cause), 100)
            return Busy(f"the connection to {self.url} failed ({words})", is_charged=False)
        return Busy(f"the connection broke off ({kind})")

    def _failure(self, error: "anthropic.APIStatusError") -> Exception:
        """Return what an answer that is no success means: try again, this request alone, or none would fare better."""
        status, code = error.status_code, error.error_code or ""
        text = self.secret.shown(str(error.api_message or ("a page" if error.body else "no words")), 300)
        words = f"HTTP {status} ({text})"
        is_broke = status == HTTPStatus.PAYMENT_REQUIRED or "limit_reached" in code or bool(_NO_MONEY.search(text))
        if "limit_reached" not in code and (status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRIED):
            may_have_acted = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _TURNED_AWAY
            return Busy(words, is_charged=may_have_acted, wait=self._patience.asked(error.response.headers))
        if status == _TOO_LARGE or (status == HTTPStatus.BAD_REQUEST and not code and not is_broke):
            return Unusable(words, is_charged=False)
        kind = NotThere if status == HTTPStatus.NOT_FOUND else BackendError
        return kind(f"{self.url}: {words}. {_advice(status, is_broke=is_broke)} What was answered is kept.")

    def _bound(self, response: "httpx2.Response") -> None:
        """Read an answer, and end in an error when it grows too long or drips."""
        import httpx2

        if response.headers.get("content-encoding", "identity") != "identity":
            raise _TooMuch("the answer is compressed, which was not asked for")  # a few bytes may stand for any number
        deadline, body = time.monotonic() + self._timeout, bytearray()
        stream = cast("httpx2.SyncByteStream", response.stream)
        for piece in stream:
            body += piece
            if len(body) > self.longest:
                raise _TooMuch(f"the answer has more than {self.longest:,} bytes")
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout("no whole answer in time")
        stream.close()
        response.stream = httpx2.ByteStream(bytes(body))


def _advice(status: int, *, is_broke: bool) -> str:
    if status == HTTPStatus.NOT_FOUND:
        return "Check the judge's model id in plan.yaml, and --judge-url."
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return "Redirects are not followed; give the last address as --judge-url."
    if is_broke:
        return "Look at the account's billing, then run the command again."
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED):
        return f"Put a key that may use this model into {KEY_VARIABLE}."
    return "No request would fare better; read the service's words."


class AnthropicMessages(JudgeClient):
    """The model. Raises as LanguageModel says."""

    http: AnthropicClient

    def connected(self) -> tuple[AnthropicClient, str]:
        """Return the service at its own address or another one."""
        http = AnthropicClient(self.way)
        return http, http.url

    def check(self) -> None:
        """Look the model up, which costs nothing; raise as JudgeClient says."""
        self.http.check_key(self.model)

    def sent(self, ask: Ask) -> Ask:
        """Return the ask with room to think, if the model cannot be kept from it."""
        return with_room(self.model, ask)

    def send(self, ask: Ask) -> JSON:
        """Return one message, as received."""
        create = self.http.sdk.messages.with_raw_response.create
        fields, beyond = params(self.model, ask), beyond_sdk(self.model)
        return self.http.json(
            lambda: create(**fields, extra_headers=headers(self.model), extra_body=beyond).http_response
        )

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in a message."""
        return reply_of(ask.key, self.model, answer)

    def accepted(self, reply: Reply) -> Reply:
        """Return the reply; Astray from another model."""
        if reply.model and not is_same_model(self.model, reply.model):
            raise Astray(reply)
        return reply
