"""The shape of plan.yaml."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from runner.base.schema import Count, FrozenModel, Sha256, Share, Sparse
from runner.eval_set.shapes.encoder import EncoderSpec
from runner.eval_set.shapes.labels import Judges

FieldOf = Literal["text", "title", "id", "stratum", "family", "url", "table"]
"""What documents of one's own may have a field for, or a database a table."""

FieldName = Annotated[str, Field(pattern=r"^\w[\w -]{0,59}$")]


class Sample(Sparse):
    """How many documents are drawn, the seed of the draw, and what the source's reader is told ("notices").

    `documents` makes the plan's source one of its own: which field of its documents says what.
    """

    size: Annotated[int, Field(ge=1)]
    seed: Count
    options: list[str] = Field(default_factory=list)
    documents: dict[FieldOf, FieldName] | None = None

    @property
    def told(self) -> frozenset[str]:
        """What the reader is told: the options, and each field as `text=body`."""
        return frozenset([*self.options, *(f"{name}={field}" for name, field in (self.documents or {}).items())])


class Rule(FrozenModel):
    """The spec's criterion 5: what a cell must gain, and what it may lose, to be a candidate."""

    min_gain: Share
    max_recall_loss: Share


class Bootstrap(FrozenModel):
    """Percentile bootstrap over queries."""

    resamples: Annotated[int, Field(ge=100, le=10_000_000)]
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    seed: Count


class Significance(FrozenModel):
    """The test of a gain by its versioned name, its error, and the draws of intervals and false alarms."""

    method: Literal["phantom t v1"]
    draws: Annotated[int, Field(ge=1_000, le=1_000_000)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    seed: Count


class NullGate(FrozenModel):
    """Nulls by versioned name, draws of each, the smallest difference from a null that counts, and the p-value."""

    nulls: Literal["graded v1"]
    draws: Annotated[int, Field(ge=100, le=1_000_000)]
    tau: Share
    alpha: Annotated[float, Field(gt=0, lt=1)]
    seed: Count


def _only(allowed: Callable[[float], bool], advice: str) -> AfterValidator:
    """A check of a figure; its error is the advice."""

    def check(value: float) -> float:
        if not allowed(value):
            raise PydanticCustomError("figure", "write {advice}", {"advice": advice})
        return value

    return AfterValidator(check)


Kind = Literal[
    "structural",
    "structural cut",
    "window",
    "path",
    "sum",
    "hybrid",
    "re-rank",
    "BM25",
    "other encoder",
    "quantised",
    "static",
]
"""What a challenger changes of its baseline: the first four its chunker alone, "structural cut" that of an encoder's
limit; "quantised" how its vectors are kept."""


SCALE = "a scale above 0, in nDCG@10, such as 0.05"


class Normal(FrozenModel):
    """A normal distribution of a true gain in nDCG@10."""

    mean: Annotated[
        float, _only(lambda mean: -1 <= mean <= 1, "an expected gain in nDCG@10 between -1 and 1, such as -0.03")
    ]
    sd: Annotated[float, _only(lambda sd: 0 <= sd <= 1, SCALE)]


def _in_doubt(believed: Normal) -> Normal:
    """Return what is believed before anything is judged: nothing could change what is certain."""
    if not believed.sd:
        raise PydanticCustomError("figure", "write {advice}", {"advice": SCALE})
    return believed


class Prior(Sparse):
    """What is believed of a challenger's true gain before anything is judged, by its kind.

    `from_results` has the digests of the results that the figures were taken from, empty if of none.
    """

    kinds: dict[Kind, Annotated[Normal, AfterValidator(_in_doubt)]] = Field(default_factory=dict)
    from_results: list[Sha256] = Field(default_factory=list)


class Confirms(FrozenModel):
    """The earlier version whose chosen cell this one is to confirm, and its locked table of all cells."""

    version: Annotated[int, Field(ge=1)]
    cell: str
    results_sha256: Sha256


class Evidence(FrozenModel):
    """What judges are shown of a document that is longer: so many characters, found by words and by this encoder."""

    chars: Annotated[int, Field(ge=2_000, le=200_000)] = 12_000
    encoder: Literal["minilm-l6-v2"] = "minilm-l6-v2"


class ScoredPlan(Sparse):
    """What scoring reads of a plan, as results.json has it.

    `confirms` makes it the plan of a confirm version, whose judged lists are the baseline's and that cell's.
    `incumbent` is the cell that the version before chose, if it is not the baseline: what a switch is held against.
    `first` are the challengers whose gain is tested first, with most of the error that is allowed.
    `mix` is the share of all asking that each class of queries stands for (runner/eval_set/mix.py).
    `switching_cost` is what a switch costs in nDCG@10. No release changes its default.
    """

    source: str
    version: Annotated[int, Field(ge=1)]
    baseline: str
    cells: list[str]
    confirms: Confirms | None = None
    incumbent: str = ""
    first: list[str] = Field(default_factory=list)
    sample: Sample
    mix: dict[str, float] = Field(default_factory=dict)
    pool_depth: Annotated[int, Field(ge=1, le=100)]
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    rule: Rule
    bootstrap: Bootstrap
    significance: Significance
    null_gate: NullGate
    switching_cost: Annotated[
        float, _only(lambda cost: 0 <= cost <= 1, "what a switch costs in nDCG@10, 0 or more, such as 0.02")
    ] = 0.02
    prior: Prior = Prior()

    @property
    def in_place(self) -> str:
        """The cell that stays unless a switch pays: the incumbent, or else the baseline."""
        return self.incumbent or self.baseline

    @property
    def judged_cells(self) -> list[str]:
        """The cells whose hits are judged; the others of a confirm version are shown with bounds."""
        return [self.baseline, self.confirms.cell] if self.confirms else self.cells


class Plan(ScoredPlan):
    """plan.yaml: what the operator decides before anything is judged.

    `encoders` are the plan's own, by the names that its cells have for them.
    """

    schema_version: Literal[1]
    judges: Judges | None = None
    evidence: Evidence = Evidence()
    encoders: dict[str, EncoderSpec] = Field(default_factory=dict)

    @field_validator("encoders", mode="before")
    @classmethod
    def _named(cls, blocks: Any) -> Any:  # noqa: ANN401  # whatever stands in the file
        """Give each block the name that it stands under."""
        if not isinstance(blocks, dict):
            return blocks
        return {
            name: {**block, "name": str(name)} if isinstance(block, dict) and "name" not in block else block
            for name, block in blocks.items()
        }


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
