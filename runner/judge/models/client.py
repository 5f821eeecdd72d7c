"""A language model as a judge: what it is asked, what it replies, and what every client of a service shares.

A new service says where it is, what an ask is as its JSON, and how a reply is read from its answer.
"""

import json
import os
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import unquote

from pydantic import Field

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from runner.base.http_client import (
    Busy,
    Client,
    Patience,
    Place,
    Service,
    Unusable,
    parsed,
    patiently,
    plain_address,
    without_keys,
)
from runner.base.schema import FrozenModel
from runner.base.threads import in_threads
from runner.embed.cost.ledger import Budget
from runner.embed.cost.prices import Price, Usage

FORM_TOKENS = 600
"""What a request may hold beside its texts and schema: the service's own words about them."""

IN_A_ROW = 5
"""Requests that come to nothing one after another before the service is taken to be down, or the way to it wrong."""

MAX_BYTES = 4_000_000
"""Of an answer."""

DEEPEST = 50
"""Lists and objects within one another; no answer needs a tenth of it."""

MOST_TOKENS = 10**9
"""A count beyond it is none."""

ANTHROPIC_KEY = "ANTHROPIC_API_KEY"

JUDGE_KEY = "PSE_JUDGE_API_KEY"
"""Variables of the environment that hold judges' keys."""

URL_FLAG = "--judge-url"


@dataclass(frozen=True)
class Ask:
    """One request; `key` is unique within a call, `system` the same for all of it.

    `schema` is the JSON schema of the answer, one JSON object of at most `max_tokens`.
    """

    key: str
    system: str
    user: str
    schema: Mapping[str, Any]
    max_tokens: int


class Reply(FrozenModel):
    """What came back for one ask: `text` is what the model wrote, `raw` the whole answer as received, without secrets.

    `usage` is None if nobody says. `problem` says why there is no text to use (refused, cut off, the request failed
    again and again), "" for none; `final` that asking again would not help, `astray` that others may share the problem.
    """

    key: str
    text: str = ""
    model: str = ""
    usage: Usage | None = None
    raw: dict[str, Any] = Field(default_factory=dict)
    problem: str = ""
    final: bool = Field(default=False, exclude=True)
    astray: bool = Field(default=False, exclude=True)


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a service is reached: its address ("" for its own), how many requests at once, seconds of a try, waits."""

    url: str = ""
    parallel: int = 4
    timeout: float = 180.0
    patience: Patience = field(default_factory=Patience)


class JudgeClient(ABC):
    """A language model behind an API; closing it lets go of its connections.

    Threads, tries and costs are here: what a try may cost at most is held in `budget` before it is sent. An InputError
    for a bad address, and for a key that would go in clear to a public one.
    """

    service: ClassVar[Service]
    home: ClassVar[str] = ""
    """The service's own address, where none is given."""
    longest: ClassVar[int] = MAX_BYTES

    def __init__(self, model: str, budget: Budget, price: Price, way: Way) -> None:
        self.model, self.budget, self.price, self.way = model, budget, price, way
        place = judge_address(way.url or self.home)
        self.http = Client(way.timeout, way.patience, self.service, place, self.headers())
        self.url = self.endpoint(place.url)
        self.lock = threading.Lock()
        self._in_a_row = 0

    @abstractmethod
    def endpoint(self, url: str) -> str:
        """Return where asks are posted, of a service at that address."""

    @abstractmethod
    def request(self, ask: Ask) -> JSON:
        """Return the JSON that is posted for an ask."""

    @abstractmethod
    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in an answer; its usage is None if the answer does not say its cost. Nothing is raised."""

    def headers(self) -> dict[str, str]:
        """Return what requests are sent with beside the usual headers."""
        return {}

    def check(self) -> str:
        """Return what keeps the service from answering now, "" for nothing, or if it cannot be asked at no cost.

        Raise BackendError if it says already that it refuses the key; called before anything long.
        """
        return ""

    def sent(self, ask: Ask) -> Ask:
        """Return the ask as it is sent and paid, such as with more tokens to answer."""
        return ask

    def worst_usd(self, ask: Ask) -> float:
        """Return the dollars that one request costs at most: its whole prompt written to the cache, the longest answer.

        Every byte counts as a token, the most that any tokenizer makes of a text: tables of digits come near it.
        """
        n_bytes = len(ask.system.encode()) + len(ask.user.encode()) + len(json.dumps(dict(ask.schema)))
        return self.price.usd(Usage(cache_written=n_bytes + FORM_TOKENS, written=ask.max_tokens))

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """Yield one reply per ask, as they arrive; a BudgetError before a request that the ceiling forbids.

        A BackendError once IN_A_ROW requests came to nothing, or if no further one would fare better.
        """
        unique(asks)
        self._in_a_row = 0
        # The first goes alone, so that all others find the service's cache filled.
        yield from in_threads(asks[:1], self._reply, 1)
        yield from in_threads(asks[1:], self._reply, self.way.parallel)

    def got(self, method: str, url: str, body: JSON = None) -> str:
        """Return the text of an answer without the key; raises as `Client.once` does."""
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.http.once(method, url, content, self.longest)
        return self.http.secret.without(answer.body.decode("utf-8", "replace"))

    def _reply(self, ask: Ask, stopped: threading.Event) -> Reply:
        """Return what becomes of one ask, tried again while the service is busy; an Unusable is a problem."""
        sent = self.sent(ask)

        def once() -> Reply:
            with self.budget.hold(self.worst_usd(sent), "judge", self.model) as hold:
                reply = self.read(sent, received(self.got("POST", self.url, self.request(sent))))
                hold.cost = None if reply.usage is None else self.price.usd(reply.usage)
            return reply

        try:
            reply = patiently(lambda _: once(), self.way.patience, stopped)
        except Unusable as error:
            # Refused, so that asking again would not help; a busy server may answer yet.
            is_final = not (error.is_charged or isinstance(error, Busy))
            reply = Reply(key=ask.key, problem=str(error), final=is_final, astray=True)
        with self.lock:
            self._in_a_row = self._in_a_row + 1 if reply.astray else 0
            if self._in_a_row >= IN_A_ROW:
                raise BackendError(
                    f"{self.url}: {IN_A_ROW} requests in a row came to nothing, the last one: {reply.problem}. What "
                    "was answered is kept. Run the command again when that is mended."
                )
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.http.close()


def unique(asks: Sequence[Ask]) -> None:
    """Raise a ValueError if a key would name two replies."""
    repeated = [key for key, count in Counter(ask.key for ask in asks).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated)} keys name several asks, such as {repeated[0]!r}")


def received(text: str) -> JSON:
    """Return what a text of JSON holds; Unusable for no JSON, NaN, infinity, half a surrogate pair, beyond DEEPEST."""
    value = parsed(text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Unusable("the answer is not JSON") from None
    if not _is_shallow(value, DEEPEST):
        raise Unusable("the answer is nested too deep")
    return value


def _is_shallow(value: JSON, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in items)


def as_object(value: JSON) -> dict[str, JSON]:
    """Return a JSON object as it is, and an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def token_count(value: JSON) -> int | None:
    """Return a number of tokens, None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def judge_address(url: str) -> Place:
    """Return the parts of an address; an InputError, which repeats nothing of it, for a bad one."""
    address = plain_address(url, URL_FLAG, f"{ANTHROPIC_KEY} or {JUDGE_KEY}")
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        key = os.environ.get(variable, "").strip()
        if any(without_keys(text, key) != text for text in (url, unquote(url))):
            raise InputError(
                f"{URL_FLAG} holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
    return address
