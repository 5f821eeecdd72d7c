"""What a version has spent and holds: one append-only file of lines, and the ceiling that is asked before each of them.

A line is written before the request or the container second that it pays for, at the worst that it may cost; a later
line of the same id says what it did cost. A killed process so leaves behind what it held.
"""

import json
import math
import secrets
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from runner.base.canonical import json_line
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Unusable
from runner.base.progress import say
from runner.base.schema import Sparse, checked
from runner.base.store import disk_errors, exclusive
from runner.embed.cost.prices import positive, shown
from runner.eval_set.shapes.decision import SpendReceipt

SPEND = "spend"
"""The folder of a version's ledger, beside its other work."""

LEDGER = "ledger.jsonl"
LOCK = ".ledger.lock"

Kind = Literal["embed", "weights", "judge", "app"]
"""What is paid for: containers or a service that embed, containers that fetch weights, language models that judge.

An app costs nothing by itself: its line says by which run id the provider of the containers knows it.
"""

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BudgetError(BackendError):
    """The ceiling of --max-usd is reached or would be, or what was spent is not known."""


class Entry(Sparse):
    """A line of the ledger; the last one of an `id` counts.

    `on` is the moment up to which `usd` pays for containers, and that of writing for anything else. `ended` is False
    while the cost may still change, and after a kill. Of an app, `what` is its run id, and `estimate_usd` what it
    expected for all that was left to do, None if it was not told what that is.
    """

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    kind: Kind
    what: Annotated[str, Field(min_length=1)]
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    usd: Usd
    ended: bool = False
    gpu: str = ""
    price_per_second: Usd = 0.0
    container_seconds: Usd = 0.0
    estimate_usd: Usd | None = None
    max_usd: Usd = 0.0
    price_source: str = ""


