"""The shape of results.json."""

import math
from typing import Literal

from pydantic import Field

from runner.base.schema import Count, Ends, FrozenModel, Sha256, Share, Sparse
from runner.eval_set.shapes.cell import Provenance
from runner.eval_set.shapes.corpus import CollectionFacts, Quarantined
from runner.eval_set.shapes.gate import ControlResult, GateVerdict
from runner.eval_set.shapes.judges import Judging, SourceDocuments
from runner.eval_set.shapes.labels import LabelPrefix
from runner.eval_set.shapes.paired import (
    Difference,
    MeasureResult,
    OverIncumbent,
    PairedTest,
    SpanResult,
    TippingPoint,
)
from runner.eval_set.shapes.plan import Normal, ScoredPlan
from runner.eval_set.shapes.queries import QueryRow
from runner.eval_set.shapes.versions import PreviousVersion

Kind = Literal["production", "rehearsal", "exploration", "external"]
What = Literal["citations", "plain wordings"]
Role = Literal["baseline", "incumbent", "preregistered", "exploratory", "compared"]
REGISTERED: tuple[Role, ...] = ("incumbent", "preregistered")
"""Roles of challengers whose gain over the baseline is tested."""
Bar = Literal["unjudged", "controls", "baseline", "noise"]
"""What keeps figures from deciding: unjudged pairs, a control or the baseline in the null gate, or the noise floor."""
Confirmed = Literal["confirmed", "confirmed by one model's grades"]
"""The second if neither a person nor another family of models read a share of the relevant pairs."""
Tier = Confirmed | Literal["candidate", "baseline kept", "no decision", "compared"]


class CellResult(Sparse):
    """One row of the ranking; `test` and `recall_bound` are null for the baseline.

    `short_of` says what a cell lacks to be confirmed, `diagnosis` what is wrong with its run. `same_as` is the cell
    whose lists it returns for everything that was asked, and which stands for it; "" for none. `recall_bound` are two
    one-sided bounds of the mean difference in Recall@10, each at 1 - alpha. `expected` is what is believed of its true
    gain in nDCG@10 given these queries, null but for a challenger, and if the judgments are published. `loss` stands
    for a near-copy alone, which is not tested for a gain (`runner.eval_set.kinds.near_copies`): a one-sided bound at
    1 - alpha of its loss in nDCG@10 against the cell that it copies. `over_incumbent` is null without an incumbent, for
    it, and for what was not preregistered beside it. `tipping_point` is null if the cell's mean nDCG@10 is not above
    the baseline's. `by_wording` has nDCG@10 and Recall@10 of everything that was asked, in units of 1e-9, if some query
    was asked in two wordings; the `scores` of such a query are the weighted means of both.
    """

    cell: str
    role: Role
    scores: dict[str, MeasureResult]
    differences: dict[str, Difference]
    test: PairedTest | None
    recall_bound: Ends | None
    meets_criterion_5: bool
    short_of: list[str]
    gate: GateVerdict
    diagnosis: str
    same_as: str = ""
    single_gold: dict[str, GateVerdict]
    unjudged: Count
    bounds: Ends
    provenance: Provenance
    expected: Normal | None = None
    loss: float | None = None
    over_incumbent: OverIncumbent | None = None
    tipping_point: TippingPoint | None = None
    by_wording: dict[str, list[int]] = Field(default_factory=dict)

    @property
    def is_challenger(self) -> bool:
        """Whether it may gain: not the baseline, nor a near-copy, nor one for which another cell stands."""
        return self.test is not None and self.loss is None and not self.same_as

    @property
    def confirmed(self) -> bool:
        """Whether it is a preregistered challenger that lacks nothing."""
        return self.registered and self.test is not None and not self.short_of

    @property
    def registered(self) -> bool:
        """Whether it is a preregistered challenger of the baseline, as the incumbent is."""
        return self.role in REGISTERED

    @property
    def switch_gain(self) -> Normal | None:
        """What is believed of its gain over the cell in place: over the incumbent, or without one over the baseline."""
        return self.over_incumbent.expected if self.over_incumbent else self.expected

    @property
    def loses_at_most(self) -> str:
        """The bound of a near-copy's loss as it is said: three places, never rounded down."""
        return f"{max(math.ceil(round((self.loss or 0.0) * 1e6) / 1e3) / 1e3, 0):.3f}"


