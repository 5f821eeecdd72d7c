"""What is asked of a language model and what comes back, whoever serves it.

Several requests at once, their replies as they come, and an end where one after another comes to nothing.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from runner.base.errors import BackendError
from runner.base.threads import in_threads


@dataclass(frozen=True)
class Ask:
    """One request. `key` names its reply and is unique within a call; `system` is the same for all asks of a call.

    `schema` is the JSON schema of the answer, whose text is one JSON object; `max_tokens` is the most that the model
    may write.
    """

    key: str
    system: str
    user: str
    schema: Mapping[str, Any]
    max_tokens: int


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, as the service counted them; cached ones are in no other figure."""

    read: int = 0
    cache_written: int = 0
    cache_read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back for one ask: `text` is what the model wrote, `raw` the whole answer as received, without secrets.

    `problem` says why there is no text to use (refused, cut off, the request failed again and again), "" for none;
    `final` that asking again would not help.
    """

    key: str
    text: str
    model: str
    usage: Usage = Usage()
    raw: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    final: bool = False


class LanguageModel(Protocol):
    """A model behind an API; closing it lets go of its connections and of what it has running there."""

    @property
    def model(self) -> str:
        """The id that is asked for."""
        ...

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply an ask, as they arrive. A BackendError where no further request would fare better."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


IN_A_ROW = 5
"""Requests that come to nothing one after another before the service is taken to be down, or the way to it wrong."""


class GaveUp(Exception):
    """A request that came to nothing for a reason that others may share, said in its words; `reply` is its reply."""

    def __init__(self, why: str, *, final: bool = False, reply: Reply | None = None) -> None:
        super().__init__(why)
        self.final = final
        self.reply = reply


class Streak:
    """How many requests in a row came to nothing; threads may share it."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._length = 0

    def broken(self) -> None:
        """A request was answered as it should be."""
        with self._lock:
            self._length = 0

    def longer(self, why: str) -> None:
        """One more came to nothing; a BackendError once they are IN_A_ROW."""
        with self._lock:
            self._length += 1
            if self._length >= IN_A_ROW:
                raise BackendError(
                    f"{self._service}: {IN_A_ROW} requests in a row came to nothing, the last one: {why}. What was "
                    "answered is kept. Run the command again when that is mended."
                )


def replies_in_flight(
    asks: Sequence[Ask], answer: Callable[[Ask, threading.Event], Reply], parallel: int, service: str
) -> Iterator[Reply]:
    """What `answer` makes of each ask, in the order in which they finish; a GaveUp becomes a reply with a problem.

    The first ask goes alone: what it writes to a service's cache is there for all others.
    """
    unique(asks)
    streak = Streak(service)

    def guarded(ask: Ask, stopped: threading.Event) -> Reply:
        try:
            reply = answer(ask, stopped)
        except GaveUp as error:
            streak.longer(str(error))
            return error.reply or Reply(ask.key, "", "", problem=str(error), final=error.final)
        streak.broken()
        return reply

    yield from in_threads(asks[:1], guarded, 1)
    yield from in_threads(asks[1:], guarded, parallel)


def unique(asks: Sequence[Ask]) -> None:
    """Nothing, or a ValueError where a key would name two replies."""
    repeated = [key for key, count in Counter(ask.key for ask in asks).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated)} keys name several asks, such as {repeated[0]!r}")
