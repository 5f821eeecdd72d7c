"""What the clients of all judges' services share: address, keys, and the JSON they send.

A new one says how it sends an ask and how it reads the answer.
"""

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from runner.base.canonical import JSON
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Busy, Patience, Place, Unusable, parsed, plain_address, without_keys
from runner.base.threads import in_threads
from runner.embed.cost.ledger import Kind
from runner.embed.cost.request_meter import RequestMeter
from runner.judge.models.requests import Ask, Reply, Usage, unique


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a service is reached: its address ("" for its own), how many requests at once, seconds of a try, waits."""

    url: str = ""
    parallel: int = 4
    timeout: float = 180.0
    patience: Patience = field(default_factory=Patience)


class JudgeMeter(RequestMeter[Ask, Usage]):
    """A session's spending on one judge."""

    kind: Kind = "judge"
    doing = "judging"


IN_A_ROW = 5
"""Requests that come to nothing one after another before the service is taken to be down, or the way to it wrong."""


class Astray(Unusable):
    """An answer that others may share the fault of, such as another model's; `reply` is what came."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.problem)
        self.reply = reply


@dataclass(eq=False)
class JudgeClient(ABC):
    """A language model behind an API; closing it lets go of its connections and of what it has running there.

    A new client writes `connected`, `send` and `read`, and `check` if the service can be asked about its key; the
    threads, the tries and the costs are here. What one try may cost at most is held in `meter` before it is sent.
    """

    model: str
    meter: JudgeMeter
    way: Way

    def __post_init__(self) -> None:
        self.lock = threading.Lock()
        self._in_a_row = 0
        self.http, self.url = self.connected()

    @abstractmethod
    def connected(self) -> tuple[Any, str]:
        """Return a connection like http_client.Client, nothing sent yet, and where the model is, as messages name it.

        An InputError for a bad address, for a missing key, and for one that would go in clear to a public address.
        """

    @abstractmethod
    def send(self, ask: Ask) -> JSON:
        """Return the whole answer to one try.

        Busy if it may be tried again, Unusable if this ask has no answer, BackendError if no other would have one.
        """

    @abstractmethod
    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in an answer; its usage is None if the answer does not say its cost. Nothing is raised."""

    def check(self) -> None:  # noqa: B027  # not every service can be asked
        """Raise BackendError if the service says already that it refuses the key; called before anything long."""

    def sent(self, ask: Ask) -> Ask:
        """Return the ask as it is sent and paid, such as with more tokens to answer."""
        return ask

    def accepted(self, reply: Reply) -> Reply:
        """Return the reply, marked if another model than was asked sent it; Astray if the others will be like it."""
        return reply

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """Yield one reply per ask, as they arrive; a BudgetError before a request that the ceiling forbids.

        A BackendError once IN_A_ROW requests came to nothing, or if no further one would fare better.
        """
        unique(asks)
        self._in_a_row = 0
        # The first goes alone, so that all others find the service's cache filled.
        yield from in_threads(asks[:1], self._reply, 1)
        yield from in_threads(asks[1:], self._reply, self.way.parallel)

    def _reply(self, ask: Ask, stopped: threading.Event) -> Reply:
        """Return what becomes of one ask, tried again while the service is busy; an Unusable is a problem."""
        sent = self.sent(ask)
        try:
            reply = self.accepted(self.http.patiently(lambda: self._once(sent), stopped, self.url))
        except Unusable as error:
            self._count_nothing(error)
            if isinstance(error, Astray):
                return error.reply
            # Refused, so that asking again would not help; a busy server may answer yet.
            is_final = not (error.is_charged or isinstance(error, Busy))
            return Reply(key=ask.key, problem=str(error), final=is_final)
        with self.lock:
            self._in_a_row = 0
        return reply

    def _once(self, ask: Ask) -> Reply:
        """Return the reply of one try, its cost held before and counted after it."""
        return self.meter.once(ask, lambda: self.read(ask, self.send(ask)), lambda reply: reply.usage)

    def _count_nothing(self, error: Unusable) -> None:
        """Raise BackendError if IN_A_ROW requests have come to nothing."""
        with self.lock:
            self._in_a_row += 1
            if self._in_a_row >= IN_A_ROW:
                raise BackendError(
                    f"{self.url}: {IN_A_ROW} requests in a row came to nothing, the last one: {error}. What was "
                    "answered is kept. Run the command again when that is mended."
                ) from None

    def close(self) -> None:
        """Let go of the connections, and write down what was spent."""
        try:
            self.http.close()
        finally:
            self.meter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


DEEPEST = 50
"""Lists and objects within one another; no answer needs a tenth of it."""


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


ANTHROPIC_KEY = "ANTHROPIC_API_KEY"

JUDGE_KEY = "PSE_JUDGE_API_KEY"
"""Variables of the environment that hold judges' keys."""

URL_FLAG = "--judge-url"


def judge_address(url: str) -> Place:
    """Return the parts of an address; an InputError, which repeats nothing of it, for a bad one."""
    place = plain_address(url, URL_FLAG, f"{ANTHROPIC_KEY} or {JUDGE_KEY}")
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        key = os.environ.get(variable, "").strip()
        if any(without_keys(text, key) != text for text in (url, unquote(url))):
            raise InputError(
                f"{URL_FLAG} holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
    return place
