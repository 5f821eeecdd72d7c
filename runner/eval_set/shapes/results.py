"""The shape of what scoring writes: results.json."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.field_types import Count, Ends, Sha256, Share
from runner.base.schema import Strict
from runner.eval_set.shapes.curves import RecallCurve
from runner.eval_set.shapes.judge_noise import JudgeOutcome, NoiseResult, PoweredResult
from runner.eval_set.shapes.judges import Agreement
from runner.eval_set.shapes.labels import LabelPrefix
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.plan import CollectionFacts, Plan, Provenance, Quarantined, QueryRow, Sample
from runner.eval_set.shapes.pool import CellPool, Sensitivity, Slice, SpanResult
from runner.eval_set.shapes.scale import ScaleResult
from runner.eval_set.shapes.versions import PreviousVersion

Kind = Literal["production", "rehearsal", "exploration", "external"]
Role = Literal["baseline", "preregistered", "exploratory", "compared"]
Tier = Literal["confirmed", "candidate", "inconclusive", "baseline kept", "no decision", "compared"]
Verdict = Literal["pass", "fail", "insufficient"]
Null = Literal["permuted qrels", "random retrieval", "most retrieved", "length sorted", "shuffled top 10"]
SingleGoldNull = Literal["permuted gold", "uniform gold", "random retrieval", "marginal-matched gold"]
Control = Literal["oracle", "constant", "popularity", "random", "marginal-matched", "source-prior"]
GuardState = Literal["non-inferior", "inconclusive", "inferior"]


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


class PairedTestResult(Strict):
    """Cell minus baseline in nDCG@10, tested by flipping signs query by query; two-sided, intervals at 1 - alpha.

    `interval` inverts the test of this cell alone; `simultaneous`, `p_adjusted` (max-T), `p_skew` (max-T with a
    statistic that skewed differences do not mislead) and `p_holm` hold over all preregistered cells at once and are
    null for a cell outside of that family. `p_t` is the paired t test's.
    `left_out` is the least and the greatest mean that leaving one query out gives, `influential` the query whose
    absence moves it most.
    """

    p: float
    exact: bool
    p_t: float
    p_adjusted: float | None
    p_skew: float | None
    p_holm: float | None
    interval: Ends
    simultaneous: Ends | None
    cohens_d: float
    sd: float
    left_out: Ends
    influential: str


class GuardResult(Strict):
    """Whether Recall@10 falls by more than the rule allows: one-sided bounds at 1 - alpha, and p of "it does"."""

    state: GuardState
    low: float
    high: float
    p: float


class NullResult(Strict):
    """One null against the real score, all in [0, 1].

    `low`, `median` and `high` are the 2.5, 50 and 97.5 % quantiles of the draws (order statistics); `delta` is real
    less mean; `p` is (1 + draws at least as good) / (1 + draws), and `smallest_p` the least it could have been,
    below which it is never given. A
    constant list ("most retrieved", "length sorted") is one system without a distribution: sd is 0, low, median and
    high are its mean, and p is that of flipping the signs of the differences to it. `dots` stand for the draws in equal
    parts, ascending; a constant list has none.
    """

    name: Null
    mean: float
    sd: float
    low: float
    median: float
    high: float
    dots: list[float]
    delta: float
    p: float
    smallest_p: float
    verdict: Verdict


class GateVerdict(Strict):
    """A cell's score against every null; `verdict` is "pass" where no null stands against it."""

    cell: str
    measure: Literal["ndcg@10"]
    real: float
    draws: Count
    tau: Share
    alpha: float
    nulls: Annotated[list[NullResult], Field(min_length=1)]
    verdict: Verdict


class SingleGoldNullResult(Strict):
    """One null of the single-gold gate: its exact expectation, and p from draws."""

    name: SingleGoldNull
    mean: float
    delta: float
    p: float
    smallest_p: float
    passed: bool


class SingleGoldVerdict(Strict):
    """A cell against nulls A to D, where each query's only right answer is its highest-graded document."""

    measure: Literal["recall@10", "mrr@10"]
    n_queries: Count
    real: float
    nulls: Annotated[list[SingleGoldNullResult], Field(min_length=1)]
    verdict: Verdict
    reasons: list[str]


class ControlResult(Strict):
    """A made-up predictor through the gate: `passes` of `draws` passed, and it behaves where that is as expected.

    `bound` is the most passes that a cheater may have, the fewest that the oracle must have.
    """

    name: Control
    expected: Literal["pass", "fail"]
    mean: float
    draws: Count
    passes: Count
    bound: Count
    behaves: bool


class CellResult(Strict):
    """One row of the ranking; `test` and `guard` are null for the baseline.

    `short_of` says what a cell lacks to be confirmed, `diagnosis` what is wrong with its run. `pool` is null where the
    judgments are published.
    """

    cell: str
    role: Role
    scores: dict[str, MeasureResult]
    differences: dict[str, Difference]
    test: PairedTestResult | None
    guard: GuardResult | None
    meets_criterion_5: bool
    confirmed: bool
    short_of: list[str]
    gate: GateVerdict
    diagnosis: str
    single_gold: list[SingleGoldVerdict]
    unjudged: Count
    bounds: Ends
    pool: CellPool | None
    sensitivity: Sensitivity
    curve: RecallCurve
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


class JudgePanel(Strict):
    """What is known of the judges, and what it leaves of the decision.

    `noise` is null where no pair was read twice; `others` has one entry for every further judge; `people` says what
    differences are once people's grades correct a model's.
    """

    agreement: Agreement
    noise: NoiseResult | None
    others: list[JudgeOutcome]
    people: PoweredResult


class Outcome(Strict):
    """What the rule says, with the operator's sentences: what was found, what it does not show, what would settle it.

    `candidates` meet criterion 5, `confirmed` are those of them whose gain holds up, both best first. `false_alarm`
    is how often criterion 5 would flag some cell if every cell equalled the baseline and queries scattered as they
    did. `best_gain_corrected` is the best cell's gain less what picking the best adds to it; `queries_needed` shows a
    gain of the size asked for with 80 % power; `detectable` is the gain that these queries show with that power.
    """

    tier: Tier
    candidates: list[str]
    confirmed: list[str]
    sentence: str
    not_shown: str
    next_step: str
    baseline_gate: Verdict
    false_alarm: float | None
    best_gain_corrected: float | None
    queries_needed: int | None
    detectable: float | None


class Results(Strict):
    """results.json: a pure function of plan, queries, labels, runs and cells; no time, host, backend or cost in it.

    Titles and passages of `lists` come from the documents, in a version of the embedded demo alone.

    External collections have `collection` facts, and neither preregistration nor judge; `labels` are their qrels.
    `scale` says what other numbers of documents would do; `spans` is null where no reading lists are kept; `slices`
    describe and test nothing; `lists` are what to look up; `previous` compares with the version before, null for a
    first one.
    """

    schema_version: Literal[7]
    source: str
    version: int
    kind: Kind
    provisional: bool
    plan: Plan
    preregistration_sha256: Sha256 | None
    judge_prompt_sha256: Sha256 | None
    queries: list[QueryRow]
    collection: CollectionFacts | None
    corpus: CorpusFacts
    labels: LabelFacts
    cells: list[CellResult]
    controls: list[ControlResult]
    noise_floor: NoiseFloor | None
    judging: JudgePanel | None
    spans: SpanResult | None
    slices: list[Slice]
    scale: ScaleResult
    lists: RankedLists
    previous: PreviousVersion | None
    outcome: Outcome
    weaknesses: Annotated[list[str], Field(min_length=1)]
