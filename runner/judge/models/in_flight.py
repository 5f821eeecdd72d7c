"""Several requests at once, their replies as they come, and an end where one after another comes to nothing."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from runner.base.errors import BackendError
from runner.base.threads import in_threads
from runner.judge.models.requests import Ask, Reply

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
