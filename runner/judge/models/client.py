"""What the clients of all judges' services share. A new one says how it sends an ask and how it reads the answer."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from runner.base.canonical import JSON
from runner.base.http_client import Patience
from runner.judge.models.meter import JudgeMeter
from runner.judge.models.requests import Ask, Reply, replies_in_flight

_Result = TypeVar("_Result")


class Connection(Protocol):
    """The way to a service: `runner.base.http_client.Client`, or one around a vendor's SDK."""

    def patiently(self, once: Callable[[], _Result], stopped: threading.Event, url: str) -> _Result:
        """What `once` returns, tried again while the service is busy."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a service is reached: its address ("" for its own), how many requests at once, seconds of a try, waits.

    `in_clear` lets the key go unencrypted to a public address.
    """

    url: str = ""
    in_clear: bool = False
    parallel: int = 4
    timeout: float = 180.0
    patience: Patience = field(default_factory=Patience)


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
        """A Connection by `way`, nothing sent yet, and where the model is asked, as messages name it.

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
