"""Asking again: how often, after which wait, and when to give up."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from runner.base.errors import BackendError
from runner.base.http_client import as_asked, asked_seconds
from samplers.feeds.answers import Cut
from samplers.feeds.endpoints import Refused, without_key
from samplers.feeds.request import Say

if TYPE_CHECKING:
    from tenacity import BaseRetrying, RetryCallState

ATTEMPTS = 6
UNRESOLVED_ATTEMPTS = 2
"""Attempts where a host's name leads nowhere: mostly there is no network at all, and the person should hear of it."""

LONGEST_WAIT = 300.0
"""Seconds that a server may ask to wait; a run whose server asks for more ends, and can be resumed later."""

LONGEST_ANSWER = 900.0
"""Seconds that one answer may take with all its attempts, waits and redirects: a server that sends a byte at a time
would hold a run for ever. The largest file, 200 MB, needs 220 kB a second."""

_T = TypeVar("_T")


class Clock(Protocol):
    """Time as a client needs it; tests bring their own."""

    def now(self) -> float:
        """Seconds that only grow."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def utc(self) -> datetime:
        """The date and time in UTC."""


class SystemClock:
    """The machine's."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def utc(self) -> datetime:
        """The date and time in UTC."""
        return datetime.now(UTC)


class Busy(Exception):  # a reason to ask again, not a failure
    """A server or a connection that may do better later; `wait` is what it asks for, None where it does not say."""

    def __init__(self, reason: str, wait: float | None = None, attempts: int = ATTEMPTS) -> None:
        super().__init__(reason)
        self.wait = wait
        self.attempts = attempts


def patiently(url: str, ask: Callable[[int, float], _T], clock: Clock, say: Say) -> _T:
    """What `ask` returns, given the number of the attempt, from 1 to ATTEMPTS, and the time by which it has to end.

    Waits what the server asks for, else 1, 2, 4 ... seconds and up to one more by chance, but never past
    LONGEST_ANSWER from the beginning. Refused where every answer was cut short; BackendError where the server stays
    busy, or asks for more than LONGEST_WAIT.
    """
    import tenacity

    deadline = clock.now() + LONGEST_ANSWER

    def announce(state: "RetryCallState") -> None:
        reason = state.outcome.exception() if state.outcome else None
        seconds = state.next_action.sleep if state.next_action else 0.0
        say(f"{without_key(url)}: {reason}; asking again in {seconds:.0f} seconds")

    def is_enough(state: "RetryCallState") -> bool:
        attempts = getattr(state.outcome.exception(), "attempts", ATTEMPTS) if state.outcome else ATTEMPTS
        return state.attempt_number >= attempts or clock.now() + state.upcoming_sleep >= deadline

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((Busy, Cut)),
        stop=is_enough,
        wait=as_asked(longest=60),
        before_sleep=announce,
        sleep=clock.sleep,
        reraise=True,
    )
    try:
        for attempt in retrying:
            with attempt:
                return ask(attempt.retry_state.attempt_number, deadline)
    except Cut as error:
        raise Refused(f"{without_key(url)}: {error}, {_times(retrying)}.") from error
    except Busy as error:
        raise BackendError(
            f"{without_key(url)} could not be had: {error}, {_times(retrying)}. What was fetched is kept; run the "
            "command again later."
        ) from error
    raise AssertionError("a retry ends in an answer or in an error")


def _times(retrying: "BaseRetrying") -> str:
    count = retrying.statistics["attempt_number"]
    return "once" if count == 1 else f"{count} times"


def retry_after(header: str, clock: Clock, url: str) -> float | None:
    """Seconds that a Retry-After asks for, given as a number or a date; None where it says neither.

    BackendError for more than LONGEST_WAIT: asking again sooner would be rude, waiting on would look like a hang.
    """
    seconds = asked_seconds(header, clock.utc())
    if seconds is not None and seconds > LONGEST_WAIT:
        raise BackendError(
            f"{without_key(url)}: the server asks to wait {seconds:,.0f} seconds. What was fetched is kept; run the "
            "command again after that."
        )
    return seconds