class Ledger:
    """The entries of a folder's ledger by their ids; of a file that has grown, only what is new is read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER
        self._entries: dict[str, Entry] = {}
        self._n_bytes = self._n_lines = 0

    def entries(self) -> list[Entry]:
        """Return what there is, none without the file; a BudgetError names a damaged line."""
        size = self.path.stat().st_size if self.path.is_file() else 0
        if size < self._n_bytes:  # another file has taken its place
            self._entries, self._n_bytes, self._n_lines = {}, 0, 0
        if size > self._n_bytes:
            with self.path.open("rb") as stream:
                stream.seek(self._n_bytes)
                # What a kill left of a line had paid for nothing yet.
                whole, newline, _ = stream.read().rpartition(b"\n")
            lines = whole.split(b"\n") if newline else []
            new = [self._entry(line, number) for number, line in enumerate(lines, start=self._n_lines + 1)]
            self._entries |= {entry.id: entry for entry in new}
            self._n_lines += len(new)
            self._n_bytes += len(whole) + len(newline)
        return list(self._entries.values())

    def append(self, entry: Entry) -> None:
        """Put a line at the end, in the place of a torn one; a BackendError if the disk takes none."""
        self.entries()
        with disk_errors(self.path), self.path.open("ab") as stream:
            # Over what a kill left of a line.
            stream.truncate(self._n_bytes)
            stream.write(f"{json_line(entry.model_dump())}\n".encode())
        self.entries()

    def _entry(self, line: bytes, number: int) -> Entry:
        where = f"{self.path}:{number}"
        try:
            return checked(Entry, json.loads(line), where)
        except (ValueError, InputError) as error:
            raise BudgetError(
                f"{where} says what was spent and is damaged ({error}). Look at the provider's billing, then delete "
                "the line, and lower --max-usd by what it stood for."
            ) from error


class Budget:
    """The ceiling over all that a version spends, by this process and others; threads may share it.

    Every amount is an upper bound by list price. A damaged ledger is a BudgetError at once. Nothing is written before
    something is held.
    """

    def __init__(self, folder: Path, max_usd: float) -> None:
        self.folder = folder
        self.max_usd = positive("--max-usd", max_usd)
        self._ledger = Ledger(folder)
        self._state = threading.RLock()
        self._excess: dict[str, float] = {}
        """How many times the worst was billed, at most, by what was paid for."""
        self.spent()

    def entries(self) -> list[Entry]:
        """Return what is in the ledger now."""
        with self._state:
            return self._ledger.entries()

    def spent(self, what: str = "") -> float:
        """Return the dollars spent and held, on one encoder or model if it is named."""
        return math.fsum(entry.usd for entry in self.entries() if what in ("", entry.what))

    def hold(self, usd: float, kind: Kind, what: str, n_requests: int = 1, **facts: Any) -> "Hold":  # noqa: ANN401  # fields of an Entry
        """Set aside what may be spent at most; a BudgetError, and nothing is written, beyond the ceiling.

        If more was billed for `what` before than it can cost, as much more is held. What is free is not written.
        """
        entry = Entry(
            id=secrets.token_hex(8), kind=kind, what=what, on=moment(), usd=usd * self._excess.get(what, 1.0), **facts
        )
        if usd:
            self.write(entry, asked=f"the next {n_requests:,} requests" if n_requests > 1 else "the next request")
        return Hold(self, entry, usd)

    def held(self, hold_id: str) -> "Hold | None":
        """Return what this or an earlier process set aside and has not settled; None for what is not there."""
        entry = next((entry for entry in self.entries() if entry.id == hold_id and not entry.ended), None)
        return None if entry is None else Hold(self, entry, entry.usd)

    def write(self, entry: Entry, asked: str = "") -> None:
        """Append an entry; with words for what is `asked`, only if the ceiling holds what it adds."""
        with self._state, exclusive(self.folder / LOCK, "another session to look at the ledger"):
            # Under the lock, so that no other process holds the same dollars meanwhile.
            usd = {earlier.id: earlier.usd for earlier in self._ledger.entries()}
            spent, more = math.fsum(usd.values()), entry.usd - usd.get(entry.id, 0.0)
            if asked and spent + more > self.max_usd:
                raise BudgetError(
                    f"--max-usd {shown(self.max_usd)[1:]} is not enough to go on with {entry.what}: {shown(spent)} is "
                    f"spent or held by list price (ledger: {self._ledger.path}), and {asked} may cost "
                    f"{shown(more)} at most. Nothing more is sent; what was answered is kept. Run the command "
                    "again with a higher --max-usd."
                )
            self._ledger.append(entry)

    def learn(self, what: str, usd: float, worst: float) -> None:
        """Hold more for the same from here on, if more was billed than it can cost."""
        if worst and usd / worst > self._excess.get(what, 1.0) * 1.001:
            self._excess[what] = usd / worst
            say(
                f"{what} was billed {usd / worst:.1f} times what its texts and limits allow ({shown(usd)}). It is "
                "counted, and as much is held for each further request."
            )


class Hold:
    """Dollars that count as spent until `settle`; as a context it is settled at the end, by `cost` if that is known.

    Where the block is left by an error, nothing was charged, unless the error says that the request may have been
    carried out; where it is killed or interrupted, what was held stays counted.
    """

    def __init__(self, budget: Budget, entry: Entry, worst_usd: float) -> None:
        self.budget, self.entry, self._worst_usd = budget, entry, worst_usd
        self.cost: float | None = None

    def settle(self, usd: float | None) -> None:
        """Count what it cost; None, if nobody says, is all that was held."""
        if usd is not None:
            self.budget.learn(self.entry.what, usd, self._worst_usd)
        if usd or self.entry.usd:
            self.update(usd=self.entry.usd if usd is None else usd, ended=True)

    def update(self, asked: str = "", **facts: Any) -> None:  # noqa: ANN401  # fields of an Entry
        """Write what has changed; a BudgetError, and nothing is written, if the ceiling does not hold what is asked."""
        entry = self.entry.model_copy(update={"on": moment(), **facts})
        self.budget.write(entry, asked)
        self.entry = entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # An interrupt is no Exception: what was held then stays counted.
        if error is None or (isinstance(error, Unusable) and error.is_charged):
            self.settle(self.cost)
        elif isinstance(error, Exception):
            self.settle(0.0)


def moment(later: float = 0.0) -> str:
    """Return the present moment, or one so many seconds later, as entries have it."""
    return (datetime.now(UTC) + timedelta(seconds=later)).isoformat(timespec="seconds")


def spend_receipt(folder: Path) -> SpendReceipt | None:
    """Return the sum of the ledger in `folder`, with the first app's estimate; None if nothing was spent."""
    entries = Ledger(folder).entries()
    apps = [entry for entry in entries if entry.kind == "app"]
    paid = [entry for entry in entries if entry.kind != "app"]
    if not paid:
        return None
    rented = [entry for entry in paid if entry.gpu]
    embedding = [entry for entry in rented if entry.kind == "embed"]
    # The price shown is that of the newest rental, of embedding where there was one.
    latest = max(embedding or rented or paid, key=lambda entry: entry.on)

    def total(wanted: Iterable[Entry]) -> float:
        return round(math.fsum(entry.usd for entry in wanted), 6)

    return SpendReceipt(
        estimate_usd=apps[0].estimate_usd if apps else None,
        embedding_usd=total(embedding),
        weights_usd=total(entry for entry in paid if entry.kind == "weights"),
        judging_usd=total(entry for entry in paid if entry.kind == "judge"),
        services_usd=total(entry for entry in paid if entry.kind == "embed" and not entry.gpu),
        gpu=", ".join(sorted({entry.gpu for entry in embedding})),
        gpu_seconds=round(math.fsum(entry.container_seconds for entry in embedding), 3),
        price_per_second=latest.price_per_second,
        price_source=apps[-1].price_source if apps else "as the ledger has it",
        sessions=len(rented),
        max_usd=apps[-1].max_usd if apps else None,
    )
