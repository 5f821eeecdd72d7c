"""The shape of what scoring and deciding write: results.json, receipt.json, decision.json and lock.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.schemas import Count, LabelPrefix, Plan, Provenance, Quarantined, QueryRow, Sample, Sha256, Share
from runner.strict import Strict

Kind = Literal["production", "rehearsal", "exploration"]
Role = Literal["baseline", "preregistered", "exploratory"]
Tier = Literal["confirmed", "candidate", "inconclusive", "baseline kept", "no decision"]
Verdict = Literal["pass", "fail", "insufficient"]
Null = Literal["permuted qrels", "random retrieval"]


class MeasureResult(Strict):
    """A cell's mean of a measure with its interval, and the per-query values in units of 1e-9."""

    mean: float
    low: float
    high: float
    per_query: list[int]


class Difference(Strict):
    """Cell minus baseline, paired by query."""

    mean: float
    low: float
    high: float
    wins: Count
    ties: Count
    losses: Count


class NullResult(Strict):
    """One null against the real score, all in [0, 1].

    `low`, `median` and `high` are the 2.5, 50 and 97.5 % quantiles of the draws (order statistics); `delta` is real
    less mean; `p` is (1 + draws at least as good) / (1 + draws), and `smallest_p` the least it could have been.
    """

    name: Null
    mean: float
    sd: float
    low: float
    median: float
    high: float
    delta: float
    p: float
    smallest_p: float
    verdict: Verdict


class GateVerdict(Strict):
    """A cell's score against every null; `verdict` is "pass" only where every null's is."""

    cell: str
    measure: Literal["ndcg@10"]
    real: float
    draws: Count
    tau: Share
    alpha: float
    nulls: Annotated[list[NullResult], Field(min_length=1)]
    verdict: Verdict


class CellResult(Strict):
    """One row of the ranking."""

    cell: str
    role: Role
    scores: dict[str, MeasureResult]
    differences: dict[str, Difference]
    meets_criterion_5: bool
    gate: GateVerdict
    unjudged: Count
    bounds: Annotated[list[float], Field(min_length=2, max_length=2)]
    provenance: Provenance


class CorpusFacts(Strict):
    """What was read and drawn, from corpus.jsonl; `strata` counts the documents drawn of each."""

    documents: Count
    n_read: Count
    n_chars: Count
    quarantined: list[Quarantined]
    strata: dict[str, Count]
    sample: Sample
    reader: str
    archive_sha256: Sha256
    manifest_sha256: Sha256


class LabelFacts(LabelPrefix):
    """The labels that were scored with; `judges` and `grades` count lines, the others pairs of query and document."""

    pairs: Count
    second_readings: Count
    pool_pairs: Count
    unjudged_pairs: Count
    judges: dict[str, Count]
    models: list[str]
    grades: dict[str, Count]


class NoiseFloor(Strict):
    """The baseline once more over vectors of other batches: its nDCG@10 less the first, and how far any query moved."""

    cell: str
    difference: Difference
    max_change: float
    queries_changed: Count


class Outcome(Strict):
    """What the rule says: the tier, the cells that meet criterion 5 best first, and the operator's sentence."""

    tier: Tier
    candidates: list[str]
    sentence: str
    baseline_gate: Verdict


class Results(Strict):
    """results.json: a pure function of plan, queries, labels, runs and cells; no time, host, path or cost in it."""

    schema_version: Literal[1]
    source: str
    version: int
    kind: Kind
    provisional: bool
    plan: Plan
    preregistration_sha256: Sha256
    judge_prompt_sha256: Sha256
    queries: list[QueryRow]
    corpus: CorpusFacts
    labels: LabelFacts
    cells: list[CellResult]
    noise_floor: NoiseFloor | None
    outcome: Outcome
    weaknesses: Annotated[list[str], Field(min_length=1)]


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
    """What goes to production."""

    cell: str
    retrieval: Literal["dense", "bm25", "rerank", "rrf"]
    encoder: str
    encoder_revision: str
    chunker: str


class Decision(Strict):
    """decision.json."""

    schema_version: Literal[1]
    source: str
    version: int
    kind: Literal["production", "rehearsal"]
    tier: Tier
    chosen: Chosen
    baseline: str
    candidates: list[str]
    rationale: str
    decided_by: str
    reason: str
    decided_on: str
    results_sha256: Sha256


class Lock(Strict):
    """lock.json: SHA-256 of every file of a record, and of that table."""

    schema_version: Literal[1]
    files: dict[str, Sha256]
    root_sha256: Sha256
