"""The containers that serve one encoder, and what their time costs: an upper bound at any moment, never falling.

All that may run are charged all the time: one that hangs or fails, and is billed, looks like one never started.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from runner.embed.cost.ledger import Kind, LedgerRow

IDLE_SECONDS = 60.0
"""A container is billed for so long after its last request, until it is let go (`scaledown_window` of the app)."""


class SteadyClock:
    """Seconds since it was made, by a clock that may jump back: a jump counts as no time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said = clock()
        self._elapsed = 0.0

    def __call__(self) -> float:
        """The seconds."""
        said = self._clock()
        self._elapsed += max(0.0, said - self._said)
        self._said = said
        return self._elapsed


@dataclass
class ContainerPool:
    """One row of the ledger while it grows. Moments are seconds of one SteadyClock; callers hold a lock."""

    kind: Kind
    what: str
    gpu: str
    price: float
    max_containers: int
    began: float
    started_on: str
    n_open: int = 1
    is_written: bool = False
    """Whether its last row is in the ledger."""
    _until: float | None = None
    """When the last container is let go; None while requests may come."""
    _answered: set[str] = field(default_factory=set)
    _last_answers: dict[str, float] = field(default_factory=dict)
    """When each container that is at work answered last; empty after an idle time."""
    _tokens: int = 0
    _texts: int = 0
    _busy_tokens: int = 0
    _busy_seconds: float = 0.0

    def is_warm(self, now: float) -> bool:
        """Whether a request of now still meets its containers."""
        return self._until is None or now < self._until

    def enter(self, max_containers: int) -> None:
        """One more user, of a warm pool."""
        if not self.n_open:
            self._last_answers.clear()
        self.n_open += 1
        self.max_containers = max(self.max_containers, max_containers)
        self._until = None

    def leave(self, now: float) -> None:
        """One user fewer; after the last one the containers idle for a while."""
        self.n_open -= 1
        if not self.n_open and self._until is None:
            self._until = now + IDLE_SECONDS

    def stop(self, now: float) -> None:
        """No container runs any longer, whoever still waits for one."""
        self._until = now if self._until is None else min(self._until, now)

    def seen(self, container_id: str, tokens: int, texts: int, now: float) -> None:
        """An answer came from a container."""
        if container_id in self._last_answers:  # how long a first answer took is not known
            self._busy_tokens += tokens
            self._busy_seconds += now - self._last_answers[container_id]
        self._last_answers[container_id] = now
        self._answered.add(container_id)
        self._tokens += tokens
        self._texts += texts

    def usd(self, now: float) -> float:
        """Dollars until now, for all containers that may run, whether they answered or not."""
        return self.price * self._seconds_to(now if self._until is None else min(now, self._until))

    def row(self, now: float) -> LedgerRow:
        """The ledger's row: the cost, idle end included, if nothing more is asked of the containers."""
        until = now + IDLE_SECONDS if self._until is None else self._until
        charged = self._seconds_to(until)
        return LedgerRow(
            schema_version=1,
            kind=self.kind,
            what=self.what,
            gpu=self.gpu,
            price_per_second=self.price,
            started_on=self.started_on,
            ended=not self.is_warm(now),
            seconds=until - self.began,
            containers=len(self._answered),
            container_seconds=charged,
            tokens=self._tokens,
            texts=self._texts,
            busy_seconds=self._busy_seconds,
            busy_tokens=self._busy_tokens,
            usd=self.price * charged,
        )

    def _seconds_to(self, until: float) -> float:
        return (until - self.began) * self.max_containers
