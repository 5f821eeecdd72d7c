"""A Claude model asked through Anthropic's Message Batches: half the price, an hour as a rule, a day at most."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from runner.base.canonical import JSON
from runner.base.errors import BackendError
from runner.base.http_client import Busy, Unusable
from runner.base.progress import say
from runner.embed.cost.ledger import BudgetError
from runner.embed.cost.request_meter import Hold
from runner.judge.models.anthropic.batch_records import KeptRecord, intended, records
from runner.judge.models.anthropic.batch_results import Results, read_results
from runner.judge.models.anthropic.client import AnthropicMessages, NotThere
from runner.judge.models.anthropic.wire import beyond_sdk, custom_id, headers, params
from runner.judge.models.requests import Ask, Reply, unique

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatch


POLL_SECONDS = 20.0
FIRST_WAIT = 0.5
"""Seconds before a batch is looked at for the second time; from there on twice as many, up to POLL_SECONDS."""

LONGEST_SECONDS = 26 * 3600.0
"""A batch expires after 24 hours; one that has not ended by then is waited for no longer."""

SECONDS_BETWEEN_LINES = 600.0
MOST_REQUESTS = 10_000
MOST_BYTES = 100_000_000
"""Of one batch; the API takes ten times the requests, and 256 MB."""

FEWEST_REQUESTS = 50
"""Of a batch that is made smaller for the ceiling: each may take an hour, and many small ones take days."""

MAX_RESULT_BYTES = 400_000_000
CREATE_TRIES = 3
LISTED_AFTER = 5.0
"""Seconds after which a batch is taken to be in the service's list, if it arrived."""

CLOCKS = timedelta(minutes=10)
"""How far this machine's clock and the service's may be apart."""

PAGE = 100
MOST_LISTED = 2_000
"""Batches that are looked through for one, from the newest on."""

_Result = TypeVar("_Result")


class _Unconfirmed(Exception):
    """A batch was handed in, and nobody says whether it arrived."""


