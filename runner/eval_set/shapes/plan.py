"""The shape of plan.yaml."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sha256, Share, Sparse
from runner.eval_set.shapes.labels import Judges


class Sample(Sparse):
    """How many documents are drawn, the seed of the draw, and what the source's reader is told ("notices")."""

    size: Annotated[int, Field(ge=1)]
    seed: Count
    options: list[str] = Field(default_factory=list)


class Rule(FrozenModel):
    """The spec's criterion 5: what a cell must gain, and what it may lose, to be a candidate."""

    min_gain: Share
    max_recall_loss: Share


class Bootstrap(FrozenModel):
    """Percentile bootstrap over queries."""

    resamples: Annotated[int, Field(ge=100)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    seed: Count


class Significance(FrozenModel):
    """The test against the baseline by its versioned name, its draws, and the family-wise error that is allowed."""

    method: Literal["sign-flip ordered v2"]
    draws: Annotated[int, Field(ge=1_000)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    seed: Count


class NullGate(FrozenModel):
    """Nulls by versioned name, draws of each, the smallest difference from a null that counts, and the p-value."""

    nulls: Literal["graded v1", "graded v2"]
    draws: Annotated[int, Field(ge=100)]
    tau: Share
    alpha: Annotated[float, Field(gt=0, lt=1)]
    seed: Count


class Reuse(FrozenModel):
    """A structural chunker that was written for a sibling source, and what is known of it there."""

    chunker: str
    source: str
    result: str


class Plan(Sparse):
    """plan.yaml: what the operator decides before anything is judged.

    `first` are the challengers whose gain is tested first, with most of the error that is allowed.
    """

    schema_version: Literal[2]
    source: str
    version: Annotated[int, Field(ge=1)]
    baseline: str
    cells: list[str]
    first: list[str] = Field(default_factory=list)
    sample: Sample
    pool_depth: Annotated[int, Field(ge=1, le=100)]
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    rule: Rule
    bootstrap: Bootstrap
    significance: Significance
    null_gate: NullGate
    reuse: Reuse | None = None
    judges: Judges | None = None


class PlanDigest(FrozenModel):
    """What a preregistration holds of one plan."""

    rule_sha256: Sha256
    baseline: str
    cells: list[str]


class Preregistration(FrozenModel):
    """preregistration.json: written before the first pair is exported for judging."""

    schema_version: Literal[1]
    source: str
    version: int
    queries_sha256: Sha256
    corpus_sha256: Sha256
    judge_prompt_sha256: Sha256
    production: PlanDigest
    rehearsal: PlanDigest | None
