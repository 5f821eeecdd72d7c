"""The shape of `scale` in results.json: every cell with fewer and with more distractors."""

from typing import Annotated

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Share


class ScalePoint(FrozenModel):
    """A cell's nDCG@10 with `factor` times the distractors: counted at 1, expected below, extrapolated above.

    `low` and `high` are the bootstrap interval over queries, in which the extrapolation is fitted anew, to first
    order. `at_most` is the mean if every relevant document below a cut list's end stood right there, else `mean`.
    `rank` is 1 for the highest mean, equal means share the better one. `side_stays` is the share of resamples in
    which the cell is on the side of the baseline where its mean now is; null for the baseline.
    """

    factor: Annotated[float, Field(gt=0)]
    mean: Share
    low: Share
    high: Share
    at_most: Share
    rank: Annotated[int, Field(ge=1)]
    side_stays: Share | None


class ScaleBackTest(FrozenModel):
    """What the method says of the present collection from subsamples of a tenth of it, less what was observed.

    `errors` are those of the subsamples, in the order of their draws; `bias` is their mean, `error` the root of the
    mean of their squares.
    """

    errors: Annotated[list[float], Field(min_length=1)]
    bias: float
    error: Annotated[float, Field(ge=0)]


class ScaleCell(FrozenModel):
    """A cell at every factor; `centre` and `scale` are the fitted law's, in probits."""

    cell: str
    centre: float
    scale: Annotated[float, Field(gt=0)]
    points: Annotated[list[ScalePoint], Field(min_length=1)]
    back_test: ScaleBackTest | None


class ScaleFactor(FrozenModel):
    """The order of the cells at a factor against that of now.

    `tau` is Kendall's tau-b, null if all cells are equal or there is one alone; `best` the highest mean's cell, of
    equals the first by name; `best_stays` the share of resamples in which no cell is ahead of the one that is best now.
    """

    factor: Annotated[float, Field(gt=0)]
    tau: Annotated[float, Field(ge=-1, le=1)] | None
    best: str
    best_stays: Share


class ScaleResult(FrozenModel):
    """Cells by their present mean, best first, equal ones by name; `sentences` say in words what the figures show."""

    baseline: str
    documents: Count
    distractors: Annotated[list[Count], Field(min_length=2, max_length=2)]
    """The least and the most of any query."""
    factors: Annotated[list[ScaleFactor], Field(min_length=1)]
    cells: Annotated[list[ScaleCell], Field(min_length=1)]
    sentences: list[str]
