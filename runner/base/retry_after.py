"""How long a client waits before it asks a busy server again."""

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenacity import RetryCallState


def asked_seconds(header: str, now: datetime) -> float | None:
    """Seconds that a Retry-After asks for, as a number or a date, 0 for one in the past; None where it says neither."""
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header[:12])
    try:
        return max((parsedate_to_datetime(header) - now).total_seconds(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def as_asked(longest: float) -> "Callable[[RetryCallState], float]":
    """The wait of a tenacity retry: what the error's `wait` asks for, else 1, 2, 4 ... seconds, at most `longest`.

    Up to one second more by chance is added to the latter.
    """
    import tenacity

    backoff = tenacity.wait_exponential_jitter(initial=1, max=longest, jitter=1)

    def wait(state: "RetryCallState") -> float:
        asked = getattr(state.outcome.exception(), "wait", None) if state.outcome else None
        return backoff(state) if asked is None else float(asked)

    return wait
