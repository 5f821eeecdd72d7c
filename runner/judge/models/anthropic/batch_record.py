"""What is written down of a message batch, so that a killed run polls it instead of paying twice."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.schema import Count, FrozenModel, Sha256, checked
from runner.base.store import disk_errors
from runner.embed.cost.ledger import Usd


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
