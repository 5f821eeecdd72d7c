"""What is asked of a language model and what comes back, whoever serves it; several requests run at once."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from runner.base.errors import BackendError
from runner.base.http_client import Busy, Unusable
from runner.base.schema import Count, FrozenModel
from runner.base.threads import in_threads


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


class Usage(FrozenModel):
    """Tokens of one request, as the service counted them; cached ones are in no other figure."""

    read: Count = 0
    cache_written: Count = 0
    cache_read: Count = 0
    written: Count = 0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.read + self.cache_written + self.cache_read + self.written


@dataclass(frozen=True)
class Reply:
    """What came back for one ask: `text` is what the model wrote, `raw` the whole answer as received, without secrets.

    `usage` is None if nobody says. `problem` says why there is no text to use (refused, cut off, the request failed
    again and again), "" for none; `final` that asking again would not help.
    """

    key: str
    text: str
    model: str
    usage: Usage | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    final: bool = False


class Spending(Protocol):
    """What a model's requests cost so far; `runner.judge.models.client.JudgeMeter` is the one in use."""

    def usd(self) -> float:
        """Dollars."""


class LanguageModel(Protocol):
    """A model behind an API; closing it lets go of its connections and of what it has running there."""

    @property
    def model(self) -> str:
        """The id that is asked for."""

    @property
    def meter(self) -> Spending:
        """What holds the costs of its requests."""

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply per ask, as they arrive; a BackendError if no further request would fare better."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...


IN_A_ROW = 5
"""Requests that come to nothing one after another before the service is taken to be down, or the way to it wrong."""


class Astray(Unusable):
    """An answer that others may share the fault of, such as another model's; `reply` is what came."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.problem)
        self.reply = reply


def replies_in_flight(
    asks: Sequence[Ask], answer: Callable[[Ask, threading.Event], Reply], parallel: int, service: str
) -> Iterator[Reply]:
    """What `answer` makes of each ask, as they finish; an Unusable becomes a reply with a problem.

    A BackendError once IN_A_ROW came to nothing. The first ask goes alone, so that all others find the service's
    cache filled.
    """
    unique(asks)
    lock, in_a_row = threading.Lock(), 0

    def guarded(ask: Ask, stopped: threading.Event) -> Reply:
        nonlocal in_a_row
        try:
            reply = answer(ask, stopped)
        except Unusable as error:
            with lock:
                in_a_row += 1
                if in_a_row >= IN_A_ROW:
                    raise BackendError(
                        f"{service}: {IN_A_ROW} requests in a row came to nothing, the last one: {error}. What was "
                        "answered is kept. Run the command again when that is mended."
                    ) from None
            if isinstance(error, Astray):
                return error.reply
            # Refused, so that asking again would not help; a busy server may answer yet.
            is_final = not (error.is_charged or isinstance(error, Busy))
            return Reply(ask.key, "", "", problem=str(error), final=is_final)
        with lock:
            in_a_row = 0
        return reply

    yield from in_threads(asks[:1], guarded, 1)
    yield from in_threads(asks[1:], guarded, parallel)


def unique(asks: Sequence[Ask]) -> None:
    """Raise a ValueError if a key would name two replies."""
    repeated = [key for key, count in Counter(ask.key for ask in asks).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated)} keys name several asks, such as {repeated[0]!r}")
