"""Containers rented by the second: held in a budget ahead of time, and stopped when it holds no more of them."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from runner.base.errors import BackendError
from runner.embed.cost.ledger import Budget, BudgetError, Hold, moment
from runner.embed.cost.prices import CPU, RemoteOptions, weights_price

IDLE_SECONDS = 60.0
"""A container is billed for so long after its last request, until it is let go (`scaledown_window` of the app).

As much is held ahead while requests may come, so that a killed process leaves the idle end behind too.
"""

BEAT_SECONDS = 5.0
"""How often the watchdog holds what the next minute costs; a killed process forgets at most this much."""

_log = logging.getLogger(__name__)


@dataclass
class Rental:
    """The containers that serve one encoder: all that may run are charged until the last of them is let go.

    One that hangs or fails, and is billed, looks like one never started. Moments are of one steady clock.
    """

    hold: Hold
    price: float
    containers: int
    began: float
    users: int = 1
    until: float | None = None
    """When the last container is let go; None while requests may come."""
    held_until: float = 0.0

    def usd(self, moment: float) -> float:
        """Return the dollars until that moment, or until the containers went if that was before."""
        return self.price * self.seconds(moment)

    def seconds(self, moment: float) -> float:
        """Return the container-seconds that are charged until then."""
        until = moment if self.until is None else min(moment, self.until)
        return (until - self.began) * self.containers

    def is_warm(self, now: float) -> bool:
        """Return whether a request of now still meets these containers."""
        return self.until is None or now < self.until


class Rentals:
    """What one process rents for a version, within a budget; threads may share it.

    No thread runs before the first session. `gpu`, price and number of containers are the operator's.
    """

    def __init__(
        self,
        budget: Budget,
        options: RemoteOptions,
        clock: Callable[[], float] = time.monotonic,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self.budget, self.options = budget, options
        self._clock, self._beat_seconds = clock, beat_seconds
        self._state = threading.RLock()
        self._wake = threading.Event()
        self._watchdog: threading.Thread | None = None
        self._open: list[Rental] = []
        self._stop: Callable[[], None] | None = None
        self._trouble: BudgetError | None = None

    @contextmanager
    def session(self, what: str, kind: Literal["embed", "weights"]) -> Iterator[Rental]:
        """Charge containers while requests are made; a BudgetError, before anything starts, beyond the ceiling.

        Sessions of one encoder that overlap, or that follow before its containers are let go, are one rental: the same
        containers serve them.
        """
        self.check()
        rental = self._entered(what, kind)
        try:
            yield rental
        finally:
            with self._state:
                rental.users -= 1
                # At the ceiling the app is stopped; until `close`, what was held stands.
                if not rental.users and rental in self._open and self._trouble is None:
                    rental.until = self._clock() + IDLE_SECONDS
                    self._write(rental)

    def check(self) -> None:
        """Raise BudgetError once the ceiling holds no more, or the ledger cannot be kept."""
        with self._state:
            # The watchdog may have been late.
            late = self._clock() + IDLE_SECONDS - BEAT_SECONDS
            if any(rental.until is None and rental.held_until < late for rental in self._open):
                self.beat()
            if self._trouble:
                raise BudgetError(str(self._trouble))

    def on_exhausted(self, stop: Callable[[], None]) -> None:
        """Have `stop` called once when the ceiling is reached; at once if it is already."""
        with self._state:
            self._stop = stop
        self._stop_if_exhausted()

    def beat(self) -> None:
        """Hold what the next minute costs; where that fails, everything is stopped."""
        with self._state:
            try:
                for rental in list(self._open):
                    self._write(rental)
            except BudgetError as error:
                self._trouble = error
            except (BackendError, OSError) as error:
                self._trouble = BudgetError(f"What is spent cannot be written down, so embedding was stopped: {error}")
        self._stop_if_exhausted()

    def close(self) -> None:
        """End all rentals without an idle time: the app that they belong to is stopped."""
        try:
            with self._state:
                now = self._clock()
                for rental in list(self._open):
                    rental.until = min(now, rental.until or now)
                    self._write(rental)
        finally:
            self._wake.set()

    def _entered(self, what: str, kind: Literal["embed", "weights"]) -> Rental:
        with self._state:
            now = self._clock()
            for rental in self._open:
                if (rental.hold.entry.what, rental.hold.entry.kind) == (what, kind) and rental.is_warm(now):
                    rental.users, rental.until = rental.users + 1, None
                    return rental
            options = self.options
            is_weights = kind == "weights"
            price, containers = (weights_price(), 1) if is_weights else (options.price, options.containers)
            # In the ledger before anything can cost: with the idle end, if nothing more is asked.
            hold = self.budget.hold(
                price * containers * IDLE_SECONDS,
                kind,
                what,
                gpu=CPU if is_weights else options.gpu,
                price_per_second=price,
                container_seconds=containers * IDLE_SECONDS,
            )
            rental = Rental(hold, price, containers, now, held_until=now + IDLE_SECONDS)
            self._open.append(rental)
            if self._watchdog is None:
                self._watchdog = threading.Thread(target=self._keep_watch, name="budget", daemon=True)
                self._watchdog.start()
            return rental

    def _write(self, rental: Rental) -> None:
        """Bring a rental's line up to date; the last one, once its containers are gone."""
        now = self._clock()
        rental.held_until = now + IDLE_SECONDS if rental.until is None else rental.until
        is_over = not rental.is_warm(now)
        rental.hold.update(
            asked="" if is_over or rental.until is not None else "another minute of its containers",
            on=moment(rental.held_until - now),
            usd=rental.usd(rental.held_until),
            ended=is_over,
            container_seconds=rental.seconds(rental.held_until),
        )
        if is_over:
            self._open.remove(rental)

    def _stop_if_exhausted(self) -> None:
        """Stop what embeds, once; an error is logged by its type alone, since the next `check` ends the run anyway."""
        if self._trouble is None:
            return
        # Taken out under the lock and called outside of it: it is called once, and may ask this object.
        with self._state:
            stop, self._stop = self._stop, None
        try:
            if stop is not None:
                stop()
        except Exception as error:  # noqa: BLE001  # a watchdog that dies would leave the ledger behind
            _log.error("stopping what embeds failed (%s); look whether the app still runs", type(error).__name__)

    def _keep_watch(self) -> None:
        """Beat until the last line of every rental is written."""
        while True:
            if self._wake.wait(self._beat_seconds):
                self._wake.clear()
            self.beat()
            with self._state:
                if self._trouble or not self._open:
                    self._watchdog = None
                    return
