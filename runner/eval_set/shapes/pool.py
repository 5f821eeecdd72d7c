"""The shape of what surrounds the scores in results.json: marked passages, and slices of the queries."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel
from runner.eval_set.shapes.paired import Difference


class SpanMeasure(FrozenModel):
    """A mean over the queries for which it is defined, with its interval; null if there is none of them.

    `difference` is null if the baseline has no reading list.
    """

    queries: Count
    mean: float | None
    low: float | None
    high: float | None
    difference: Difference | None


class SpanBudget(FrozenModel):
    """What the first `tokens` tokens of a cell's reading lists hold of the marked passages."""

    tokens: Count
    recall: SpanMeasure


class SpanResult(FrozenModel):
    """Marked passages, and what every cell with a reading list finds of them; no cell if nothing is marked.

    `queries` have a mark in some relevant document; `documents` are the pairs of a query and a relevant document with
    marks, `unmarked` those without; `characters` are the marked ones.
    """

    queries: Count
    documents: Count
    unmarked: Count
    cells: dict[str, list[SpanBudget]]


class SliceMeans(FrozenModel):
    """A cell's means over the queries of a slice."""

    ndcg: float
    recall: float


class Slice(FrozenModel):
    """The queries of one origin or of one kind, for description alone."""

    by: Literal["origin", "kind"]
    name: str
    queries: Annotated[int, Field(ge=1)]
    cells: dict[str, SliceMeans]
