"""What a version's sessions on rented machines have cost: one JSON file per session, each written whole, and their sum.

A file exists before its session starts anything, and always says what the session costs if nobody writes it again: a
killed process leaves its spending behind.
"""

import json
import logging
import os
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runner.base.canonical import json_bytes, json_line, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.schema import Count, FrozenModel, checked
from runner.base.store import disk_errors
from runner.eval_set.shapes.decision import SpendReceipt

SPEND = "spend"
"""The folder of a version's ledger, beside its other work."""

WORK = ".work"
"""The folder below which every version's work lies, its ledgers among it."""

Kind = Literal["embed", "weights", "judge"]
"""What is paid for: containers that embed or fetch weights, and language models that judge."""

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


_log = logging.getLogger(__name__)


class BudgetError(BackendError):
    """The ceiling of --max-usd is reached or would be, or what was spent is not known."""


class LedgerRow(FrozenModel):
    """One session: containers that served one encoder, from their first request until the last of them went idle.

    `seconds` are by the clock, `container_seconds` what is charged. `busy_seconds` are container-seconds from an answer
    of a container to its next, idle times left out, and `busy_tokens` the tokens of those next answers. `ended` is
    False for a session that runs, or whose process was killed. A session of requests to a paid API, a judge's or an
    encoder's, has no GPU and no price a second; its `texts` are requests, and `usd` includes what is held for those
    under way. `containers`, `tokens` and `texts`
    are read by no program: they are the record of the session, for whoever holds it against the provider's bill.
    """

    schema_version: Literal[1]
    kind: Kind
    what: Annotated[str, Field(min_length=1)]
    gpu: str
    price_per_second: Usd
    started_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    ended: bool
    seconds: Seconds
    containers: Count
    container_seconds: Seconds
    tokens: Count
    texts: Count
    busy_seconds: Seconds
    busy_tokens: Count
    usd: Usd

    @property
    def ended_on(self) -> datetime:
        """When its last container was let go; for one that runs, when that will be at the earliest."""
        return datetime.fromisoformat(self.started_on) + timedelta(seconds=self.seconds)


class Ledger:
    """The sessions in a folder; a file is read again only when it has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[tuple[int, ...], LedgerRow]] = {}

    def rows(self, without: Container[Path] = ()) -> list[LedgerRow]:
        """The sessions by file name, none without the folder; a BudgetError names a damaged file."""
        self._known = dict(self._read(without))
        return [row for _, row in self._known.values()]

    def _read(self, without: Container[Path]) -> Iterator[tuple[Path, tuple[tuple[int, ...], LedgerRow]]]:
        for path in sorted(self.folder.glob("*.json")):
            if path in without:
                continue
            try:
                facts = path.stat()
            except FileNotFoundError:
                continue  # deleted since it was listed, as the error about a damaged file advises
            stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            known = self._known.get(path)
            yield path, known if known and known[0] == stamp else (stamp, read_session(path))


def all_sessions(folder: Path) -> list[LedgerRow]:
    """All sessions below the nearest folder named WORK above `folder` (below `folder` without one), for their rates.

    Nobody's ceiling depends on them, so a damaged ledger is left out with a warning in the log.
    """
    root = next((above for above in (folder, *folder.parents) if above.name == WORK), folder)
    found = []
    for ledger in sorted(root.rglob(SPEND)):
        try:
            found += Ledger(ledger).rows()
        except BudgetError as error:
            _log.warning("rates are taken without %s: %s", ledger, error)
    return found


def read_session(path: Path) -> LedgerRow:
    """One session's file; a BudgetError if it cannot be read, since money must not be forgotten."""
    try:
        return checked(LedgerRow, read_json(path), path)
    except InputError as error:
        raise BudgetError(
            f"{path} holds what a session cost and is damaged. Look that session up in the provider's billing, then "
            "delete the file, and lower --max-usd by what it cost."
        ) from error


def write_session(path: Path, row: LedgerRow) -> None:
    """Write a session's file; a BackendError if the disk takes none."""
    with disk_errors(path):
        write_atomic(path, json_bytes(row.model_dump()))


ATTEMPTS = "attempts.jsonl"
"""Beside the sessions; one line for every process that started an app."""

Billed = Callable[[str, datetime], float | None]
"""Dollars that the provider billed for a run's id since it began, None if it does not answer."""


class Attempt(FrozenModel):
    """One process that started an app; `estimate_usd` is what it expected for all that was left to do,
    None if it was not told what that is.
    """

    run_id: Annotated[str, Field(min_length=1)]
    began_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    estimate_usd: Usd | None
    max_usd: Usd
    price_source: str


def remember_attempt(folder: Path, attempt: Attempt) -> None:
    """Append an attempt, replacing a torn last line; a BackendError if the disk takes none."""
    path = folder / ATTEMPTS
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and (torn := _lines(path)[-1]):
            os.truncate(path, path.stat().st_size - len(torn))
        with path.open("a", encoding="utf-8") as stream:
            stream.write(json_line(attempt.model_dump()) + "\n")


def spend_receipt(folder: Path, billed: Billed) -> SpendReceipt | None:
    """All sessions of the ledger in `folder` together; None if nothing was spent.

    The estimate is the first attempt's. The bill is all or nothing: one attempt without an answer leaves it unknown. A
    BudgetError names a damaged session, an InputError a damaged attempt; the last may be torn: it had rented nothing
    yet.
    """
    rows = Ledger(folder).rows()
    if not rows:
        return None
    attempts = _attempts(folder)
    rented = [row for row in rows if row.gpu]
    on_machines = [row for row in rented if row.kind == "embed"]
    latest = max(on_machines or rented or rows, key=lambda row: row.started_on)
    return SpendReceipt(
        estimate_usd=attempts[0].estimate_usd if attempts else None,
        embedding_usd=round(sum(row.usd for row in on_machines), 6),
        weights_usd=round(sum(row.usd for row in rows if row.kind == "weights"), 6),
        judging_usd=round(sum(row.usd for row in rows if row.kind == "judge"), 6),
        services_usd=round(sum(row.usd for row in rows if row.kind == "embed" and not row.gpu), 6),
        actual_usd=_sum(billed(attempt.run_id, datetime.fromisoformat(attempt.began_on)) for attempt in attempts),
        gpu=", ".join(sorted({row.gpu for row in on_machines})),
        gpu_seconds=round(sum(row.container_seconds for row in on_machines), 3),
        price_per_second=latest.price_per_second,
        price_source=attempts[-1].price_source if attempts else "as the ledger has it",
        sessions=len(rented),
        max_usd=attempts[-1].max_usd if attempts else None,
    )


def _attempts(folder: Path) -> list[Attempt]:
    path = folder / ATTEMPTS
    lines = _lines(path)[:-1] if path.exists() else []
    found = []
    for number, line in enumerate(lines, start=1):
        where = f"{path} line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"{where} is damaged ({error}). Delete the line; the ledger beside it holds what was spent."
            ) from error
        found.append(checked(Attempt, row, where))
    return found


def _lines(path: Path) -> list[bytes]:
    """All whole lines, and last what a torn write left, empty if there is none."""
    return path.read_bytes().split(b"\n")


def _sum(dollars: Iterable[float | None]) -> float | None:
    known = list(dollars)
    return round(sum(each for each in known if each is not None), 6) if known and None not in known else None
