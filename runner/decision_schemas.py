"""The shape of what deciding writes: receipt.json, decision.json and lock.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.result_schemas import Tier
from runner.schemas import Reuse, Sha256
from runner.strict import Sparse, Strict

Standing = Literal["the baseline", "confirmed", "candidate", "no candidate"]


class Receipt(Strict):
    """receipt.json: what was measured while running; it differs from machine to machine."""

    schema_version: Literal[1]
    finished_on: str
    tool_version: str
    python: str
    platform: str
    cpu_count: int
    libraries: dict[str, Annotated[str, Field(min_length=1)]]
    seconds: dict[str, float]
    cells: dict[str, dict[str, float]]
    usd: float


class Chosen(Strict):
    """What goes to production; `standing` is what the rule says of the cell, chosen or not."""

    cell: str
    standing: Standing
    retrieval: Literal["dense", "bm25", "rerank", "rrf"]
    encoder: str
    encoder_revision: str
    chunker: str


class Decision(Sparse):
    """decision.json; one by policy rests on no results."""

    schema_version: Literal[1]
    source: str
    version: int
    kind: Literal["production", "rehearsal", "policy"]
    tier: Tier | Literal["by policy"]
    chosen: Chosen
    baseline: str
    candidates: list[str]
    rationale: str
    decided_by: str
    reason: str
    decided_on: str
    results_sha256: Sha256 | None
    reuse: Reuse | None = None


class Lock(Strict):
    """lock.json: SHA-256 of every file of a record, and of that table."""

    schema_version: Literal[1]
    files: dict[str, Sha256]
    root_sha256: Sha256
