"""The shape of judge noise in results.json: what other grades of the same pairs would do to the decision."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.field_types import Count, Ends, Share
from runner.base.schema import Strict

Positive = Annotated[int, Field(ge=1)]


class NoisyCell(Strict):
    """A cell less the baseline in nDCG@10, where the second judge's grades are drawn anew with the queries.

    `gain` is the mean of the draws, `interval` their percentiles at the plan's confidence; `queries_only` is the
    interval of the same draws of queries with the grades as they were scored. `meets` is the share of draws in which
    the cell meets criterion 5, `meets_queries_only` that with the grades as scored. `told_apart` counts second
    readings of documents that one of the two cells alone has in its first ten.
    """

    cell: str
    gain: float
    interval: Ends
    queries_only: Ends
    meets: Share
    meets_queries_only: Share
    told_apart: Count


class NoiseResult(Strict):
    """What the scored judge's errors, as a second judge shows them, leave of every difference and of the choice.

    `chosen` is the best cell that meets criterion 5, else the baseline; `stability` the share of draws that choose it
    too, `stability_queries_only` that with the grades as scored; `choices` the share of draws by cell, none left out
    that was ever chosen. Without `unknown`, which says why nothing was drawn, `cells` has every cell but the baseline.
    """

    judge: str
    readings: Count
    changed: Count
    draws: Count
    confidence: Annotated[float, Field(gt=0, lt=1)]
    chosen: str
    stability: Share | None
    stability_queries_only: Share | None
    choices: dict[str, Share]
    cells: list[NoisyCell]
    unknown: str


class PoweredCell(Strict):
    """A cell less the baseline by people's grades, the scored judge's filling in where people did not read.

    `gain` is the prediction-powered mean, null with `unknown` where too few of the pairs that count were read;
    `judge_alone` the same sum by the scored judge, `people_alone` by the pairs that people read. `weight` is lambda,
    what the judge's grades count. `pairs` are those that count in this difference, `read` those of them that people
    graded.
    """

    cell: str
    gain: float | None
    interval: Ends | None
    judge_alone: float
    people_alone: float | None
    weight: Share | None
    pairs: Count
    read: Count
    unknown: str


class PoweredResult(Strict):
    """Prediction-powered differences; `cells` is empty where `unknown` says why there are none."""

    people: list[str]
    read: Count
    resamples: Count
    confidence: Annotated[float, Field(gt=0, lt=1)]
    cells: list[PoweredCell]
    unknown: str


class CellUnderJudge(Strict):
    """A cell's test and guard with another judge's grades; `holds` says that they would let it be confirmed.

    Null gate and Judged@10 are not asked again. `p_adjusted` and `p_skew` are null for a cell outside of the family.
    """

    cell: str
    gain: float
    p_adjusted: float | None
    p_skew: float | None
    guard: Literal["non-inferior", "inconclusive", "inferior"]
    meets_criterion_5: bool
    holds: bool


class JudgeOutcome(Strict):
    """What another judge's first grades, put in place of the scored ones of the same pairs, make of every cell.

    `n_pairs` were graded by both, `n_changed` of them otherwise. `recommended` is what `--choose recommended` would
    take: the best cell that holds, else the baseline. `model` is empty for a person.
    """

    judge: str
    model: str
    n_pairs: Positive
    n_changed: Count
    recommended: str
    cells: list[CellUnderJudge]
