"""The shape of `judging` in results.json: how judges agree, and what other grades would do to the decision."""

from pydantic import Field

from runner.base.schema import Count, Ends, FrozenModel, Share, Sparse
from runner.eval_set.shapes.labels import Grade

PEOPLE = "people"
"""What stands among families of models for persons."""


class Estimate(FrozenModel):
    """A figure and its interval; `value` is null if it is not defined, the ends if no interval is."""

    value: float | None
    low: float | None
    high: float | None


class CellFavour(FrozenModel):
    """Whether the first judge, held against the second, favours what this cell alone finds over the baseline's.

    Of the pairs read twice, `n_cell` are in the cell's first ten and not in the baseline's, `n_baseline` the other way
    round. `contrast` is the difference of their means of first less second grade, in grades, among pairs graded alike,
    and `beyond_chance` what it must exceed to be significant.
    The two p-values are one-sided and adjusted over all cells (max-T): for a judge that favours the cell, and for one
    that favours the baseline. Null where so few readings could not have shown it.
    """

    n_cell: Count
    n_baseline: Count
    contrast: float | None
    beyond_chance: float | None
    p_for_cell: float | None
    p_for_baseline: float | None


class CellUnderJudge(FrozenModel):
    """A cell's test with another judge's grades; `holds` says that it would let the cell be confirmed.

    Null gate and Judged@10 are not asked again. `p_gain` is null for a cell that was not preregistered.
    """

    gain: float
    p_gain: float | None
    holds: bool


class SecondJudge(Sparse):
    """One judge's readings of pairs that another had graded, and what they make of the decision.

    `models` are the second judge's, none if a person judged. `same` pairs have the same grade twice, `higher` ones a
    higher grade by the second judge, and `copied` ones the first judge's reason word for word.
    What follows says how far the two agree; source documents that were read again because they had missed the relevant
    grade are left out of it. The first judge called `relevant` pairs relevant, of which the second one calls `lost` not
    relevant; of the `others` it calls `gained` relevant. `alike` is the share, of the pairs that either calls relevant,
    that both do: if all or none, with Clopper & Pearson's one-sided bound over pairs. `kappa` (Cohen) and `ac2` (Gwet)
    are quadratically weighted, over all pairs. A figure that no bootstrap draw changes has no interval.
    `cells` are tested, and `recommended` is what `choose SOURCE recommended` would take, with this judge's grades in
    place of the scored ones of the same pairs, null gate and unjudged hits left aside; none before scoring.
    """

    judge: str
    models: list[str]
    first_judges: list[str]
    pairs: Count
    queries: Count
    same: Count
    higher: Count
    copied: Count
    relevant: Count
    lost: Count
    others: Count
    gained: Count
    alike: Estimate
    kappa: Estimate
    ac2: Estimate
    by_cell: dict[str, CellFavour]
    cells: dict[str, CellUnderJudge] = Field(default_factory=dict)
    recommended: str = ""


class JudgeDrift(FrozenModel):
    """One judge's repeated readings: how many were graded as before, and the mean of the new grade less the old.

    `p_shift` is of "the judge is as harsh as before" (sign flips over queries, two-sided).
    """

    repeats: Count
    queries: Count
    same: Count
    shift: float
    p_shift: float


class SourceFound(FrozenModel):
    """How well a cell finds the documents that queries were written from, of which no judge has a say.

    `first_ten` is the share of topics whose source document is among the first ten (success@10), `mrr` the mean of one
    over its rank, 0 below RUN_DEPTH, and `difference` that mean less the baseline's, null for the baseline.
    """

    first_ten: Estimate
    mrr: Estimate
    difference: Estimate | None


class MissedByList(FrozenModel):
    """Of the judged source documents that one of two lists ranks higher, how many the judge graded less than relevant.

    By that list, the cell's or the baseline's; a document that both rank alike is left out.
    """

    cell_judged: Count
    cell_missed: Count
    baseline_judged: Count
    baseline_missed: Count


class SourceDocuments(FrozenModel):
    """The documents that queries were written from: how cells rank them, and which of them the judge missed.

    `tau` is Kendall's tau-b between the cells' order by `mrr` and by nDCG@10, null if one of the two puts all cells
    level. `missed` has the queries whose source document the judge graded less than relevant, each with the grades of
    those who read it again. `by_list` has the cells for which some source document is told apart.
    """

    cells: dict[str, SourceFound]
    tau: float | None
    missed: dict[str, list[Grade]]
    by_list: dict[str, MissedByList]


class NoisyCell(FrozenModel):
    """A cell less the baseline in nDCG@10, where the second judge's grades are drawn anew with the queries.

    `gain` is the mean of the draws, `interval` their percentiles at the plan's confidence; `queries_only` is the
    interval of the same draws of queries with the grades as they were scored. `candidate` is the share of draws in
    which the cell meets criterion 5.
    """

    gain: float
    candidate: Share
    interval: Ends
    queries_only: Ends


class JudgeNoise(FrozenModel):
    """What the scored judge's errors, as the second judge `judge` shows them, leave of every difference and the choice.

    `no_candidate` is the share of draws in which no cell meets criterion 5. Without `unknown`, which says why nothing
    was drawn, `cells` has every cell but the baseline.
    """

    judge: str
    draws: Count
    no_candidate: Share | None
    cells: dict[str, NoisyCell]
    unknown: str


class Judging(FrozenModel):
    """What second and repeated readings say of the judges: one entry per second judge, one per judge that read again.

    Another judge too read `read_twice` of the pairs that have a scored grade. The second judges with the most pairs
    come first, of equals by name. Intervals are percentile bootstraps over queries. `noise` is null if no pair was read
    twice. `graded` and `read_again` are the families of the models that gave the scored grades and read pairs after
    another judge, with PEOPLE for persons.
    """

    read_twice: Count
    seconds: list[SecondJudge]
    graded: list[str]
    read_again: list[str]
    drift: dict[str, JudgeDrift]
    noise: JudgeNoise | None
