"""A Claude model asked through Anthropic's Message Batches: half the price, an hour as a rule, a day at most.

What is written down of a batch lets a killed run poll it and not pay twice.
"""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.progress import say
from runner.base.schema import Count, FrozenModel, Sha256, checked
from runner.base.store import disk_errors
from runner.embed.cost.ledger import BudgetError, Usd
from runner.embed.cost.request_meter import Hold
from runner.judge.models.anthropic.batch_service import BatchService, Gone, Unknown, custom_ids, read_results
from runner.judge.models.anthropic.client import AnthropicMessages
from runner.judge.models.anthropic.wire import beyond_sdk, custom_id, headers, params
from runner.judge.models.requests import Ask, Reply, unique


class BatchRecord(FrozenModel):
    """One batch; `id` is empty until the service has answered its creation.

    `ledger` names the session that holds `reserved_usd` for it until `settled`; `delivered` means that every reply was
    given, or that the batch does not exist.
    """

    schema_version: Literal[1]
    model: str
    intended_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    custom_ids: list[Sha256]
    id: str
    ledger: str
    reserved_usd: Usd
    n_asks: Count
    settled: bool
    delivered: bool

    @property
    def intended(self) -> datetime:
        """When it was about to be created, by this machine's clock."""
        return datetime.fromisoformat(self.intended_on)


class KeptRecord:
    """A record at its place; what is set is written at once, a BackendError if the disk takes none."""

    def __init__(self, path: Path, record: BatchRecord) -> None:
        self.path = path
        self.record = record

    def set(self, **changes: str | bool) -> None:
        """Change fields, and write the whole."""
        self.record = self.record.model_copy(update=changes)
        self.write()

    def write(self) -> None:
        """Put it at its place."""
        with disk_errors(self.path):
            write_atomic(self.path, json_bytes(self.record.model_dump()))


