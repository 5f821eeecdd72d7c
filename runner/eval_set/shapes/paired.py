"""The shape of what `score` says of a cell, as results.json has it: measures, paired tests, marked passages."""

from runner.base.schema import Count, Ends, FrozenModel, Sparse
from runner.eval_set.shapes.plan import Normal


class MeasureResult(FrozenModel):
    """A cell's mean of a measure with its interval, and the per-query values in units of 1e-9."""

    mean: float
    low: float
    high: float
    per_query: list[int]


class Difference(FrozenModel):
    """Cell minus baseline, paired by query."""

    mean: float
    low: float
    high: float
    wins: Count
    ties: Count
    losses: Count


class PairedTest(Sparse):
    """Cell minus baseline in nDCG@10, paired by query; intervals at 1 - alpha.

    `p_gain` is that of "it does not gain", one-sided and of this cell alone; the gain is shown if it is at most `bar`,
    the part of alpha that the plan's order leaves to the cell. All else flips signs and is two-sided: `interval`
    inverts the test of this cell alone; `simultaneous` and `p_adjusted` (max-T) hold over all preregistered cells at
    once. A cell that was not preregistered has no `p_gain` and `bar`, nor what holds over several cells.
    `sd` is that of the differences by query (ddof 1), 0 if they do not scatter.
    """

    p: float
    p_adjusted: float | None
    p_gain: float | None = None
    bar: float | None = None
    interval: Ends
    simultaneous: Ends | None
    sd: float


class TippingPoint(FrozenModel):
    """In how many pairs the judge would have to be wrong, one grade each, for a cell's gain to be gone.

    Of the judged `pairs` that the cell or the baseline has in its first ten, in `wrong` of them at most; null if the
    gain stays with all of them wrong.
    """

    wrong: Count | None
    pairs: Count


class OverIncumbent(FrozenModel):
    """A cell minus the incumbent: differences by measure, the test of nDCG@10, and what is believed of the true gain.

    `expected` is null for a single query.
    """

    differences: dict[str, Difference]
    test: PairedTest
    expected: Normal | None


class SpanRecall(FrozenModel):
    """The mean share of the marked characters that the first `tokens` tokens of a cell's reading lists hold.

    `difference` is null if the baseline has no reading list.
    """

    tokens: Count
    mean: float
    low: float
    high: float
    difference: Difference | None


class SpanResult(FrozenModel):
    """Marked passages, and what every cell with a reading list finds of them; no cell if nothing is marked.

    `queries` have a mark in some relevant document, and every mean is over them; `documents` are the pairs of a query
    and a relevant document with marks, `unmarked` those without.
    """

    queries: Count
    documents: Count
    unmarked: Count
    cells: dict[str, list[SpanRecall]]
