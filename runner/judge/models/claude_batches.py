"""A Claude model asked through Anthropic's Message Batches: half the price, an hour as a rule, a day at most.

Every batch is written down before it is handed in, so that a killed run finds it again and does not pay twice.
"""

import math
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote

from pydantic import Field

from runner.base.canonical import JSON, digest, json_bytes, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.http_client import Busy, NotThere, Unusable
from runner.base.progress import say
from runner.base.schema import FrozenModel, Sha256, checked
from runner.base.store import disk_errors
from runner.embed.cost.ledger import Budget, BudgetError, Hold
from runner.embed.cost.prices import Price
from runner.judge.models.claude import ClaudeMessages, reply_of, usage_of
from runner.judge.models.client import Ask, Reply, Way, as_object, received, unique

POLL_SECONDS = 20.0
FIRST_WAIT = 0.5
"""Seconds before a batch is looked at for the second time; from there on twice as many, up to POLL_SECONDS."""

LONGEST_SECONDS = 26 * 3600.0
"""A batch expires after 24 hours; one that has not ended by then is waited for no longer."""

DENIED_LOOKS = 16
"""Looks in a row, POLL_SECONDS apart, that must find nothing before a batch counts as gone."""

SECONDS_BETWEEN_LINES = 600.0
MOST_REQUESTS = 10_000
MOST_BYTES = 100_000_000
"""Of one batch; the API takes ten times the requests, and 256 MB."""

FEWEST_REQUESTS = 20
"""Of a batch that is made smaller for the ceiling: each may take an hour, and many small ones take days."""

_Result = TypeVar("_Result")


class BatchRecord(FrozenModel):
    """One batch, kept at `path`; `id` is empty until the service has answered its creation.

    `hold` is the line of the ledger that pays for it. `delivered` means that every reply was given, or that the service
    refused the batch.
    """

    path: Path = Field(default=Path(), exclude=True)
    model: str
    custom_ids: list[Sha256]
    hold: str
    id: str = ""
    delivered: bool = False

    def kept(self, **changes: str | bool) -> Self:
        """Write the record with these fields changed, whole at once; a BackendError if the disk takes none."""
        record = self.model_copy(update=changes)
        with disk_errors(record.path):
            write_atomic(record.path, json_bytes(record.model_dump()))
        return record


