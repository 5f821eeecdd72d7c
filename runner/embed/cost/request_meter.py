"""What requests to a paid API may cost, and have cost so far: the ceiling of --max-usd, asked before each of them."""

import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from runner.base.canonical import slug
from runner.base.http_client import Unusable
from runner.base.progress import say
from runner.base.store import exclusive
from runner.embed.cost.ledger import BudgetError, Kind, Ledger, LedgerRow, read_session, write_session
from runner.embed.cost.prices import positive, shown

LOCK = ".judge.lock"


class Counted(Protocol):
    """What an answer says that it was charged for."""

    @property
    def tokens(self) -> int:
        """Tokens of every kind together."""


Answer = TypeVar("Answer")
Ask = TypeVar("Ask", contravariant=True)
Usage = TypeVar("Usage", bound=Counted, contravariant=True)


class Tariff(Protocol[Ask, Usage]):
    """What a service charges."""

    @property
    def is_free(self) -> bool:
        """Whether nothing is charged."""

    def worst_usd(self, ask: Ask, /) -> float:
        """Dollars that one request costs at most."""

    def usd(self, usage: Usage, /) -> float:
        """Dollars of one request that was answered."""


@dataclass(frozen=True, eq=False)
class Hold:
    """Money set aside for requests that may be sent; `worst_usd` is what they can cost by their texts and limits."""

    usd: float
    n_asks: int
    worst_usd: float


class RequestMeter(Generic[Ask, Usage]):
    """One session's spending on one model, for several threads; other processes share the folder's ceiling.

    What is held counts as spent, on disk too, until it is settled. If a service bills more than a request can cost,
    that is counted, and as much more is held for every request after it. Nothing is written for a free model.
    """

    kind: Kind = "embed"
    doing = "embedding"

    def __init__(self, folder: Path, max_usd: float, model: str, price: Tariff[Ask, Usage]) -> None:
        self.folder = folder
        self.model = model
        self.price = price
        self.max_usd = positive("--max-usd", max_usd)
        self._began, self._started = datetime.now(UTC), time.monotonic()
        name = f"{self._began:%Y%m%dT%H%M%SZ}-{self.kind}-{slug(model)}-{secrets.token_hex(4)}.json"
        self.path = folder / name
        self._ledger = Ledger(folder)
        self._state = threading.RLock()
        self._held: dict[Hold, None] = {}
        self._settled = 0.0
        self._excess = 1.0
        """How many times its worst cost a hold was billed, at most."""
        self._tokens = self._n_requests = 0
        self._is_written = False
        self.spent()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def usd(self) -> float:
        """Dollars of this session's requests that were answered."""
        with self._state:
            return self._settled

    def spent(self) -> float:
        """Dollars of all sessions of the version, with what is held; a BudgetError names a damaged file."""
        with self._state:
            return math.fsum([self._own(), *(row.usd for row in self._ledger.rows(without={self.path}))])

    def reserve(self, asks: Sequence[Ask]) -> Hold:
        """What the requests cost at most, set aside; a BudgetError, and nothing set aside, beyond the ceiling."""
        worst = math.fsum(self.price.worst_usd(ask) for ask in asks)
        with self._alone():
            hold = Hold(self._excess * worst, len(asks), worst)
            if self.price.is_free:
                return self._hold(hold)
            if (spent := self.spent()) + hold.usd > self.max_usd:
                raise BudgetError(self._refusal(spent, hold))
            self._hold(hold)
            self._write(ended=False)
        return hold

    def settle(self, hold: Hold, usages: Sequence[Usage | None]) -> None:
        """Count what the charged requests of a hold cost: None, if nobody says, is one's share of the hold."""
        with self._state:
            del self._held[hold]
            unknown = hold.usd / hold.n_asks
            billed = [self.price.usd(usage) for usage in usages if usage is not None]
            self._settled += math.fsum([*billed, unknown * (len(usages) - len(billed))])
            self._learn(math.fsum(billed), hold.worst_usd * len(billed) / hold.n_asks)
            self._n_requests += len(usages)
            self._tokens += sum(usage.tokens for usage in usages if usage)

    def release(self, hold: Hold) -> None:
        """Give back what was set aside: nothing was charged."""
        self.settle(hold, [])

    def once(self, ask: Ask, send: Callable[[], Answer], usage: Callable[[Answer], Usage | None]) -> Answer:
        """What one try sends back; it counts as it was held if it may have been answered and nobody says the cost."""
        hold = self.reserve([ask])
        try:
            answer = send()
        except Unusable as error:
            self.settle(hold, [None] if error.is_charged else [])
            raise
        except Exception:
            self.release(hold)
            raise
        self.settle(hold, [usage(answer)])
        return answer

    def take_over(self, file_name: str, usd: float, n_asks: int) -> Hold:
        """Hold what an ended session of the folder held for requests that are still under way; no ceiling is asked."""
        hold, theirs = Hold(usd, n_asks, usd), self.folder / file_name
        with self._alone():
            self._hold(hold)
            if not self.price.is_free:
                self._write(ended=False)
                if theirs != self.path and theirs.exists():
                    row = read_session(theirs)
                    write_session(theirs, row.model_copy(update={"usd": max(row.usd - usd, 0.0)}))
        return hold

    def close(self) -> None:
        """Write the session for the last time; what is still held stays counted."""
        with self._state:
            if self._is_written:
                self._write(ended=True)

    def _learn(self, billed: float, worst: float) -> None:
        """Hold more from here on if more was billed than requests can cost."""
        if worst and billed / worst > self._excess * 1.001:
            self._excess = billed / worst
            say(
                f"{self.model} was billed {self._excess:.1f} times what its texts and limits allow ({shown(billed)}). "
                "It is counted, and as much is held for each further request."
            )

    def _own(self) -> float:
        return math.fsum([self._settled, *(hold.usd for hold in self._held)])

    def _hold(self, hold: Hold) -> Hold:
        self._held[hold] = None
        return hold

    def _refusal(self, spent: float, hold: Hold) -> str:
        what = "the next request" if hold.n_asks == 1 else f"the next {hold.n_asks:,} requests"
        return (
            f"--max-usd {shown(self.max_usd)[1:]} is not enough to go on {self.doing} with {self.model}: "
            f"{shown(spent)} is spent or held by list price (ledger: {self.folder}), and {what} may cost "
            f"{shown(hold.usd)} at most. "
            "Nothing was sent for them. Run the command again with a higher --max-usd."
        )

    def _write(self, *, ended: bool) -> None:
        row = LedgerRow(
            schema_version=1,
            kind=self.kind,
            what=self.model,
            gpu="",
            price_per_second=0.0,
            started_on=self._began.isoformat(timespec="seconds"),
            ended=ended,
            seconds=round(time.monotonic() - self._started, 3),
            containers=0,
            container_seconds=0.0,
            tokens=self._tokens,
            texts=self._n_requests,
            busy_seconds=0.0,
            busy_tokens=0,
            usd=self._own(),
        )
        write_session(self.path, row)
        self._is_written = True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other thread, and no other process that asks, between looking at the ledger and writing to it."""
        what = "another session to look at the ledger"
        with self._state, nullcontext() if self.price.is_free else exclusive(self.folder / LOCK, what):
            yield