@dataclass(eq=False)
class AnthropicBatches(AnthropicMessages):
    """The model; `folder` keeps a record of every batch, and `meter` has the price of batches.

    Batches that an interrupted run handed in are polled first; the other asks make new ones, as large as the ceiling
    allows.
    """

    folder: Path
    poll_seconds: float = POLL_SECONDS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.http.longest = MAX_RESULT_BYTES
        self._service = self.http.sdk.messages.batches.with_raw_response
        self._never = threading.Event()

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """Yield one reply per ask, batch by batch; a BudgetError if the ceiling allows no batch of FEWEST_REQUESTS.

        A BackendError if the service is lost: its batch goes on, and the next run finds it.
        """
        unique(asks)
        wanted = {custom_id(ask, self._fields(ask)): ask for ask in map(self.sent, asks)}
        for kept in [kept for kept in records(self.folder) if not kept.record.delivered]:
            part = {name: wanted[name] for name in kept.record.custom_ids if name in wanted}
            if part and self._is_there(kept):
                for name in part:
                    del wanted[name]
                yield from self._delivered(kept, part)
        while wanted:
            names, hold = self._affordable(wanted)
            part = {name: wanted.pop(name) for name in names}
            # Written before anything is sent, so that a killed run leaves a trace of what it may have bought.
            kept = intended(self.folder, self.model, names, self.meter.path.name, hold.usd)
            self._create(kept, part, hold)
            yield from self._delivered(kept, part, hold)

    def _fields(self, ask: Ask) -> dict[str, Any]:
        """Return the fields of a request, the same as of one outside of a batch."""
        return {**params(self.model, ask), **beyond_sdk(self.model)}

    def _affordable(self, wanted: Mapping[str, Ask]) -> tuple[list[str], Hold]:
        """Return the first requests that fit into one batch and under the ceiling, and what is held for them."""
        names: list[str] = []
        n_bytes = 0
        for name, ask in wanted.items():
            n_bytes += len(ask.system.encode()) + len(ask.user.encode()) + 2_000
            if names and (len(names) == MOST_REQUESTS or n_bytes > MOST_BYTES):
                break
            names.append(name)
        while True:
            try:
                return names, self.meter.reserve([wanted[name] for name in names])
            except BudgetError:
                if len(names) <= FEWEST_REQUESTS:
                    raise
                names = names[: max(len(names) // 2, FEWEST_REQUESTS)]

    # A batch's life: handed in, found again, delivered.

    def _create(self, kept: KeptRecord, part: Mapping[str, Ask], hold: Hold) -> None:
        """Hand the batch in; if nobody says whether it arrived, the service's list does."""
        requests = [{"custom_id": name, "params": self._fields(ask)} for name, ask in part.items()]
        for _ in range(CREATE_TRIES):
            try:
                batch_id = self._handed_in(requests)
            except _Unconfirmed:
                self._never.wait(min(self.poll_seconds, LISTED_AFTER))
                batch_id = self._listed(kept)
            except BackendError:
                # The service refused it: nothing was charged, and there is nothing to look for.
                self.meter.release(hold)
                kept.set(settled=True, delivered=True)
                raise
            if batch_id:
                kept.set(id=batch_id)
                say(
                    f"{len(part):,} requests to {self.model} are handed in as message batch {batch_id}. It takes an "
                    "hour as a rule, a day at most; stop, and run the command again, as you like."
                )
                return
        raise BackendError(
            f"{self.url}: a message batch was handed in {CREATE_TRIES} times, and whether it arrived is not known. Run "
            f"the command again later: it looks for the batch by {kept.path}."
        )

    def _is_there(self, kept: KeptRecord) -> bool:
        """Return whether a batch of an earlier run exists; one that does not is closed, and costs nothing."""
        batch_id = kept.record.id or self._listed(kept)
        if batch_id:
            kept.set(id=batch_id)
            return True
        say(f"A message batch that an earlier run was about to hand in ({kept.path}) never arrived; it is sent now.")
        self.meter.release(self._taken_over(kept))
        kept.set(settled=True, delivered=True)
        return False

    def _listed(self, kept: KeptRecord) -> str:
        """Return the id of the batch that a record without one means, "" for none: its results name the same asks."""
        record, others = kept.record, {other.record.id for other in records(self.folder)}
        for batch in self._since(datetime.fromisoformat(record.intended_on) - CLOCKS):
            n_requests = sum(dict(batch.request_counts).values())
            if batch.id in others or n_requests != len(record.custom_ids):
                continue
            try:
                if self._results(batch.id, record.custom_ids).by_id.keys() == set(record.custom_ids):
                    return batch.id
            except NotThere:
                continue
        return ""

    def _taken_over(self, kept: KeptRecord) -> Hold:
        """Hold in this session what the record's session still holds for it."""
        record = kept.record
        hold = self.meter.take_over(record.ledger, record.reserved_usd, len(record.custom_ids))
        kept.set(ledger=self.meter.path.name)
        return hold

    def _delivered(self, kept: KeptRecord, part: Mapping[str, Ask], hold: Hold | None = None) -> Iterator[Reply]:
        """Yield the replies to `part`, once the batch has ended; its cost is counted once, however often it is read."""
        if hold is None and not kept.record.settled:
            hold = self._taken_over(kept)
        batch_id, names = kept.record.id, kept.record.custom_ids
        try:
            results = self._results(batch_id, names)
        except NotThere as error:
            # Nobody says what it cost: it counts at the most that it may have.
            kept.set(settled=True, delivered=True)
            if hold is not None:
                self.meter.settle(hold, [None] * hold.n_asks)
            yield from (Reply(key=ask.key, problem=f"the batch is gone: {error}") for ask in part.values())
            return
        if results.refused:
            say(f"{results.refused:,} lines of message batch {batch_id} are no results of it, and are left out.")
        if hold is not None:
            kept.set(settled=True)
            self.meter.settle(hold, results.usages(names))
        for name, ask in part.items():
            yield results.reply(name, ask.key, self.model)
        kept.set(delivered=True)

    def _results(self, batch_id: str, names: Sequence[str]) -> Results:
        """Return the results of the requests of these names once the batch has ended; NotThere if it is gone."""
        import httpx2

        self._wait(batch_id)
        # The batch names an address of its results; they are fetched at the one that was given.
        path = f"/v1/messages/batches/{batch_id}/results"
        lines = self._patiently(
            lambda: self.http.body(lambda: self.http.sdk.get(path, cast_to=httpx2.Response)),
            f"the results of message batch {batch_id} cannot be fetched",
        )
        return read_results(lines, names)

    def _wait(self, batch_id: str) -> None:
        """Return when the batch has ended; NotThere if there is none. An interrupted wait says that it goes on."""
        began = last_line = time.monotonic()
        wait = FIRST_WAIT
        try:
            while self._status(batch_id) != "ended":
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

    def _status(self, batch_id: str) -> JSON:
        """Return what the service says of a batch's state; NotThere if it knows none."""
        call = self._service.retrieve
        shown = self._looked(lambda: self.http.json(lambda: call(batch_id).http_response), batch_id)
        return shown.get("processing_status") if isinstance(shown, dict) else None

    def _handed_in(self, requests: Sequence[Mapping[str, Any]]) -> str:
        """Return the new batch's id; _Unconfirmed if it may have been made all the same."""

        def once() -> JSON:
            try:
                return self.http.json(
                    lambda: self._service.create(requests=requests, extra_headers=headers(self.model)).http_response  # type: ignore[arg-type]  # the fields that the SDK does not know
                )
            except Unusable as error:
                if error.is_charged:
                    raise _Unconfirmed(str(error)) from None
                raise

        made = self._patiently(once, "a message batch cannot be handed in")
        if not isinstance(made, dict) or not isinstance(made.get("id"), str) or not made["id"]:
            raise _Unconfirmed("the answer has no id")
        return str(made["id"])

    def _since(self, earliest: datetime) -> "list[MessageBatch]":
        """Return the batches created since then, newest first."""
        pages = self.http.sdk.messages.batches.list

        def recent() -> "list[MessageBatch]":
            try:
                # The SDK asks for a further page when the one before is used up; what it reads it does not check.
                newest = islice(pages(limit=PAGE), MOST_LISTED)
                return list(takewhile(lambda batch: batch.created_at >= earliest, newest))
            except (AttributeError, TypeError, ValueError) as error:
                raise Unusable(f"the answer is no list of batches ({type(error).__name__})") from None

        return self._looked(lambda: self.http.attempt(recent), "the list of message batches")

    def _looked(self, look: Callable[[], _Result], what: str) -> _Result:
        """Return what a look at the service shows; looking changes nothing, and is tried again."""

        def once() -> _Result:
            try:
                return look()
            except Unusable as error:
                if isinstance(error, Busy) or not error.is_charged:
                    raise
                raise Busy(str(error)) from None

        return self._patiently(once, f"{what} cannot be looked at")

    def _patiently(self, once: Callable[[], _Result], trouble: str) -> _Result:
        """Return what `once` does; a BackendError if the service cannot be reached, or refuses."""
        try:
            return self.http.patiently(once, self._never)
        except Unusable as error:
            raise BackendError(
                f"{self.url}: {trouble}: {error}. Batches that were handed in go on; run the command again later, and "
                "it takes their results."
            ) from None
