"""A Claude model asked through Anthropic's Message Batches: half the price, an hour as a rule, a day at most.

Every batch is written down before it is handed in, so that a killed run finds it again and does not pay twice.
"""

import math
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Self, TypeVar
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

LOOKS_FOR_GONE = 16
"""Looks in a row, POLL_SECONDS apart, that must find nothing before a batch counts as gone."""

SECONDS_BETWEEN_LINES = 600.0
MOST_REQUESTS = 10_000
MOST_BYTES = 100_000_000
"""Of one batch; the API takes ten times the requests, and 256 MB."""

FEWEST_REQUESTS = 20
"""Of a batch that is made smaller for the ceiling: each may take an hour, and many small ones take days."""

CREATE_TRIES = 3
LISTED_AFTER = 5.0
"""Seconds after which a batch is taken to be in the service's list, if it arrived."""

CLOCKS = timedelta(minutes=10)
"""How far this machine's clock and the service's may be apart."""

NEWEST = 100
"""Batches that are looked through for one that was handed in a moment ago."""

_Result = TypeVar("_Result")


class BatchRecord(FrozenModel):
    """One batch, kept at `path`; `id` is empty until the service has answered its creation.

    `intended_on` is when it was about to be created, by this machine's clock, and `hold` the line of the ledger that
    pays for it. `delivered` means that every reply was given, or that the batch does not exist.
    """

    path: Path = Field(default=Path(), exclude=True)
    model: str
    intended_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
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


def records(folder: Path) -> list[BatchRecord]:
    """Return all records, oldest first; a BackendError names a damaged one, since it may stand for money."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(checked(BatchRecord, read_json(path), path).model_copy(update={"path": path}))
        except InputError as error:
            raise BackendError(
                f"{path} is the record of a message batch and is damaged. Look the batch up in the service's console; "
                "delete the file to have its requests sent, and paid, again."
            ) from error
    return found


def under_way(folder: Path) -> list[BatchRecord]:
    """Return the batches whose replies were not all given."""
    return [record for record in records(folder) if not record.delivered]


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
            part = {name: wanted[name] for name in record.custom_ids if name in wanted}
            if part and (arrived := self._arrived(record)):
                for name in part:
                    del wanted[name]
                yield from self._delivered(arrived, part)
        while wanted:
            names, hold = self._affordable(wanted)
            part = {name: wanted.pop(name) for name in names}
            # Written before anything is sent, so that a killed run leaves a trace of what it may have bought.
            now = datetime.now(UTC)
            intended = BatchRecord(
                path=self.folder / f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.json",
                model=self.model,
                intended_on=now.isoformat(timespec="seconds"),
                custom_ids=names,
                hold=hold.entry.id,
            ).kept()
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

    # A batch's life: handed in, found again, delivered.

    def _created(self, record: BatchRecord, part: Mapping[str, Ask], hold: Hold) -> BatchRecord:
        """Hand the batch in; if nobody says whether it arrived, the service's list does."""
        requests = [{"custom_id": name, "params": self.request(ask)} for name, ask in part.items()]
        for _ in range(CREATE_TRIES):
            try:
                batch_id = self._handed_in(requests)
            except BackendError:
                # The service refused it: nothing was charged, and there is nothing to look for.
                hold.settle(0.0)
                record.kept(delivered=True)
                raise
            if not batch_id:
                self._never.wait(min(self.poll_seconds, LISTED_AFTER))
                batch_id = self._listed(record)
            if batch_id:
                say(
                    f"{len(part):,} requests to {self.model} are handed in as message batch {batch_id}. It takes an "
                    "hour as a rule, a day at most; stop, and run the command again, as you like."
                )
                return record.kept(id=batch_id)
        raise BackendError(
            f"{self.url}: a message batch was handed in {CREATE_TRIES} times, and whether it arrived is not known. Run "
            f"the command again later: it looks for the batch by {record.path}."
        )

    def _arrived(self, record: BatchRecord) -> BatchRecord | None:
        """Return an earlier run's record with its id; one that does not exist is closed, and costs nothing."""
        if batch_id := record.id or self._listed(record):
            return record.kept(id=batch_id)
        say(f"A message batch that an earlier run was about to hand in ({record.path}) never arrived; it is sent now.")
        if hold := self.budget.held(record.hold):
            hold.settle(0.0)
        record.kept(delivered=True)
        return None

    def _listed(self, record: BatchRecord) -> str:
        """Return the id of the batch that a record without one means, "" for none: its results name the same asks."""
        others = {other.id for other in records(self.folder)}
        earliest = datetime.fromisoformat(record.intended_on) - CLOCKS
        for batch_id, created, n_requests in self._looked(self._newest, "the list of batches"):
            if batch_id in others or n_requests != len(record.custom_ids) or created < earliest:
                continue
            try:
                results, _ = self._results(batch_id, record.custom_ids)
            except NotThere:
                continue
            if results.keys() == set(record.custom_ids):
                return batch_id
        return ""

    def _delivered(self, record: BatchRecord, part: Mapping[str, Ask]) -> Iterator[Reply]:
        """Yield the replies to `part`, once the batch has ended; its cost is counted once, however often it is read."""
        batch_id, names, hold = record.id, record.custom_ids, self.budget.held(record.hold)
        try:
            results, n_refused = self._results(batch_id, names)
        except NotThere as error:
            # Nobody says what it cost: it counts at the most that it may have.
            if hold:
                hold.settle(None)
            record.kept(delivered=True)
            yield from (Reply(key=ask.key, problem=f"the batch is gone: {error}") for ask in part.values())
            return
        if n_refused:
            say(f"{n_refused:,} lines of message batch {batch_id} are not results of it, and are left out.")
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
        kind = result.get("type")
        if kind == "succeeded":
            usage = usage_of(result.get("message"))
            return unknown if usage is None else self.price.usd(usage)
        return unknown if kind in (None, CONTRADICTED) else 0.0

    def _results(self, batch_id: str, names: Collection[str]) -> tuple[dict[str, dict[str, JSON]], int]:
        """Return `read_results` of a batch once it has ended; NotThere if it is gone."""
        self._wait(batch_id)
        # The batch names an address of its results; they are fetched at the one that was given.
        lines = self._looked(
            lambda: self.got("GET", f"{self.batches}/{quote(batch_id, safe='')}/results"),
            f"the results of message batch {batch_id}",
        )
        return read_results(lines, names)

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

    def _handed_in(self, requests: Sequence[Mapping[str, JSON]]) -> str:
        """Return the new batch's id, "" if nobody says whether it was made; a BackendError if it was not."""

        def once() -> JSON:
            try:
                return received(self.got("POST", self.batches, {"requests": list(requests)}))
            except Unusable as error:
                if error.is_charged:
                    return None
                raise

        made = as_object(self._patiently(once, "a message batch cannot be handed in")).get("id")
        return made if isinstance(made, str) else ""

    def _newest(self) -> list[tuple[str, datetime, int]]:
        """Return id, time of creation and number of requests of the newest batches; Unusable if they are not listed."""
        answer = received(self.got("GET", f"{self.batches}?limit={NEWEST}"))
        try:
            return [
                (str(row["id"]), datetime.fromisoformat(row["created_at"]), sum(row["request_counts"].values()))
                for row in answer["data"]
            ]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unusable(f"the answer is not a list of batches ({type(error).__name__})") from None

    def _looked(self, look: Callable[[], _Result], what: str) -> _Result:
        """Return what a look at the service shows; looking changes nothing, and is tried again.

        NotThere if LOOKS_FOR_GONE looks in a row find nothing.
        """

        def once() -> _Result:
            try:
                return look()
            except Unusable as error:
                if isinstance(error, Busy) or not error.is_charged:
                    raise
                raise Busy(str(error)) from None

        n_gone = 0
        while True:
            try:
                return self._patiently(once, f"{what} cannot be looked at")
            except NotThere as error:
                # A service may deny for a moment what it has, and to ask a batch's pairs anew is to pay twice.
                n_gone += 1
                if n_gone == LOOKS_FOR_GONE:
                    raise
                if n_gone == 1:
                    say(f"{error} Looked for again, for {LOOKS_FOR_GONE * self.poll_seconds / 60:.0f} minutes at most.")
            self._never.wait(self.poll_seconds)

    def _patiently(self, once: Callable[[], _Result], trouble: str) -> _Result:
        """Return what `once` does; a BackendError if the service cannot be reached, or refuses."""
        try:
            return self.http.patiently(once, self._never, self.url)
        except Unusable as error:
            raise BackendError(
                f"{self.url}: {trouble}: {error}. Batches that were handed in go on; run the command again later, and "
                "it takes their results."
            ) from None


