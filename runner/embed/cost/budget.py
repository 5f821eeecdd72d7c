"""The ceiling of --max-usd: a meter over everything spent on rented machines, and its watchdog."""

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from runner.base.canonical import slug
from runner.base.errors import EvalError
from runner.embed.cost.ledger import BudgetError, Kind, Ledger, LedgerRow, write_session
from runner.embed.cost.prices import (
    GPU,
    PRICE_SOURCE,
    RemoteOptions,
    container_price,
    known_gpu,
    positive,
    shown,
    weights_price,
)

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
    """The containers that serve one encoder, and what their time costs: an upper bound at any moment, never falling.

    All that may run are charged all the time: one that hangs or fails, and is billed, looks like one never started.
    Moments are seconds of one SteadyClock; callers hold a lock.
    """

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


BEAT_SECONDS = 5.0
"""How often the watchdog writes the ledger and looks at the ceiling; a killed process forgets at most this much."""

LOOK_SECONDS = 1.0
"""How old the view of other processes' sessions may be between two beats: every answer asks what is spent."""

_log = logging.getLogger(__name__)


class Meter:
    """What a version has spent on rented machines, by this process and others; threads may share it.

    Every amount is an upper bound by list price. `folder` holds the ledger, which is read at once: a damaged file is a
    BudgetError. Nothing is written and no thread runs before the first session.
    """

    def __init__(
        self,
        folder: Path,
        max_usd: float,
        price_per_second: float,
        *,
        gpu: str = GPU,
        clock: Callable[[], float] = time.monotonic,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self.folder = folder
        self.max_usd = positive("--max-usd", max_usd)
        self.price_per_second = positive("dollars a second", price_per_second)
        self.gpu = known_gpu(gpu)
        self.price_source = PRICE_SOURCE
        self._clock = SteadyClock(clock)
        self._beat_seconds = beat_seconds
        self._state = threading.RLock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._watchdog: threading.Thread | None = None
        self._pools: dict[Path, ContainerPool] = {}
        self._ledger = Ledger(folder)
        self._others: list[LedgerRow] = []
        self._next_look = 0.0
        self._most = 0.0
        self._callbacks: list[Callable[[], None]] = []
        self._is_stopped = False
        self._trouble = ""
        self.earlier_usd = self.spent()
        """What other attempts had spent when this one began."""

    @classmethod
    def of(cls, folder: Path, options: RemoteOptions) -> Self:
        """A meter with the operator's options."""
        return cls(folder, options.max_usd, options.price, gpu=options.gpu)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self) -> list[LedgerRow]:
        """All sessions of the version, other processes' first; a BudgetError if one cannot be read."""
        self._look_again()
        with self._state:
            now = self._clock()
            return [*self._other_rows(), *(pool.row(now) for pool in self._pools.values())]

    def spent(self) -> float:
        """Dollars of all the version's sessions by list price, never less than before; a BudgetError if one cannot be
        read.
        """
        with self._state:
            now = self._clock()
            own = [pool.usd(now) for pool in self._pools.values()]
            self._most = max(self._most, math.fsum([*own, *(row.usd for row in self._other_rows())]))
            return self._most

    def spent_on(self, what: str) -> float:
        """Dollars of the sessions of one encoder, its weights included."""
        with self._state:
            return math.fsum(row.usd for row in self._other_rows() if row.what == what) + math.fsum(
                pool.usd(self._clock()) for pool in self._pools.values() if pool.what == what
            )

    def check(self) -> None:
        """Raise BudgetError once the ceiling is reached or the ledger cannot be kept."""
        if self._trouble:
            raise BudgetError(self._trouble)
        if (spent := self.spent()) > self.max_usd:
            raise BudgetError(
                f"The budget is used up: {shown(spent)} by list price, of --max-usd {shown(self.max_usd)[1:]} "
                f"({shown(self.earlier_usd)} of it by earlier attempts, ledger: {self.folder}). Nothing more is sent. "
                "Run the command again with a higher --max-usd."
            )

    @contextmanager
    def session(self, what: str, gpu: str, max_containers: int, kind: Kind) -> Iterator["MeteredSession"]:
        """A session that is charged; a BudgetError, before anything starts, if the ceiling is reached already.

        Sessions of one encoder that overlap, or that follow before its containers are let go, share a row of the
        ledger: the same containers serve them.
        """
        self._look_again()
        self.check()
        path, pool = self._enter(what, known_gpu(gpu), max_containers, kind)
        try:
            yield MeteredSession(self, pool)
        finally:
            with self._state:
                pool.leave(self._clock())
            self._write(path)

    def answered(self, pool: ContainerPool, container_id: str, tokens: int, texts: int) -> None:
        """Count an answer; `MeteredSession.seen` calls it."""
        with self._state:
            pool.seen(container_id, tokens, texts, self._clock())

    def on_exhausted(self, callback: Callable[[], None]) -> None:
        """Have the watchdog call `callback` once when the ceiling is reached; at once if it is already."""
        with self._state:
            if not self._is_stopped:
                self._callbacks.append(callback)
                return
        _call(callback)

    def beat(self) -> None:
        """One round of the watchdog: the ledger is brought up to date, and the ceiling looked at."""
        try:
            for path in self._unwritten():
                self._write(path)
            self._look_again()
            self.check()
        except (EvalError, OSError) as error:
            if not isinstance(error, BudgetError):
                self._trouble = f"What is spent cannot be written down, so embedding was stopped: {error}"
            self._stop_all()

    def close(self) -> None:
        """End all sessions without an idle time: the app that they belong to is stopped."""
        with self._state:
            now = self._clock()
            for pool in self._pools.values():
                pool.stop(now)
        for path in self._unwritten():
            self._write(path)
        self._wake.set()

    def _enter(self, what: str, gpu: str, max_containers: int, kind: Kind) -> tuple[Path, ContainerPool]:
        with self._state:
            now = self._clock()
            for path, pool in self._pools.items():
                if (pool.what, pool.gpu, pool.kind) == (what, gpu, kind) and pool.is_warm(now):
                    pool.enter(max_containers)
                    return path, pool
            started = datetime.now(UTC)
            pool = ContainerPool(
                kind, what, gpu, self._price(gpu, kind), max_containers, now, started.isoformat(timespec="seconds")
            )
            path = self.folder / f"{started:%Y%m%dT%H%M%SZ}-{kind}-{slug(what)}-{secrets.token_hex(4)}.json"
            self._pools[path] = pool
        try:
            self._write(path)  # on disk before anything can cost
        except BaseException:
            with self._state:
                del self._pools[path]
            raise
        self._watch()
        return path, pool

    def _price(self, gpu: str, kind: Kind) -> float:
        if kind == "weights":
            return weights_price()
        return self.price_per_second if gpu == self.gpu else container_price(gpu)

    def _unwritten(self) -> list[Path]:
        with self._state:
            return [path for path, pool in self._pools.items() if not pool.is_written]

    def _write(self, path: Path) -> None:
        with self._writing:  # an older row must not replace a newer one
            with self._state:
                row = self._pools[path].row(self._clock())
            write_session(path, row)
            self._pools[path].is_written = row.ended

    def _other_rows(self) -> list[LedgerRow]:
        """Sessions of other processes."""
        now = self._clock()
        if now >= self._next_look:
            self._others = self._ledger.rows(without=self._pools)
            self._next_look = now + LOOK_SECONDS
        return self._others

    def _look_again(self) -> None:
        with self._state:
            self._next_look = 0.0

    def _watch(self) -> None:
        with self._state:
            if self._watchdog is None:
                self._watchdog = threading.Thread(target=self._keep_watch, name="budget", daemon=True)
                self._watchdog.start()

    def _keep_watch(self) -> None:
        """Beat by beat, until the last row of every session is written."""
        while True:
            if self._wake.wait(self._beat_seconds):
                self._wake.clear()
            self.beat()
            with self._state:
                if self._trouble or not self._unwritten():
                    self._watchdog = None
                    return

    def _stop_all(self) -> None:
        with self._state:
            callbacks, self._callbacks = self._callbacks, []
            self._is_stopped = True
        for callback in callbacks:
            _call(callback)


@dataclass(frozen=True)
class MeteredSession:
    """One session in progress."""

    _meter: Meter
    _pool: ContainerPool

    def seen(self, container_id: str, tokens: int, texts: int) -> None:
        """An answer arrived."""
        self._meter.answered(self._pool, container_id, tokens, texts)

    def check(self) -> None:
        """Raise BudgetError once the ceiling is reached."""
        self._meter.check()


def _call(callback: Callable[[], None]) -> None:
    """Call it; an error is logged by its type alone, since the next `check` ends the run in any case."""
    try:
        callback()
    except Exception as error:  # noqa: BLE001  # one that fails must not keep the others from stopping
        _log.error("stopping what embeds failed (%s); look whether the app still runs", type(error).__name__)
