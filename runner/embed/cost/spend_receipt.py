"""What a version's embedding on rented machines and its judging cost, whichever evening asks."""

import json
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field

from runner.base.canonical import json_line
from runner.base.errors import InputError
from runner.base.schema import FrozenModel, checked
from runner.base.store import disk_errors
from runner.embed.cost.ledger import Ledger, Usd
from runner.eval_set.shapes.decision import SpendReceipt

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