class CorpusFacts(FrozenModel):
    """What was read and drawn, from corpus.jsonl; `strata` counts the documents drawn of each."""

    n_read: Count
    n_chars: Count
    quarantined: list[Quarantined]
    strata: dict[str, Count]
    archive_sha256: Sha256

    @property
    def documents(self) -> int:
        """How many documents were drawn."""
        return sum(self.strata.values())


class LabelFacts(LabelPrefix):
    """The labels that were scored with; `judges` and `grades` count lines, the others pairs of query and document.

    `pairs` have a scored grade; `read_more` of them were in doubt and read again with more of their documents;
    `doubts` of these were in doubt even then, and count with their grade.
    """

    pairs: Count
    pool_pairs: Count
    unjudged_pairs: Count
    judges: dict[str, Count]
    models: list[str]
    grades: dict[str, Count]
    read_more: Count = 0
    doubts: Count = 0


class NoiseFloor(FrozenModel):
    """The baseline once more over vectors of other batches: its nDCG@10 less the first, and how far any query moved."""

    difference: Difference
    max_change: float


class Outcome(FrozenModel):
    """What the rule says; templates/sentences/outcome.j2 puts it into words.

    `barred_by` says why the tier is "no decision". `recommended` is the candidate of the greatest expected gain over
    the cell in place if that is more than a switch costs, else that cell; the baseline if there is no candidate.
    `false_alarm` is how often criterion 5 would flag some cell if every cell equalled the baseline and queries
    scattered as they did.
    """

    tier: Tier
    barred_by: Bar | None
    recommended: str
    false_alarm: float | None


class Turning(FrozenModel):
    """At which shares the recommendation would be another: the nearest hundredths below and above the share `now`.

    Of citations (kinds that name or quote what they look for) among all asking, or of plain wordings among both; null
    if no share on that side turns it.
    """

    what: What
    now: Share
    below: Share | None
    above: Share | None


class Results(Sparse):
    """results.json: a pure function of plan, queries, labels, runs and cells; no time, host, backend or cost in it.

    External collections have `collection` facts, and neither preregistration nor judge; `labels` are their qrels.
    `spans` is null if no reading lists are kept; `digests` are the SHA-256 of the files that it was made from, and of
    lists.json.bz2, by file name; `previous` compares with the version before, null for a first one. `sources` is null
    if no query names the document that it was written from.
    `unanswered` are the queries without a relevant document, which count in no mean. `weights` are what each query
    counts, in the order of `queries`; if they are left out, all count alike.
    """

    schema_version: Literal[1]
    kind: Kind
    plan: ScoredPlan
    digests: dict[str, Sha256]
    queries: list[QueryRow]
    collection: CollectionFacts | None
    corpus: CorpusFacts
    labels: LabelFacts
    cells: list[CellResult]
    controls: list[ControlResult]
    noise_floor: NoiseFloor | None
    judging: Judging | None
    spans: SpanResult | None
    previous: PreviousVersion | None
    outcome: Outcome
    sources: SourceDocuments | None = None
    turnings: list[Turning] = Field(default_factory=list)
    unanswered: list[str] = Field(default_factory=list)
    weights: list[Count] = Field(default_factory=list)

    @property
    def topic_weights(self) -> list[int]:
        """What each query counts in the means, 0 for one that does not."""
        return self.weights or [1] * len(self.queries)

    @property
    def counted(self) -> int:
        """How many queries count in the means."""
        return sum(weight > 0 for weight in self.topic_weights)

    @property
    def effective(self) -> float:
        """How many queries of equal weight tell as much."""
        return sum(self.topic_weights) ** 2 / sum(weight * weight for weight in self.topic_weights)

    @property
    def source(self) -> str:
        """The source that was evaluated, or the collection."""
        return self.plan.source

    @property
    def version(self) -> int:
        """The version of the eval set."""
        return self.plan.version

    @property
    def provisional(self) -> bool:
        """Whether pairs are still to be judged, so that every figure may move."""
        return self.labels.unjudged_pairs > 0

    @property
    def candidates(self) -> list[str]:
        """The cells that meet criterion 5, best first."""
        return [row.cell for row in self.cells if row.meets_criterion_5]

    @property
    def confirmed_as(self) -> Confirmed:
        """What a cell is that lacks nothing: whose grades alone it rests on is part of it."""
        one_model: Confirmed = "confirmed by one model's grades"
        return one_model if self.outcome.tier == one_model else "confirmed"

    @property
    def confirmed(self) -> list[str]:
        """The candidates whose gain holds up, best first."""
        return [row.cell for row in self.cells if row.meets_criterion_5 and row.confirmed]
