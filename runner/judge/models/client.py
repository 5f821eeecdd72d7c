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
from runner.base.errors import InputError
from runner.base.http_client import Patience, Place, Unusable, parsed, plain_address, without_keys
from runner.embed.cost.ledger import Kind
from runner.embed.cost.request_meter import RequestMeter
from runner.judge.models.requests import Ask, Reply, Usage, replies_in_flight


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


@dataclass(eq=False)
class JudgeClient(ABC):
    """A language model behind an API, as `LanguageModel` describes it.

    A new client writes `connected`, `send` and `read`, and `check` if the service can be asked about its key; the
    threads, the tries and the costs are here. What one try may cost at most is held in `meter` before it is sent.
    """

    model: str
    meter: JudgeMeter
    way: Way

    def __post_init__(self) -> None:
        self.http, self.url = self.connected()

    @abstractmethod
    def connected(self) -> tuple[Any, str]:
        """A connection like http_client.Client, nothing sent yet, and where the model is asked, as messages name it.

        An InputError for a bad address, for a missing key, and for one that would go in clear to a public address.
        """

    @abstractmethod
    def send(self, ask: Ask) -> JSON:
        """The whole answer to one try.

        Busy if it may be tried again, Unusable if this ask has no answer, BackendError if no other would have one.
        """

    @abstractmethod
    def read(self, ask: Ask, answer: JSON) -> Reply:
        """The reply in an answer; its usage is None if the answer does not say what it cost. Nothing is raised."""

    def check(self) -> None:  # noqa: B027  # not every service can be asked
        """Raise BackendError if the service says already that it refuses the key; called before anything long."""

    def sent(self, ask: Ask) -> Ask:
        """The ask as it is sent and paid, such as with more tokens to answer."""
        return ask

    def accepted(self, reply: Reply) -> Reply:
        """The reply, marked if it is not from the model that was asked; Astray if the others will not be either."""
        return reply

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply per ask, as they arrive; a BudgetError before a request that the ceiling forbids."""
        return replies_in_flight(asks, self._reply, self.way.parallel, self.url)

    def _reply(self, ask: Ask, stopped: threading.Event) -> Reply:
        sent = self.sent(ask)
        return self.accepted(self.http.patiently(lambda: self._once(sent), stopped, self.url))

    def _once(self, ask: Ask) -> Reply:
        """One try, metered."""
        return self.meter.once(ask, lambda: self.read(ask, self.send(ask)), lambda reply: reply.usage)

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
    """What a text of JSON holds; Unusable for no JSON, NaN, infinity, half a surrogate pair, and DEEPEST exceeded."""
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
    """The parts of an address; an InputError, which repeats nothing of it, for a bad one."""
    place = plain_address(url, URL_FLAG, f"{ANTHROPIC_KEY} or {JUDGE_KEY}")
    for variable in (ANTHROPIC_KEY, JUDGE_KEY):
        key = os.environ.get(variable, "").strip()
        if any(without_keys(text, key) != text for text in (url, unquote(url))):
            raise InputError(
                f"{URL_FLAG} holds the key of {variable}. Give the address without it: the key is sent in a header."
            )
    return place
