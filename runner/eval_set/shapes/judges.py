"""The shape of what second and repeated readings say of the judges."""

from typing import Annotated

from pydantic import Field

from runner.base.field_types import Count, Share
from runner.base.schema import Strict

ConfusionRow = Annotated[list[Count], Field(min_length=4, max_length=4)]
Confusion = Annotated[list[ConfusionRow], Field(min_length=4, max_length=4)]
"""Pairs by two readings' grades: a row for each first grade 0 to 3, a column for each second one."""


class Estimate(Strict):
    """A figure and its interval; `value` is null where it is not defined, the ends where no interval is."""

    value: float | None
    low: float | None
    high: float | None


class Coefficients(Strict):
    """How far two readings agree; those named binary count "relevant" against "not", the others all four grades.

    `linear` and `quadratic` are weighted kappas, `kappa` is Cohen's, `pabak` and `ac1` correct for chance in ways that
    rare grades do not upset, `exact` and `binary` are shares of equal readings. `difference` is the mean of the first
    grade less the second. Where all pairs or none were graded alike `exact` and `binary` have Clopper & Pearson's
    one-sided bound over pairs, and other figures that no bootstrap draw changes have no interval.
    """

    linear: Estimate
    quadratic: Estimate
    kappa: Estimate
    kappa_binary: Estimate
    pabak: Estimate
    ac1: Estimate
    ac1_binary: Estimate
    exact: Estimate
    binary: Estimate
    difference: Estimate


class CellFavour(Strict):
    """Whether the first judge, held against the second, favours what this cell alone finds over the baseline's.

    Of the pairs read twice, `n_cell` are in the cell's first ten and not in the baseline's, `n_baseline` the other way
    round; `mean_cell` and `mean_baseline` are their means of first less second grade, in grades. `contrast` is the
    difference of the two means among pairs graded alike, and `beyond_chance` what it must exceed to be significant.
    The two p-values are one-sided and adjusted over all cells (max-T): for a judge that favours the cell, and for one
    that favours the baseline. Null where so few readings could not have shown it; `unknown` says why.
    """

    cell: str
    n_cell: Count
    n_baseline: Count
    mean_cell: float | None
    mean_baseline: float | None
    contrast: float | None
    beyond_chance: float | None
    p_for_cell: float | None
    p_for_baseline: float | None
    unknown: str


class CellConfusion(Strict):
    """The pairs read twice among a cell's first ten."""

    cell: str
    confusion: Confusion


class SecondJudge(Strict):
    """One judge's readings of pairs that another had graded.

    `models` are the second judge's, none where a person judged; `only_models` says that both readings of every pair
    are a language model's.
    """

    judge: str
    models: list[str]
    only_models: bool
    first_judges: list[str]
    pairs: Count
    queries: Count
    confusion: Confusion
    coefficients: Coefficients
    by_cell: list[CellFavour]
    cell_confusions: list[CellConfusion]


class RepeatShare(Strict):
    """Some repeated readings: how many, the share graded as before, and the mean of the new grade less the old."""

    repeats: Count
    exact: Share
    shift: float


class JudgeDrift(Strict):
    """One judge's repeated readings.

    `p_shift` is of "the judge is as harsh as before" (sign flips over queries, two-sided). `early` and `late` are the
    repeats in the first and the second half of the batches that hold any, null where one batch does; `p_change` is of
    "the judge repeats itself as often late as early" (Fisher's exact test). `left_open` says what so few repeats leave
    possible where all or none had the same grade, else it is empty.
    """

    judge: str
    repeats: Count
    queries: Count
    confusion: Confusion
    quadratic: float | None
    exact: Share
    shift: float
    p_shift: float
    early: RepeatShare | None
    late: RepeatShare | None
    p_change: float | None
    left_open: str


class Agreement(Strict):
    """What is known of the judges: one entry a second judge, and one a judge with repeated readings, by name.

    `pairs` have a scored grade; `read_twice` of them were read by another judge too. Intervals are percentile
    bootstraps over queries at `confidence`; tests are at `alpha`. `relevant_grade` parts relevant from not.
    """

    pairs: Count
    read_twice: Count
    relevant_grade: Annotated[int, Field(ge=1, le=3)]
    confidence: Share
    alpha: Share
    seconds: list[SecondJudge]
    drift: list[JudgeDrift]