def intended(folder: Path, model: str, custom_ids: list[str], ledger: str, reserved_usd: float) -> KeptRecord:
    """A record of a batch that is about to be created, written."""
    now = datetime.now(UTC)
    record = BatchRecord(
        schema_version=1,
        model=model,
        intended_on=now.isoformat(timespec="seconds"),
        custom_ids=custom_ids,
        id="",
        ledger=ledger,
        reserved_usd=reserved_usd,
        n_asks=len(custom_ids),
        settled=False,
        delivered=False,
    )
    kept = KeptRecord(folder / f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.json", record)
    kept.write()
    return kept


def records(folder: Path) -> Iterator[KeptRecord]:
    """All records, oldest first; a BackendError names a damaged one, since it may stand for money."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield KeptRecord(path, checked(BatchRecord, read_json(path), path))
        except InputError as error:
            raise BackendError(
                f"{path} is the record of a message batch and is damaged. Look the batch up in the service's console; "
                "delete the file to have its requests sent, and paid, again."
            ) from error


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


class _Request(NamedTuple):
    """An ask as it is sent, and its fields."""

    ask: Ask
    fields: Mapping[str, Any]


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
        self._service = BatchService(self.http)
        self._never = threading.Event()

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply per ask, batch by batch; a BudgetError if the ceiling allows no batch of FEWEST_REQUESTS.

        A BackendError if the service is lost: its batch goes on, and the next run finds it.
        """
        unique(asks)
        wanted = self._requests(asks)
        for kept in [kept for kept in records(self.folder) if not kept.record.delivered]:
            part = {name: wanted[name] for name in kept.record.custom_ids if name in wanted}
            if part and self._is_there(kept):
                for name in part:
                    del wanted[name]
                yield from self._delivered(kept, part)
        while wanted:
            names, hold = self._affordable(wanted)
            part = {name: wanted.pop(name) for name in names}
            kept = intended(self.folder, self.model, names, self.meter.path.name, hold.usd)
            self._create(kept, part, hold)
            yield from self._delivered(kept, part, hold)

    def _requests(self, asks: Sequence[Ask]) -> dict[str, _Request]:
        """Requests by custom id."""
        made = {}
        for ask in asks:
            sent = self.sent(ask)
            fields = {**params(self.model, sent), **beyond_sdk(self.model)}
            made[custom_id(ask, fields)] = _Request(sent, fields)
        return made

    def _affordable(self, wanted: Mapping[str, _Request]) -> tuple[list[str], Hold]:
        """As many of the first requests as fit into one batch and under the ceiling, and what is held for them."""
        names: list[str] = []
        n_bytes = 0
        for name, request in wanted.items():
            n_bytes += len(request.ask.system.encode()) + len(request.ask.user.encode()) + 2_000
            if names and (len(names) == MOST_REQUESTS or n_bytes > MOST_BYTES):
                break
            names.append(name)
        while True:
            try:
                return names, self.meter.reserve([wanted[name].ask for name in names])
            except BudgetError:
                if len(names) <= FEWEST_REQUESTS:
                    raise
                names = names[: max(len(names) // 2, FEWEST_REQUESTS)]

    def _create(self, kept: KeptRecord, part: Mapping[str, _Request], hold: Hold) -> None:
        """Hand the batch in; if nobody says whether it arrived, the service's list does."""
        requests = [{"custom_id": name, "params": request.fields} for name, request in part.items()]
        for _ in range(CREATE_TRIES):
            try:
                batch_id = self._service.create(requests, headers(self.model))
            except Unknown:
                self._never.wait(min(self.poll_seconds, LISTED_AFTER))
                batch_id = self._found(kept)
            except BackendError:
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
            f"{self._service.url}: a message batch was handed in {CREATE_TRIES} times, and whether it arrived is not "
            f"known. Run the command again later: it looks for the batch by {kept.path}."
        )

    def _is_there(self, kept: KeptRecord) -> bool:
        """Whether a batch of an earlier run exists; one that does not is not looked for again, and costs nothing."""
        if kept.record.id:
            return True
        if batch_id := self._found(kept):
            kept.set(id=batch_id)
            return True
        say(f"A message batch that an earlier run was about to hand in ({kept.path}) never arrived; it is sent now.")
        self.meter.release(self._taken_over(kept))
        kept.set(settled=True, delivered=True)
        return False

    def _found(self, kept: KeptRecord) -> str:
        """The id of the batch that a record without one means, "" for none: its results name the same requests."""
        others = {other.record.id for other in records(self.folder)}
        for batch in self._service.since(kept.record.intended - CLOCKS):
            counts, batch_id = batch.get("request_counts"), str(batch.get("id") or "")
            n_asks = sum(counts.values()) if isinstance(counts, dict) else -1
            if not batch_id or batch_id in others or n_asks != kept.record.n_asks:
                continue
            try:
                self._wait(batch_id)
                if custom_ids(self._service.results(batch_id)) == set(kept.record.custom_ids):
                    return batch_id
            except Gone:
                continue
        return ""

    def _taken_over(self, kept: KeptRecord) -> Hold:
        record = kept.record
        hold = self.meter.take_over(record.ledger, record.reserved_usd, record.n_asks)
        kept.set(ledger=self.meter.path.name)
        return hold

    def _delivered(self, kept: KeptRecord, part: Mapping[str, _Request], hold: Hold | None = None) -> Iterator[Reply]:
        """The replies to `part`, once the batch has ended; its cost is counted once, however often it is read."""
        if hold is None and not kept.record.settled:
            hold = self._taken_over(kept)
        names = kept.record.custom_ids
        try:
            self._wait(kept.record.id)
            results = read_results(self._service.results(kept.record.id), dict.fromkeys(names))
        except Gone as error:
            self._lost(kept, hold)
            yield from (Reply(each.ask.key, "", "", problem=f"the batch is gone: {error}") for each in part.values())
            return
        if results.refused:
            say(f"{results.refused:,} lines of message batch {kept.record.id} are no results of it, and are left out.")
        if hold is not None:
            kept.set(settled=True)
            self.meter.settle(hold, results.usages(names))
        for name, request in part.items():
            yield results.reply(name, request.ask.key, self.model)
        kept.set(delivered=True)

    def _lost(self, kept: KeptRecord, hold: Hold | None) -> None:
        """Count a batch that is gone at the most that it may have cost."""
        kept.set(settled=True, delivered=True)
        if hold is not None:
            self.meter.settle(hold, [None] * hold.n_asks)

    def _wait(self, batch_id: str) -> None:
        """Return when the batch has ended; Gone if there is none. An interrupted wait says that it goes on."""
        began = last_line = time.monotonic()
        wait = FIRST_WAIT
        try:
            while self._service.retrieve(batch_id).get("processing_status") != "ended":
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
            say(f"Message batch {batch_id} goes on at {self._service.url}; the next run takes its results.")
            raise
