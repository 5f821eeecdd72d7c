"""The shape of post_bulk.json: the production substrate beside the record that decided what it holds."""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, Ends, FrozenModel, Sha256, Share
from runner.eval_set.shapes.decision import Chosen
from runner.eval_set.shapes.paired import Difference, MeasureResult, PairedTest
from runner.eval_set.shapes.plan import ScoredPlan

Metric = Literal["l2", "l1", "cosine"]
"""How a vec0 column declares its distance; l2 if it declares none."""

_Text = Annotated[str, Field(min_length=1)]


class FindingResult(FrozenModel):
    """One check: `count` of `of` things are wrong, a few of them named in `examples` by id, never by their text.

    Without `fault` nothing is wrong, or it is a note, which says something and blames nothing.
    """

    name: _Text
    fault: bool
    count: Count
    of: Count
    sentence: _Text
    examples: list[str]


class Beside(FrozenModel):
    """A cell of the record and, query by query, the arm less that cell; `test` is of nDCG@10, of this arm alone."""

    cell: str
    scores: dict[str, MeasureResult]
    differences: dict[str, Difference]
    test: PairedTest


class ArmResult(FrozenModel):
    """One way to search the substrate, over the record's documents; `beside` is null where the record has no such cell.

    `unjudged` counts the hits of the top ten that nobody graded. `bounds` are the means of the lower and of the higher
    nDCG@10 that grading all of them as worthless and as perfect gives, query by query.
    """

    arm: _Text
    scores: dict[str, MeasureResult]
    unjudged: Count
    bounds: Ends
    run_sha256: Sha256
    beside: Beside | None


class IndexRecallResult(FrozenModel):
    """How much of exact search's first `depth` chunks the binary index keeps, over everything the substrate holds.

    A mean below `floor` is a fault.
    """

    depth: Annotated[int, Field(ge=1)]
    mean: Share
    floor: Share


class Quantisation(FrozenModel):
    """What binary quantisation loses: chunks by rank, and nDCG@10 of `vec0 bq + rescore` less that of `vec0 exact`.

    Both search everything; nDCG@10 is then of the record's documents in their order, the others left out.
    """

    recall: Annotated[list[IndexRecallResult], Field(min_length=1)]
    difference: Difference
    test: PairedTest


class SubstrateFacts(FrozenModel):
    """What the substrate says of itself; `dim` and `metric` are its vec0 table's, `tokenizer` is its FTS5 table's."""

    version: str
    chunks: Count
    dim: Annotated[int, Field(ge=1)]
    metric: Metric
    tokenizer: str


class ModelFacts(FrozenModel):
    """The encoder that the vectors are held to; `model_id` is the form in which the substrate is expected to name it.

    `of_baseline` where the chosen cell has no encoder and the baseline's is taken.
    """

    encoder: str
    revision: str
    model_id: str
    of_baseline: bool


class PostBulk(FrozenModel):
    """post_bulk.json: a pure function of record, substrate and encoder; no time, host or path in it."""

    schema_version: Literal[1]
    source: str
    version: int
    kind: Literal["production", "rehearsal"]
    chosen: Chosen
    model: ModelFacts
    substrate: SubstrateFacts
    plan: ScoredPlan
    queries: Annotated[list[str], Field(min_length=1)]
    arms: Annotated[list[ArmResult], Field(min_length=1)]
    quantisation: Quantisation
    findings: list[FindingResult]
    results_sha256: Sha256
    lock_sha256: Sha256

    @property
    def faults(self) -> list[FindingResult]:
        """The findings that make the verdict, in the order of the checks."""
        return [finding for finding in self.findings if finding.fault]


EXAMPLES = 5
"""Examples a finding names at most."""


def finding(
    name: str,
    count: int,
    of: int,
    what: str = "",
    so: str = "",
    examples: Iterable[str] = (),
    *,
    sentence: str = "",
    fault: bool = True,
) -> FindingResult:
    """Return a finding with a sentence of its own, else "{count} of {of} {what}" and, if there are any, what follows.

    It is a fault if `count` is above 0, unless it is a note, which is never one.
    """
    sentence = sentence or f"{count:,} of {of:,} {what}{f': {so}' if count and so else ''}."
    few = list(islice(examples, EXAMPLES))
    return FindingResult(name=name, fault=fault and count > 0, count=count, of=of, sentence=sentence, examples=few)
