"""The shape of what surrounds the scores in results.json: pool bias, other measures, marked passages, slices, scale."""

from typing import Annotated, Literal

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Share
from runner.eval_set.shapes.paired import Difference


class LeftOut(FrozenModel):
    """A cell as if some pairs had not been judged: how many these are, how many of them are relevant.

    `ndcg` is its mean nDCG@10 then, `difference` that to the baseline under the same judgments (0 for the baseline).
    """

    pairs: Count
    relevant: Count
    ndcg: float
    difference: float


class CellPool(FrozenModel):
    """What a cell's score owes to its own part in the pool, which has `pairs` pairs.

    `kin` leaves out the pairs that only it and cells which share an encoder or BM25 with it brought (the baseline
    stays). Null if no other cell is left to make a pool.
    """

    pairs: Count
    kin: LeftOut | None


class SensitivityMeasure(FrozenModel):
    """A mean over the queries, and its difference to the baseline's."""

    mean: float
    difference: float


class Sensitivity(FrozenModel):
    """A cell by measures that take unjudged hits otherwise than nDCG@10 does.

    `residual` is the most that the unjudged hits could add to the mean of `rbp`.
    """

    condensed: SensitivityMeasure
    bpref: SensitivityMeasure
    rbp: SensitivityMeasure
    residual: float


class SpanMeasure(FrozenModel):
    """A mean over the queries for which it is defined, with its interval; null if there is none of them.

    `per_query` are units of 1e-9 in the order of the queries, null if undefined. `difference` is null if the
    baseline has no reading list.
    """

    queries: Count
    mean: float | None
    low: float | None
    high: float | None
    per_query: list[int | None]
    difference: Difference | None


class SpanBudget(FrozenModel):
    """What the first `tokens` tokens of a cell's reading lists hold of the marked passages.

    `unmarked` and `unjudged` are the shares of the characters read, over the queries with marks, that lie in relevant
    documents without a mark (which precision leaves out) and in documents that nobody judged (which count as wrong).
    """

    tokens: Count
    recall: SpanMeasure
    precision: SpanMeasure
    unmarked: Share
    unjudged: Share


class SpanResult(FrozenModel):
    """Marked passages, and what every cell with a reading list finds of them; no cell if nothing is marked.

    `queries` have a mark in some relevant document; `documents` are the pairs of a query and a relevant document with
    marks, `unmarked` those without; `characters` are the marked ones.
    """

    queries: Count
    documents: Count
    unmarked: Count
    characters: Count
    cells: dict[str, list[SpanBudget]]


class SliceMeans(FrozenModel):
    """A cell's means over the queries of a slice."""

    ndcg: float
    recall: float


class Slice(FrozenModel):
    """The queries that have something in common, for description alone.

    `low` and `high` bound the length in characters, both included, of the document that answers; null for other
    slices. `few` says that there are too few queries to say anything.
    """

    by: Literal["origin", "kind", "stratum", "length"]
    name: str
    low: Count | None
    high: Count | None
    queries: Annotated[int, Field(ge=1)]
    few: bool
    cells: dict[str, SliceMeans]


class TenTimes(FrozenModel):
    """A cell's nDCG@10 expected among ten times the documents.

    `bias` and `error` are the mean and the root mean square of what the method says of the present collection from
    tenths of it, less what was observed.
    """

    ndcg: Share
    bias: float
    error: Annotated[float, Field(ge=0)]
