"""The shape of receipt.json and decision.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sha256, Sparse
from runner.eval_set.shapes.cell import BackendRecord
from runner.eval_set.shapes.results import Confirmed, Tier

Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Retrieval = Literal["dense", "bm25", "rerank", "rrf", "sum"]
Standing = Confirmed | Literal["the baseline", "candidate", "no candidate"]


class SpendReceipt(Sparse):
    """What a version cost by list price: embedding on a provider's machines or by services, judging by models.

    `estimate_usd` was expected before anything was started, weights included, and `max_usd` is the last ceiling; null
    where the attempt was not recorded. `gpu_seconds` are container-seconds of embedding, start and idle ends included.
    `sessions` are those of machines; `price_per_second` is 0 if nothing was embedded. What was
    billed, the providers' pages alone say.
    """

    estimate_usd: Usd | None
    embedding_usd: Usd
    weights_usd: Usd
    judging_usd: Usd = 0.0
    services_usd: Usd = 0.0
    gpu: str
    gpu_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    price_per_second: Usd
    price_source: Annotated[str, Field(min_length=1)]
    sessions: Count
    max_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None

    @property
    def usd(self) -> float:
        """Dollars of everything by list price."""
        return self.embedding_usd + self.weights_usd + self.services_usd + self.judging_usd


class Receipt(FrozenModel):
    """receipt.json: what was measured while running; it differs from machine to machine.

    `backends` says by cell ("aa" is the baseline once more) where vectors were made; cells without an encoder are not
    in it. `spend` is null if nothing is metered.
    """

    schema_version: Literal[1]
    finished_on: str
    tool_version: str
    python: str
    platform: str
    cpu_count: int
    libraries: dict[str, Annotated[str, Field(min_length=1)]]
    seconds: dict[str, float]
    cells: dict[str, dict[str, float]]
    backends: dict[str, BackendRecord]
    spend: SpendReceipt | None


class Chosen(FrozenModel):
    """What goes to production; `standing` is what the rule says of the cell, chosen or not."""

    cell: str
    standing: Standing
    retrieval: Retrieval
    encoder: str
    encoder_revision: str
    chunker: str


class Reuse(FrozenModel):
    """A structural chunker that was written for a sibling source, and what is known of it there."""

    chunker: str
    source: str
    result: str


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
