"""What is written down of every message batch, so that a killed run finds it again and does not pay twice."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from runner.base.canonical import json_bytes, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.schema import FrozenModel, Sha256, checked
from runner.base.store import disk_errors
from runner.embed.cost.ledger import Usd


class BatchRecord(FrozenModel):
    """One batch; `id` is empty until the service has answered its creation.

    `intended_on` is when it was about to be created, by this machine's clock. `ledger` names the session that holds
    `reserved_usd` for it until `settled`; `delivered` means that every reply was given, or that the batch does not
    exist.
    """

    schema_version: Literal[1]
    model: str
    intended_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$")]
    custom_ids: list[Sha256]
    id: str
    ledger: str
    reserved_usd: Usd
    settled: bool
    delivered: bool


@dataclass
class KeptRecord:
    """A record at its place."""

    path: Path
    record: BatchRecord

    def set(self, **changes: str | bool) -> None:
        """Change fields, and write the whole at once; a BackendError if the disk takes none."""
        self.record = self.record.model_copy(update=changes)
        with disk_errors(self.path):
            write_atomic(self.path, json_bytes(self.record.model_dump()))


def intended(folder: Path, model: str, custom_ids: Sequence[str], ledger: str, reserved_usd: float) -> KeptRecord:
    """Write and return the record of a batch that is about to be created."""
    now = datetime.now(UTC)
    record = BatchRecord(
        schema_version=1,
        model=model,
        intended_on=now.isoformat(timespec="seconds"),
        custom_ids=list(custom_ids),
        id="",
        ledger=ledger,
        reserved_usd=reserved_usd,
        settled=False,
        delivered=False,
    )
    kept = KeptRecord(folder / f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.json", record)
    kept.set()
    return kept


def records(folder: Path) -> Iterator[KeptRecord]:
    """Yield all records, oldest first; a BackendError names a damaged one, since it may stand for money."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield KeptRecord(path, checked(BatchRecord, read_json(path), path))
        except InputError as error:
            raise BackendError(
                f"{path} is the record of a message batch and is damaged. Look the batch up in the service's console; "
                "delete the file to have its requests sent, and paid, again."
            ) from error