def under_way(folder: Path) -> list[BatchRecord]:
    """Return the batches whose replies were not all given, oldest first.

    A BackendError names a damaged record, since it may stand for money.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(checked(BatchRecord, read_json(path), path).model_copy(update={"path": path}))
        except InputError as error:
            raise BackendError(
                f"{path} is the record of a message batch and is damaged. Look the batch up in the service's console; "
                "delete the file to have its requests sent, and paid, again."
            ) from error
    return [record for record in found if not record.delivered]


class ClaudeBatches(ClaudeMessages):
    """The model; `folder` keeps a record of every batch, and `price` is that of batches.

    Batches that an interrupted run handed in are polled first; the other asks make new ones, as large as the ceiling
    allows.
    """

    longest = 400_000_000

    def __init__(
        self, model: str, budget: Budget, price: Price, way: Way, folder: Path, poll_seconds: float = POLL_SECONDS
    ) -> None:
        super().__init__(model, budget, price, way)
        self.folder, self.poll_seconds = folder, poll_seconds
        self.batches = f"{self.url}/batches"
        self._never = threading.Event()

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """Yield one reply per ask, batch by batch; a BudgetError if the ceiling allows no batch of FEWEST_REQUESTS.

        A BackendError if the service is lost: its batch goes on, and the next run finds it.
        """
        unique(asks)
        # A name within a batch has 64 characters, the most that the API takes.
        wanted = {digest({"key": ask.key, "params": self.request(ask)}): ask for ask in map(self.sent, asks)}
        for record in under_way(self.folder):
            part = {name: wanted.pop(name) for name in record.custom_ids if name in wanted}
            if part:
                yield from self._delivered(record, part)
        while wanted:
            names, hold = self._affordable(wanted)
            part = {name: wanted.pop(name) for name in names}
            # Written before anything is sent, so that a killed run leaves a trace of what it may have bought.
            path = self.folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.json"
            intended = BatchRecord(path=path, model=self.model, custom_ids=names, hold=hold.entry.id).kept()
            yield from self._delivered(self._created(intended, part, hold), part)

    def _affordable(self, wanted: Mapping[str, Ask]) -> tuple[list[str], Hold]:
        """Return the first requests that fit into one batch and under the ceiling, and what is held for them."""
        names: list[str] = []
        n_bytes = 0
        for name, ask in wanted.items():
            n_bytes += len(ask.system.encode()) + len(ask.user.encode()) + 2_000
            if names and (len(names) == MOST_REQUESTS or n_bytes > MOST_BYTES):
                break
            names.append(name)
        # Half as many while the ceiling refuses, down to what is worth an hour's wait.
        while True:
            worst = math.fsum(self.worst_usd(wanted[name]) for name in names)
            try:
                return names, self.budget.hold(worst, "judge", self.model, n_requests=len(names))
            except BudgetError:
                if len(names) <= FEWEST_REQUESTS:
                    raise
                names = names[: max(len(names) // 2, FEWEST_REQUESTS)]

    # A batch's life: handed in, waited for, delivered.

    def _created(self, record: BatchRecord, part: Mapping[str, Ask], hold: Hold) -> BatchRecord:
        """Hand the batch in, and return its record with the id; a BackendError if there is none."""
        requests: list[JSON] = [{"custom_id": name, "params": self.request(ask)} for name, ask in part.items()]

        def once() -> JSON:
            try:
                return received(self.got("POST", self.batches, {"requests": requests}))
            except Unusable as error:
                # Handed in again, a batch that arrived would be paid twice.
                if error.is_charged:
                    return None
                raise

        try:
            made = as_object(self._patiently(once, "a message batch cannot be handed in")).get("id")
        except BackendError:
            # The service refused it: nothing was charged, and there is nothing to look for.
            hold.settle(0.0)
            record.kept(delivered=True)
            raise
        if not isinstance(made, str) or not made:
            raise BackendError(_unknown(record))
        say(
            f"{len(part):,} requests to {self.model} are handed in as message batch {made}. It takes an hour as a "
            "rule, a day at most; stop, and run the command again, as you like."
        )
        return record.kept(id=made)

    def _delivered(self, record: BatchRecord, part: Mapping[str, Ask]) -> Iterator[Reply]:
        """Yield the replies to `part`, once the batch has ended; its cost is counted once, however often it is read."""
        if not record.id:
            raise BackendError(_unknown(record))
        names, hold = record.custom_ids, self.budget.held(record.hold)
        try:
            self._wait(record.id)
            # The batch names an address of its results; they are fetched at the one that was given.
            url = f"{self.batches}/{quote(record.id, safe='')}/results"
            results = self._looked(lambda: read_results(self.got("GET", url), names), f"results of {record.id}")
        except NotThere as error:
            raise BackendError(
                f"{error} Run the command again. If the service's console does not have message batch {record.id} "
                f"either, delete {record.path} to have its requests sent, and paid, again."
            ) from error
        # Settled before the replies are given: a kill in between costs replies, which are read again, and no money.
        if hold:
            share = hold.entry.usd / len(names)
            hold.settle(math.fsum(self._usd(results.get(name, {}), unknown=share) for name in names))
        replies = [_reply(results.get(name, {}), ask.key, self.model) for name, ask in part.items()]
        # Answers first: whoever gives the model up for many problems has then taken all that was paid for.
        yield from sorted(replies, key=lambda reply: bool(reply.problem))
        record.kept(delivered=True)

    def _usd(self, result: Mapping[str, JSON], *, unknown: float) -> float:
        """Return what one request cost; one that was not carried out costs nothing, and a missing result anything."""
        if result.get("type") == "succeeded":
            usage = usage_of(result.get("message"))
            return unknown if usage is None else self.price.usd(usage)
        return 0.0 if result else unknown

    def _wait(self, batch_id: str) -> None:
        """Return when the batch has ended; NotThere if there is none. An interrupted wait says that it goes on."""
        began = last_line = time.monotonic()
        wait, url = FIRST_WAIT, f"{self.batches}/{quote(batch_id, safe='')}"
        try:
            while True:
                shown = self._looked(lambda: received(self.got("GET", url)), f"message batch {batch_id}")
                if as_object(shown).get("processing_status") == "ended":
                    return
                now = time.monotonic()
                if now - began > LONGEST_SECONDS:
                    raise BackendError(
                        f"Message batch {batch_id} has not ended in 26 hours. Look at it in the service's console; "
                        "cancel it there, and run the command again."
                    )
                if now - last_line > SECONDS_BETWEEN_LINES:
                    say(f"Message batch {batch_id} is still at work, after {(now - began) / 60:,.0f} minutes.")
                    last_line = now
                self._never.wait(min(self.poll_seconds, wait))
                wait *= 2
        except KeyboardInterrupt:
            say(f"Message batch {batch_id} goes on at {self.url}; the next run takes its results.")
            raise

    # Requests to the service, each tried again while it is busy.

    def _looked(self, look: Callable[[], _Result], what: str) -> _Result:
        """Return what a look at the service shows; looking changes nothing, and is tried again.

        NotThere if DENIED_LOOKS looks in a row find nothing.
        """

        def once() -> _Result:
            try:
                return look()
            except Unusable as error:
                if isinstance(error, Busy) or not error.is_charged:
                    raise
                raise Busy(str(error)) from None

        for n_looks in count(1):
            try:
                return self._patiently(once, f"{what} cannot be looked at")
            except NotThere:
                # A service may deny for a moment what it has.
                if n_looks == DENIED_LOOKS:
                    raise
            self._never.wait(self.poll_seconds)
        raise AssertionError("counting has no end")

    def _patiently(self, once: Callable[[], _Result], trouble: str) -> _Result:
        """Return what `once` does; a BackendError if the service cannot be reached, or refuses."""
        try:
            return self.http.patiently(once, self._never, self.url)
        except Unusable as error:
            raise BackendError(
                f"{self.url}: {trouble}: {error}. Batches that were handed in go on; run the command again later, and "
                "it takes their results."
            ) from None


def _unknown(record: BatchRecord) -> str:
    return (
        f"A message batch of {len(record.custom_ids):,} requests was handed in, and whether it arrived is not known. "
        f'Look for it in the service\'s console. If it is there, put its id in {record.path}, as "id"; else delete '
        "that file to have its requests sent. Then run the command again."
    )


# The results of a batch

_ENDS = {
    "expired": "the batch expired before the request was reached",
    "canceled": "the batch was cancelled before the request was reached",
}


def read_results(lines: str, names: Collection[str]) -> dict[str, dict[str, JSON]]:
    """Return the first result of each request of these names, in any order; lines that are none are passed over."""
    known = set(names)
    results: dict[str, dict[str, JSON]] = {}
    for line in filter(str.strip, lines.split("\n")):
        try:
            row = as_object(received(line))
        except Unusable:
            continue
        name, result = row.get("custom_id"), row.get("result")
        if isinstance(name, str) and name in known and isinstance(result, dict):
            results.setdefault(name, result)
    return results


def _reply(result: Mapping[str, JSON], key: str, model: str) -> Reply:
    """Return the reply to one request, as the ask of `key`; its problem if there is none to use."""
    kind = result.get("type")
    if kind == "succeeded":
        return reply_of(key, model, result.get("message"))
    if kind != "errored":
        known = _ENDS.get(str(kind), "the batch has a result of no known kind")
        return Reply(key=key, raw=dict(result), problem=known if result else "the batch has no result for it")
    # The error stands in an envelope of the same name.
    error = as_object(as_object(result.get("error")).get("error"))
    problem = f"the request failed: {error.get('type', 'unknown')}: {str(error.get('message', ''))[:300]}"
    return Reply(key=key, raw=dict(result), problem=problem, final=error.get("type") == "invalid_request_error")