# The results of a batch

CONTRADICTED = "contradicted"

_ENDS = {
    None: "the batch has no result for it",
    CONTRADICTED: "the batch has two different results for it",
    "expired": "the batch expired before the request was reached",
    "canceled": "the batch was cancelled before the request was reached",
}


def read_results(lines: str, names: Collection[str]) -> tuple[dict[str, dict[str, JSON]], int]:
    """Return the results of the requests of these names, in any order, and how many lines are none or contradict one.

    The same line twice counts once.
    """
    known = set(names)
    results: dict[str, dict[str, JSON]] = {}
    contradicted: set[str] = set()
    n_refused = 0
    for line in filter(str.strip, lines.split("\n")):
        try:
            row = as_object(received(line))
        except Unusable:
            row = {}
        name, result = row.get("custom_id"), row.get("result")
        if not isinstance(name, str) or name not in known or not isinstance(result, dict):
            n_refused += 1
        elif results.setdefault(name, result) != result:
            n_refused += 1
            contradicted.add(name)
    return results | {name: {"type": CONTRADICTED} for name in contradicted}, n_refused


def _reply(result: Mapping[str, JSON], key: str, model: str) -> Reply:
    """Return the reply to one request, as the ask of `key`; its problem if there is none to use."""
    kind = result.get("type")
    if kind == "succeeded":
        return reply_of(key, model, result.get("message"))
    if kind != "errored":
        known = kind if isinstance(kind, str) else "" if result else None
        problem = _ENDS.get(known, "the batch has a result of no known kind")
        return Reply(key=key, raw=dict(result), problem=problem)
    # The error stands in an envelope of the same name.
    error = as_object(as_object(result.get("error")).get("error"))
    problem = f"the request failed: {error.get('type', 'unknown')}: {str(error.get('message', ''))[:300]}"
    return Reply(key=key, raw=dict(result), problem=problem, final=error.get("type") == "invalid_request_error")
